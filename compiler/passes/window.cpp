// SPDX-License-Identifier: Apache-2.0
// Moves positions and bounds between the window and its domain. Bounds may be anything that 128 bits hold, and moving
// them is no fault.
#include "compiler/passes/window.h"
#include "compiler/ir/rows.h"
#include "compiler/passes/rewrite.h"
#include <unordered_map>

namespace elsewise {
namespace {

class Mover {
public:
  explicit Mover(Kernel &k) : k(k), b(k) {}

  /// A range's end as one of the window. What only conditions bound counts the loop's own positions already.
  NodeId moved(NodeId n, const Range &r) {
    if (n == no_node || r.axis == no_axis || own(n)) return n;
    const Inst i = k[n];
    if (i.op == Op::Where) { // as the ranges pass makes them: a condition empties the range
      const NodeId yes = moved(i.b, r), no = moved(i.c, r);
      return b.where(i.a, yes, no);
    }
    return b.binary(BinaryOp::Sub, near(n), b.origin(r.axis));
  }

private:
  /// The end of the loop's row, or what lies before every position.
  bool own(NodeId n) const {
    const Inst &i = k[n];
    return (i.op == Op::Len && i.a == no_axis) || (i.op == Op::Const && k.constants[i.a].integer <= 0);
  }
  /// The host's bound, so far within 128 bits that it can be moved.
  NodeId near(NodeId n) {
    if (k[n].stage != Stage::Host || !far(n)) return n;
    constexpr __int128 limit = __int128(1) << 100;
    const NodeId low = b.call(greatest_row(), DType::Index, {n, b.integer(DType::Index, -limit)});
    return b.call(least_row(), DType::Index, {low, b.integer(DType::Index, limit)});
  }
  /// It may be near the ends of 128 bits: no sum of positions, lengths and plain constants.
  bool far(NodeId n) {
    if (const auto at = far_.find(n); at != far_.end()) return at->second;
    const bool is = find_far(n);
    return far_[n] = is;
  }
  bool find_far(NodeId n) {
    const Inst i = k[n];
    constexpr __int128 limit = __int128(1) << 64;
    if (i.op == Op::Const)
      return i.type == DType::Index && (k.constants[i.a].integer > limit || k.constants[i.a].integer < -limit);
    if (i.op == Op::Param || i.op == Op::Cast) return true;
    if (i.op == Op::Binary &&
        (BinaryOp(i.sub) == BinaryOp::Mul || BinaryOp(i.sub) == BinaryOp::Shl || BinaryOp(i.sub) == BinaryOp::Pow))
      return true;
    for (const NodeId o : operands(k, n))
      if (far(o)) return true;
    return false;
  }

  Kernel &k;
  Builder b;
  std::unordered_map<NodeId, bool> far_; // what lets share is looked at once
};

} // namespace

Kernel window(const Kernel &from, const PassOptions &options) {
  if (!options.form.window) return from;
  Kernel k = rewrite(from, [](Kernel &to, Builder &b, NodeId made) {
    const Inst i = to[made];
    return i.op == Op::Pos ? b.binary(BinaryOp::Add, made, b.origin(i.a)) : made;
  });
  k.form.window = true; // a kernel without axes has its form later
  Mover mover(k);
  for (Piece &p : k.pieces)
    for (auto &box : p.boxes)
      for (Range &r : box) r.lo = mover.moved(r.lo, r), r.hi = mover.moved(r.hi, r);
  return prune(k);
}

bool is_position(const Kernel &k, NodeId n) {
  const Inst &i = k[n];
  if (i.op != Op::Binary || BinaryOp(i.sub) != BinaryOp::Add) return i.op == Op::Pos;
  return (k[i.a].op == Op::Pos && k[i.b].op == Op::Origin) || (k[i.a].op == Op::Origin && k[i.b].op == Op::Pos);
}

} // namespace elsewise
