// SPDX-License-Identifier: Apache-2.0
// A list of calls of one kernel, read in C as single calls are, since a list may hold hundreds of small tensors. What
// is not understood at once is read by the package, an argument at a time.
#include "kernel_type.h"
#include <algorithm>
#include <deque>

namespace elsewise::python {

namespace {

uint64_t mixed(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15;
  return hash ^ hash >> 32;
}

/// Numbers for things of which equal ones have the same number, in the order of their first sight.
class Numbers {
public:
  /// `equal(n)`: it equals that of number n.
  template <class F> uint32_t of(uint64_t hash, F equal) {
    if (2 * hashes_.size() >= places_.size()) grow();
    uint32_t *place = first(hash);
    for (; *place != none; place = next(place))
      if (hashes_[*place] == hash && equal(*place)) return *place;
    *place = uint32_t(hashes_.size());
    hashes_.push_back(hash);
    return *place;
  }

private:
  static constexpr uint32_t none = ~0u;

  uint32_t *first(uint64_t hash) { return &places_[hash & (places_.size() - 1)]; }
  uint32_t *next(uint32_t *place) { return place == &places_.back() ? places_.data() : place + 1; }
  void grow() {
    places_.assign(std::max<size_t>(2 * places_.size(), 64), none); // a power of two
    for (uint32_t n = 0; n < hashes_.size(); ++n) {
      uint32_t *place = first(hashes_[n]);
      while (*place != none) place = next(place);
      *place = n;
    }
  }

  std::vector<uint64_t> hashes_; // by number
  std::vector<uint32_t> places_; // at least half of them free
};

/// All that a plan depends on of arguments, as a number each: lists of tensors of one layout are usual, and of a few.
class Layouts {
public:
  uint32_t number_of(api::Arg &arg) {
    if (arg.kind != ArgKind::Tensor) return uint32_t(arg.kind);
    if (last_ < seen_.size() && same(arg, seen_[last_])) return use(last_, arg);
    uint64_t hash = mixed(uint64_t(arg.rank) << 40 | uint64_t(arg.dtype) << 32 | uint64_t(arg.device.kind) << 24,
                          uint64_t(arg.device.ordinal));
    for (int32_t d = 0; d < arg.rank; ++d) hash = mixed(mixed(hash, uint64_t(arg.shape[d])), uint64_t(arg.stride[d]));
    last_ = numbers_.of(hash, [&](uint32_t n) { return same(arg, seen_[n]); });
    if (last_ == seen_.size()) {
      std::vector<int64_t> &dims = dims_.emplace_back(arg.shape, arg.shape + arg.rank);
      dims.insert(dims.end(), arg.stride, arg.stride + arg.rank);
      seen_.push_back(arg);
      seen_.back().shape = dims.data(), seen_.back().stride = dims.data() + arg.rank;
    }
    return use(last_, arg);
  }

private:
  static constexpr uint32_t kinds = 8; // of arguments, and more: tensors' numbers begin behind them

  static bool same(const api::Arg &a, const api::Arg &b) {
    return a.dtype == b.dtype && a.device == b.device && a.rank == b.rank &&
           std::equal(a.shape, a.shape + a.rank, b.shape) && std::equal(a.stride, a.stride + a.rank, b.stride);
  }
  // Lengths and strides are borrowed of what stays.
  uint32_t use(uint32_t n, api::Arg &arg) const {
    arg.shape = seen_[n].shape, arg.stride = seen_[n].stride;
    return kinds + n;
  }

  Numbers numbers_;
  std::vector<api::Arg> seen_;
  std::deque<std::vector<int64_t>> dims_;
  uint32_t last_ = 0;
};

/// What the calls are made of, kept from one list to the next: hundreds of kilobytes that need not be found, and
/// cleared, again. All of it is written before it is read.
struct Buffers {
  std::vector<api::Arg> args, out;
  std::vector<uint32_t> layouts; // of the arguments and `out`, by call
  std::vector<api::Call> calls;
  std::vector<const api::Plan *> plans;

