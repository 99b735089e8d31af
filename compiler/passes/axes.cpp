// SPDX-License-Identifier: Apache-2.0
// Makes every position anew under the form. A kernel without axes passes unchanged.
#include "compiler/passes/axes.h"
#include "compiler/ir/abi.h"
#include "compiler/names/names.h"
#include "compiler/passes/fold.h"
#include "compiler/passes/form.h"
#include "compiler/passes/rewrite.h"
#include <algorithm>

namespace elsewise {

Kernel axes(const Kernel &from, const PassOptions &options) {
  if (from.axes.empty()) return from;
  Kernel k = form(from, options);
  const Form placed = k.form;
  auto in_loop = [&](uint32_t axis) {
    return axis == flat_axis || axis == placed.inner_axis ||
           std::find(placed.row_axes.begin(), placed.row_axes.end(), axis) != placed.row_axes.end();
  };
  return prune(rewrite(k, [&](Kernel &to, Builder &b, NodeId made) {
    const Inst i = to[made];
    if (i.op == Op::Pos && !in_loop(i.a)) return b.integer(DType::Index, 0);
    return folded(to, b, made);
  }));
}

UsedPositions used_positions(const Kernel &k) {
  UsedPositions used{uses_flat(k), std::vector<bool>(k.axes.size())};
  for (const Inst &i : k.insts)
    if (i.op == Op::Pos && i.a < used.axes.size()) used.axes[i.a] = true;
  for (const Piece &p : k.pieces)
    for (const auto &box : p.boxes)
      for (const Range &r : box)
        if (r.axis < used.axes.size()) used.axes[r.axis] = true;
  return used;
}

} // namespace elsewise
