// SPDX-License-Identifier: Apache-2.0
// Who computes what: the host, once a call; a guard; a body. Emitters and the host's evaluator walk these lists and
// look for nothing themselves.
#pragma once
#include "compiler/passes/passes.h"

namespace elsewise {

/// The kernel with host, uniforms, row, guards and bodies filled. Each guard and each body stands alone; a node stands
/// below the where, and, or whose arm holds all of its uses. Halves reach a device as F32, and where Form::wide says
/// so, index uniforms as three words.
Kernel schedule(const Kernel &, const PassOptions &);

} // namespace elsewise
