// SPDX-License-Identifier: Apache-2.0
// Pieces that no position can reach cost a body and a bit of every classification. The dtype was decided by typing and
// does not change here.
#pragma once
#include "compiler/passes/passes.h"

namespace elsewise {

/// The kernel without boxes and pieces that are empty whatever the parameters, without what stands behind a piece that
/// always holds, and without unused nodes.
Kernel dead(const Kernel &, const PassOptions &);

} // namespace elsewise
