// SPDX-License-Identifier: Apache-2.0
// Guards as ranges of positions. Vectors are classified against bounds that the host computes once a call; what no
// range can say stays a test by element.
#pragma once
#include "compiler/passes/passes.h"

namespace elsewise {

/// Every piece with its guard split: conjuncts that are linear in the row-major position or in that of the inner axis,
/// with a constant coefficient, against indexes of the host or the row become boxes (at most 4, from `or`, `!=`, min
/// and max), conditions of the host or the row empty a box's end, and Piece::guard keeps the residual.
Kernel ranges(const Kernel &, const PassOptions &);

} // namespace elsewise
