// SPDX-License-Identifier: Apache-2.0
// The CPU back end as a whole: what it links against, what its text shows, its counter, and runs that must not depend
// on how they are cut. Arithmetic stands in llvm_test.cpp.
#include "runtime/cpu/codegen.h"
#include "runtime/cpu/engine.h"
#include "runtime/cpu/jit.h"
#include "tests/unit/cpu_kernels.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"
#include <cstring>
#include <fstream>
#include <gtest/gtest.h>
#include <thread>
#include <xmmintrin.h>

namespace elsewise::test {
namespace {

/// i < n/4: x*0.5; i >= n - n/4: x*2; else x
struct Seed {
  Maker m{{DType::F32}, DType::F32};
  NodeId low, high;
  Seed() {
    low = m.b.binary(BinaryOp::FloorDiv, m.count(), m.b.integer(DType::Index, 4));
    high = m.b.binary(BinaryOp::Sub, m.count(), low);
    const NodeId x = m.b.load(0);
    m.piece(m.b.binary(BinaryOp::Mul, x, m.b.real(DType::F32, 0.5)), {m.range(no_node, low)});
    m.piece(m.b.binary(BinaryOp::Mul, x, m.b.real(DType::F32, 2)), {m.range(high, no_node)});
    m.piece(x);
    m.scheduled();
  }
  std::vector<Slot> slots(float *out, const float *x, int64_t n) const {
    Operands o;
    o.out = out, o.in = {x}, o.extent = n, o.bounds = {{low, n / 4}, {high, n - n / 4}};
    return fill(m.kernel, o);
  }
  static float want(int64_t i, int64_t n, float x) { return i < n / 4 ? x * 0.5f : i >= n - n / 4 ? x * 2 : x; }
};

size_t occurrences(const std::string &text, const std::string &part) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++count;
  return count;
}

// An object whose only function calls `callee`.
std::string link_error(const char *callee) {
  std::unique_ptr<LinkedCode> code; // takes the lock itself when it dies
  std::lock_guard lock(compile_mutex());
  std::string error;
  const auto machine = make_machine("", error);
  llvm::LLVMContext context;
  llvm::Module module("test", context);
  llvm::IRBuilder<> b(context);
  auto *type = llvm::FunctionType::get(b.getVoidTy(), false);
  auto *entry = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, "entry", module);
  b.SetInsertPoint(llvm::BasicBlock::Create(context, "", entry));
  b.CreateCall(module.getOrInsertFunction(callee, type));
  b.CreateRetVoid();
  optimise(module, *machine);
  llvm::SmallVector<char, 0> object;
  if (!generate(module, *machine, llvm::CodeGenFileType::ObjectFile, object, error)) return "not generated";
  code = link_object(object, "entry", error);
  return code ? "linked" : error;
}

TEST(Jit, OnlyListedSymbolsLink) {
  EXPECT_EQ(link_error("fmodf"), "linked");
  for (const char *name : {"puts", "__truncsfhf2", "expf", "malloc"}) {
    const std::string error = link_error(name);
    EXPECT_NE(error.find(name), std::string::npos) << error;
    EXPECT_NE(error, "linked");
  }
}

TEST(Jit, EveryPieceIsAVectorLoop) {
  const Seed seed;
  std::string error;
  const std::string ir = cpu_text(seed.m.kernel, false, "x86-64-v3", error);
  EXPECT_EQ(error, "");
  EXPECT_GE(occurrences(ir, "store <8 x float>"), 3u) << ir;
  EXPECT_EQ(occurrences(ir, "fmul <8 x float>") % 2, 0u); // as many of both products
  EXPECT_NE(ir.find("%end1 ="), std::string::npos);
  EXPECT_NE(ir.find("%begin2 ="), std::string::npos);
  EXPECT_NE(ir.find("piece1.loop:"), std::string::npos);
  EXPECT_EQ(ir.find("fast"), std::string::npos);
  const std::string assembly = cpu_text(seed.m.kernel, true, "x86-64-v3", error);
  EXPECT_NE(assembly.find("%ymm"), std::string::npos);
  EXPECT_EQ(cpu_text(seed.m.kernel, true, "no-such-cpu", error), "");
  EXPECT_NE(error.find("no-such-cpu"), std::string::npos);
}

