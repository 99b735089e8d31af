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

namespace elsewise {

/// A module in one device's primary context.
struct LoadedModule;

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
  /// One launch; parameters points to pointers to slots. 0, or `error` is filled.
  bool launch(int ordinal, const Geometry &, void *stream, void **parameters, std::string &error) const;

private:
  static constexpr int most_devices = 64;
  std::array<std::atomic<LoadedModule *>, most_devices> modules_{};
  std::map<std::string, std::string> code_; // by architecture
};

uint64_t cuda_launches();

} // namespace elsewise