  void resize(size_t count, size_t width) {
    args.resize(count * width), out.resize(count), layouts.resize(count * (width + 1));
    calls.resize(count), plans.resize(count);
  }
};

// What the calls borrow; its parts stay where they are made.
struct Storage {
  Storage() : buffers(spare ? std::move(spare) : std::make_unique<Buffers>()) {}
  Storage(const Storage &) = delete;
  ~Storage() {
    constexpr size_t most_kept = 1 << 13; // arguments
    if (buffers->args.capacity() <= most_kept && buffers->calls.capacity() <= most_kept) spare = std::move(buffers);
    for (PyObject *object : kept) Py_DECREF(object);
  }

  std::unique_ptr<Buffers> buffers;
  Layouts layouts;
  std::deque<api::PlanRef> plans;
  std::vector<PyObject *> kept; // strong

private:
  static inline std::unique_ptr<Buffers> spare; // guarded by the GIL; a list read inside of another finds none
};

class Reader {
public:
  /// `alone`: what C alone does not understand is not read by the package, and no error is set.
  Reader(Storage &storage, bool plain, bool grad, bool alone)
      : storage_(storage), plain_(plain), grad_(grad), alone_(alone) {}

  /// `layout`: its number.
  bool read(PyObject *name, PyObject *value, bool writable, api::Arg &arg, uint32_t &layout) {
    if (!read(name, value, writable, arg)) return false;
    layout = storage_.layouts.number_of(arg);
    return true;
  }

  Owner owner = Owner::None;
  int32_t ordinal = -1; // of the first CUDA tensor
  bool at_once = false; // the last value was a tensor read in C: it would be as an `out` too

private:
  bool read(PyObject *name, PyObject *value, bool writable, api::Arg &arg) {
    at_once = false;
    if (plain_ && is_torch(value)) {
      owner = Owner::Torch;
      at_once = read_torch(value, grad_, arg, dims_);
      if (at_once) return placed(arg);
    } else if (!writable && read_scalar(value, arg)) {
      return true;
    }
    if (alone_) return false;
    PyObject *operand = PyObject_CallFunctionObjArgs(package.read, name, value, writable ? Py_True : Py_False, nullptr);
    if (!operand) return false;
    storage_.kept.push_back(operand);
    if (const View *view = view_of(operand)) {
      arg = view->arg();
      if (is_torch_like(value)) owner = Owner::Torch;
      else if (owner == Owner::None) owner = Owner::NumPy;
      return placed(arg);
    }
    return read_scalar(operand, arg) || (PyErr_SetString(PyExc_TypeError, "neither a view nor a number"), false);
  }

  static bool is_torch_like(PyObject *value) { return torch.tensor && PyObject_TypeCheck(value, torch.tensor); }
  bool placed(const api::Arg &arg) {
    if (arg.device.kind == api::DeviceKind::Cuda && ordinal < 0) ordinal = arg.device.ordinal;
    return true;
  }

