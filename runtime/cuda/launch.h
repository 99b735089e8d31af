// SPDX-License-Identifier: Apache-2.0
// CUDA code of one kernel variant: loaded once a device, launched on the caller's stream. It chooses no geometry and
// checks no argument.
#pragma once
#include "runtime/cuda/driver.h"
#include "runtime/cuda/geometry.h"
#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

namespace elsewise {

/// A module in one device's primary context.
struct LoadedModule;

/// What a device says of a function that it has loaded.
struct CudaFacts {
  int registers = 0;    // a thread's
  int local_bytes = 0;  // a thread's, in memory: arrays, and what registers were too few for
  int shared_bytes = 0; // a block's
  int binary = 0;       // 90: machine code of sm_90
};

class CudaCode {
public:
  CudaCode() = default;
  /// Modules are unloaded behind their last launch, later if need be; one whose launches went into a graph stays.
  ~CudaCode();
  CudaCode(const CudaCode &) = delete;

  bool loaded(int ordinal) const;
  /// The code made for an architecture; "" if there is none yet.
  std::string cubin(const std::string &arch) const;
  /// Loads `code` (a cubin or PTX) on a device. False and `error` on failure. Not for two threads at once.
  bool load(int ordinal, const std::string &arch, const std::string &code, std::string &error);
  /// nullopt: it is not loaded there, or the driver does not tell.
  std::optional<CudaFacts> facts(int ordinal) const;
  /// One launch; parameters points to pointers to slots. 0, or `error` is filled.
  bool launch(int ordinal, const Geometry &, void *stream, void **parameters, std::string &error) const;

private:
  static constexpr int most_devices = 64;
  std::array<std::atomic<LoadedModule *>, most_devices> modules_{};
  std::map<std::string, std::string> code_; // by architecture
};

uint64_t cuda_launches();

} // namespace elsewise
