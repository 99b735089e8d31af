// SPDX-License-Identifier: Apache-2.0
// Random kernels as CUDA C on the CPU. A difference is the emitter's, the shim's or the geometry's: nothing else takes
// part.
#include "compiler/emit/emit.h"
#include "tests/unit/cuda_programs.h"
#include <cstdlib>
#include <gtest/gtest.h>

namespace elsewise::test {
namespace {

TEST(CudaRandom, AgreesWithTheArithmetic) {
  const char *count = std::getenv("ELSEWISE_CUDA_RANDOM"), *from = std::getenv("ELSEWISE_CUDA_SEED");
  const uint64_t start = from ? std::strtoull(from, nullptr, 10) : 1,
                 end = start + (count ? std::strtoull(count, nullptr, 10) : 100);
  uint64_t compared = 0;
  for (uint64_t seed = start; seed < end; seed += 100) {
    std::vector<std::unique_ptr<RandomKernel>> programs;
    std::vector<std::string> texts;
    for (uint64_t k = seed; k < std::min(seed + 100, end); ++k) {
      programs.push_back(std::make_unique<RandomKernel>(k));
      ASSERT_EQ(programs.back()->wrong(), "") << "seed " << k;
      texts.push_back(emit_cuda(programs.back()->kernel()));
    }
    std::string error;
    const auto batch = ShimBatch::build(texts, error);
    ASSERT_TRUE(batch) << error;
    for (size_t k = 0; k < programs.size(); ++k) {
      const std::string difference = programs[k]->run(*batch, k);
      EXPECT_EQ(difference, "") << "seed " << seed + k << "\n" << texts[k];
      if (!difference.empty()) return;
      compared += !programs[k]->refused() && programs[k]->positions() > 0;
    }
  }
  // The draw is worth something only if most kernels are compared.
  EXPECT_GT(compared * 2, end - start);
}

} // namespace
} // namespace elsewise::test
