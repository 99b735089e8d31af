// SPDX-License-Identifier: Apache-2.0
// Splits guards by De Morgan and linear arithmetic. It proves nothing about the ranges that it finds.
#include "compiler/passes/ranges.h"
#include "compiler/ir/abi.h"
#include "compiler/ir/arithmetic.h"
#include "compiler/ir/rows.h"
#include "compiler/passes/fold.h"
#include "compiler/passes/rewrite.h"
#include <algorithm>
#include <optional>
#include <unordered_map>

namespace elsewise {
namespace {

constexpr size_t most_boxes = 4;

/// lo <= position, position < hi, all of them.
struct Ends {
  std::vector<NodeId> lo = {}, hi = {};
  bool open() const { return lo.empty() && hi.empty(); }
  void add(const Ends &e) {
    lo.insert(lo.end(), e.lo.begin(), e.lo.end());
    hi.insert(hi.end(), e.hi.begin(), e.hi.end());
  }
};

/// All of: ends on the row-major position, ends on the inner axis, conditions of the call or the row. Without any:
/// every position.
struct Box {
  Ends flat, inner;
  std::vector<NodeId> conditions = {};
  bool unbounded() const { return flat.open() && inner.open(); }
  bool open() const { return unbounded() && conditions.empty(); }
};

/// (one of the boxes) and residual. No box: never.
struct Split {
  std::vector<Box> boxes;
  NodeId residual = no_node;
};

/// A read that a row makes ahead of what leads to it, for bounds and for whole segments: what only a guard or a premise
/// keeps in bounds is compared with the lengths too, which costs a row and no element. `made` itself if that is not
/// needed.
NodeId tested(Kernel &k, Builder &b, NodeId made) {
  const Inst i = k[made];
  Reading reading = k.reads[i.c];
  std::vector<NodeId> indices = operands(k, i);
  const NodeId own = i.sub ? indices[0] : no_node;
  if (i.sub) indices.erase(indices.begin());
  NodeId inside = no_node;
  auto add = [&](NodeId condition) {
    const NodeId known = folded(k, b, condition);
    if (k[known].op == Op::Const && k.constants[k[known].a].integer) return;
    inside = inside == no_node ? condition : b.logic(LogicOp::And, inside, condition);
  };
  for (uint32_t axis = 0; axis < indices.size(); ++axis) {
    if (reading.own >> axis & 1) continue;
    const NodeId at = indices[axis];
    if (k[at].op != Op::Pos) add(b.compare(CompareOp::Ge, at, b.integer(DType::Index, 0), Exactness::Data));
    add(b.compare(CompareOp::Lt, at, b.arg_len(reading.argument, int32_t(axis)), Exactness::Data));
  }
  if (inside == no_node || inside == own) return made;
  reading.tested = own == no_node ? Reading::Alone : Reading::Behind;
  return b.read(reading, own == no_node ? inside : b.logic(LogicOp::And, own, inside), std::move(indices));
}

/// coefficient * position(axis) + node + constant
struct Linear {
  __int128 coefficient = 0, constant = 0;
  NodeId node = no_node; // the same along a row
  uint32_t axis = flat_axis;
};

class Splitter {
public:
  Splitter(Kernel &k) : k(k), b(k) {}

  /// What makes `n` true, or false if `negated`.
  Split split(NodeId n, bool negated) {
    if (const NodeId row = ahead(n); row != no_node) n = row;
    const Inst i = k[n];
    if (i.op == Op::Const) return (k.constants[i.a].integer != 0) != negated ? Split{{Box{}}} : Split{};
    if (is_spent()) return {{Box{}}, truth(n, negated)};
    if (i.stage != Stage::Element) return {{Box{.conditions = {truth(n, negated)}}}};
    if (i.op == Op::Logic) {
      if (LogicOp(i.sub) == LogicOp::Not) return split(i.a, !negated);
      const bool both = (LogicOp(i.sub) == LogicOp::And) != negated;
      return both ? conjunction(i, negated) : disjunction(n, i, negated);
    }
    // Where a tensor has entered, index arithmetic on the position may overflow, and a range would not.
    const bool plain =
        i.op == Op::Compare && (Exactness(i.c) == Exactness::Exact || k[i.a].op == Op::Pos || k[i.b].op == Op::Pos);
    if (plain && k[i.a].type == DType::Index) {
      if (auto s = extreme_compare(i, negated)) return *s;
      if (auto s = linear_compare(i, negated)) return *s;
    }
    return {{Box{}}, truth(n, negated)};
  }

