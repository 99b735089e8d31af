// SPDX-License-Identifier: Apache-2.0
// Guards as ranges of positions. Vectors are classified against bounds that the host computes once a call; what no
// range can say stays a test by element.
#pragma once
#include "compiler/passes/passes.h"

namespace elsewise {

/// Every piece with its guard split: conjuncts that are linear in the position, with a constant coefficient, against
/// host indexes become boxes (at most 4, from `or` and `!=`), host conditions empty a box's end, and Piece::guard keeps
/// the residual.
Kernel ranges(const Kernel &, const PassOptions &);

} // namespace elsewise
