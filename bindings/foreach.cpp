// SPDX-License-Identifier: Apache-2.0
// A list of calls of one kernel, read in C as single calls are, since a list may hold hundreds of small tensors. What
// is not understood at once is read by the package, an argument at a time.
#include "kernel_type.h"
#include <algorithm>
#include <cstring>
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
  static bool is_tensor(uint32_t layout) { return layout >= kinds; }
  static uint32_t of_scalar(const api::Arg &arg) { return uint32_t(arg.kind); }

  /// `extent`: as extent_of() says.
  uint32_t of_tensor(const Found &found, int64_t &extent) {
    if (last_ >= seen_.size() || !same(found, seen_[last_].found)) find(found);
    extent = seen_[last_].extent;
    return kinds + last_;
  }
  /// Its lengths and strides stay as long as this does.
  api::Arg tensor(uint32_t layout, void *address) const {
    const Found &found = seen_[layout - kinds].found;
    return {.kind = ArgKind::Tensor,
            .dtype = found.dtype,
            .device = found.device,
            .rank = found.rank,
            .shape = found.shape,
            .stride = found.stride,
            .data = address};
  }

private:
  static constexpr uint32_t kinds = 8; // of arguments, and more: tensors' numbers begin behind them
  struct Seen {
    Found found;
    int64_t extent;
  };

  static bool same(const Found &a, const Found &b) {
    if (a.dtype != b.dtype || a.device != b.device || a.rank != b.rank) return false;
    for (int32_t d = 0; d < a.rank; ++d)
      if (a.shape[d] != b.shape[d] || a.stride[d] != b.stride[d]) return false;
    return true;
  }
  void find(const Found &found) {
    uint64_t hash = mixed(uint64_t(found.rank) << 40 | uint64_t(found.dtype) << 32 | uint64_t(found.device.kind) << 24,
                          uint64_t(found.device.ordinal));
    for (int32_t d = 0; d < found.rank; ++d)
      hash = mixed(mixed(hash, uint64_t(found.shape[d])), uint64_t(found.stride[d]));
    last_ = numbers_.of(hash, [&](uint32_t n) { return same(found, seen_[n].found); });
    if (last_ < seen_.size()) return;
    std::vector<int64_t> &dims = dims_.emplace_back(found.shape, found.shape + found.rank);
    dims.insert(dims.end(), found.stride, found.stride + found.rank);
    seen_.push_back({found, extent_of(found)});
    seen_.back().found.shape = dims.data(), seen_.back().found.stride = dims.data() + found.rank;
  }

  Numbers numbers_;
  std::vector<Seen> seen_;
  std::deque<std::vector<int64_t>> dims_;
  uint32_t last_ = 0;
};

/// What calls share whose arguments are of the same layouts.
struct Planned {
  std::vector<uint32_t> row; // of layouts: the arguments', then that of `out`
  struct Model *latest = nullptr;
  api::PlanRef plan;
};

/// What calls share that differ in addresses alone. It refers to itself, so it stays where it is made.
struct Model {
  Model() = default;
  Model(const Model &) = delete;
  size_t first = 0; // of its calls
  Planned *planned = nullptr;
  std::vector<api::Arg> args;
  api::Arg out;
  api::Call call;
};

bool same_value(const api::Arg &a, const api::Arg &b) {
  return a.integer == b.integer && std::memcmp(&a.real, &b.real, sizeof a.real) == 0;
}