  /// The box as one range an axis, conditions emptying the last; none if it holds everywhere.
  std::vector<Range> ranges(const Box &box) {
    // Without axes everything is said of the row-major position: a launch along one row needs no other.
    const bool by_row = !k.axes.empty();
    std::vector<Range> all;
    for (const bool inner : {false, true}) {
      const Ends &ends = inner ? box.inner : box.flat;
      // What conditions alone decide asks for no position.
      Range r{!inner ? uint8_t(flat_axis) : ends.open() ? no_axis : k.form.inner_axis};
      for (const NodeId lo : ends.lo) r.lo = r.lo == no_node ? lo : call(greatest_row(), r.lo, lo);
      for (const NodeId hi : ends.hi) r.hi = r.hi == no_node ? hi : call(least_row(), r.hi, hi);
      const NodeId condition = inner == by_row ? all_of(box.conditions) : no_node;
      const uint32_t axis = inner ? no_axis : flat_axis;
      if (condition != no_node)
        r.hi = fold(b.where(condition, r.hi != no_node && !whole(r.hi, axis) ? r.hi : b.len(axis), integer(0)));
      if (const auto lo = known(r.lo); lo && *lo <= 0) r.lo = no_node; // positions start at 0
      if (r.hi != no_node && whole(r.hi, axis)) r.hi = no_node;        // and end at their number
      if (r.lo != no_node || r.hi != no_node) all.push_back(r);
    }
    return all;
  }

  /// A range of no position.
  Range never() { return {k.axes.empty() ? uint8_t(flat_axis) : no_axis, no_node, integer(0)}; }

  /// Reads under a condition of their own that the guard's left side says already: a row made them instead.
  const std::vector<NodeId> &moved() const { return moved_; }
  /// Before the next guard.
  void clear() { moved_.clear(), linears.clear(), steps_ = 0; }

  NodeId integer(__int128 v) { return b.integer(DType::Index, v); }
  NodeId conjunction(NodeId a, NodeId c) { return a == no_node ? c : c == no_node ? a : b.logic(LogicOp::And, a, c); }

private:
  /// A guard whose parts share parts is as a tree far larger than it is: what is left is tested for each element.
  bool is_spent() const { return ++steps_ > most_steps; }

  NodeId fold(NodeId n) { return folded_bound(k, b, n); }
  NodeId all_of(const std::vector<NodeId> &conditions) {
    NodeId all = no_node;
    for (const NodeId c : conditions) all = all == no_node ? c : fold(b.logic(LogicOp::And, all, c));
    return all;
  }
  /// The length of the axis itself.
  bool whole(NodeId n, uint32_t axis) const {
    const Inst &i = k[n];
    return i.op == Op::Len && (i.a == axis || (axis == no_axis && i.a == k.form.inner_axis));
  }
  NodeId truth(NodeId n, bool negated) { return negated ? b.logic(LogicOp::Not, n) : n; }
  NodeId call(uint8_t row, NodeId a, NodeId c) { return a == c ? a : fold(b.call(row, DType::Index, {a, c})); }
  NodeId binary(BinaryOp op, NodeId a, NodeId c) { return fold(b.binary(op, a, c)); }
  std::optional<__int128> known(NodeId n) const {
    if (n == no_node || k[n].op != Op::Const) return std::nullopt;
    return k.constants[k[n].a].integer;
  }

  /// The right side is asked for where the left one holds (or, of an `or`, fails).
  Split right_side(const Inst &i, bool negated) {
    const size_t before = known_.size();
    know(i.a, LogicOp(i.sub) == LogicOp::And);
    Split s = split(i.b, negated);
    known_.resize(before);
    return s;
  }
  void know(NodeId n, bool holds) {
    known_.emplace_back(n, holds);
    const Inst i = k[n];
    if (i.op != Op::Logic || is_spent()) return;
    if (LogicOp(i.sub) == LogicOp::Not) return know(i.a, !holds);
    if ((LogicOp(i.sub) == LogicOp::And) == holds) know(i.a, holds), know(i.b, holds);
  }
  bool holds(NodeId n) const {
    if (std::find(known_.begin(), known_.end(), std::pair(n, true)) != known_.end()) return true;
    const Inst &i = k[n];
    if (i.op != Op::Logic || is_spent()) return false;
    if (LogicOp(i.sub) == LogicOp::And) return holds(i.a) && holds(i.b);
    return LogicOp(i.sub) == LogicOp::Not &&
           std::find(known_.begin(), known_.end(), std::pair(i.a, false)) != known_.end();
  }

