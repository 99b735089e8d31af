// SPDX-License-Identifier: Apache-2.0
// Many pieces that differ in their constants alone are one body and a table. Otherwise every piece is compiled, and a
// thread or a loop jumps to its own.
#pragma once
#include "compiler/passes/passes.h"

namespace elsewise {

/// The kernel with the constants of alike pieces in tables, where there are at least nine of a shape, none with a
/// residual guard. What the host looks at stays as it is: indexes, reads, and nodes of its own stage; so does noise.
Kernel lift(const Kernel &, const PassOptions &);

} // namespace elsewise
