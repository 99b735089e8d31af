// SPDX-License-Identifier: Apache-2.0
// The random kernels of the shim on a real device, whose instructions the CPU only imitates: half conversions,
// remainders, saturating casts, wide indexes. Skipped in sight where there is no device.
#include "compiler/emit/emit.h"
#include "runtime/cuda/launch.h"
#include "runtime/cuda/nvrtc.h"
#include "tests/unit/cuda_programs.h"
#include <cstdlib>
#include <dlfcn.h>
#include <gtest/gtest.h>

namespace elsewise::test {
namespace {

// Device memory, which the runtime itself never allocates.
struct Memory {
  int (*allocate)(uint64_t *, size_t) = nullptr;
  int (*release)(uint64_t) = nullptr;
  int (*to_device)(uint64_t, const void *, size_t) = nullptr;
  int (*to_host)(void *, uint64_t, size_t) = nullptr;
  bool open(const std::string &driver) {
    void *library = dlopen(driver.c_str(), RTLD_NOW | RTLD_LOCAL);
    auto find = [&](const char *name, auto &to) {
      return (to = reinterpret_cast<std::remove_reference_t<decltype(to)>>(dlsym(library, name))) != nullptr;
    };
    return library && find("cuMemAlloc_v2", allocate) && find("cuMemFree_v2", release) &&
           find("cuMemcpyHtoD_v2", to_device) && find("cuMemcpyDtoH_v2", to_host);
  }
};

TEST(CudaDevice, RandomKernelsAgreeWithTheArithmetic) {
  std::string why;
  const CudaDriver *driver = cuda_driver(why);
  if (!driver || driver->devices == 0) GTEST_SKIP() << why;
  const std::string arch = device_arch(0, why);
  const CuContext context = primary_context(*driver, 0, why);
  ASSERT_TRUE(context) << why;
  const CurrentContext current(*driver, context);
  Memory memory;
  ASSERT_TRUE(memory.open(driver->path));
  const char *count = std::getenv("ELSEWISE_CUDA_RANDOM");
  uint64_t compared = 0;
  const uint64_t programs = count ? std::strtoull(count, nullptr, 10) : 100;
  for (uint64_t seed = 1; seed <= programs; ++seed) {
    RandomKernel program(seed);
    const NvrtcResult compiled =
        nvrtc_compile(emit_cuda(program.kernel()), arch, false, cuda_options(program.kernel()));
    if (compiled.missing) GTEST_SKIP() << compiled.error;
    ASSERT_EQ(compiled.error, "");
    CudaCode code;
    std::string error;
    ASSERT_TRUE(code.load(0, arch, compiled.code, error)) << error;
    const std::string difference = program.run([&](const CudaCall &call, const auto &buffers) -> std::string {
      // Copies whose addresses agree with the host's modulo 256, so that nothing about alignment changes.
      std::vector<uint64_t> blocks;
      CudaCall there = call;
      for (const auto &buffer : buffers) {
        uint64_t block = 0;
        if (memory.allocate(&block, buffer.size() + 512)) return "no device memory";
        const uint64_t host = reinterpret_cast<uint64_t>(buffer.data()), base = ((block + 255) & ~255ull) + host % 256;
        blocks.push_back(block), blocks.push_back(base);
        if (memory.to_device(base, buffer.data(), buffer.size())) return "copying to the device failed";
        for (size_t s = 0; s < there.infos.size(); ++s) {
          if (there.infos[s].kind != SlotKind::Out && there.infos[s].kind != SlotKind::In) continue;
          const uint64_t at = reinterpret_cast<uint64_t>(call.slots[s].pointer);
          if (at >= host && at < host + buffer.size())
            there.slots[s].pointer = reinterpret_cast<void *>(base + (at - host));
        }
      }
      std::string failure;
      auto pointers = there.pointers();
      if (there.geometry.grid > 0)
        code.launch(0, there.geometry, nullptr, const_cast<void **>(pointers.data()), failure);
      for (size_t b = 0; b < buffers.size(); ++b) {
        if (memory.to_host(buffers[b].data(), blocks[2 * b + 1], buffers[b].size()))
          failure += " copying to the host failed";
        memory.release(blocks[2 * b]);
      }
      return failure;
    });
    ASSERT_EQ(difference, "") << "seed " << seed << "\n" << emit_cuda(program.kernel());
    compared += !program.refused() && program.positions() > 0;
  }
  EXPECT_GT(compared * 2, programs);
}

} // namespace
} // namespace elsewise::test
