// SPDX-License-Identifier: Apache-2.0
// A list of calls of one kernel, read in C as single calls are, since a list may hold hundreds of small tensors. What
// is not understood at once is read by the package, an argument at a time.
#include "kernel_type.h"
#include <deque>

namespace elsewise::python {

namespace {

// What the calls borrow; its parts stay where they are made.
struct Storage {
  std::deque<Dims> dims;
  std::deque<api::PlanRef> plans;
  std::vector<PyObject *> kept; // strong

  ~Storage() {
    for (PyObject *object : kept) Py_DECREF(object);
  }
};

class Reader {
public:
  Reader(Storage &storage, bool plain, bool grad) : storage_(storage), plain_(plain), grad_(grad) {}

  bool read(PyObject *name, PyObject *value, bool writable, api::Arg &arg) {
    if (plain_ && is_torch(value)) {
      owner = Owner::Torch;
      at_once = read_torch(value, grad_, arg, storage_.dims.emplace_back());
      if (at_once) return placed(arg);
      storage_.dims.pop_back();
    } else if (!writable && read_scalar(value, arg)) {
      return true;
    }
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

  Owner owner = Owner::None;
  int32_t ordinal = -1; // of the first CUDA tensor
  bool at_once = false; // the last tensor was read in C: it would be as an `out` too

private:
  static bool is_torch_like(PyObject *value) { return torch.tensor && PyObject_TypeCheck(value, torch.tensor); }
  bool placed(const api::Arg &arg) {
    if (arg.device.kind == api::DeviceKind::Cuda && ordinal < 0) ordinal = arg.device.ordinal;
    return true;
  }

  Storage &storage_;
  bool plain_, grad_;
};

// True if the same plan serves both, of calls that give the same options.
bool same_layout(const api::Arg &a, const api::Arg &b) {
  if (a.kind != b.kind) return false;
  return a.kind != ArgKind::Tensor ||
         (a.dtype == b.dtype && a.device == b.device && a.rank == b.rank &&
          std::equal(a.shape, a.shape + a.rank, b.shape) && std::equal(a.stride, a.stride + a.rank, b.stride));
}

bool same_layout(const api::Call &a, const api::Call &b) {
  return std::equal(a.args.begin(), a.args.end(), b.args.begin(), b.args.end(),
                    [](const api::Arg &x, const api::Arg &y) { return same_layout(x, y); }) &&
         (!a.out || same_layout(*a.out, *b.out));
}

} // namespace

PyObject *call_each(PyObject *kernel, PyObject *arguments, PyObject *outs, PyObject *stream) {
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
  Reader reader(storage, plain, grad);
  std::vector<api::Arg> args(count * width), out(count);
  std::vector<api::Call> calls(count);
  std::vector<const api::Plan *> plans(count);
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
        reader.at_once = false;
        if (!reader.read(names[a], PyList_GET_ITEM(given, Py_ssize_t(k)), false, args[k * width + a])) return nullptr;
        if (a == in_place) read_at_once[k] = reader.at_once;
      }
    } else if (count) {
      if (!reader.read(names[a], given, false, args[a])) return nullptr;
      for (size_t k = 1; k < count; ++k) args[k * width + a] = args[a];
    }
  }
  for (size_t k = 0; outs != Py_None && k < count; ++k) {
    PyObject *target = PyList_GET_ITEM(outs, Py_ssize_t(k));
    if (in_place < width && read_at_once[k] &&
        target == PyList_GET_ITEM(PyTuple_GET_ITEM(arguments, Py_ssize_t(in_place)), Py_ssize_t(k)))
      out[k] = args[k * width + in_place];
    else if (!reader.read(out_name, target, true, out[k])) return nullptr;
  }

  void *on = nullptr;
  if (stream != Py_None) on = PyLong_AsVoidPtr(stream);
  else if (reader.ordinal >= 0) on = current_stream(reader.ordinal);
  if (PyErr_Occurred()) return nullptr;

  PyObject *made = outs == Py_None ? PyList_New(Py_ssize_t(count)) : (Py_INCREF(outs), outs);
  if (!made) return nullptr;
  storage.kept.push_back(made);
  // Lists of tensors of a few shapes are usual: the last plans serve many calls.
  constexpr size_t recent = 4;
  for (size_t k = 0; k < count; ++k) {
    api::Call &call = calls[k];
    call.args = {args.data() + k * width, width}, call.stream = on;
    if (outs != Py_None) {
      call.out = &out[k];
      if (k && same_layout(call, calls[k - 1])) plans[k] = plans[k - 1];
    }
    for (size_t back = 1; back <= std::min(recent, storage.plans.size()) && !plans[k]; ++back)
      if (const api::PlanRef &old = storage.plans[storage.plans.size() - back]; api::matches(*old, call))
        plans[k] = old.get();
    if (!plans[k]) {
      PyThreadState *thread = PyEval_SaveThread(); // it may compile
      auto planned = api::plan(*spec, call);
      PyEval_RestoreThread(thread);
      if (!planned) {
        planned.message = "in call " + std::to_string(k) + " of the list: " + planned.message;
        return raise(planned, **spec), nullptr;
      }
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
  Py_INCREF(made);
  return made;
}

} // namespace elsewise::python