TEST(Jit, InPlaceIdentityPieceHasNoLoop) {
  Seed seed;
  seed.m.kernel.form.same_view = {true};
  std::string error;
  const std::string ir = cpu_text(seed.m.kernel, false, "x86-64-v3", error);
  EXPECT_NE(ir.find("piece2.loop:"), std::string::npos);
  EXPECT_EQ(ir.find("piece3.loop:"), std::string::npos);
  EXPECT_GE(occurrences(ir, "store <8 x float>"), 2u);
  EXPECT_EQ(ir.find("vector.memcheck"), std::string::npos); // no run-time test of overlap: it is known
}

// A kernel that the schedule left unfinished is an error with words, not the end of the process.
TEST(Jit, UnscheduledUniformIsReported) {
  Maker m({DType::F64}, DType::F64);
  m.piece(m.b.binary(BinaryOp::Mul, m.b.load(0), m.parameter(DType::F64)));
  std::string error;
  EXPECT_FALSE(compile_cpu(m.kernel, error));
  EXPECT_NE(error.find("not among the kernel's uniforms"), std::string::npos) << error;
}

TEST(Jit, CountsCompilationsAndFreesCode) {
  const Seed seed;
  std::string error;
  // Bytes of code that belong to no file. (Not mappings: the system joins neighbours.)
  auto executable = [] {
    uint64_t bytes = 0;
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
      if (line.find(" r-xp ") == std::string::npos || line.find(" 0 ") == std::string::npos) continue;
      uint64_t begin = 0, end = 0;
      if (std::sscanf(line.c_str(), "%lx-%lx", &begin, &end) == 2) bytes += end - begin;
    }
    return bytes;
  };
  const uint64_t before = orc_compilations();
  std::vector<std::unique_ptr<CpuCode>> kept;
  const uint64_t mapped = executable();
  for (int i = 0; i < 20; ++i) kept.push_back(compile_cpu(seed.m.kernel, error));
  EXPECT_EQ(orc_compilations(), before + 20);
  const uint64_t all = executable();
  EXPECT_GE(all, mapped + 20 * 4096);
  EXPECT_EQ((all - mapped) % (20 * 4096), 0u) << "each of the same code takes as much";
  kept.clear();
  EXPECT_EQ(executable(), mapped);
}

// However many threads, wherever cut, streamed or not: the same bits, and not a byte beyond.
TEST(Jit, BitsDependOnNoCut) {
  const Seed seed;
  std::string error;
  const auto code = compile_cpu(seed.m.kernel, error);
  ASSERT_TRUE(code) << error;
  for (const int64_t n : {1ll, 7ll, 1000ll, 100003ll, (5ll << 20) + 3}) {
    std::vector<float> x(size_t(n) + 9), first;
    for (size_t i = 0; i < x.size(); ++i) x[i] = float(i % 1001) - 500;
    for (const int threads : {1, 2, 5})
      for (const size_t shift : {0, 1, 3}) {
        std::vector<float> out(size_t(n) + 9, -77);
        set_cpu_threads(threads);
        for (const bool streams : {false, true}) {
          code->stream_from = streams ? 0 : INT64_MAX;
          run_cpu(*code, seed.slots(out.data() + shift, x.data() + 3 - shift, n).data(), 1, n, streams ? 8 : 5);
          int64_t wrong = 0;
          for (int64_t i = 0; i < n; ++i) wrong += out[size_t(i) + shift] != Seed::want(i, n, x[size_t(i) + 3 - shift]);
          EXPECT_EQ(wrong, 0) << n << ' ' << threads << ' ' << shift << ' ' << streams;
          for (size_t i = 0; i < out.size(); ++i) {
            const bool outside = i < shift || i >= shift + size_t(n);
            EXPECT_TRUE(!outside || out[i] == -77);
          }
        }
      }
  }
  set_cpu_threads(0);
}