  Storage &storage_;
  bool plain_, grad_, alone_;
  Dims dims_; // of the last tensor
};

// Tells autograd what was written.
bool tell_written(PyObject *outs) {
  PyObject *rest = nullptr; // what only the package can tell of
  for (Py_ssize_t k = 0; k < PyList_GET_SIZE(outs); ++k) {
    PyObject *target = PyList_GET_ITEM(outs, k);
    if (bump_version(target)) continue;
    if (!rest && !(rest = PyList_New(0))) return false;
    if (PyList_Append(rest, target)) return Py_DECREF(rest), false;
  }
  if (!rest) return true;
  PyObject *done = PyObject_CallOneArg(package.written, rest);
  Py_DECREF(rest);
  Py_XDECREF(done);
  return done != nullptr;
}

} // namespace

PyObject *call_each(PyObject *kernel, PyObject *arguments, PyObject *outs, PyObject *stream, bool alone) {
  const api::SpecRef *spec = spec_of(kernel);
  if (!spec) return nullptr;
  const auto &names = names_of(kernel);
  const size_t width = names.size();
  size_t count = 0; // of calls; the package has seen to it that all lists are as long
  for (size_t a = 0; a < width; ++a)
    if (PyObject *list = PyTuple_GET_ITEM(arguments, Py_ssize_t(a)); PyList_CheckExact(list))
      count = size_t(PyList_GET_SIZE(list));

  Storage storage;
  bool grad = true;
  const bool plain = torch.tensor && torch_is_plain(grad);
  if (alone && !plain) Py_RETURN_NOTIMPLEMENTED;
  Reader reader(storage, plain, grad, alone);
  const auto unread = [] { return PyErr_Occurred() ? nullptr : Py_NewRef(Py_NotImplemented); };
  storage.buffers->resize(count, width);
  auto &[args, out, layouts, calls, plans] = *storage.buffers;
  const size_t row = width + 1; // of layouts
  // The list that is written in place, if the first result says so, and which of it need not be read again.
  size_t in_place = width;
  for (size_t a = 0; a < width && outs != Py_None && count; ++a)
    if (PyObject *list = PyTuple_GET_ITEM(arguments, Py_ssize_t(a));
        PyList_CheckExact(list) && PyList_GET_ITEM(list, 0) == PyList_GET_ITEM(outs, 0))
      in_place = a;
  std::vector<bool> read_at_once(count);
  static PyObject *const out_name = PyUnicode_InternFromString("out");
  // Those that all calls share are read once.
  for (size_t a = 0; a < width; ++a) {
    PyObject *given = PyTuple_GET_ITEM(arguments, Py_ssize_t(a));
    if (PyList_CheckExact(given)) {
      for (size_t k = 0; k < count; ++k) {
        if (size_t(PyList_GET_SIZE(given)) != count)
          return PyErr_SetString(PyExc_RuntimeError, "a list changed"), nullptr;
        if (!reader.read(names[a], PyList_GET_ITEM(given, Py_ssize_t(k)), false, args[k * width + a],
                         layouts[k * row + a]))
          return unread();
        if (a == in_place) read_at_once[k] = reader.at_once;
      }
    } else if (count) {
      if (!reader.read(names[a], given, false, args[a], layouts[a])) return unread();
      for (size_t k = 1; k < count; ++k) args[k * width + a] = args[a], layouts[k * row + a] = layouts[a];
    }
  }
  for (size_t k = 0; k < count; ++k) {
    if (outs == Py_None) {
      layouts[k * row + width] = 0;
      continue;
    }
    PyObject *target = PyList_GET_ITEM(outs, Py_ssize_t(k));
    if (in_place < width && read_at_once[k] &&
        target == PyList_GET_ITEM(PyTuple_GET_ITEM(arguments, Py_ssize_t(in_place)), Py_ssize_t(k)))
      out[k] = args[k * width + in_place], layouts[k * row + width] = layouts[k * row + in_place];
    else if (!reader.read(out_name, target, true, out[k], layouts[k * row + width])) return unread();
  }

  void *on = nullptr;
  if (stream != Py_None) on = PyLong_AsVoidPtr(stream);
  else if (reader.ordinal >= 0) on = current_stream(reader.ordinal);
  if (PyErr_Occurred()) return nullptr;

  PyObject *made = outs == Py_None ? PyList_New(Py_ssize_t(count)) : (Py_INCREF(outs), outs);
  if (!made) return nullptr;
  storage.kept.push_back(made);
  Numbers numbers;            // of plans: calls whose arguments are of the same layouts share one
  std::vector<size_t> firsts; // by plan, of its calls
  for (size_t k = 0; k < count; ++k) {
    api::Call &call = calls[k];
    call = {.args = {args.data() + k * width, width}, .out = outs == Py_None ? nullptr : &out[k], .stream = on};
    const uint32_t *mine = layouts.data() + k * row;
    auto as_in = [&](size_t other) { return std::equal(mine, mine + row, layouts.data() + other * row); };
    if (k && as_in(k - 1)) {
      plans[k] = plans[k - 1];
    } else {
      uint64_t hash = 0;
      for (size_t a = 0; a < row; ++a) hash = mixed(hash, mine[a]);
      const uint32_t number = numbers.of(hash, [&](uint32_t n) { return as_in(firsts[n]); });
      plans[k] = number < firsts.size() ? storage.plans[number].get() : nullptr;
    }
    if (!plans[k]) {
      PyThreadState *thread = PyEval_SaveThread(); // it may compile
      auto planned = api::plan(*spec, call);
      PyEval_RestoreThread(thread);
      if (!planned) {
        planned.message = "in call " + std::to_string(k) + " of the list: " + planned.message;
        return raise(planned, **spec), nullptr;
      }
      firsts.push_back(k);
      plans[k] = storage.plans.emplace_back(std::move(planned.value)).get();
    }
    if (call.out) continue;
    PyObject *result = allocate_out(*plans[k], reader.owner == Owner::Torch ? Owner::Torch : Owner::NumPy, out[k]);
    if (!result) return nullptr;
    PyList_SET_ITEM(made, Py_ssize_t(k), result);
    call.out = &out[k];
  }
  if (reader.ordinal < 0) follow_threads(reader.owner == Owner::Torch);

  PyThreadState *thread = PyEval_SaveThread();
  auto ran = api::run_each(plans, calls);
  PyEval_RestoreThread(thread);
  if (!ran) return raise(ran, **spec), nullptr;
  if (outs != Py_None && !tell_written(outs)) return nullptr;
  Py_INCREF(made);
  return made;
}

namespace {

/// A list of its own of the elements, which nobody else changes; null, with no error set, for what is no list.
PyObject *copy_of(PyObject *list) {
  if (PyList_CheckExact(list)) return PyList_GetSlice(list, 0, PyList_GET_SIZE(list));
  return PyTuple_CheckExact(list) ? PySequence_List(list) : nullptr;
}

/// Values by argument, borrowed; false where the package has something to say of names.
bool assigned(PyObject *kernel, PyObject *args, PyObject *kwargs, std::vector<PyObject *> &values) {
  const auto &names = names_of(kernel);
  const Py_ssize_t positional = PyTuple_GET_SIZE(args);
  if (positional > 1 || PyDict_GET_SIZE(kwargs) + positional != Py_ssize_t(names.size())) return false;
  size_t free = names.size();
  for (size_t a = 0; a < names.size(); ++a) {
    values.push_back(PyDict_GetItemWithError(kwargs, names[a]));
    if (!values[a]) free = a;
    else if (values[a] == Py_None) return false;
  }
  if (!positional) return free == names.size() && !names.empty();
  if (free == names.size() || PyTuple_GET_ITEM(args, 0) == Py_None) return false;
  if (const int main = main_of(kernel); main >= 0 && size_t(main) != free) return false;
  values[free] = PyTuple_GET_ITEM(args, 0); // as many as there are names, so it is the only one without
  return std::find(values.begin(), values.end(), nullptr) == values.end();
}

} // namespace

PyObject *call_each_at_once(PyObject *kernel, PyObject *args, PyObject *outs, PyObject *kwargs) {
  if (!spec_of(kernel)) return nullptr;
  std::vector<PyObject *> values;
  if (!torch.tensor || !assigned(kernel, args, kwargs, values)) Py_RETURN_NOTIMPLEMENTED;
  PyObject *given = PyTuple_New(Py_ssize_t(values.size())), *out = nullptr, *done = nullptr;
  if (!given) return nullptr;
  Py_ssize_t count = -1;
  bool alike = true;
  for (size_t a = 0; a < values.size(); ++a) {
    PyObject *list = copy_of(values[a]);
    if (list) {
      alike &= count < 0 || PyList_GET_SIZE(list) == count;
      count = PyList_GET_SIZE(list);
      if (values[a] == outs) out = Py_NewRef(list); // in place: one copy serves both
    }
    PyTuple_SET_ITEM(given, Py_ssize_t(a), list ? list : Py_NewRef(values[a]));
  }
  if (!out) out = outs == Py_None ? Py_NewRef(Py_None) : copy_of(outs);
  const bool lists = count >= 0 && alike && out && (out == Py_None || PyList_GET_SIZE(out) == count);
  if (!PyErr_Occurred()) done = lists ? call_each(kernel, given, out, Py_None, true) : Py_NewRef(Py_NotImplemented);
  Py_DECREF(given);
  Py_XDECREF(out);
  return done;
}

} // namespace elsewise::python
