// SPDX-License-Identifier: Apache-2.0
// Makes every position anew under the form. A kernel without axes passes unchanged.
#include "compiler/passes/axes.h"
#include "compiler/ir/abi.h"
#include "compiler/passes/fold.h"
#include "compiler/passes/form.h"
#include "compiler/passes/rewrite.h"
#include <algorithm>

namespace elsewise {

/// By a position that is 0 a division gives 0, and it is no fault: also where the loop has no such axis, so that the
/// host is left to divide.
template <class InLoop> static Kernel guard_divisors(const Kernel &from, const InLoop &in_loop) {
  std::vector<bool> varies,
      falls; // a position in the loop or a tensor, and a position outside it, at or below the node
  return rewrite(from, [&](Kernel &to, Builder &b, NodeId made) {
    while (varies.size() < to.insts.size()) {
      const NodeId n = NodeId(varies.size());
      const Inst &i = to[n];
      varies.push_back(i.op == Op::Load || i.op == Op::Read || (i.op == Op::Pos && in_loop(i.a)));
      falls.push_back(i.op == Op::Pos && !in_loop(i.a));
      for (const NodeId o : operands(to, n)) {
        if (varies[o]) varies[n] = true;
        if (falls[o]) falls[n] = true;
      }
    }
    const Inst i = to[made];
    const bool divides = i.op == Op::Binary && i.type == DType::Index &&
                         (BinaryOp(i.sub) == BinaryOp::FloorDiv || BinaryOp(i.sub) == BinaryOp::Mod);
    if (!divides || varies[i.b] || !falls[i.b]) return made;
    const NodeId zero = b.integer(DType::Index, 0);
    return b.where(b.compare(CompareOp::Ne, i.b, zero), made, zero);
  });
}

Kernel axes(const Kernel &from, const PassOptions &options) {
  if (from.axes.empty()) return from;
  Kernel k = form(from, options);
  const Form placed = k.form;
  auto in_loop = [&](uint32_t axis) {
    return axis == flat_axis || axis == placed.inner_axis ||
           std::find(placed.row_axes.begin(), placed.row_axes.end(), axis) != placed.row_axes.end();
  };
  const Kernel guarded = guard_divisors(k, in_loop);
  return prune(rewrite(guarded, [&](Kernel &to, Builder &b, NodeId made) {
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
