// SPDX-License-Identifier: Apache-2.0
// libcuda through dlopen, its errors in words, primary contexts, and pointers. A process without CUDA pays one failed
// look-up.
#include "runtime/cuda/driver.h"
#include <array>
#include <atomic>
#include <cstring>
#include <dlfcn.h>
#include <memory>
#include <mutex>
#include <pthread.h>

namespace elsewise {
namespace {

constexpr const char *places[] = {"libcuda.so.1",
                                  "libcuda.so",
                                  "/usr/lib/x86_64-linux-gnu/libcuda.so.1",
                                  "/usr/lib/aarch64-linux-gnu/libcuda.so.1",
                                  "/usr/lib64/libcuda.so.1",
                                  "/usr/lib/wsl/lib/libcuda.so.1",
                                  "/usr/local/nvidia/lib64/libcuda.so.1"};
constexpr int compute_major = 75, compute_minor = 76; // CUdevice_attribute
constexpr int no_device = 100;                        // CUresult
constexpr int most_devices = 64;

struct State {
  std::mutex mutex;
  bool tried = false;
  CudaDriver api{};
  bool good = false;
  std::string why;
  std::array<std::atomic<CuContext>, most_devices> contexts{};
  std::array<std::atomic<int>, most_devices> arch{};
};
std::atomic<const CudaDriver *> ready = nullptr;
std::atomic<bool> forked = false; // this process is the child of one that used CUDA

State &state() {
  static State *s = new State; // never destroyed: other threads may launch at exit
  return *s;
}

bool resolve(void *library, CudaDriver &api, std::string &missing) {
  auto symbol = [&](const char *name, auto &to) {
    to = reinterpret_cast<std::remove_reference_t<decltype(to)>>(dlsym(library, name));
    if (!to && missing.empty()) missing = name;
  };
  symbol("cuInit", api.init);
  symbol("cuDriverGetVersion", api.version);
  symbol("cuGetErrorName", api.error_name);
  symbol("cuGetErrorString", api.error_string);
  symbol("cuDeviceGetCount", api.device_count);
  symbol("cuDeviceGet", api.device_get);
  symbol("cuDeviceGetName", api.device_name);
  symbol("cuDeviceTotalMem_v2", api.device_memory);
  symbol("cuDeviceGetAttribute", api.device_attribute);
  symbol("cuDevicePrimaryCtxRetain", api.primary_retain);
  symbol("cuCtxGetCurrent", api.context_current);
  symbol("cuCtxPushCurrent_v2", api.context_push);
  symbol("cuCtxPopCurrent_v2", api.context_pop);
  symbol("cuModuleLoadDataEx", api.module_load);
  symbol("cuModuleUnload", api.module_unload);
  symbol("cuModuleGetFunction", api.module_function);
  symbol("cuLaunchKernel", api.launch);
  symbol("cuStreamIsCapturing", api.stream_is_capturing);
  symbol("cuEventCreate", api.event_create);
  symbol("cuEventRecord", api.event_record);
  symbol("cuEventQuery", api.event_query);
  symbol("cuEventDestroy_v2", api.event_destroy);
  symbol("cuThreadExchangeStreamCaptureMode", api.exchange_capture_mode);
  symbol("cuPointerGetAttributes", api.pointer_attributes);
  api.function_attribute =
      reinterpret_cast<decltype(api.function_attribute)>(dlsym(library, "cuFuncGetAttribute")); // may be missing
  return missing.empty();
}

void open(State &s) {
  std::string looked;
  void *library = nullptr;
  for (const char *place : places) {
    if ((library = dlopen(place, RTLD_NOW | RTLD_LOCAL))) break;
    const char *error = dlerror();
    looked += std::string("\n  ") + (error ? error : place);
  }
  if (!library) {
    s.why = "no CUDA driver: libcuda.so.1 was not found; install NVIDIA's driver (Debian: nvidia-driver, Ubuntu: "
            "nvidia-driver-<version>; in a container: "
            "--gpus all with nvidia-container-toolkit). Looked for:" +
            looked;
    return;
  }
  std::string missing;
  if (!resolve(library, s.api, missing)) {
    s.why = "the CUDA driver is too old: it has no " + missing + "; install NVIDIA's driver 525 or newer";
    return;
  }
  Dl_info info;
  if (dladdr(reinterpret_cast<void *>(s.api.init), &info) && info.dli_fname) s.api.path = info.dli_fname;
  (void)s.api.version(&s.api.driver_version);
  int result = s.api.init(0);
  if (result == 0) result = s.api.device_count(&s.api.devices);
  if (result != 0) {
    s.why =
        "the CUDA driver (" + s.api.path + ") does not start: " + cuda_error(s.api, result) +
        (result == no_device ? "; is a GPU there, and does CUDA_VISIBLE_DEVICES show it?" : "; does nvidia-smi work?");
    return;
  }
  if (s.api.devices == 0) {
    s.why = "the CUDA driver (" + s.api.path + ") sees no GPU; does CUDA_VISIBLE_DEVICES hide it?";
    return;
  }
  s.good = true;
  pthread_atfork(nullptr, nullptr, [] {
    forked = true;
    ready = nullptr;
  });
}

} // namespace

const CudaDriver *cuda_driver(std::string &why) {
  if (const CudaDriver *api = ready.load(std::memory_order_acquire)) return api;
  if (forked) {
    why = "CUDA cannot be used in a process forked from one that used it; start workers with multiprocessing's `spawn` "
          "or `forkserver`";
    return nullptr;
  }
  State &s = state();
  std::lock_guard lock(s.mutex);
  if (!s.tried) open(s), s.tried = true;
  if (!s.good) {
    why = s.why;
    return nullptr;
  }
  ready.store(&s.api, std::memory_order_release);
  return &s.api;
}

UseDriver::UseDriver(const CudaDriver &driver) : before_(ready.exchange(&driver)) {}
UseDriver::~UseDriver() { ready = before_; }

std::string cuda_error(const CudaDriver &api, int result) {
  const char *name = nullptr, *text = nullptr;
  api.error_name(result, &name), api.error_string(result, &text);
  return (name ? std::string(name) : "CUDA error " + std::to_string(result)) + (text ? std::string(": ") + text : "");
}

CuContext primary_context(const CudaDriver &api, int ordinal, std::string &why) {
  State &s = state();
  if (ordinal < 0 || ordinal >= api.devices || ordinal >= most_devices) {
    why = "there is no CUDA device " + std::to_string(ordinal) + ": the driver sees " + std::to_string(api.devices);
    return nullptr;
  }
  if (CuContext known = s.contexts[ordinal].load(std::memory_order_acquire)) return known;
  std::lock_guard lock(s.mutex);
  if (CuContext known = s.contexts[ordinal]) return known;
  int device = 0;
  CuContext context = nullptr;
  int result = api.device_get(&device, ordinal);
  if (result == 0) result = api.primary_retain(&context, device);
  if (result != 0) {
    why = "CUDA device " + std::to_string(ordinal) + " cannot be used: " + cuda_error(api, result);
    return nullptr;
  }
  s.contexts[ordinal].store(context, std::memory_order_release);
  return context;
}

std::string device_arch(int ordinal, std::string &why) {
  const CudaDriver *api = cuda_driver(why);
  if (!api) return "";
  if (ordinal < 0 || ordinal >= api->devices || ordinal >= most_devices) {
    why = "there is no CUDA device " + std::to_string(ordinal) + ": the driver sees " + std::to_string(api->devices);
    return "";
  }
  std::atomic<int> &known = state().arch[ordinal];
  if (known == 0) {
    int device = 0, major = 0, minor = 0;
    int result = api->device_get(&device, ordinal);
    if (result == 0) result = api->device_attribute(&major, compute_major, device);
    if (result == 0) result = api->device_attribute(&minor, compute_minor, device);
    if (result != 0) {
      why = "CUDA device " + std::to_string(ordinal) + " does not say what it is: " + cuda_error(*api, result);
      return "";
    }
    known = major * 10 + minor;
  }
  return "sm_" + std::to_string(known);
}

std::string device_description(const CudaDriver &api, int ordinal) {
  int device = 0;
  char name[256] = "?";
  size_t bytes = 0;
  std::string why;
  if (api.device_get(&device, ordinal) == 0)
    api.device_name(name, sizeof name, device), api.device_memory(&bytes, device);
  return std::string(name) + " (" + device_arch(ordinal, why) + "), " + std::to_string(bytes >> 30) + " GiB";
}

CurrentContext::CurrentContext(const CudaDriver &driver, CuContext wanted) : driver_(driver) {
  CuContext now = nullptr;
  error_ = driver.context_current(&now);
  if (error_ == 0 && now == wanted) return;
  error_ = driver.context_push(wanted);
  pushed_ = error_ == 0;
}

CurrentContext::~CurrentContext() {
  CuContext popped = nullptr;
  if (pushed_) driver_.context_pop(&popped);
}

bool stream_is_capturing(int ordinal, void *stream) {
  std::string why;
  const CudaDriver *api = cuda_driver(why);
  if (!api || !stream) return false; // the default stream cannot be captured
  const CuContext context = primary_context(*api, ordinal, why);
  if (!context) return false;
  const CurrentContext current(*api, context);
  int status = 0;
  return current.error() == 0 && api->stream_is_capturing(static_cast<CuStream>(stream), &status) == 0 && status != 0;
}

PointerKind pointer_kind(const CudaDriver &api, const void *pointer) {
  enum { memory_type = 2, is_managed = 8, device_ordinal = 9 }; // CUpointer_attribute
  int attributes[] = {memory_type, is_managed, device_ordinal};
  unsigned type = 0, managed = 0;
  int ordinal = -1;
  void *values[] = {&type, &managed, &ordinal};
  PointerKind kind;
  if (api.pointer_attributes(3, attributes, values, reinterpret_cast<uint64_t>(pointer)) != 0) return kind;
  enum { host_memory = 1, device_memory = 2 }; // CUmemorytype
  kind.known = type != 0;
  kind.device = type == device_memory || managed;
  kind.host = type == host_memory || managed;
  kind.ordinal = ordinal;
  return kind;
}

} // namespace elsewise
