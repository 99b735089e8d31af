// SPDX-License-Identifier: Apache-2.0
// Constants worked at compile time with the very arithmetic that the host uses, so that ranges see literals and emitted
// code is short. It leaves alone what would hide a fault: an index result outside 64 bits, a zero divisor.
#pragma once
#include "compiler/passes/passes.h"

namespace elsewise {

/// The kernel with every operation on constants replaced by its value, and x*1, x/1, x-0, i+0 and powers with a plain
/// exponent by what they are.
Kernel fold(const Kernel &, const PassOptions &);

/// What users of `made`, the last node made with the builder of `k`, may have instead of it.
NodeId folded(Kernel &k, Builder &, NodeId made);

/// The same of a bound, in which whole numbers may lie beyond 64 bits.
NodeId folded_bound(Kernel &k, Builder &, NodeId made);

} // namespace elsewise
