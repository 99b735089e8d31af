// SPDX-License-Identifier: Apache-2.0
// How Python objects become arguments of a call without Python code running: torch tensors through the DLPack C
// exchange API, NumPy arrays through the buffer protocol, scalars. Whatever is not plainly right here is left to the
// slow path (elsewise/_call.py), which has the messages.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "runtime/elsewise.h"
#include <dlpack/dlpack.h>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace elsewise::python {

inline constexpr int fast_rank = 8; // arguments of a higher rank take the slow path

struct DTypeInfo {
  const char *spelling, *torch_name;
  int bytes;
};
const DTypeInfo &info(DType);
std::optional<DType> parse_dtype(std::string_view spelling); // "f32" and torch's names

/// Lengths and strides of one argument of the fast path, copied so that they stay put while the GIL is released.
struct Dims {
  int64_t shape[fast_rank], stride[fast_rank];
};

enum class Owner : uint8_t { None, Torch, NumPy };

/// How a tensor is read in C alone. Usable once find_direct() has seen, by tensors of which Python tells it, where a
/// Python object keeps the pointer to its tensor and where that keeps its dispatch keys; all else is asked of functions
/// that torch exports. Dispatch keys tell what kind of tensor it is (sparse, negated, fake, batched, …), so one with
/// the keys of a tensor that the exchange API has read is as readable.
struct Direct {
  struct Known {
    uint64_t keys;
    api::DeviceKind device;
  };

  size_t tensor_at = 0, keys_at = 0; // bytes; tensor_at 0: not usable
  std::vector<Known> known;
  int8_t dtypes[64] = {}; // by torch's number: ours, -1 where there is none
  // Of a tensor (the pointer): c10::TensorImpl::requires_grad. Of a reference to one: the rest.
  bool (*requires_grad)(const void *) = nullptr;
  bool (*is_inference)(const void *) = nullptr;
  void (*bump_version)(const void *) = nullptr;
  int32_t (*dtype)(const void *, int32_t *) = nullptr, (*device_index)(const void *, int32_t *) = nullptr;
  int32_t (*rank)(const void *, int64_t *) = nullptr, (*data)(const void *, void **) = nullptr;
  int32_t (*shape)(const void *, int64_t **) = nullptr, (*stride)(const void *, int64_t **) = nullptr;
};

/// What the fast path needs of torch, handed over by elsewise/_torch.py once torch is imported. All are null before.
/// Never freed.
struct Torch {
  PyTypeObject *tensor = nullptr, *parameter = nullptr;
  const DLPackExchangeAPI *api = nullptr;
  PyObject *storage = nullptr, *storage_offset = nullptr, *nbytes = nullptr, *is_neg = nullptr; // method descriptors
  PyObject *requires_grad = nullptr, *cdata = nullptr;                                          // attribute descriptors
  // The same without a Python call: they take a reference to a tensor, which is the address of a pointer to what
  // `cdata` tells. All or none; none: a torch that lacks one of them, and the methods above answer.
  bool (*fast_is_neg)(const void *) = nullptr; // at::native::is_neg
  int32_t (*fast_storage_bytes)(const void *, int64_t *) = nullptr, (*fast_offset)(const void *, int64_t *) = nullptr;
  Direct direct;
  PyObject *grad_enabled = nullptr, *dispatch_depth = nullptr, *function_depth = nullptr; // functions of no argument
  PyObject *tracing = nullptr;    // a function of no argument: None outside of torch.jit.trace
  PyObject *forward_ad = nullptr; // the module that knows whether tangents may exist
  PyObject *bump = nullptr, *empty_strided = nullptr, *threads = nullptr;
  PyObject *dtypes[dtype_count] = {};   // torch.float32 …
  std::vector<PyObject *> cuda_devices; // torch.device("cuda", k)
  PyObject *cpu_device = nullptr;
};
/// Likewise of NumPy.
struct NumPy {
  PyTypeObject *array = nullptr;
  PyObject *empty = nullptr;
  PyObject *dtypes[dtype_count] = {}; // null: NumPy has none (bf16)
};
/// Looks for the functions of no Python call in the library that the exchange API is of.
void find_fast_functions(Torch &);
/// The tensors that elsewise/_torch.py makes to be looked at.
enum Sample { plain_sample, parameter_sample, negative_sample, inference_sample, meta_sample, sample_count };
/// Looks for what Torch::direct needs. `samples`: tensors of these kinds, each with its dispatch keys; none:
/// nothing is found.
void find_direct(Torch &, std::span<const std::pair<PyObject *, uint64_t>> samples);
extern Torch torch;
extern NumPy numpy;

inline bool is_torch(PyObject *o) { return Py_TYPE(o) == torch.tensor || Py_TYPE(o) == torch.parameter; }

/// True if nothing stands between a tensor and its memory: no dispatch or function mode is active. Sets `grad` to
/// whether grad mode is on.
bool torch_is_plain(bool &grad);
/// Tells autograd that a tensor's data changed. False: nothing was done, and torch.bump is to be asked.
bool bump_version(PyObject *tensor);
/// What a tensor says of itself: lengths and strides are its own, borrowed until it changes.
struct Found {
  DType dtype = DType::F32;
  api::Device device;
  int32_t rank = 0;
  const int64_t *shape = nullptr, *stride = nullptr;
  void *data = nullptr;
  // Of its storage, and where it begins there, in elements; not asked for if it has no elements.
  int64_t storage_bytes = 0, offset = 0;
};
/// One past the last of a tensor's elements in memory, from its first one, in elements; 0 if it has none.
int64_t extent_of(const Found &);
/// False: the storage was shrunk under the tensor. `extent`: as extent_of() says.
bool is_in_storage(const Found &, int64_t extent);
/// Looks at a tensor. False, with no Python error set: it is for the slow path. `grad`: grad mode is on.
bool find_torch(PyObject *tensor, bool grad, Found &);
/// Asks memory for what find_torch() will read of an element of a list, some time before it does: hundreds of tensors
/// lie in no cache.
void fetch_ahead(PyObject *list, Py_ssize_t index);
/// The same, as an argument.
bool read_torch(PyObject *tensor, bool grad, api::Arg &, Dims &);
/// The same for an array, whose buffer stays exported until release. `writable`: it is `out`.
bool read_numpy(PyObject *array, bool writable, api::Arg &, Dims &, Py_buffer &);
/// An int, float or bool of exactly that type; an int must fit 128 bits.
bool read_scalar(PyObject *, api::Arg &);
/// torch's current stream for a CUDA device, or the default one.
void *current_stream(int32_t ordinal);

/// A described piece of memory, made by the slow path: of whatever origin, any rank.
struct View {
  DType dtype = DType::F32;
  api::Device device;
  void *data = nullptr;
  std::vector<int64_t> shape, stride;
  DLManagedTensor *managed = nullptr; // from a DLPack capsule: released with the view
  DLManagedTensorVersioned *versioned = nullptr;
  bool readonly = false;

  View() = default;
  View(const View &) = delete;
  View &operator=(const View &) = delete;
  ~View();
  api::Arg arg() const;
};
/// Takes over the memory of a DLPack capsule. Empty and `error` set: a dtype or device that has no place here.
std::unique_ptr<View> view_of_capsule(PyObject *capsule, std::string &error);

} // namespace elsewise::python