  /// `C and c < s[r]` reads only where C holds, which makes an element's read of what is the same along the row. But
  /// where C fails the comparison decides nothing, so that the row may read ahead of C. no_node: it is no such read, or
  /// no cast or comparison of one.
  NodeId ahead(NodeId n) {
    if (known_.empty() || k[n].stage != Stage::Element) return no_node;
    const Inst i = k[n];
    if (i.op == Op::Read) return i.sub ? row_read(n) : no_node;
    auto side = [&](NodeId o) { return k[o].stage == Stage::Element ? ahead(o) : o; };
    if (i.op == Op::Cast) {
      const NodeId a = side(i.a);
      return a == no_node ? no_node : b.cast(a, i.type);
    }
    if (i.op != Op::Compare) return no_node;
    const NodeId a = side(i.a), c = a == no_node ? no_node : side(i.b);
    return c == no_node ? no_node : b.compare(CompareOp(i.sub), a, c, Exactness(i.c));
  }

  NodeId row_read(NodeId n) {
    const Inst i = k[n];
    std::vector<NodeId> indices = operands(k, n);
    NodeId own = no_node; // what of the condition the row can tell
    std::vector<NodeId> parts{indices[0]};
    indices.erase(indices.begin());
    while (!parts.empty()) {
      const NodeId part = parts.back();
      parts.pop_back();
      if (k[part].stage != Stage::Element) own = own == no_node ? part : b.logic(LogicOp::And, part, own);
      else if (holds(part)) continue;
      else if (k[part].op == Op::Logic && LogicOp(k[part].sub) == LogicOp::And)
        parts.push_back(k[part].a), parts.push_back(k[part].b);
      else return no_node;
    }
    Reading reading = k.reads[i.c];
    const uint64_t all = indices.size() < 64 ? (uint64_t(1) << indices.size()) - 1 : ~uint64_t(0);
    // The host looks at the read that was written; of this one the code itself sees to the bounds.
    reading.proved = all & ~reading.own, reading.checked = 0, reading.premises.clear(), reading.free = false;
    NodeId read = b.read(reading, own, std::move(indices));
    if (k[read].stage == Stage::Element) return no_node;
    read = tested(k, b, read);
    moved_.push_back(n);
    return read;
  }

  Split conjunction(const Inst &i, bool negated) {
    const Split a = split(i.a, negated), c = right_side(i, negated);
    Split r{{}, conjunction(a.residual, c.residual)};
    if (a.boxes.size() * c.boxes.size() > most_boxes) { // the right one is tested by element instead
      r.boxes = a.boxes;
      r.residual = conjunction(a.residual, truth(i.b, negated));
      return r;
    }
    for (const Box &x : a.boxes)
      for (const Box &y : c.boxes) {
        Box &z = r.boxes.emplace_back(x);
        z.flat.add(y.flat), z.inner.add(y.inner);
        z.conditions.insert(z.conditions.end(), y.conditions.begin(), y.conditions.end());
      }
    return r;
  }

  Split disjunction(NodeId n, const Inst &i, bool negated) {
    const Split a = split(i.a, negated), c = right_side(i, negated);
    if (a.boxes.empty()) return c;
    if (c.boxes.empty()) return a;
    Split r = a;
    r.boxes.insert(r.boxes.end(), c.boxes.begin(), c.boxes.end());
    if (!k.axes.empty()) join_conditions(r.boxes);
    const bool exact = a.residual == no_node && c.residual == no_node;
    const bool open = std::any_of(r.boxes.begin(), r.boxes.end(), [](const Box &x) { return x.open(); });
    if (exact && open) return {{Box{}}};
    if (r.boxes.size() > most_boxes || open) return {{Box{}}, truth(n, negated)};
    r.residual = exact ? no_node : truth(n, negated); // inexact boxes still say where the test can hold
    return r;
  }

