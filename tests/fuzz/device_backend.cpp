// SPDX-License-Identifier: Apache-2.0
// Copies operands to a GPU and back around a call. Where the driver or a device is missing it says so and stops.
#include "tests/fuzz/device_backend.h"
#include "runtime/cuda/driver.h"
#include "runtime/launch_taker.h"
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
  // An allocation each, of as many bytes as there are, so that `compute-sanitizer` sees the byte before and behind. Of
  // `out` half of the programs leave the guard zones out, and the others have them looked at.
  auto copy = [&](const uint8_t *data, size_t size) {
    uint64_t block = 0;
    if (failed || size == 0) return uint64_t(0);
    failed = d.allocate(&block, size) != 0;
    if (failed) return uint64_t(0);
    blocks.push_back(block);
    failed = d.to_device(block, data, size) != 0;
    return block;
  };
  out = c.out_buffer;
  CallOf of(c, out, api::Device{api::DeviceKind::Cuda, 0});
  const size_t edge = c.program.seed % 2 ? zone : 0, size = out.size() - 2 * edge;
  const uint64_t there = copy(out.data() + edge, size), first = there + uint64_t(c.out_offset) - edge;
  of.move_out(reinterpret_cast<void *>(first));
  for (size_t a = 0; a < c.arguments.size(); ++a) {
    const Input &in = *c.arguments[a];
    if (in.type.kind != ArgKind::Tensor) continue;
    const bool same = int(a) == c.same_view;
    const uint64_t at =
        same ? first : copy(in.buffer.data(), in.buffer.size()) + uint64_t(in.offset) * bytes(in.type.dtype);
    of.move(a, reinterpret_cast<void *>(at));
  }
  Ran ran{api::Fault::Internal, "no device memory"};
  if (!failed) {
    const api::MoveLimits moved(limits_of(c));
    auto spec = api::compile(c.program.text, "<spec>");
    auto plan = spec ? api::plan(spec.value, of.call) : api::Result<api::PlanRef>{};
    ran = {spec ? plan.fault : spec.fault, spec ? plan.message : spec.message};
    if (spec && plan) {
      auto done = api::run(*plan.value, of.call);
      ran = {done.fault, done.message};
    }
    if (const int result = size ? d.to_host(out.data() + edge, there, size) : 0) // waits for the launch
      ran = {api::Fault::Internal, cuda_error(*d.driver, result)};
  }
  for (const uint64_t block : blocks) d.release(block);
  return ran;
}

} // namespace elsewise::fuzz
