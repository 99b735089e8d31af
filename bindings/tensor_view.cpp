// SPDX-License-Identifier: Apache-2.0
// Reads tensors, arrays and scalars for the fast path, and DLPack capsules for the slow one. It raises nothing and
// changes no object.
#include "tensor_view.h"
#include <algorithm>
#include <cstring>
#include <dlfcn.h>
#include <malloc.h>

namespace elsewise::python {

Torch torch;
NumPy numpy;

static const DTypeInfo dtype_infos[] = {
#define DTYPE(Name, spelling, bytes, class, torch) {spelling, torch, bytes},
#include "grammar/dtypes.def"
};

const DTypeInfo &info(DType dtype) { return dtype_infos[int(dtype)]; }

std::optional<DType> parse_dtype(std::string_view spelling) {
  for (int k = 0; k < dtype_count; ++k)
    if (spelling == dtype_infos[k].spelling || spelling == dtype_infos[k].torch_name) return DType(k);
  return std::nullopt;
}

static std::optional<DType> dtype_of(DLDataType type) {
  if (type.lanes != 1) return std::nullopt;
  switch (type.code << 8 | type.bits) {
  case kDLBool << 8 | 8:
    return DType::Bool;
  case kDLUInt << 8 | 8:
    return DType::U8;
  case kDLInt << 8 | 8:
    return DType::I8;
  case kDLInt << 8 | 16:
    return DType::I16;
  case kDLInt << 8 | 32:
    return DType::I32;
  case kDLInt << 8 | 64:
    return DType::I64;
  case kDLUInt << 8 | 16:
    return DType::U16;
  case kDLUInt << 8 | 32:
    return DType::U32;
  case kDLUInt << 8 | 64:
    return DType::U64;
  case kDLFloat << 8 | 16:
    return DType::F16;
  case kDLBfloat << 8 | 16:
    return DType::BF16;
  case kDLFloat << 8 | 32:
    return DType::F32;
  case kDLFloat << 8 | 64:
    return DType::F64;
  }
  return std::nullopt;
}

static std::optional<api::Device> device_of(DLDevice device) {
  switch (device.device_type) {
  case kDLCPU:
  case kDLCUDAHost:
    return api::Device{api::DeviceKind::Cpu, 0};
  case kDLCUDA:
  case kDLCUDAManaged:
    return api::Device{api::DeviceKind::Cuda, device.device_id};
  default:
    return std::nullopt;
  }
}

// -1: an error was raised, and cleared.
static int64_t integer_of(PyObject *result) {
  if (!result) {
    PyErr_Clear();
    return -1;
  }
  const int64_t value = PyLong_AsLongLong(result);
  Py_DECREF(result);
  if (value == -1) PyErr_Clear();
  return value;
}

bool torch_is_plain(bool &grad) {
  PyObject *tracing = PyObject_CallNoArgs(torch.tracing); // a trace would not hold the call
  Py_XDECREF(tracing);
  if (tracing != Py_None) return PyErr_Clear(), false;
  if (integer_of(PyObject_CallNoArgs(torch.dispatch_depth)) || integer_of(PyObject_CallNoArgs(torch.function_depth)))
    return false;
  static PyObject *level = PyUnicode_InternFromString("_current_level");
  if (integer_of(PyObject_GetAttr(torch.forward_ad, level)) != -1)
    return false; // inside dual_level(): look at tangents
  PyObject *enabled = PyObject_CallNoArgs(torch.grad_enabled);
  grad = enabled != Py_False;
  Py_XDECREF(enabled);
  if (!enabled) PyErr_Clear();
  return enabled;
}

// The answer of `method(tensor)` or `tensor.name` is exactly False.
static bool is_false(PyObject *answer) {
  if (!answer) PyErr_Clear();
  Py_XDECREF(answer);
  return answer == Py_False;
}

// The value of an attribute that C defines, without a look through the type's bases.
static PyObject *attribute(PyObject *descriptor, PyObject *object) {
  const PyGetSetDef *definition = reinterpret_cast<PyGetSetDescrObject *>(descriptor)->d_getset;
  return definition->get(object, definition->closure);
}

// The library that the exchange API is of; a look into it searches what it depends on too. Never closed.
static void *library_of(const Torch &t) {
  Dl_info library;
  if (!dladdr(reinterpret_cast<void *>(t.api->dltensor_from_py_object_no_sync), &library)) return nullptr;
  return dlopen(library.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
}

template <class T> static T word_at(const void *object, size_t at) {
  T word;
  std::memcpy(&word, static_cast<const char *>(object) + at, sizeof word);
  return word;
}

// The only place, in steps of a word, at which every object has its word; 0: there is none, or there are more. Nothing
// that is looked for stands first.
template <class T> static size_t place_of(std::span<const std::pair<const void *, T>> objects, size_t end) {
  size_t place = 0;
  for (size_t at = sizeof(T); at + sizeof(T) <= end; at += sizeof(T)) {
    if (!std::all_of(objects.begin(), objects.end(), [&](auto &o) { return word_at<T>(o.first, at) == o.second; }))
      continue;
    if (place) return 0;
    place = at;
  }
  return place;
}

// Whether the functions say of the samples what torch's own methods do: a name does not tell what a function returns.
static bool answers(const Direct &f, const Torch &t, std::span<const std::pair<PyObject *, uint64_t>> samples,
                    std::span<const std::pair<const void *, uint64_t>> tensors) {
  const auto version = [&] { return integer_of(PyObject_GetAttrString(samples[plain_sample].first, "_version")); };
  const void *const plain = tensors[plain_sample].first, *const inference = tensors[inference_sample].first;
  if (f.requires_grad(plain) || !f.requires_grad(tensors[parameter_sample].first)) return false;
  if (f.is_inference(&plain) || !f.is_inference(&inference)) return false;
  DLTensor view;
  if (t.api->dltensor_from_py_object_no_sync(samples[plain_sample].first, &view)) return PyErr_Clear(), false;
  int32_t dtype = 0;
  int64_t rank = 0, *shape = nullptr, *stride = nullptr, bytes = 0, offset = -1;
  void *data = nullptr;
  if (f.dtype(&plain, &dtype) || f.rank(&plain, &rank) || f.shape(&plain, &shape) || f.stride(&plain, &stride) ||
      f.data(&plain, &data) || t.fast_storage_bytes(&plain, &bytes) || t.fast_offset(&plain, &offset))
    return false;
  if (dtype < 0 || dtype >= int32_t(std::size(f.dtypes)) || f.dtypes[dtype] != int8_t(DType::F32)) return false;
  if (rank != view.ndim || !std::equal(shape, shape + rank, view.shape) ||
      !std::equal(stride, stride + rank, view.strides) || offset || bytes < 24 ||
      data != static_cast<char *>(view.data) + view.byte_offset)
    return false;
  const int64_t before = version();
  f.bump_version(&plain);
  return version() == before + 1;
}

void find_direct(Torch &t, std::span<const std::pair<PyObject *, uint64_t>> samples) {
  if (samples.size() != sample_count || !t.fast_is_neg) return;
  void *handle = library_of(t);
  Direct found;
  auto find = [&]<class F>(F *&function, const char *name) {
    function = reinterpret_cast<F *>(dlsym(handle, name));
    return function != nullptr;
  };
  if (!find(found.requires_grad, "_ZNK3c1010TensorImpl13requires_gradEv") ||
      !find(found.is_inference, "_ZN2at6native12is_inferenceERKNS_6TensorE") ||
      !find(found.bump_version, "_ZN5torch8autograd4impl12bump_versionERKN2at6TensorE") ||
      !find(found.dtype, "aoti_torch_get_dtype") || !find(found.device_index, "aoti_torch_get_device_index") ||
      !find(found.rank, "aoti_torch_get_dim") || !find(found.data, "aoti_torch_get_data_ptr") ||
      !find(found.shape, "aoti_torch_get_sizes") || !find(found.stride, "aoti_torch_get_strides"))
    return;
  std::fill(std::begin(found.dtypes), std::end(found.dtypes), -1);
  for (int k = 0; k < dtype_count; ++k) {
    int32_t (*number)() = nullptr;
    if (!find(number, (std::string("aoti_torch_dtype_") + info(DType(k)).torch_name).c_str())) continue;
    if (const int32_t n = number(); n >= 0 && n < int32_t(std::size(found.dtypes))) found.dtypes[n] = int8_t(k);
  }

  std::vector<std::pair<const void *, uintptr_t>> objects;
  std::vector<std::pair<const void *, uint64_t>> tensors;
  size_t object_end = ~size_t(0), tensor_end = ~size_t(0);
  for (const auto &[object, keys] : samples) {
    PyObject *number = attribute(t.cdata, object);
    void *tensor = number ? PyLong_AsVoidPtr(number) : nullptr;
    Py_XDECREF(number);
    PyErr_Clear();
    if (!tensor) return;
    objects.push_back({object, reinterpret_cast<uintptr_t>(tensor)});
    tensors.push_back({tensor, keys});
    object_end = std::min(object_end, size_t(Py_TYPE(object)->tp_basicsize));
    tensor_end = std::min(tensor_end, malloc_usable_size(tensor));
  }
  if (!answers(found, t, samples, tensors)) return;
  found.keys_at = place_of<uint64_t>(tensors, tensor_end);
  found.tensor_at = found.keys_at ? place_of<uintptr_t>(objects, object_end) : 0;
  t.direct = found;
}

void find_fast_functions(Torch &t) {
  for (PyObject *descriptor : {t.requires_grad, t.cdata})
    if (Py_TYPE(descriptor) != &PyGetSetDescr_Type) {
      t.requires_grad = t.cdata = nullptr;
      return;
    }
  void *handle = library_of(t);
  if (!handle) return;
  void *is_neg = dlsym(handle, "_ZN2at6native6is_negERKNS_6TensorE"),
       *bytes = dlsym(handle, "aoti_torch_get_storage_size"), *offset = dlsym(handle, "aoti_torch_get_storage_offset");
  if (!is_neg || !bytes || !offset) return;
  t.fast_is_neg = reinterpret_cast<decltype(t.fast_is_neg)>(is_neg);
  t.fast_storage_bytes = reinterpret_cast<decltype(t.fast_storage_bytes)>(bytes);
  t.fast_offset = reinterpret_cast<decltype(t.fast_offset)>(offset);
}

static bool has_elements(const Found &found) {
  for (int d = 0; d < found.rank; ++d)
    if (!found.shape[d]) return false;
  return true;
}

// What the exchange API does not tell.
static bool find_rest(PyObject *tensor, Found &found) {
  const bool any = has_elements(found);
  if (torch.fast_is_neg) {
    PyObject *number = attribute(torch.cdata, tensor);
    const void *self = number ? PyLong_AsVoidPtr(number) : nullptr;
    Py_XDECREF(number);
    if (!self) {
      PyErr_Clear();
      return false;
    }
    if (torch.fast_is_neg(&self)) return false;
    return !any || (!torch.fast_storage_bytes(&self, &found.storage_bytes) && !torch.fast_offset(&self, &found.offset));
  }
  if (!is_false(PyObject_CallOneArg(torch.is_neg, tensor))) return false;
  if (!any) return true;
  PyObject *storage = PyObject_CallOneArg(torch.storage, tensor);
  if (!storage) {
    PyErr_Clear();
    return false;
  }
  found.storage_bytes = integer_of(PyObject_CallOneArg(torch.nbytes, storage));
  Py_DECREF(storage);
  found.offset = integer_of(PyObject_CallOneArg(torch.storage_offset, tensor));
  return true;
}

static PyObject *requires_grad_of(PyObject *tensor) {
  static PyObject *requires_grad = PyUnicode_InternFromString("requires_grad");
  return torch.requires_grad ? attribute(torch.requires_grad, tensor) : PyObject_GetAttr(tensor, requires_grad);
}

int64_t extent_of(const Found &found) {
  int64_t last = 0;
  for (int d = 0; d < found.rank; ++d) {
    if (!found.shape[d]) return 0;
    last += (found.shape[d] - 1) * found.stride[d];
  }
  return last + 1;
}

// A tensor whose storage was shrunk may have an address all the same, if it has an offset.
bool is_in_storage(const Found &found, int64_t extent) {
  return extent == 0 ||
         (found.data && found.offset >= 0 && (found.offset + extent) * info(found.dtype).bytes <= found.storage_bytes);
}

// The tensor of a Python object and what is known of its kind, or null.
static const Direct::Known *known_of(PyObject *object, const void *&tensor) {
  const Direct &direct = torch.direct;
  if (!direct.tensor_at || !(tensor = word_at<const void *>(object, direct.tensor_at))) return nullptr;
  const uint64_t keys = word_at<uint64_t>(tensor, direct.keys_at);
  for (const Direct::Known &known : direct.known)
    if (known.keys == keys) return &known;
  return nullptr;
}

static void learn(PyObject *object, api::DeviceKind device) {
  Direct &direct = torch.direct;
  const void *tensor = nullptr;
  constexpr size_t most = 4; // there are two kinds of a device: inference tensors are one
  if (direct.known.size() < most && !known_of(object, tensor) && tensor)
    direct.known.push_back({word_at<uint64_t>(tensor, direct.keys_at), device});
}

// `tensor`: a reference to it.
static bool find_directly(const void *const *tensor, api::DeviceKind device, bool grad, Found &found) {
  const Direct &direct = torch.direct;
  if (grad && direct.requires_grad(*tensor)) return false;
  int32_t dtype = 0, index = 0;
  int64_t rank = 0, *shape = nullptr, *stride = nullptr;
  if (direct.dtype(tensor, &dtype) || direct.rank(tensor, &rank) || rank > fast_rank) return false;
  if (dtype < 0 || dtype >= int32_t(std::size(direct.dtypes)) || direct.dtypes[dtype] < 0) return false;
  if (device == api::DeviceKind::Cuda && direct.device_index(tensor, &index)) return false;
  if (direct.shape(tensor, &shape) || direct.stride(tensor, &stride) || direct.data(tensor, &found.data)) return false;
  found.dtype = DType(direct.dtypes[dtype]);
  found.device.kind = device, found.device.ordinal = index;
  found.rank = int32_t(rank), found.shape = shape, found.stride = stride;
  return !has_elements(found) ||
         (!torch.fast_storage_bytes(tensor, &found.storage_bytes) && !torch.fast_offset(tensor, &found.offset));
}

bool bump_version(PyObject *object) {
  const void *tensor = nullptr;
  if (!is_torch(object) || !known_of(object, tensor)) return false;
  try {
    if (!torch.direct.is_inference(&tensor)) torch.direct.bump_version(&tensor); // else there is no version
  } catch (...) { // an inference tensor that `.data =` made look like any other has none either: torch says so
    return false;
  }
  return true;
}

bool find_torch(PyObject *tensor, bool grad, Found &found) {
  const void *self = nullptr;
  if (const Direct::Known *known = known_of(tensor, self)) return find_directly(&self, known->device, grad, found);
  DLTensor view;
  if (torch.api->dltensor_from_py_object_no_sync(tensor, &view)) { // meta, sparse, quantised, under vmap, …
    PyErr_Clear();
    return false;
  }
  const auto dtype = dtype_of(view.dtype);
  const auto device = device_of(view.device);
  if (!dtype || !device || view.ndim > fast_rank) return false;
  if (grad && !is_false(requires_grad_of(tensor))) return false;
  found.dtype = *dtype, found.device = *device;
  found.rank = view.ndim, found.shape = view.shape, found.stride = view.strides;
  found.data = view.data ? static_cast<char *>(view.data) + view.byte_offset : nullptr;
  if (!find_rest(tensor, found)) return false;
  if (found.data) learn(tensor, device->kind);
  return true;
}

void fetch_ahead(PyObject *list, Py_ssize_t index) {
  constexpr Py_ssize_t objects = 16, tensors = 8; // elements ahead
  constexpr int tensor_bytes = 192;
  const Py_ssize_t count = PyList_GET_SIZE(list);
  if (!torch.direct.tensor_at) return;
  if (index + objects < count) __builtin_prefetch(PyList_GET_ITEM(list, index + objects));
  if (index + tensors >= count || !is_torch(PyList_GET_ITEM(list, index + tensors))) return;
  const auto *tensor = word_at<const char *>(PyList_GET_ITEM(list, index + tensors), torch.direct.tensor_at);
  for (int at = 0; at < tensor_bytes; at += 64) __builtin_prefetch(tensor + at);
}

bool read_torch(PyObject *tensor, bool grad, api::Arg &arg, Dims &dims) {
  Found found;
  if (!find_torch(tensor, grad, found) || !is_in_storage(found, extent_of(found))) return false;
  for (int d = 0; d < found.rank; ++d)
    dims.shape[d] = found.shape[d], dims.stride[d] = found.stride[d]; // few: no memmove
  arg = {.kind = ArgKind::Tensor,
         .dtype = found.dtype,
         .device = found.device,
         .rank = found.rank,
         .shape = dims.shape,
         .stride = dims.stride,
         .data = found.data};
  return true;
}

static std::optional<DType> dtype_of_format(const char *format, Py_ssize_t size) {
  if (!format || !format[0] || format[1]) return std::nullopt; // other byte orders have a prefix, structures are longer
  switch (format[0]) {
  case '?':
    return DType::Bool;
  case 'B':
    return DType::U8;
  case 'b':
    return DType::I8;
  case 'h':
    return DType::I16;
  case 'i':
    return DType::I32;
  case 'l':
  case 'q':
    return size == 8 ? DType::I64 : DType::I32;
  case 'H':
    return DType::U16;
  case 'I':
    return DType::U32;
  case 'L':
  case 'Q':
    return size == 8 ? DType::U64 : DType::U32;
  case 'e':
    return DType::F16;
  case 'f':
    return DType::F32;
  case 'd':
    return DType::F64;
  }
  return std::nullopt;
}

bool read_numpy(PyObject *array, bool writable, api::Arg &arg, Dims &dims, Py_buffer &buffer) {
  if (PyObject_GetBuffer(array, &buffer, writable ? PyBUF_RECORDS : PyBUF_RECORDS_RO)) {
    PyErr_Clear();
    return false;
  }
  const auto dtype = dtype_of_format(buffer.format, buffer.itemsize);
  bool plain = dtype && buffer.ndim <= fast_rank && reinterpret_cast<uintptr_t>(buffer.buf) % buffer.itemsize == 0;
  for (int d = 0; plain && d < buffer.ndim; ++d) {
    dims.shape[d] = buffer.shape[d], dims.stride[d] = buffer.strides[d] / buffer.itemsize;
    plain = buffer.strides[d] % buffer.itemsize == 0;
  }
  if (!plain) {
    PyBuffer_Release(&buffer);
    return false;
  }
  arg = {.kind = ArgKind::Tensor, .dtype = *dtype, .rank = buffer.ndim, .shape = dims.shape, .stride = dims.stride};
  arg.data = buffer.buf;
  return true;
}

bool read_scalar(PyObject *value, api::Arg &arg) {
  arg = {};
  if (PyFloat_CheckExact(value)) {
    arg.kind = ArgKind::Float, arg.real = PyFloat_AS_DOUBLE(value);
    return true;
  }
  if (PyBool_Check(value)) {
    arg.kind = ArgKind::Bool, arg.integer = value == Py_True;
    return true;
  }
  if (!PyLong_CheckExact(value)) return false;
  arg.kind = ArgKind::Int;
  int overflow;
  const int64_t small = PyLong_AsLongLongAndOverflow(value, &overflow);
  if (!overflow) {
    arg.integer = small;
    return true;
  }
  // high = value >> 64, low = value & (2^64 - 1)
  static PyObject *width = PyLong_FromLong(64), *mask = PyLong_FromUnsignedLongLong(~0ull);
  PyObject *high = PyNumber_Rshift(value, width), *low = PyNumber_And(value, mask);
  const int64_t top = high ? PyLong_AsLongLongAndOverflow(high, &overflow) : 0;
  const bool fits = high && low && !overflow;
  if (fits) arg.integer = (__int128)((unsigned __int128)(__int128)top << 64 | PyLong_AsUnsignedLongLong(low));
  Py_XDECREF(high);
  Py_XDECREF(low);
  PyErr_Clear();
  return fits;
}

void *current_stream(int32_t ordinal) {
  void *stream = nullptr;
  if (torch.api && torch.api->current_work_stream(kDLCUDA, ordinal, &stream)) PyErr_Clear();
  return stream;
}

View::~View() {
  if (managed && managed->deleter) managed->deleter(managed);
  if (versioned && versioned->deleter) versioned->deleter(versioned);
}

api::Arg View::arg() const {
  api::Arg arg{.kind = ArgKind::Tensor, .dtype = dtype, .device = device, .rank = int32_t(shape.size())};
  arg.shape = shape.data(), arg.stride = stride.data(), arg.data = data;
  return arg;
}

std::unique_ptr<View> view_of_capsule(PyObject *capsule, std::string &error) {
  auto view = std::make_unique<View>();
  const DLTensor *tensor;
  if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
    view->versioned = static_cast<DLManagedTensorVersioned *>(PyCapsule_GetPointer(capsule, "dltensor_versioned"));
    PyCapsule_SetName(capsule, "used_dltensor_versioned");
    if (view->versioned->version.major != DLPACK_MAJOR_VERSION)
      return error = "another major version of DLPack", nullptr;
    view->readonly = view->versioned->flags & DLPACK_FLAG_BITMASK_READ_ONLY;
    tensor = &view->versioned->dl_tensor;
  } else if (PyCapsule_IsValid(capsule, "dltensor")) {
    view->managed = static_cast<DLManagedTensor *>(PyCapsule_GetPointer(capsule, "dltensor"));
    PyCapsule_SetName(capsule, "used_dltensor");
    tensor = &view->managed->dl_tensor;
  } else {
    return error = "`__dlpack__` did not return a DLPack capsule", nullptr;
  }
  const auto dtype = dtype_of(tensor->dtype);
  const auto device = device_of(tensor->device);
  if (!dtype) return error = "its dtype is none of bool u8 i8 i16 i32 i64 u16 u32 u64 f16 bf16 f32 f64", nullptr;
  if (!device) return error = "it is neither on the CPU nor on a CUDA device", nullptr;
  view->dtype = *dtype, view->device = *device;
  view->data = static_cast<char *>(tensor->data) + tensor->byte_offset;
  int64_t pitch = 1;
  view->shape.assign(tensor->shape, tensor->shape + tensor->ndim);
  view->stride.resize(tensor->ndim);
  for (int d = tensor->ndim; d-- > 0; pitch *= tensor->shape[d])
    view->stride[d] = tensor->strides ? tensor->strides[d] : pitch;
  return view;
}

} // namespace elsewise::python