  /// Boxes that only conditions decide are one: a row is in it or not.
  void join_conditions(std::vector<Box> &boxes) {
    NodeId any = no_node;
    size_t at = 0;
    for (size_t x = 0; x < boxes.size();) {
      if (!boxes[x].unbounded() || boxes[x].conditions.empty()) {
        ++x;
        continue;
      }
      const NodeId all = all_of(boxes[x].conditions);
      if (any == no_node) {
        any = all, at = x++;
        continue;
      }
      any = fold(b.logic(LogicOp::Or, any, all));
      boxes.erase(boxes.begin() + long(x));
    }
    if (any != no_node) boxes[at].conditions = {any};
  }

  /// `min(p, q) < e` is `p < e or q < e`, `min(p, q) >= e` is `p >= e and q >= e`; max likewise.
  std::optional<Split> extreme_compare(const Inst &i, bool negated) {
    auto extreme = [&](NodeId n) {
      return k[n].op == Op::Call && k[n].stage == Stage::Element && k[n].b == 2 &&
             (k[n].sub == least_row() || k[n].sub == greatest_row());
    };
    if (!i.c || (!extreme(i.a) && !extreme(i.b))) return std::nullopt;
    CompareOp op = negated ? opposite(CompareOp(i.sub)) : CompareOp(i.sub);
    NodeId call = i.a, other = i.b;
    if (!extreme(call)) std::swap(call, other), op = mirrored(op);
    const NodeId p = k.operands[k[call].a], q = k.operands[k[call].a + 1];
    const bool least = k[call].sub == least_row();
    auto either = [&](CompareOp by) { // p by other, q by other: joined by `or` or by `and`
      const bool below = by == CompareOp::Lt || by == CompareOp::Le;
      const NodeId x = fold(b.compare(by, p, other)), y = fold(b.compare(by, q, other));
      return b.logic(below == least ? LogicOp::Or : LogicOp::And, x, y);
    };
    auto parts = [&](CompareOp a, LogicOp with, CompareOp c) {
      const NodeId x = either(a), y = either(c);
      return b.logic(with, x, y);
    };
    const NodeId same = op == CompareOp::Eq   ? parts(CompareOp::Le, LogicOp::And, CompareOp::Ge)
                        : op == CompareOp::Ne ? parts(CompareOp::Lt, LogicOp::Or, CompareOp::Gt)
                                              : either(op);
    return split(same, false);
  }

  /// What lets share is taken apart once.
  std::optional<Linear> linear(NodeId n) {
    if (const auto at = linears.find(n); at != linears.end()) return at->second;
    const size_t before = moved_.size();
    const auto apart = take_apart(n);
    if (moved_.size() == before) linears.emplace(n, apart); // a read may move here and not elsewhere
    return apart;
  }

  std::optional<Linear> take_apart(NodeId n) {
    const Inst i = k[n];
    if (const auto c = known(n)) return Linear{0, *c};
    if (i.op == Op::Pos && i.stage == Stage::Element) return Linear{.coefficient = 1, .axis = i.a};
    if (i.op == Op::Unary && UnaryOp(i.sub) == UnaryOp::Neg) {
      const auto a = linear(i.a);
      return a ? scaled(*a, -1) : uniform(n);
    }
    if (const NodeId row = ahead(n); row != no_node) return uniform(row);
    if (i.op != Op::Binary) return uniform(n);
    const auto a = linear(i.a), c = linear(i.b);
    if (!a || !c) return std::nullopt;
    const BinaryOp op = BinaryOp(i.sub);
    const bool plain = i.stage != Stage::Element && a->node != no_node && c->node != no_node; // nothing to gather
    if (op == BinaryOp::Add && !plain) return sum(*a, *c);
    if (op == BinaryOp::Sub && !plain) return difference(*a, *c);
    if (op == BinaryOp::Mul && i.stage == Stage::Element) {
      if (k[i.a].op == Op::Const) return scaled(*c, a->constant);
      if (k[i.b].op == Op::Const) return scaled(*a, c->constant);
    }
    return uniform(n);
  }