class Models {
public:
  /// The model of call k, of these layouts. `numbers`: of arguments that are no tensors; `numbers_differ`: they may be
  /// others than those of the call before.
  Model *of(size_t k, const std::vector<uint32_t> &row, const std::vector<api::Arg> &numbers, bool numbers_differ,
            void *const *addresses, const Layouts &layouts, bool with_out) {
    const auto fits = [&](const Model &m) {
      if (numbers_differ)
        for (size_t a = 0; a < numbers.size(); ++a)
          if (!Layouts::is_tensor(row[a]) && !same_value(m.args[a], numbers[a])) return false;
      return true;
    };
    if (last_ && row == last_->planned->row && fits(*last_)) return last_;
    uint64_t hash = 0;
    for (uint32_t layout : row) hash = mixed(hash, layout);
    const uint32_t number = numbers_.of(hash, [&](uint32_t n) { return row == planned_[n].row; });
    if (number == planned_.size()) planned_.push_back({row, nullptr, nullptr});
    Planned &planned = planned_[number];
    last_ = planned.latest;
    if (last_ && fits(*last_)) return last_;
    Model &m = *(last_ = planned.latest = &all.emplace_back());
    m.first = k, m.planned = &planned, m.args = numbers;
    for (size_t a = 0; a < numbers.size(); ++a)
      if (Layouts::is_tensor(row[a])) m.args[a] = layouts.tensor(row[a], addresses[a]);
    m.call.args = m.args;
    if (with_out) m.out = layouts.tensor(row.back(), addresses[numbers.size()]), m.call.out = &m.out;
    return last_;
  }

  std::deque<Model> all;

private:
  Numbers numbers_;
  std::deque<Planned> planned_; // by number
  Model *last_ = nullptr;
};

/// What the calls are made of, kept from one list to the next, since it need not be found again. All of it is written
/// before it is read.
struct Buffers {
  std::vector<void *> addresses; // by call, the arguments', then that of `out`
  std::vector<api::ListedCall> calls;
  std::vector<Model *> models; // by call
};

// What the calls borrow; its parts stay where they are made.
struct Storage {
  Storage() : buffers(spare ? std::move(spare) : std::make_unique<Buffers>()) {}
  Storage(const Storage &) = delete;
  ~Storage() {
    constexpr size_t most_kept = 1 << 13;
    if (buffers->addresses.capacity() <= most_kept) spare = std::move(buffers);
    for (PyObject *object : kept) Py_DECREF(object);
  }

  std::unique_ptr<Buffers> buffers;
  Layouts layouts;
  Models models;
  std::vector<PyObject *> kept; // strong

private:
  static inline std::unique_ptr<Buffers> spare; // guarded by the GIL; a list read inside of another finds none
};

class Reader {
public:
  /// `alone`: what C alone does not understand is not read by the package, and no error is set.
  Reader(Storage &storage, bool plain, bool grad, bool alone)
      : storage_(storage), plain_(plain), grad_(grad), alone_(alone) {}

  /// `scalar` is written if it is no tensor.
  bool read(PyObject *name, PyObject *value, bool writable, uint32_t &layout, void *&address, api::Arg &scalar) {
    at_once = plain_ && is_torch(value) && find(value, layout, address);
    if (at_once) {
      owner = Owner::Torch;
      return true;
    }
    if (!writable && read_scalar(value, scalar)) return take_number(scalar, layout, address);
    if (alone_) return false;
    PyObject *operand = PyObject_CallFunctionObjArgs(package.read, name, value, writable ? Py_True : Py_False, nullptr);
    if (!operand) return false;
    storage_.kept.push_back(operand);
    if (const View *view = view_of(operand)) {
      if (is_torch_like(value)) owner = Owner::Torch;
      else if (owner == Owner::None) owner = Owner::NumPy;
      take(
          {view->dtype, view->device, int32_t(view->shape.size()), view->shape.data(), view->stride.data(), view->data},
          layout, address);
      return true;
    }
    if (read_scalar(operand, scalar)) return take_number(scalar, layout, address);
    return PyErr_SetString(PyExc_TypeError, "neither a view nor a number"), false;
  }

  /// True if a tensor that was read in C is as it was then.
  bool is_unchanged(PyObject *value, uint32_t layout, void *address) {
    uint32_t now = 0;
    void *there = nullptr;
    return find(value, now, there) && now == layout && there == address;
  }

