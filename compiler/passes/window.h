// SPDX-License-Identifier: Apache-2.0
// In a window the loop counts from the window's first position, and the rule from the domain's. This pass puts the
// difference into the kernel, so that no emitter has to know of it; it chooses no window.
#pragma once
#include "compiler/passes/passes.h"

namespace elsewise {

/// Where the form is a window's: every position is the loop's own plus the window's origin, a launch argument, and
/// every bound is moved by it. Any other kernel passes unchanged.
Kernel window(const Kernel &, const PassOptions &);

/// True for a position, of the loop or of the domain.
bool is_position(const Kernel &, NodeId);

} // namespace elsewise
