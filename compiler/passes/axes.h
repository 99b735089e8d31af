// SPDX-License-Identifier: Apache-2.0
// Where the loop puts each axis decides what its position is: one by element, one by row, or the constant 0. It chooses
// no loop: the plan did.
#pragma once
#include "compiler/passes/passes.h"

namespace elsewise {

/// The kernel with its form, positions by row where the axis is a row's, and 0, or the window's origin,
/// where an axis is in no loop.
Kernel axes(const Kernel &, const PassOptions &);

/// Positions that a scheduled kernel uses, as values or in bounds: the row-major one, and those of Kernel::axes.
struct UsedPositions {
  bool flat = false;
  std::vector<bool> axes;
};
UsedPositions used_positions(const Kernel &scheduled);

} // namespace elsewise
