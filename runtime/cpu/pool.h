// SPDX-License-Identifier: Apache-2.0
// A small pool of threads for loops over chunks. It survives fork() (a child starts anew), serves several callers at
// once, and never throws.
#pragma once
#include "llvm/ADT/STLFunctionalExtras.h"
#include <cstdint>

namespace elsewise {

/// Threads that a loop may use, the caller's included: set_cpu_threads(), else the cores that this process may run on.
int cpu_threads();
/// Calls body(0), …, body(count - 1), each once, from the caller's thread and the pool's, and returns when all are
/// done.
void parallel_for(int64_t count, llvm::function_ref<void(int64_t)> body);

} // namespace elsewise