// x + 1000*i over rows whose memory order is turned round and padded: what streaming has to place.
TEST(Jit, RowsStreamToTheirPlaces) {
  Maker m({DType::I32}, DType::I32);
  m.piece(m.b.binary(BinaryOp::Add, m.b.load(0), m.b.cast(m.flat(), DType::I32)));
  m.kernel.form.rows = 2;
  m.scheduled();
  std::string error;
  const auto code = compile_cpu(m.kernel, error);
  ASSERT_TRUE(code) << error;
  const int64_t inner = 5003, a = 40, b = 30; // row axis 0 has length a; axis 1 length b
  const int64_t out0 = (inner + 5) * b, out1 = inner + 5;
  std::vector<int32_t> x(size_t(inner * a * b)), out(size_t(out0 * a), -1);
  for (size_t i = 0; i < x.size(); ++i) x[i] = int32_t(i * 7);
  Operands o;
  o.out = out.data(), o.in = {x.data()}, o.rows = a * b, o.extent = inner;
  o.row_lengths = {a, b}, o.row_pitches = {inner, inner * a}, o.out_strides = {out0, out1},
  o.in_strides = {{inner, inner * a}};
  for (const bool streams : {true, false}) {
    std::fill(out.begin(), out.end(), -1);
    code->stream_from = streams ? 0 : INT64_MAX;
    run_cpu(*code, fill(m.kernel, o).data(), o.rows, inner, 8);
    int64_t wrong = 0;
    for (int64_t r = 0; r < a * b; ++r)
      for (int64_t c = 0; c < out1; ++c) {
        const int64_t flat = r * inner + c;
        const int32_t got = out[size_t(r % a * out0 + r / a * out1 + c)];
        wrong += got != (c < inner ? int32_t(flat * 7 + flat) : -1);
      }
    EXPECT_EQ(wrong, 0) << streams;
  }
}

// A caller's flush-to-zero mode neither reaches the rule nor is lost by calling it.
TEST(Jit, CallersFloatModeIsIgnoredAndKept) {
  Maker m({DType::F32}, DType::F32);
  m.piece(m.b.binary(BinaryOp::Mul, m.b.load(0), m.b.real(DType::F32, 0.5)));
  std::string error;
  const auto code = compile_cpu(m.scheduled(), error);
  ASSERT_TRUE(code) << error;
  set_cpu_threads(23); // more than there are yet: a new thread takes its mode from the one that starts it
  for (const size_t n : {size_t(1000), size_t(1) << 20}) { // this thread alone, and many
    const std::vector<float> x(n, 1e-38f);
    std::vector<float> out(n);
    Operands o;
    o.out = out.data(), o.in = {x.data()}, o.extent = int64_t(n);
    const std::vector<Slot> slots = fill(m.kernel, o);
    const unsigned before = _mm_getcsr();
    _mm_setcsr(before | 0x8040); // flush to zero, subnormals are zero
    run_cpu(*code, slots.data(), 1, o.extent, 8);
    const unsigned after = _mm_getcsr();
    _mm_setcsr(before);
    EXPECT_EQ(after, before | 0x8040);
    EXPECT_EQ(std::count(out.begin(), out.end(), 5e-39f), int64_t(n));
  }
  set_cpu_threads(0);
}

TEST(Jit, CompilesAndRunsFromManyThreads) {
  std::vector<std::thread> threads;
  std::atomic<int> good = 0;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&good] {
      for (int i = 0; i < 5; ++i) {
        const Seed seed;
        std::string error;
        const auto code = compile_cpu(seed.m.kernel, error);
        if (!code) return;
        std::vector<float> x(300000, 3), out(x.size());
        run_cpu(*code, seed.slots(out.data(), x.data(), int64_t(x.size())).data(), 1, int64_t(x.size()), 8);
        good += out.front() == 1.5f && out[150000] == 3 && out.back() == 6;
      }
    });
  for (std::thread &t : threads) t.join();
  EXPECT_EQ(good, 20);
}

} // namespace
} // namespace elsewise::test
