// SPDX-License-Identifier: Apache-2.0
// A table is read at data that a clip keeps inside: where few bits can hold the data, half of the clip says nothing,
// and the other half need not be worked in 64 bits.
#pragma once
#include "compiler/passes/passes.h"

namespace elsewise {

/// The kernel in which the least and the greatest of an element's index and a bound take no side that the dtype of the
/// data rules out, and no bound beyond what the data can be: `min(u8, n)` is `min(u8, min(n, 255))`, of which the host
/// works out the right side.
Kernel clips(const Kernel &, const PassOptions &);

} // namespace elsewise
