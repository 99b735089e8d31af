// SPDX-License-Identifier: Apache-2.0
// Copies operands to a GPU and back around a call. Where the driver or a device is missing it says so and stops.
#include "tests/fuzz/device_backend.h"
#include "runtime/cuda/driver.h"
#include "tests/fuzz/call.h"
#include <dlfcn.h>
#include <memory>

namespace elsewise::fuzz {

struct DeviceBackend::Device {
  const CudaDriver *driver = nullptr;
  CuContext context = nullptr;
  int (*allocate)(uint64_t *, size_t) = nullptr;
  int (*release)(uint64_t) = nullptr;
  int (*to_device)(uint64_t, const void *, size_t) = nullptr;
  int (*to_host)(void *, uint64_t, size_t) = nullptr;
};

DeviceBackend::DeviceBackend() : device_(std::make_unique<Device>()) {}
DeviceBackend::~DeviceBackend() = default;

std::unique_ptr<DeviceBackend> DeviceBackend::open(std::string &why) {
  const CudaDriver *driver = cuda_driver(why);
  if (!driver) return nullptr;
  if (driver->devices == 0) {
    why = "no CUDA device";
    return nullptr;
  }
  std::unique_ptr<DeviceBackend> backend(new DeviceBackend);
  Device &d = *backend->device_;
  d.driver = driver;
  d.context = primary_context(*driver, 0, why);
  if (!d.context) return nullptr;
  void *library = dlopen(driver->path.c_str(), RTLD_NOW | RTLD_LOCAL);
  auto find = [&](const char *name, auto &to) {
    return (to = reinterpret_cast<std::remove_reference_t<decltype(to)>>(dlsym(library, name))) != nullptr;
  };
  if (library && find("cuMemAlloc_v2", d.allocate) && find("cuMemFree_v2", d.release) &&
      find("cuMemcpyHtoD_v2", d.to_device) && find("cuMemcpyDtoH_v2", d.to_host))
    return backend;
  why = "the driver lacks a function for memory";
  return nullptr;
}

Ran DeviceBackend::run(const Case &c, std::vector<uint8_t> &out) {
  Device &d = *device_;
  const CurrentContext current(*d.driver, d.context);
  std::vector<uint64_t> blocks;
  bool failed = current.error() != 0;
  // A copy whose address agrees with the host's modulo 256, so that nothing about alignment changes.
  auto copy = [&](const std::vector<uint8_t> &buffer) {
    uint64_t block = 0;
    failed = failed || d.allocate(&block, buffer.size() + 512) != 0;
    if (failed) return uint64_t(0);
    blocks.push_back(block);
    const uint64_t at = ((block + 255) & ~uint64_t(255)) + reinterpret_cast<uint64_t>(buffer.data()) % 256;
    failed = !buffer.empty() && d.to_device(at, buffer.data(), buffer.size()) != 0;
    return at;
  };
  out = c.out_buffer;
  CallOf of(c, out, api::Device{api::DeviceKind::Cuda, 0});
  const uint64_t there = copy(out);
  of.move_out(reinterpret_cast<void *>(there + uint64_t(c.out_offset)));
  for (size_t a = 0; a < c.arguments.size(); ++a) {
    const Input &in = *c.arguments[a];
    if (in.type.kind != ArgKind::Tensor) continue;
    if (int(a) == c.same_view) of.move(a, reinterpret_cast<void *>(there + uint64_t(c.out_offset)));
    else of.move(a, reinterpret_cast<void *>(copy(in.buffer) + uint64_t(in.offset) * bytes(in.type.dtype)));
  }
  Ran ran{api::Fault::Internal, "no device memory"};
  if (!failed) {
    auto spec = api::compile(c.program.text, "<spec>");
    auto plan = spec ? api::plan(spec.value, of.call) : api::Result<api::PlanRef>{};
    ran = {spec ? plan.fault : spec.fault, spec ? plan.message : spec.message};
    if (spec && plan) {
      auto done = api::run(*plan.value, of.call);
      ran = {done.fault, done.message};
    }
    if (const int result = d.to_host(out.data(), there, out.size())) // waits for the launch
      ran = {api::Fault::Internal, cuda_error(*d.driver, result)};
  }
  for (const uint64_t block : blocks) d.release(block);
  return ran;
}

} // namespace elsewise::fuzz
