// SPDX-License-Identifier: Apache-2.0
// The fuzzer's memory: a byte before or behind a tensor ends the program, and the tensor itself is a copy. What runs in
// it is the fuzzer's business.
#include "tests/fuzz/guarded.h"
#include <cstdio>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace elsewise::fuzz {
namespace {

struct Small {
  Input in;
  Case c;
  explicit Small(uint64_t seed, size_t size) {
    in.name = "x", in.type = {ArgKind::Tensor, DType::U8, false};
    in.shape = {int64_t(size)}, in.stride = {1}, in.buffer.assign(size, 7);
    c.program.seed = seed, c.arguments = {&in}, c.domain = {1}, c.out_stride = {1};
    c.typed.result = DType::U8, c.out_buffer.assign(2 * zone + 1, 9), c.out_offset = zone;
  }
};

// Whether looking at that byte of `x` ends a program as it must.
bool ends(uint64_t seed, size_t size, int64_t at) {
  Small small(seed, size);
  CallOf call(small.c, small.c.out_buffer, api::Device{});
  const Guarded memory(small.c);
  memory.move(call);
  const pid_t child = fork();
  if (child == 0) {
    catch_traps();
    running("in a test", 0, "a byte");
    if (std::freopen("/dev/null", "w", stdout) == nullptr) _exit(3);
    const volatile uint8_t *byte = static_cast<const uint8_t *>(call.call.args[0].data) + at;
    _exit(*byte == 7 ? 0 : 2);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 1;
}

TEST(Guarded, AByteBesideATensorTraps) {
  int behind = 0, before = 0;
  constexpr int seeds = 24;
  for (uint64_t seed = 0; seed < seeds; ++seed)
    for (const size_t size : {size_t(1), size_t(5), size_t(4096), size_t(5000)}) {
      const int64_t last = int64_t(size) - 1;
      ASSERT_FALSE(ends(seed, size, 0) || ends(seed, size, last)) << seed;
      const bool one = ends(seed, size, last + 1), other = ends(seed, size, -1);
      EXPECT_TRUE(one || other) << seed << ", " << size;
      EXPECT_TRUE(ends(seed, size, last + 5000) && ends(seed, size, -5000) && ends(seed, size, int64_t(1) << 31));
      behind += one, before += other;
    }
  EXPECT_GT(behind, seeds) << "of " << 4 * seeds;
  EXPECT_GT(before, seeds) << "of " << 4 * seeds;
}

TEST(Guarded, AnEmptyTensorHasNoByte) {
  for (uint64_t seed = 0; seed < 8; ++seed) EXPECT_TRUE(ends(seed, 0, 0)) << seed;
}

TEST(Guarded, WhatWasWrittenIsSeen) {
  for (uint64_t seed = 0; seed < 8; ++seed) {
    Small small(seed, 5);
    CallOf call(small.c, small.c.out_buffer, api::Device{});
    const Guarded memory(small.c);
    memory.move(call);
    EXPECT_EQ(memory.out(), small.c.out_buffer);
    EXPECT_EQ(memory.written(), "");
    *static_cast<uint8_t *>(call.call.out->data) = 1;
    EXPECT_EQ(memory.out()[zone], 1);
    static_cast<uint8_t *>(call.call.args[0].data)[4] = 1;
    EXPECT_EQ(memory.written(), "x was written");
  }
}

} // namespace
} // namespace elsewise::fuzz