  Owner owner = Owner::None;
  int32_t ordinal = -1; // of the first CUDA tensor
  bool at_once = false; // the last value was a tensor read in C: it would be as an `out` too

private:
  bool find(PyObject *value, uint32_t &layout, void *&address) {
    Found found;
    return find_torch(value, grad_, found) && is_in_storage(found, take(found, layout, address));
  }
  // Returns its extent.
  int64_t take(const Found &found, uint32_t &layout, void *&address) {
    int64_t extent = 0;
    layout = storage_.layouts.of_tensor(found, extent), address = found.data;
    if (found.device.kind == api::DeviceKind::Cuda && ordinal < 0) ordinal = found.device.ordinal;
    return extent;
  }
  static bool take_number(const api::Arg &scalar, uint32_t &layout, void *&address) {
    layout = Layouts::of_scalar(scalar), address = nullptr;
    return true;
  }
  static bool is_torch_like(PyObject *value) { return torch.tensor && PyObject_TypeCheck(value, torch.tensor); }

  Storage &storage_;
  bool plain_, grad_, alone_;
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
  const size_t width = names.size(), row_width = width + 1;
  std::vector<size_t> listed; // arguments that are lists
  size_t count = 0;           // of calls; the package has seen to it that all lists are as long
  for (size_t a = 0; a < width; ++a)
    if (PyObject *list = PyTuple_GET_ITEM(arguments, Py_ssize_t(a)); PyList_CheckExact(list))
      listed.push_back(a), count = size_t(PyList_GET_SIZE(list));

  Storage storage;
  bool grad = true;
  const bool plain = torch.tensor && torch_is_plain(grad);
  if (alone && !plain) Py_RETURN_NOTIMPLEMENTED;
  Reader reader(storage, plain, grad, alone);
  const auto unread = [] { return PyErr_Occurred() ? nullptr : Py_NewRef(Py_NotImplemented); };
  const auto list_of = [&](size_t a) { return a < width ? PyTuple_GET_ITEM(arguments, Py_ssize_t(a)) : outs; };
  const auto has_changed = [] { return PyErr_SetString(PyExc_RuntimeError, "a list changed"), nullptr; };
  const auto is_short = [&](PyObject *list) { return size_t(PyList_GET_SIZE(list)) != count; };
  auto &[addresses, calls, models] = *storage.buffers;
  addresses.resize(count * row_width), calls.resize(count), models.resize(count);
  // The list that is written in place, if the first result says so: what was read of it need not be read again.
  size_t in_place = width;
  if (outs != Py_None && count && !is_short(outs))
    for (size_t a : listed)
      if (PyList_GET_ITEM(list_of(a), 0) == PyList_GET_ITEM(outs, 0)) in_place = a;
  static PyObject *const out_name = PyUnicode_InternFromString("out");

