// SPDX-License-Identifier: Apache-2.0
// CPU code of one kernel variant: LLVM IR optimised and compiled in-process by ORC. It links against an explicit list
// of symbols and nothing else.
#pragma once
#include "compiler/ir/abi.h"
#include <array>
#include <memory>
#include <string>

namespace elsewise {

class CpuCode {
public:
  using Function = void (*)(const Slot *, int64_t row_begin, int64_t row_end, int64_t begin, int64_t end);
  virtual ~CpuCode() = default;
  Function function = nullptr;

  // What run_cpu() needs to place a part of the output: which slots they are (-1: none).
  uint32_t rows = 0, output_bytes = 0, slot_count = 0, out_slot = 0;
  std::array<int32_t, 8> out_strides{-1, -1, -1, -1, -1, -1, -1, -1}, row_lengths{-1, -1, -1, -1, -1, -1, -1, -1};
  int64_t code_bytes = 0;          // of machine code, the library's functions aside
  int64_t stream_from = INT64_MAX; // bytes of output from which it bypasses the caches; only for one contiguous output
                                   // that no input shares
};

/// nullptr and `error` on failure (our bug: says so, with the IR). `cpu`: "" for the host's; any other must be one that
/// the host can run.
std::unique_ptr<CpuCode> compile_cpu(const Kernel &scheduled, std::string &error, const std::string &cpu = "");
/// Optimised LLVM IR, or target assembly, as text. `cpu`: "" for the host's.
std::string cpu_text(const Kernel &scheduled, bool assembly, const std::string &cpu, std::string &error);
uint64_t orc_compilations();

/// The CPU that code is compiled for: LLVM's name of it, and the bits of its widest vectors.
struct HostCpu {
  std::string name;
  unsigned vector_bits = 0;
};
HostCpu host_cpu();

/// Runs code over rows x extent, split among the pool's threads: inline if small. Blocks until done. Safe after fork
/// (the child starts anew) and from several threads.
void run_cpu(const CpuCode &, const Slot *, int64_t rows, int64_t extent, int64_t bytes_per_position);
void set_cpu_threads(int);

} // namespace elsewise
