// SPDX-License-Identifier: Apache-2.0
// IR to LLVM IR for the CPU. Emission only: optimising and compiling are the run time's.
#pragma once
#include "compiler/ir/abi.h"
#include <memory>

namespace llvm {
class LLVMContext;
class Module;
} // namespace llvm

namespace elsewise {
/// What the text depends on beyond the kernel. Everything else of a CPU is left to LLVM's code generation, which cannot
/// change a bit of a result.
struct CpuTarget {
  bool f16c = true;             // converts halves itself (every x86-64-v3 does); else integer arithmetic does
  bool avx512dq = false;        // converts 64-bit integers to doubles in vectors; else a sum of two doubles does
  unsigned function_bits = 256; // the widest vectors that the library of functions has for it: 512, 256, or 0 for none
};

/// void elsewise(const Slot *slots, i64 row_begin, i64 row_end, i64 begin, i64 end): rows [row_begin, row_end), inner
/// positions [begin, end) of each. (One row: row_begin = 0, row_end = 1.) Slots are slots(kernel, Backend::Cpu).
/// Null and `error` if the kernel is not as the schedule pass should leave it (our bug).
std::unique_ptr<llvm::Module> emit_llvm(const Kernel &scheduled, llvm::LLVMContext &, const CpuTarget &,
                                        std::string &error);
} // namespace elsewise
