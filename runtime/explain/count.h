// SPDX-License-Identifier: Apache-2.0
// How many positions each piece has in a call, as far as the host can tell from bounds. It reads no element, so what
// elements decide is between two numbers.
#pragma once
#include "runtime/host/evaluate.h"
#include "runtime/layout/layout.h"
#include <vector>

namespace elsewise {

/// Positions from `begin` up to `end`.
struct Run {
  int64_t begin, end;
  bool operator==(const Run &) const = default;
};

/// Positions of one piece. least == most: exactly so many.
struct PieceCount {
  int64_t least = 0, most = 0;
  std::vector<Run> segments; // where it is the first that holds, in positions of the loop; only where Counted::line
};

struct Counted {
  std::vector<PieceCount> pieces;       // by Kernel::pieces
  std::vector<int64_t> loaded;          // by argument: positions at most at which its element is read elementwise
  std::vector<std::vector<bool>> loads; // by piece and argument: its guard or value reads the element
  bool line = false;                    // the positions are one line, of the row-major index or of a single row, and no
                                        // residual guard or element decides: segments are given
  bool walked = true;                   // false: there are too many rows to look at
};

/// `values`, `poisoned`: of HostProgram for the call.
Counted count_positions(const Kernel &scheduled, const Loop &, std::span<const HostValue> values,
                        std::span<const uint8_t> poisoned, const HostDomain &);

} // namespace elsewise