  std::vector<uint32_t> row(row_width); // the layouts of a call
  std::vector<api::Arg> scalars(width);
  std::vector<void *> to_all(width);
  std::vector<uint8_t> at_once(count * row_width); // read in C
  std::vector<bool> at_once_to_all(width);
  for (size_t a = 0; a < width && count; ++a) {
    if (PyObject *given = list_of(a); !PyList_CheckExact(given)) {
      if (!reader.read(names[a], given, false, row[a], to_all[a], scalars[a])) return unread();
      at_once_to_all[a] = reader.at_once;
    }
  }
  for (size_t k = 0; k < count; ++k) {
    void **const at = addresses.data() + k * row_width;
    std::copy(to_all.begin(), to_all.end(), at);
    bool numbers_listed = false;
    for (size_t a : listed) {
      PyObject *list = list_of(a);
      if (is_short(list)) return has_changed();
      fetch_ahead(list, Py_ssize_t(k));
      if (!reader.read(names[a], PyList_GET_ITEM(list, Py_ssize_t(k)), false, row[a], at[a], scalars[a]))
        return unread();
      at_once[k * row_width + a] = reader.at_once;
      numbers_listed |= !Layouts::is_tensor(row[a]);
    }
    if (outs != Py_None) {
      if (is_short(outs)) return has_changed();
      PyObject *target = PyList_GET_ITEM(outs, Py_ssize_t(k));
      if (in_place < width && at_once[k * row_width + in_place] && !is_short(list_of(in_place)) &&
          target == PyList_GET_ITEM(list_of(in_place), Py_ssize_t(k))) {
        row[width] = row[in_place], at[width] = at[in_place];
      } else {
        api::Arg none;
        if (!reader.read(out_name, target, true, row[width], at[width], none)) return unread();
        if (reader.at_once) at_once[k * row_width + width] = true;
      }
    }

    models[k] = storage.models.of(k, row, scalars, numbers_listed, at, storage.layouts, outs != Py_None);
  }
  // Python code ran in between, which may have freed what had been read before it.
  if (!storage.kept.empty()) {
    const auto unchanged = [&](size_t k, size_t a, PyObject *value) {
      return reader.is_unchanged(value, models[k]->planned->row[a], addresses[k * row_width + a]);
    };
    for (size_t k = 0; k < count; ++k)
      for (size_t a = 0; a < row_width; ++a) {
        PyObject *list = list_of(a);
        if (PyList_CheckExact(list) ? at_once[k * row_width + a] : a < width && at_once_to_all[a]) {
          if (PyList_CheckExact(list) && is_short(list)) return has_changed();
          if (!unchanged(k, a, PyList_CheckExact(list) ? PyList_GET_ITEM(list, Py_ssize_t(k)) : list))
            return PyErr_Format(PyExc_RuntimeError, "in call %zu of the list: `%U` changed while the list was read", k,
                                a < width ? names[a] : out_name);
        }
      }
  }

  if (stream != Py_None && reader.ordinal < 0 && count)
    return PyErr_SetString(PyExc_ValueError, "`stream=` is for CUDA, and these calls run on the CPU"), nullptr;
  void *on = nullptr;
  if (stream != Py_None) on = PyLong_AsVoidPtr(stream);
  else if (reader.ordinal >= 0) on = current_stream(reader.ordinal);
  if (PyErr_Occurred()) return nullptr;

  for (Model &m : storage.models.all) {
    m.call.stream = on;
    api::PlanRef &plan = m.planned->plan;
    if (plan) continue;
    PyThreadState *thread = PyEval_SaveThread(); // it may compile
    auto planned = api::plan(*spec, m.call);
    PyEval_RestoreThread(thread);
    if (!planned) {
      planned.message = "in call " + std::to_string(m.first) + " of the list: " + planned.message;
      return raise(planned, **spec), nullptr;
    }
    plan = std::move(planned.value);
  }
  PyObject *made = outs == Py_None ? PyList_New(Py_ssize_t(count)) : (Py_INCREF(outs), outs);
  if (!made) return nullptr;
  storage.kept.push_back(made);
  for (size_t k = 0; k < count; ++k) {
    Model &m = *models[k];
    void **const at = addresses.data() + k * row_width;
    calls[k].plan = m.planned->plan.get(), calls[k].call = &m.call, calls[k].addresses = at;
    if (outs != Py_None) continue;
    PyObject *result = allocate_out(*calls[k].plan, reader.owner == Owner::Torch ? Owner::Torch : Owner::NumPy, m.out);
    if (!result) return nullptr;
    PyList_SET_ITEM(made, Py_ssize_t(k), result);
    at[width] = m.out.data, m.call.out = &m.out;
  }
  if (reader.ordinal < 0) follow_threads(reader.owner == Owner::Torch);

  PyThreadState *thread = PyEval_SaveThread();
  auto ran = api::run_each(calls);
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
      if (values[a] == outs && !out) out = Py_NewRef(list); // in place: one copy serves both
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
