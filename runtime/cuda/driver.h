// SPDX-License-Identifier: Apache-2.0
// The CUDA driver, opened at run time: the few functions that are used, devices, and whose context is current. It
// compiles nothing and launches nothing.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace elsewise {

// libcuda's handles; its own header is not needed to build.
using CuContext = struct CuContextTag *;
using CuModule = struct CuModuleTag *;
using CuFunction = struct CuFunctionTag *;
using CuStream = struct CuStreamTag *;
using CuEvent = struct CuEventTag *;

/// The part of cuda.h that is used, by name. Results are CUresult; 0 is success.
struct CudaDriver {
  int (*init)(unsigned);
  int (*version)(int *);
  int (*error_name)(int, const char **);
  int (*error_string)(int, const char **);
  int (*device_count)(int *);
  int (*device_get)(int *, int);
  int (*device_name)(char *, int, int);
  int (*device_attribute)(int *, int, int);
  int (*device_memory)(size_t *, int);
  int (*primary_retain)(CuContext *, int);
  int (*context_current)(CuContext *);
  int (*context_push)(CuContext);
  int (*context_pop)(CuContext *);
  int (*module_load)(CuModule *, const void *, unsigned, int *, void **);
  int (*module_unload)(CuModule);
  int (*module_function)(CuFunction *, CuModule, const char *);
  int (*launch)(CuFunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CuStream, void **,
                void **);
  int (*stream_is_capturing)(CuStream, int *);
  int (*event_create)(CuEvent *, unsigned);
  int (*event_record)(CuEvent, CuStream);
  int (*event_query)(CuEvent);
  int (*event_destroy)(CuEvent);
  int (*exchange_capture_mode)(int *);
  int (*pointer_attributes)(unsigned, int *, void **, uint64_t);
  int (*function_attribute)(int *, int, CuFunction); // null: this driver lacks it, and nothing but facts is lost

  std::string path;       // of the library
  int driver_version = 0; // 12040: 12.4
  int devices = 0;
};

/// nullptr: `why` says what was looked for and what to do. The answer does not change during a process, but in a child
/// that fork() left without CUDA.
const CudaDriver *cuda_driver(std::string &why);
/// A seam for tests: while one lives, cuda_driver() answers this table, in every thread.
class UseDriver {
public:
  explicit UseDriver(const CudaDriver &);
  ~UseDriver();
  UseDriver(const UseDriver &) = delete;

private:
  const CudaDriver *before_;
};
/// "CUDA_ERROR_INVALID_VALUE: invalid argument"
std::string cuda_error(const CudaDriver &, int result);

/// The primary context of a device, retained once and kept. nullptr: `why`.
CuContext primary_context(const CudaDriver &, int ordinal, std::string &why);
/// "sm_90" for the device; empty and `why` otherwise.
std::string device_arch(int ordinal, std::string &why);
/// "NVIDIA H200 (sm_90), 140 GiB"
std::string device_description(const CudaDriver &, int ordinal);

/// Makes a context current for a scope. What was current before is current again afterwards, on every path, also if
/// there was none.
class CurrentContext {
public:
  CurrentContext(const CudaDriver &, CuContext);
  ~CurrentContext();
  CurrentContext(const CurrentContext &) = delete;
  int error() const { return error_; }

private:
  const CudaDriver &driver_;
  bool pushed_ = false;
  int error_ = 0;
};

/// True while `stream` is being captured into a graph. False also without a driver.
bool stream_is_capturing(int ordinal, void *stream);

/// What is known of an address: which device's memory it is, if any.
struct PointerKind {
  bool known = false;  // the driver knows it: not plain host memory
  bool device = false; // device memory (managed memory too)
  bool host = false;   // host memory that the driver knows, managed memory too
  int ordinal = -1;
};
PointerKind pointer_kind(const CudaDriver &, const void *);

} // namespace elsewise