  std::optional<Linear> uniform(NodeId n) const {
    if (k[n].stage == Stage::Element) return std::nullopt;
    return Linear{0, 0, n};
  }
  /// The axis of both together; none if they are of two.
  static bool same_axis(const Linear &a, const Linear &c, Linear &r) {
    if (a.coefficient != 0 && c.coefficient != 0 && a.axis != c.axis) return false;
    r.axis = a.coefficient != 0 ? a.axis : c.axis;
    return true;
  }
  NodeId plus(NodeId a, NodeId c) { return a == no_node ? c : c == no_node ? a : binary(BinaryOp::Add, a, c); }
  NodeId minus(NodeId a, NodeId c) {
    if (c == no_node) return a;
    return a == no_node ? fold(b.unary(UnaryOp::Neg, c)) : binary(BinaryOp::Sub, a, c);
  }

  std::optional<Linear> sum(const Linear &a, const Linear &c) {
    Linear r;
    if (!same_axis(a, c, r)) return std::nullopt;
    if (__builtin_add_overflow(a.coefficient, c.coefficient, &r.coefficient) ||
        __builtin_add_overflow(a.constant, c.constant, &r.constant))
      return std::nullopt;
    r.node = plus(a.node, c.node);
    return r;
  }
  std::optional<Linear> difference(const Linear &a, const Linear &c) {
    Linear r;
    if (!same_axis(a, c, r)) return std::nullopt;
    if (__builtin_sub_overflow(a.coefficient, c.coefficient, &r.coefficient) ||
        __builtin_sub_overflow(a.constant, c.constant, &r.constant))
      return std::nullopt;
    r.node = minus(a.node, c.node);
    return r;
  }
  std::optional<Linear> scaled(const Linear &a, __int128 by) {
    Linear r{.axis = a.axis};
    if (__builtin_mul_overflow(a.coefficient, by, &r.coefficient) ||
        __builtin_mul_overflow(a.constant, by, &r.constant))
      return std::nullopt;
    if (a.node != no_node) r.node = by == -1 ? minus(no_node, a.node) : binary(BinaryOp::Mul, a.node, integer(by));
    return r;
  }

  /// node + constant, as people write it.
  NodeId total(const Linear &e, __int128 more = 0) {
    const __int128 c = e.constant + more;
    if (e.node == no_node) return integer(c);
    return c < 0 ? binary(BinaryOp::Sub, e.node, integer(-c)) : binary(BinaryOp::Add, e.node, integer(c));
  }
  /// ceil(e / c) and floor(e / c) + 1: the first position p with c*p >= e, and the first with c*p > e.
  NodeId first_at_least(const Linear &e, __int128 c) {
    return c == 1 ? total(e) : binary(BinaryOp::FloorDiv, total(e, c - 1), integer(c));
  }
  NodeId first_above(const Linear &e, __int128 c) {
    return c == 1 ? total(e, 1) : binary(BinaryOp::Add, binary(BinaryOp::FloorDiv, total(e), integer(c)), integer(1));
  }

