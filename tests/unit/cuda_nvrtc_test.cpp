// SPDX-License-Identifier: Apache-2.0
// Emitted kernels through the real NVRTC for every architecture that matters, and what its failures say. Skipped in
// sight where there is no NVRTC, which CI forbids.
#include "compiler/emit/emit.h"
#include "runtime/cuda/nvrtc.h"
#include "tests/unit/cuda_programs.h"
#include <algorithm>
#include <cstdlib>
#include <gtest/gtest.h>
#include <thread>

namespace elsewise::test {
namespace {

// True if there is none; then the test is skipped, or fails in CI.
bool no_nvrtc(std::string &why) { return nvrtc_describe(why).empty(); }
#define NEED_NVRTC()                                                                                                   \
  if (std::string why; no_nvrtc(why)) {                                                                                \
    if (std::getenv("CI")) FAIL() << why;                                                                              \
    GTEST_SKIP() << why;                                                                                               \
  }

const std::string kernel =
    "extern \"C\" __global__ void elsewise(float *out, int n) { if (threadIdx.x < n) out[threadIdx.x] = 1.0f; }\n";
const std::vector<std::string> options{"--fmad=false", "--minimal", "-std=c++17"};

TEST(CudaNvrtc, RandomKernelsForEveryArchitecture) {
  NEED_NVRTC();
  const std::vector<std::string> known = nvrtc_archs();
  const char *archs[] = {"sm_75", "sm_80", "sm_90", "sm_100", "sm_120"};
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    const RandomKernel program(seed);
    const std::string text = emit_cuda(program.kernel());
    const std::string arch = archs[seed % 5];
    const NvrtcResult result = nvrtc_compile(text, arch, false, cuda_options(program.kernel()));
    ASSERT_EQ(result.error, "") << "seed " << seed;
    if (std::find(known.begin(), known.end(), arch) != known.end()) {
      EXPECT_EQ(result.code.substr(1, 3), "ELF") << arch;
    }
  }
}

TEST(CudaNvrtc, PtxIsText) {
  NEED_NVRTC();
  const uint64_t before = nvrtc_compilations();
  const NvrtcResult result = nvrtc_compile(kernel, "sm_90", true, options);
  EXPECT_EQ(result.error, "");
  EXPECT_NE(result.code.find(".visible .entry elsewise("), std::string::npos);
  EXPECT_EQ(result.code.find('\0'), std::string::npos);
  EXPECT_GT(nvrtc_compilations(), before);
}

TEST(CudaNvrtc, UnknownArchitecturesFallBack) {
  NEED_NVRTC();
  // Newer than this NVRTC: PTX of the highest it knows, which the driver finishes.
  const NvrtcResult newer = nvrtc_compile(kernel, "sm_990", false, options);
  EXPECT_EQ(newer.error, "");
  EXPECT_NE(newer.code.find(".target " + nvrtc_archs().back()), std::string::npos) << newer.code.substr(0, 400);
  // A later minor of a known major: a cubin for the highest below it.
  const NvrtcResult minor = nvrtc_compile(kernel, "sm_109", false, options);
  EXPECT_EQ(minor.error, "");
  const std::vector<std::string> known = nvrtc_archs();
  if (std::find(known.begin(), known.end(), "sm_100") != known.end()) {
    EXPECT_EQ(minor.code.substr(1, 3), "ELF");
  }
  // Older than anything: nothing it makes would run.
  const NvrtcResult older = nvrtc_compile(kernel, "sm_20", false, options);
  EXPECT_TRUE(older.missing);
  EXPECT_NE(older.error.find("does not compile for sm_20"), std::string::npos);
}

TEST(CudaNvrtc, RefusedTextIsOurBugAndIsShown) {
  NEED_NVRTC();
  const NvrtcResult result = nvrtc_compile("// first line\nnonsense;\n", "sm_80", false, options);
  EXPECT_FALSE(result.missing);
  EXPECT_EQ(result.code, "");
  EXPECT_NE(result.error.find("bug in elsewise"), std::string::npos);
  EXPECT_NE(result.error.find("elsewise.cu(2)"), std::string::npos) << result.error;
  EXPECT_NE(result.error.find("   2  nonsense;\n"), std::string::npos) << result.error;
}

TEST(CudaNvrtc, ManyThreads) {
  NEED_NVRTC();
  std::vector<std::thread> threads;
  std::vector<std::string> errors(4);
  for (size_t t = 0; t < errors.size(); ++t)
    threads.emplace_back([&, t] {
      for (int k = 0; k < 3; ++k)
        errors[t] += nvrtc_compile(kernel + "// " + std::to_string(t), "sm_80", k == 1, options).error;
    });
  for (std::thread &t : threads) t.join();
  for (const std::string &error : errors) EXPECT_EQ(error, "");
}

} // namespace
} // namespace elsewise::test
