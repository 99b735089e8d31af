// SPDX-License-Identifier: Apache-2.0
// One call on the fast path, from the C arguments of vectorcall to the launch. It refuses nothing itself: what it does
// not understand at once goes to _call.py, and what the run time refuses is raised as the run time words it.
#include "kernel_type.h"
#include <array>
#include <structmember.h>

namespace elsewise::python {

inline constexpr int fast_arguments = 8; // specs with more take the slow path

Package package;
PathCounts path_counts;

static PyObject *own(PyObject *object) {
  Py_INCREF(object);
  return object;
}

/// Where the values of a call go, for one shape of call: k(x, out=y, gain=2) has kwnames ("out", "gain") and one
/// positional value.
struct Binding {
  PyObject *kwnames = nullptr; // strong: its identity is the key
  Py_ssize_t positional = -1;
  std::array<int8_t, fast_arguments + 1> slot{}; // of value k: an argument, or out_slot
  int values = 0;
  bool usable = false;
};
inline constexpr int8_t out_slot = -1;

struct State {
  api::SpecRef spec;
  std::vector<PyObject *> names; // interned
  int main = -1;                 // the argument `x`
  Binding binding;
  api::PlanRef last[2]; // of calls without `out`, and with it
};

static Binding bind(const State &state, Py_ssize_t positional, PyObject *kwnames) {
  static PyObject *out_name = PyUnicode_InternFromString("out");
  Binding binding{.kwnames = kwnames, .positional = positional};
  const int named = kwnames ? int(PyTuple_GET_SIZE(kwnames)) : 0;
  const int arguments = int(state.names.size());
  if (positional > 1 || arguments > fast_arguments || positional + named > fast_arguments + 1) return binding;
  uint32_t filled = 0;
  binding.values = int(positional) + named;
  for (int k = 0; k < named; ++k) {
    PyObject *name = PyTuple_GET_ITEM(kwnames, k);
    int slot = 0;
    while (slot < arguments && PyUnicode_Compare(name, state.names[slot])) ++slot;
    if (slot < arguments) filled |= 1u << slot;
    else if (PyUnicode_Compare(name, out_name) == 0) slot = out_slot;
    else return binding; // shape=, dtype=, … or a mistake
    binding.slot[positional + k] = int8_t(slot);
  }
  if (positional) {
    int slot = state.main; // or the only name that keywords leave
    for (int k = 0; k < arguments && state.main < 0; ++k)
      if (!(filled >> k & 1)) slot = slot < 0 ? k : fast_arguments;
    if (slot < 0 || slot >= arguments || filled >> slot & 1) return binding;
    filled |= 1u << slot;
    binding.slot[0] = int8_t(slot);
  }
  binding.usable = filled == (1u << arguments) - 1;
  return binding;
}

static PyObject *call_slowly(PyObject *self, PyObject *const *values, Py_ssize_t positional, PyObject *kwnames) {
  ++path_counts.slow;
  PyObject *args = PyTuple_New(positional), *kwargs = PyDict_New(), *result = nullptr;
  bool good = args && kwargs;
  for (Py_ssize_t k = 0; good && k < positional; ++k) PyTuple_SET_ITEM(args, k, own(values[k]));
  for (Py_ssize_t k = 0; good && kwnames && k < PyTuple_GET_SIZE(kwnames); ++k)
    good = !PyDict_SetItem(kwargs, PyTuple_GET_ITEM(kwnames, k), values[positional + k]);
  if (good) result = PyObject_CallFunctionObjArgs(package.slow_call, self, args, kwargs, nullptr);
  Py_XDECREF(args);
  Py_XDECREF(kwargs);
  return result;
}

void follow_threads(bool threads_of_torch) {
  static int threads = 0;
  int wanted = 0;
  if (threads_of_torch && torch.threads)
    if (PyObject *answer = PyObject_CallNoArgs(torch.threads)) {
      wanted = int(PyLong_AsLong(answer));
      Py_DECREF(answer);
    }
  PyErr_Clear();
  if (wanted != threads) api::set_threads(threads = wanted < 0 ? 0 : wanted);
}

api::Result<bool> run_released(const api::Plan &plan, const api::Call &call, bool threads_of_torch) {
  if (call.out->device.kind == api::DeviceKind::Cpu) {
    int64_t bytes = info(call.out->dtype).bytes;
    for (int d = 0; d < call.out->rank; ++d) bytes *= call.out->shape[d];
    if (bytes < 1 << 16) return api::run(plan, call); // too short to share, or to let others in
    follow_threads(threads_of_torch);
  }
  PyThreadState *thread = PyEval_SaveThread();
  auto result = api::run(plan, call);
  PyEval_RestoreThread(thread);
  return result;
}

// Puts the buffers of NumPy arrays back whichever way a call ends.
struct Buffers {
  std::array<Py_buffer, fast_arguments + 1> held;
  int count = 0;
  ~Buffers() {
    while (count) PyBuffer_Release(&held[--count]);
  }
};

static PyObject *tuple_of(std::span<const int64_t> values) {
  PyObject *tuple = PyTuple_New(Py_ssize_t(values.size()));
  for (size_t k = 0; tuple && k < values.size(); ++k) PyTuple_SET_ITEM(tuple, k, PyLong_FromLongLong(values[k]));
  return tuple;
}

static bool is_contiguous(const api::Output &output) {
  int64_t pitch = 1;
  for (size_t d = output.shape.size(); d-- > 0; pitch *= output.shape[d])
    if (output.shape[d] != 1 && output.stride[d] != pitch) return false;
  return true;
}

static PyObject *allocate(const api::Output &output, Owner owner) {
  PyObject *shape = tuple_of(output.shape), *stride = tuple_of(output.stride), *result = nullptr;
  PyObject *array_dtype = numpy.dtypes[int(output.dtype)];
  if (shape && stride && owner == Owner::Torch) {
    static PyObject *names = Py_BuildValue("(ss)", "dtype", "device");
    const bool cuda = output.device.kind == api::DeviceKind::Cuda;
    PyObject *device = cuda ? torch.cuda_devices[output.device.ordinal] : torch.cpu_device;
    PyObject *args[] = {shape, stride, torch.dtypes[int(output.dtype)], device};
    result = PyObject_Vectorcall(torch.empty_strided, args, 2, names);
  } else if (shape && stride && array_dtype && is_contiguous(output)) {
    PyObject *args[] = {shape, array_dtype};
    result = PyObject_Vectorcall(numpy.empty, args, 2, nullptr);
  } else if (shape && stride) {
    result = PyObject_CallFunction(package.allocate_numpy, "OOs", shape, stride, info(output.dtype).spelling);
  }
  Py_XDECREF(shape);
  Py_XDECREF(stride);
  return result;
}

// The address of a tensor or array that `allocate` has just made; it needs none of the checks that others' need.
// Null with an error set on failure.
static void *address_of(PyObject *result, Owner owner) {
  if (owner == Owner::Torch) {
    DLTensor view;
    return torch.api->dltensor_from_py_object_no_sync(result, &view) ? nullptr : view.data;
  }
  static PyObject *interface = PyUnicode_InternFromString("__array_interface__");
  Py_buffer buffer;
  if (PyObject_GetBuffer(result, &buffer, PyBUF_STRIDED) == 0) {
    void *data = buffer.buf;
    PyBuffer_Release(&buffer);
    return data;
  }
  PyErr_Clear(); // ml_dtypes' arrays export no buffer
  PyObject *fields = PyObject_GetAttr(result, interface),
           *data = fields ? PyDict_GetItemString(fields, "data") : nullptr;
  void *address = data ? PyLong_AsVoidPtr(PyTuple_GetItem(data, 0)) : nullptr;
  Py_XDECREF(fields);
  return address;
}

PyObject *allocate_out(const api::Plan &plan, Owner owner, api::Arg &arg) {
  const api::Output output = api::output(plan);
  PyObject *result = allocate(output, owner);
  if (!result) return nullptr;
  arg = {.kind = ArgKind::Tensor, .dtype = output.dtype, .device = output.device};
  arg.rank = int32_t(output.shape.size());
  arg.shape = output.shape.data(), arg.stride = output.stride.data();
  arg.data = address_of(result, owner);
  if (PyErr_Occurred()) Py_CLEAR(result);
  return result;
}

static PyObject *call(PyObject *self, PyObject *const *values, size_t flagged, PyObject *kwnames) {
  State &state = *reinterpret_cast<KernelObject *>(self)->state;
  const Py_ssize_t positional = PyVectorcall_NARGS(flagged);
  if (kwnames != state.binding.kwnames || positional != state.binding.positional) {
    PyObject *old = state.binding.kwnames;
    state.binding = bind(state, positional, kwnames);
    Py_XINCREF(kwnames);
    Py_XDECREF(old);
  }
  const Binding &binding = state.binding;
  if (!binding.usable) return call_slowly(self, values, positional, kwnames);

  // Code run below may call this kernel again, so the binding is used up first.
  const int arguments = int(state.names.size());
  std::array<PyObject *, fast_arguments> objects;
  PyObject *out = nullptr;
  bool has_torch = false, is_plain = true, grad = true;
  for (int k = 0; k < binding.values; ++k) {
    if (binding.slot[k] == out_slot) out = values[k] == Py_None ? nullptr : values[k];
    else objects[binding.slot[k]] = values[k];
    has_torch |= is_torch(values[k]);
  }
  if (has_torch) is_plain = torch_is_plain(grad);

  std::array<api::Arg, fast_arguments> args;
  std::array<Dims, fast_arguments + 1> dims;
  api::Arg out_arg;
  Buffers buffers;
  Owner owner = Owner::None;
  bool cuda = false, host = false;
  int32_t ordinal = 0;
  auto read = [&](PyObject *object, api::Arg &arg, Dims &at, bool writable) {
    if (is_torch(object)) {
      owner = Owner::Torch;
      if (!read_torch(object, grad, arg, at)) return false;
    } else if (Py_TYPE(object) == numpy.array && object) {
      if (owner == Owner::None) owner = Owner::NumPy;
      if (!read_numpy(object, writable, arg, at, buffers.held[buffers.count])) return false;
      ++buffers.count;
    } else {
      return !writable && read_scalar(object, arg);
    }
    if (arg.device.kind == api::DeviceKind::Cpu) {
      host |= arg.rank || writable; // what has no dimensions is read on the host and may go with CUDA data
      return true;
    }
    if (cuda && arg.device.ordinal != ordinal) return false;
    ordinal = arg.device.ordinal;
    return cuda = true;
  };
  for (int k = 0; is_plain && k < arguments; ++k) is_plain = read(objects[k], args[k], dims[k], false);
  if (is_plain && out) is_plain = read(out, out_arg, dims[fast_arguments], true);
  if (is_plain)
    is_plain = owner != Owner::None && !(cuda && host) && !(out && is_torch(out) != (owner == Owner::Torch));
  if (is_plain && cuda) is_plain = size_t(ordinal) < torch.cuda_devices.size();
  if (!is_plain) return call_slowly(self, values, positional, kwnames);

  ++path_counts.fast;
  api::Call call{.args = {args.data(), size_t(arguments)}, .out = out ? &out_arg : nullptr};
  if (cuda) call.stream = current_stream(ordinal);
  api::PlanRef plan = state.last[out != nullptr];
  auto replan = [&] {
    PyThreadState *thread = PyEval_SaveThread(); // it may compile
    auto made = api::plan(state.spec, call);
    PyEval_RestoreThread(thread);
    if (!made) raise(made, *state.spec);
    else plan = std::move(made.value);
    return bool(made);
  };
  if (!plan || !api::matches(*plan, call)) {
    if (!replan()) return nullptr;
    state.last[out != nullptr] = plan;
  }
  PyObject *result = out;
  if (out) {
    Py_INCREF(out);
  } else {
    result = allocate_out(*plan, owner, out_arg);
    if (!result) return nullptr;
    call.out = &out_arg;
    if (reinterpret_cast<uintptr_t>(out_arg.data) % 16 && !replan()) {
      Py_DECREF(result);
      return nullptr;
    }
  }
  const auto ran = run_released(*plan, call, owner == Owner::Torch);
  if (!ran) {
    raise(ran, *state.spec);
  } else if (out && owner == Owner::Torch && !bump_version(out)) {
    PyObject *tuple = PyTuple_Pack(1, out), *bumped = tuple ? PyObject_CallOneArg(torch.bump, tuple) : nullptr;
    Py_XDECREF(tuple);
    Py_XDECREF(bumped);
  }
  if (PyErr_Occurred()) Py_CLEAR(result);
  return result;
}

PyObject *diagnostics_of(std::span<const api::Diagnostic> diagnostics) {
  PyObject *list = PyList_New(0);
  for (const api::Diagnostic &d : diagnostics) {
    PyObject *fixits = PyList_New(0);
    for (const api::FixIt &f : d.fixits)
      if (PyObject *fixit = Py_BuildValue("(IIss)", f.begin, f.end, f.replacement.c_str(), f.label.c_str())) {
        PyList_Append(fixits, fixit);
        Py_DECREF(fixit);
      }
    PyObject *item = Py_BuildValue("{s:s,s:O,s:s,s:s,s:s,s:I,s:I,s:I,s:I,s:N}", "code", d.code.c_str(), "error",
                                   d.error ? Py_True : Py_False, "message", d.message.c_str(), "note", d.note.c_str(),
                                   "rendered", d.rendered.c_str(), "line", d.line, "column", d.column, "end_line",
                                   d.end_line, "end_column", d.end_column, "fixits", fixits);
    if (!item || PyList_Append(list, item)) Py_CLEAR(list);
    Py_XDECREF(item);
    if (!list) break;
  }
  return list;
}

void raise(api::Fault fault, const std::string &message, const std::vector<api::Diagnostic> &diagnostics,
           std::string_view text) {
  static const char *const kinds[] = {"none", "spec",     "type",        "value",   "index",
                                      "zero", "overflow", "environment", "internal"};
  PyObject *list = diagnostics_of(diagnostics);
  PyObject *error = list ? PyObject_CallFunction(package.fault, "ss#Ns#", kinds[int(fault)], message.data(),
                                                 Py_ssize_t(message.size()), list, text.data(), Py_ssize_t(text.size()))
                         : nullptr;
  if (error) PyErr_SetObject(reinterpret_cast<PyObject *>(Py_TYPE(error)), error);
  Py_XDECREF(error);
}

static void deallocate(PyObject *self) {
  auto *kernel = reinterpret_cast<KernelObject *>(self);
  PyTypeObject *type = Py_TYPE(self);
  if (kernel->weakrefs) PyObject_ClearWeakRefs(self);
  if (kernel->state) {
    for (PyObject *name : kernel->state->names) Py_DECREF(name);
    Py_XDECREF(kernel->state->binding.kwnames);
    delete kernel->state;
  }
  type->tp_free(self);
  Py_DECREF(type);
}

static PyObject *refuse_new(PyTypeObject *, PyObject *, PyObject *) {
  PyErr_SetString(PyExc_TypeError, "kernels are made by elsewise.kernel(spec)");
  return nullptr;
}

static PyObject *get_spec(PyObject *self, void *) {
  const std::string_view text = api::text(*reinterpret_cast<KernelObject *>(self)->state->spec);
  return PyUnicode_FromStringAndSize(text.data(), Py_ssize_t(text.size()));
}

static PyObject *get_arguments(PyObject *self, void *) {
  const auto &names = reinterpret_cast<KernelObject *>(self)->state->names;
  PyObject *tuple = PyTuple_New(Py_ssize_t(names.size()));
  for (size_t k = 0; tuple && k < names.size(); ++k) PyTuple_SET_ITEM(tuple, k, own(names[k]));
  return tuple;
}

PyTypeObject *make_kernel_type() {
  static PyMemberDef members[] = {
      {"__vectorcalloffset__", T_PYSSIZET, offsetof(KernelObject, vectorcall), READONLY, nullptr},
      {"__weaklistoffset__", T_PYSSIZET, offsetof(KernelObject, weakrefs), READONLY, nullptr},
      {},
  };
  static PyGetSetDef properties[] = {
      {"spec", get_spec, nullptr, "The text of the rule.", nullptr},
      {"arguments", get_arguments, nullptr, "Names of the arguments, in the order of first use.", nullptr},
      {},
  };
  static PyType_Slot slots[] = {
      {Py_tp_dealloc, reinterpret_cast<void *>(deallocate)},
      {Py_tp_new, reinterpret_cast<void *>(refuse_new)},
      {Py_tp_call, reinterpret_cast<void *>(PyVectorcall_Call)},
      {Py_tp_members, members},
      {Py_tp_getset, properties},
      {},
  };
  static PyType_Spec spec = {"elsewise.Kernel", sizeof(KernelObject), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL, slots};
  return reinterpret_cast<PyTypeObject *>(PyType_FromSpec(&spec));
}

PyObject *make_kernel(PyTypeObject *type, api::SpecRef spec) {
  PyObject *self = type->tp_alloc(type, 0);
  if (!self) return nullptr;
  auto *kernel = reinterpret_cast<KernelObject *>(self);
  kernel->vectorcall = call;
  kernel->state = new State{.spec = std::move(spec)};
  for (const std::string &name : api::arguments(*kernel->state->spec)) {
    if (name == "x") kernel->state->main = int(kernel->state->names.size());
    kernel->state->names.push_back(PyUnicode_InternFromString(name.c_str()));
  }
  return self;
}

const std::vector<PyObject *> &names_of(PyObject *kernel) {
  return reinterpret_cast<KernelObject *>(kernel)->state->names;
}

int main_of(PyObject *kernel) { return reinterpret_cast<KernelObject *>(kernel)->state->main; }

const api::SpecRef *spec_of(PyObject *object) {
  if (Py_TYPE(object)->tp_dealloc == deallocate) return &reinterpret_cast<KernelObject *>(object)->state->spec;
  PyErr_SetString(PyExc_TypeError, "not an elsewise kernel");
  return nullptr;
}

} // namespace elsewise::python