  std::optional<Split> linear_compare(const Inst &i, bool negated) {
    const auto a = linear(i.a), c = linear(i.b);
    if (!a || !c) return std::nullopt;
    // coefficient * position  op  right - left
    __int128 coefficient;
    Linear both;
    if (!same_axis(*a, *c, both)) return std::nullopt;
    if (__builtin_sub_overflow(a->coefficient, c->coefficient, &coefficient)) return std::nullopt;
    constexpr __int128 limit = (__int128)1 << 120;
    if (coefficient > limit || coefficient < -limit) return std::nullopt;
    Linear left = *a, right = *c;
    left.coefficient = right.coefficient = 0;
    CompareOp op = negated ? opposite(CompareOp(i.sub)) : CompareOp(i.sub);
    if (coefficient < 0) std::swap(left, right), coefficient = -coefficient, op = mirrored(op);
    auto e = difference(right, left);
    if (!e || e->constant > limit || e->constant < -limit) return std::nullopt;
    if (coefficient == 0) { // the position cancels out
      const NodeId condition = fold(b.compare(op, integer(0), total(*e)));
      if (const auto truth = known(condition)) return *truth ? Split{{Box{}}} : Split{};
      return Split{{Box{.conditions = {condition}}}};
    }
    // A row's bound on the row-major position would have to be divided by the pitch of the inner axis: tested instead.
    const bool flat = both.axis == flat_axis;
    if (flat && e->node != no_node && k[e->node].stage == Stage::Row && !k.form.unit_pitch) return std::nullopt;
    if (coefficient == 1) e->node = near(e->node);
    auto box = [&](NodeId lo, NodeId hi) {
      Ends ends;
      if (lo != no_node) ends.lo.push_back(lo);
      if (hi != no_node) ends.hi.push_back(hi);
      return flat ? Box{.flat = ends} : Box{.inner = ends};
    };
    switch (op) {
    case CompareOp::Lt:
      return Split{{box(no_node, first_at_least(*e, coefficient))}};
    case CompareOp::Le:
      return Split{{box(no_node, first_above(*e, coefficient))}};
    case CompareOp::Gt:
      return Split{{box(first_above(*e, coefficient), no_node)}};
    case CompareOp::Ge:
      return Split{{box(first_at_least(*e, coefficient), no_node)}};
    case CompareOp::Eq: {
      const NodeId lo = first_at_least(*e, coefficient);
      return Split{{box(lo, first_above(*e, coefficient))}};
    }
    case CompareOp::Ne: {
      const NodeId hi = first_at_least(*e, coefficient);
      return Split{{box(no_node, hi), box(first_above(*e, coefficient), no_node)}};
    }
    }
    return std::nullopt;
  }

  /// A row's element as a bound: beyond every position is far enough, and a sum with it then stays within 64 bits.
  NodeId near(NodeId n) {
    if (n == no_node || k[n].stage != Stage::Row || k[n].op != Op::Cast || k[k[n].a].type != DType::I64) return n;
    constexpr __int128 far = __int128(1) << 61;
    return b.call(least_row(), DType::Index, {b.call(greatest_row(), DType::Index, {n, integer(-far)}), integer(far)});
  }

  static CompareOp opposite(CompareOp op) { // of exact integers, which always compare
    constexpr CompareOp to[] = {CompareOp::Ge, CompareOp::Gt, CompareOp::Le,
                                CompareOp::Lt, CompareOp::Ne, CompareOp::Eq};
    return to[int(op)];
  }

  Kernel &k;
  Builder b;
  std::unordered_map<NodeId, std::optional<Linear>> linears;
  std::vector<std::pair<NodeId, bool>> known_; // conditions that hold, or fail, where the guard at hand stands
  std::vector<NodeId> moved_;
  static constexpr int most_steps = 4096;
  mutable int steps_ = 0; // spent on the guard at hand
};

// Reads of a row stand ahead of every guard.
Kernel test_rows(const Kernel &from) {
  if (from.reads.empty()) return from;
  return rewrite(from, [](Kernel &to, Builder &b, NodeId made) {
    const bool ahead = to[made].op == Op::Read && to[made].stage == Stage::Row && !reads_anywhere(to, made);
    return ahead ? tested(to, b, made) : made;
  });
}

} // namespace

Kernel ranges(const Kernel &from, const PassOptions &) {
  Kernel k = test_rows(from);
  Splitter s(k);
  for (size_t at = 0; at < k.pieces.size(); ++at) {
    Piece &p = k.pieces[at];
    if (p.guard == no_node || !p.boxes.empty()) continue; // what has boxes was split before: its guard is what is left
    s.clear();
    const Split split = s.split(p.guard, false);
    p.guard = split.residual;
    std::vector<std::vector<Range>> boxes;
    bool everywhere = false;
    for (const Box &box : split.boxes) {
      boxes.push_back(s.ranges(box));
      everywhere |= boxes.back().empty();
    }
    if (boxes.empty()) boxes.push_back({s.never()});
    if (everywhere) boxes.clear();
    p.boxes = std::move(boxes);
    std::vector<NodeId> moved = s.moved();
    std::sort(moved.begin(), moved.end());
    moved.erase(std::unique(moved.begin(), moved.end()), moved.end());
    for (const NodeId n : moved)
      if (const Reading &r = k.reads[k[n].c]; (r.checked & ~r.proved) || !r.premises.empty())
        k.checks.push_back(
            {.what = Check::InBounds, .node = n, .piece = uint32_t(at), .where = p.where, .in_guard = true});
  }
  return prune(k);
}

} // namespace elsewise
