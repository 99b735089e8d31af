// SPDX-License-Identifier: Apache-2.0
// Follows the pieces in order over the positions that are left, as runs. It raises nothing and names no exception.
#include "runtime/host/faults.h"
#include "compiler/ir/arithmetic.h"
#include "compiler/ir/axes.h"
#include "compiler/passes/window.h"
#include "compiler/types/text.h"
#include "runtime/host/interval.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SmallVector.h"
#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>

namespace elsewise {
namespace {

struct Run {
  int64_t begin, end;
};
using Runs = std::vector<Run>; // sorted, disjoint, none empty

Runs intersect(const Runs &runs, const Runs &boxes) {
  Runs r;
  for (const Run &a : runs)
    for (const Run &b : boxes)
      if (const Run c{std::max(a.begin, b.begin), std::min(a.end, b.end)}; c.begin < c.end) r.push_back(c);
  return r;
}

Runs subtract(const Runs &runs, const Runs &boxes) {
  Runs r = runs;
  for (const Run &b : boxes) {
    Runs next;
    for (const Run &a : r) {
      if (const Run left{a.begin, std::min(a.end, b.begin)}; left.begin < left.end) next.push_back(left);
      if (const Run right{std::max(a.begin, b.end), a.end}; right.begin < right.end) next.push_back(right);
    }
    r = std::move(next);
  }
  return r;
}

std::string message(HostFault::What what) {
  switch (what) {
  case HostFault::Far:
  case HostFault::Overflow:
    return "whole-number arithmetic leaves 64 bits";
  case HostFault::ZeroDivision:
    return "division of whole numbers by zero";
  case HostFault::NotANumber:
    return "a bound is not a number";
  case HostFault::OutOfBounds:
    return "an index is out of bounds";
  case HostFault::None:
    break;
  }
  return {};
}

/// What both ways of looking at a call say of one fault.
class Faults {
protected:
  Faults(const Kernel &k, std::span<const HostValue> values, std::span<const uint8_t> poisoned,
         std::span<const Intervals::Look> looks, std::span<const std::span<const int64_t>> shapes)
      : k(k), values(values), poisoned(poisoned), looks(looks), shapes(shapes) {}

  bool fail(HostFault::What what, NodeId n, Span where, std::string text = {}) {
    if (what == HostFault::Far) what = HostFault::Overflow;
    found.fault = {what, n, where, text.empty() ? message(what) : std::move(text)};
    return false;
  }

  bool fail(const Intervals::Found &f, uint32_t p) {
    const Span at = k.span(f.node);
    return fail(f.fault, f.node, at == Span{} ? k.pieces[p].where : at,
                f.fault == HostFault::OutOfBounds ? out_of_bounds(f) : std::string());
  }

  std::string out_of_bounds(const Intervals::Found &f) const {
    const Reading &r = k.reads[k[f.node].c];
    const auto shape = shapes[r.argument];
    const int64_t length = shape[f.axis];
    const std::string name = "`" + k.arguments[r.argument].name + "`",
                      elements = std::to_string(length) + (length == 1 ? " element" : " elements"),
                      place = shape.size() == 1 ? name + " with " + elements
                                                : "axis " + std::to_string(f.axis) + " of " + name + ", which has " +
                                                      elements + " there";
    if (looks[k[f.node].c].never >> f.axis & 1)
      return length == 0 ? "nothing can be read of " + place
                         : "an element decides the index, and " + place + " is shorter than the axis that the rule " +
                               "takes it to match";
    const bool negative = f.index < 0;
    return "index " + decimal(f.index) + " is out of bounds for " + place +
           (negative ? "; negative indices do not count from the end here" : "");
  }

  bool check(const Check &c) {
    if (c.what == Check::NotNaN)
      return std::isnan(values[c.node].real) ? fail(HostFault::NotANumber, c.node, c.where) : true;
    if (poisoned[c.node] == HostFault::Far && c.what == Check::NonZero) return true;
    if (poisoned[c.node]) return fail(HostFault::What(poisoned[c.node]), c.node, c.where);
    const __int128 v = values[c.node].integer;
    if (c.what == Check::NonZero) return v ? true : fail(HostFault::ZeroDivision, c.node, c.where);
    return fits(c.dtype, v)
               ? true
               : fail(HostFault::Overflow, c.node, c.where, decimal(v) + " does not fit " + spelling(c.dtype));
  }

  /// Whether a bound is made of what the check protects. What a condition decides that the host does not know says
  /// nothing here, nor does the number where a bound takes it as it is.
  bool takes(NodeId bound, const Check &check) const {
    NodeId wanted = check.node;
    auto protects = [&](const Inst &i) {
      const auto is = [&](NodeId n) { return n == wanted || n == check.node; };
      if (check.what == Check::Fits) return i.op == Op::Cast && i.type == check.dtype && is(i.a);
      if (check.what == Check::NonZero)
        return i.op == Op::Binary && (BinaryOp(i.sub) == BinaryOp::FloorDiv || BinaryOp(i.sub) == BinaryOp::Mod) &&
               is(i.b);
      return false;
    };
    while (k[wanted].op == Op::Where && k[k[wanted].a].stage == Stage::Host) // a check under conditions of the call
      wanted = values[k[wanted].a].integer ? k[wanted].b : k[wanted].c;
    llvm::SmallVector<NodeId, 8> todo{bound};
    llvm::SmallDenseSet<NodeId, 16> seen;
    while (!todo.empty()) {
      const NodeId n = todo.pop_back_val();
      if (!seen.insert(n).second) continue;
      const Inst &i = k[n];
      if (protects(i)) return true;
      const bool chooses = i.op == Op::Where || (i.op == Op::Logic && LogicOp(i.sub) != LogicOp::Not);
      if (!chooses) {
        for (const NodeId o : operands(k, n)) todo.push_back(o);
        continue;
      }
      todo.push_back(i.a);
      if (k[i.a].stage != Stage::Host) continue;
      const bool first = values[i.a].integer != 0;
      if (i.op == Op::Where) todo.push_back(first ? i.b : i.c);
      else if (first == (LogicOp(i.sub) == LogicOp::And)) todo.push_back(i.b);
    }
    return false;
  }

  const Kernel &k;
  std::span<const HostValue> values;
  std::span<const uint8_t> poisoned;
  std::span<const Intervals::Look> looks;
  std::span<const std::span<const int64_t>> shapes;
  CallCheck found;
};

/// A call of a kernel without axes: positions are runs of the row-major one, and pieces take theirs from what is left.
class Call : Faults {
public:
  Call(const Kernel &k, const std::vector<bool> &indexed, const std::vector<bool> &bounded,
       std::span<const HostValue> values, std::span<const uint8_t> poisoned, std::span<const Intervals::Look> looks,
       const HostDomain &domain)
      : Faults(k, values, poisoned, looks, domain.shapes), indexed(indexed), bounded(bounded),
        count(domain.extent ? domain.count : 0) {} // a window may be empty

  CallCheck run() {
    for (const Check &c : k.checks)
      if (c.piece == ~0u && !check(c)) return found;
    Runs left;
    if (count > 0) left.push_back({0, count});
    for (uint32_t p = 0; p < k.pieces.size() && !left.empty(); ++p) {
      const Piece &piece = k.pieces[p];
      if (!guarded(p, left)) return found;
      Runs boxes;
      for (const auto &box : piece.boxes)
        if (!bounds(box, p, boxes)) return found;
      const Runs mine = piece.boxes.empty() ? left : intersect(left, boxes);
      if (piece.guard == no_node) left = piece.boxes.empty() ? Runs{} : subtract(left, boxes);
      if (piece.guard != no_node) tested.push_back({p, mine});
      if (mine.empty()) continue;
      for (const Check &c : k.checks)
        if (c.piece == p && c.what != Check::InBounds && !check(c)) {
          if (reached(p, mine, c.in_guard)) return found;
          found.fault = {};
        }
      if (!indexes(p, mine)) return found;
    }
    return found;
  }

private:
  Intervals &walker() {
    if (!intervals) intervals = std::make_unique<Intervals>(k, values, poisoned, looks, shapes);
    return *intervals;
  }

  /// What is wrong with a number that a bound of the piece is made of is wrong wherever its guard is asked: the bound,
  /// which was made of it, does not say where that is.
  bool guarded(uint32_t p, const Runs &left) {
    for (const Check &c : k.checks) {
      if (c.piece != p || !c.in_guard || c.what == Check::InBounds || check(c)) continue;
      for (const auto &box : k.pieces[p].boxes)
        for (const Range &range : box)
          for (const NodeId n : {range.lo, range.hi})
            if (n != no_node && takes(n, c) && reached(p, left, true)) return false;
      found.fault = {};
    }
    return true;
  }

  bool bounds(const std::vector<Range> &box, uint32_t p, Runs &boxes) {
    Run r{0, count};
    for (const Range &range : box)
      for (const NodeId n : {range.lo, range.hi}) {
        if (n == no_node) continue;
        if (poisoned[n] && poisoned[n] != HostFault::Far)
          return fail(HostFault::What(poisoned[n]), n, k.pieces[p].where);
        if (bounded[p])
          if (const auto f = walker().bound(n, Region(0, count - 1)); f.fault != HostFault::None) return fail(f, p);
        const int64_t at = clamp_bound(values[n], count);
        if (n == range.lo) r.begin = std::max(r.begin, at);
        if (n == range.hi) r.end = std::min(r.end, at);
      }
    if (r.begin < r.end) boxes.push_back(r);
    return true;
  }

  bool indexes(uint32_t p, const Runs &mine) {
    if (!indexed[p]) return true;
    int budget = 4096;
    for (const Run &run : mine)
      if (!halves(p, run, budget)) return false;
    return true;
  }

  /// An earlier piece with a residual guard has all of the run.
  bool taken(uint32_t p, const Run &r) {
    for (const auto &[earlier, runs] : tested)
      for (const Run &run : runs)
        if (earlier < p && run.begin <= r.begin && r.end <= run.end &&
            walker().guard(earlier, Region(r.begin, r.end - 1)) == Intervals::Truth::Always)
          return true;
    return false;
  }

  /// Some position is left to the piece, as far as the host can tell: tested guards of earlier pieces may take them
  /// all.
  bool reached(uint32_t p, const Runs &mine, bool by_guard) {
    const bool tests = !by_guard && k.pieces[p].guard != no_node;
    int budget = 4096;
    Runs todo = mine;
    while (!todo.empty()) {
      const Run r = todo.back();
      todo.pop_back();
      if (taken(p, r)) continue;
      if (tests && walker().guard(p, Region(r.begin, r.end - 1)) == Intervals::Truth::Never) continue;
      if (r.end - r.begin == 1 || (tested.empty() && !tests) || --budget <= 0) return true;
      const int64_t middle = r.begin + (r.end - r.begin) / 2;
      todo.push_back({r.begin, middle});
      todo.push_back({middle, r.end});
    }
    return false;
  }

  // Intervals may hold too much. What they complain about is looked at in halves until a single position is left, which
  // is exact.
  bool halves(uint32_t p, const Run &whole, int &budget) {
    std::vector<Run> todo{whole};
    while (!todo.empty()) {
      const Run r = todo.back();
      todo.pop_back();
      const Intervals::Found f = walker().piece(p, Region(r.begin, r.end - 1));
      if (f.fault == HostFault::None) {
        found.wide |= f.wide;
        continue;
      }
      if (taken(p, r)) continue;
      if (r.end - r.begin == 1 || --budget <= 0) {
        return fail(f, p);
      }
      const int64_t middle = r.begin + (r.end - r.begin) / 2;
      todo.push_back({r.begin, middle});
      todo.push_back({middle, r.end}); // the far half first: indexes grow
    }
    return true;
  }

  const std::vector<bool> &indexed, &bounded;
  const int64_t count;
  std::vector<std::pair<uint32_t, Runs>> tested; // pieces with a residual guard, and where it decides
  std::unique_ptr<Intervals> intervals;
};

/// Sets of axes of a kernel, as bits: which of them a node depends on. Axes beyond those that have a bit share the
/// last.
class Supports {
public:
  explicit Supports(const Kernel &k) : of_(k.insts.size()) {
    for (NodeId n = 0; n < k.insts.size(); ++n) {
      if (k[n].op == Op::Pos) of_[n] = bit(k[n].a);
      for (const NodeId o : operands(k, n)) of_[n] |= of_[o];
    }
  }
  static uint64_t bit(uint32_t axis) { return uint64_t(1) << (axis == flat_axis ? 63 : std::min<uint32_t>(axis, 62)); }
  uint64_t operator[](NodeId n) const { return n == no_node ? 0 : of_[n]; }

private:
  std::vector<uint64_t> of_;
};

/// A call of a kernel with axes, or of a window, whose row-major positions are no run: the loop's axes are cut in
/// halves until what intervals complain about is either gone or stands at a single position, where it is exact. Only
/// those axes are cut that the complaint depends on: along the others every position has it alike.
class RegionCall : Faults {
public:
  RegionCall(const Kernel &k, const std::vector<bool> &indexed, const std::vector<bool> &bounded,
             std::span<const HostValue> values, std::span<const uint8_t> poisoned,
             std::span<const Intervals::Look> looks, const HostDomain &domain, bool flat)
      : Faults(k, values, poisoned, looks, domain.shapes), indexed(indexed), bounded(bounded), domain(domain),
        flat(flat), intervals(k, values, poisoned, looks, domain.shapes) {}

  CallCheck run() {
    for (const Check &c : k.checks)
      if (c.piece == ~0u && !check(c)) return found;
    if (domain.extent == 0) return found;
    for (uint32_t p = 0; p < k.pieces.size(); ++p) {
      failing.clear();
      reads.clear();
      for (const Check &c : k.checks) {
        if (c.piece != p) continue;
        if (c.what != Check::InBounds) {
          if (!check(c)) failing.push_back(&c);
        } else if (!looks.empty()) reads.push_back(&c); // something is to be looked at in this call
      }
      found.fault = {};
      if (!failing.empty() || !reads.empty() || indexed[p] || bounded[p] || poisoned_bound(p))
        if (!search(p)) return found;
    }
    return found;
  }

private:
  using Truth = Intervals::Truth;
  /// Of the loop: the rows' axes, the fastest first, then the inner one.
  using Extents = llvm::SmallVector<Region::Ends, 8>;

  bool poisoned_bound(uint32_t p) const {
    for (const auto &box : k.pieces[p].boxes)
      for (const Range &r : box)
        for (const NodeId n : {r.lo, r.hi})
          if (n != no_node && k[n].stage == Stage::Host && poisoned[n] && poisoned[n] != HostFault::Far) return true;
    return false;
  }

  Extents whole() const {
    Extents e;
    for (size_t r = 0; r < domain.row_lengths.size(); ++r) { // a position that nobody asks for need not be told apart
      const bool used = flat || (r < k.form.row_axes.size() && k.form.row_axes[r] != no_axis);
      e.push_back({0, used ? domain.row_lengths[r] - 1 : 0});
    }
    e.push_back({0, domain.extent - 1});
    return e;
  }

  Region region(const Extents &e) const {
    Region r(0, 0);
    r.axes.assign(k.axes.size(), {0, 0});
    for (size_t d = 0; d < e.size(); ++d) {
      const bool inner = d + 1 == e.size();
      const int64_t pitch = inner ? domain.inner_pitch : domain.row_pitches[d];
      r.flat.first += e[d].first * pitch, r.flat.last += e[d].last * pitch;
      const uint8_t axis = inner ? k.form.inner_axis : d < k.form.row_axes.size() ? k.form.row_axes[d] : no_axis;
      if (axis != no_axis) r.axes[axis] = e[d];
    }
    return r;
  }

  /// Whether the boxes of a piece hold on a region.
  Truth boxed(uint32_t p, const Region &r, const Region::Ends &inner) {
    if (k.pieces[p].boxes.empty()) return Truth::Always;
    Truth any = Truth::Never;
    for (const auto &box : k.pieces[p].boxes) {
      Truth all = Truth::Always;
      for (const Range &range : box) {
        const Region::Ends at = range.axis == flat_axis ? r.flat : inner;
        if (range.lo != no_node) {
          const IndexRange lo = intervals.range(range.lo, r);
          if (lo.overflow) all = all == Truth::Never ? all : Truth::Varies;
          else if (at.last < lo.lo) all = Truth::Never;
          else if (at.first < lo.hi && all == Truth::Always) all = Truth::Varies;
        }
        if (range.hi != no_node) {
          const IndexRange hi = intervals.range(range.hi, r);
          if (hi.overflow) all = all == Truth::Never ? all : Truth::Varies;
          else if (at.first >= hi.hi) all = Truth::Never;
          else if (at.last >= hi.lo && all == Truth::Always) all = Truth::Varies;
        }
      }
      if (all == Truth::Always) return all;
      if (all == Truth::Varies) any = all;
    }
    return any;
  }

  /// An earlier piece has all of the region.
  bool taken(uint32_t p, const Region &r, const Region::Ends &inner) {
    for (uint32_t q = 0; q < p; ++q)
      if (boxed(q, r, inner) == Truth::Always &&
          (k.pieces[q].guard == no_node || intervals.guard(q, r) == Truth::Always))
        return true;
    return false;
  }

  /// What may go wrong in piece p on a region; exact at a position.
  bool complaint(uint32_t p, const Region &r, const Region::Ends &inner) {
    for (const auto &box : k.pieces[p].boxes)
      for (const Range &range : box)
        for (const NodeId n : {range.lo, range.hi}) {
          if (n == no_node) continue;
          if (k[n].stage == Stage::Host && poisoned[n] && poisoned[n] != HostFault::Far)
            return !fail(HostFault::What(poisoned[n]), n, k.pieces[p].where);
          for (const Check *c : failing) // wherever the guard is asked: the bound does not say where that is
            if (c->in_guard && takes(n, *c)) return !check(*c);
          if (!bounded[p]) continue;
          const Intervals::Found f = intervals.bound(n, r);
          if (f.fault != HostFault::None) return !fail(f, p);
          found.wide |= k[n].stage == Stage::Row && (f.wide || intervals.is_far(n, r));
        }
    for (const Check *c : reads)
      if (const auto f = intervals.value(c->node, r); f.fault != HostFault::None) return !fail(f, p);
    const Truth here = boxed(p, r, inner);
    if (here == Truth::Never) return false;
    for (const Check *c : failing)
      if (c->in_guard || k.pieces[p].guard == no_node || intervals.guard(p, r) != Truth::Never) return !check(*c);
    if (!indexed[p]) return false;
    const Intervals::Found f = intervals.piece(p, r);
    if (f.fault != HostFault::None) return !fail(f, p);
    found.wide |= f.wide;
    return false;
  }
  /// A region, and what is wrong there.
  struct Part {
    Extents e;
    HostFault fault;
  };

  /// Whether something is wrong with piece p on a part: the fault is then its own.
  bool wrong(uint32_t p, Part &part) {
    const Region r = region(part.e);
    if (!complaint(p, r, part.e.back())) return false;
    part.fault = std::exchange(found.fault, {});
    return !taken(p, r, part.e.back());
  }

  bool search(uint32_t p) {
    int budget = 4096;
    std::vector<Part> todo(1, {whole(), {}});
    if (!wrong(p, todo[0])) return true;
    while (!todo.empty()) {
      const Part part = std::move(todo.back());
      todo.pop_back();
      std::vector<Part> bad;
      if (--budget < 0 || !cut(p, part, bad)) {
        found.fault = part.fault;
        return false;
      }
      todo.insert(todo.end(), bad.begin(), bad.end()); // the far half is looked at first: indexes grow
    }
    return true;
  }

  /// Cuts a part in two and keeps what is wrong of it: along the first axis that the complaint depends on of which a
  /// half is then right, else along the first. False where no such axis is left to cut, so that every position has it.
  bool cut(uint32_t p, const Part &part, std::vector<Part> &bad) {
    if (!depends) depends.emplace(k);
    std::optional<size_t> first;
    uint64_t seen = 0;
    const bool wide = found.wide;
    for (const uint64_t level : {cause(part.fault.node), premises(p, part.fault.node), before(p)}) {
      for (const size_t d : axes_of(part.e, level & ~seen)) {
        bad = halves(p, part, d);
        if (bad.size() < 2) return true;
        if (!first) first = d;
        found.wide = wide; // what these halves said is not the way taken
      }
      seen |= level;
    }
    if (!first) return false;
    bad = halves(p, part, *first);
    return true;
  }

  std::vector<Part> halves(uint32_t p, const Part &part, size_t d) {
    const int64_t middle = part.e[d].first + (part.e[d].last - part.e[d].first) / 2;
    std::vector<Part> bad(2, part);
    bad[0].e[d].last = middle, bad[1].e[d].first = middle + 1;
    std::erase_if(bad, [&](Part &half) { return !wrong(p, half); });
    return bad;
  }

  /// The loop's axes that may be cut and whose position is among some axes of the kernel, the widest first.
  std::vector<size_t> axes_of(const Extents &e, uint64_t set) const {
    std::vector<std::pair<__int128, size_t>> list;
    for (size_t d = 0; d < e.size(); ++d) {
      const bool inner = d + 1 == e.size();
      const uint8_t axis = inner ? k.form.inner_axis : d < k.form.row_axes.size() ? k.form.row_axes[d] : no_axis;
      const __int128 pitch = inner ? domain.inner_pitch : domain.row_pitches[d], wide = e[d].last - e[d].first;
      const bool own = axis != no_axis && (set & Supports::bit(axis)),
                 by_flat = flat && (set & Supports::bit(flat_axis));
      if (wide && (own || by_flat)) list.emplace_back(by_flat ? wide * std::max<__int128>(pitch, 1) : wide, d);
    }
    std::stable_sort(list.begin(), list.end(), [](const auto &a, const auto &b) { return a.first > b.first; });
    std::vector<size_t> axes;
    for (const auto &[width, d] : list) axes.push_back(d);
    return axes;
  }

  /// What the complaint's own node depends on: of a read, the indices that are looked at and its condition.
  uint64_t cause(NodeId n) const {
    const Supports &supports = *depends;
    if (n == no_node) return 0;
    if (k[n].op != Op::Read) return supports[n];
    uint64_t set = 0;
    const std::vector<NodeId> list = operands(k, n);
    for (size_t o = 0; o < list.size(); ++o)
      if (o < k[n].sub || !(k.reads[k[n].c].own >> (o - k[n].sub) & 1)) set |= supports[list[o]];
    return set;
  }

  /// What decides whether piece p asks for the node: its boxes, its guard, and the conditions above the node.
  uint64_t premises(uint32_t p, NodeId n) const {
    const Supports &supports = *depends;
    const Piece &piece = k.pieces[p];
    uint64_t set = held(p);
    std::vector<NodeId> roots = piece.values;
    roots.push_back(piece.guard);
    for (const Check *c : reads) roots.push_back(c->node);
    for (const auto &box : piece.boxes)
      for (const Range &r : box) roots.push_back(r.lo), roots.push_back(r.hi);
    std::vector<bool> mine(k.insts.size()), above(k.insts.size());
    NodeId last = 0;
    for (const NodeId root : roots)
      if (root != no_node) mine[root] = true, last = std::max(last, root);
    for (NodeId m = last + 1; m-- > 0;)
      if (mine[m])
        for (const NodeId o : operands(k, m)) mine[o] = true;
    if (n != no_node) above[n] = true;
    for (NodeId m = 0; m <= last; ++m) {
      if (!mine[m] || m == n) continue;
      const std::vector<NodeId> list = operands(k, m);
      for (size_t o = 0; o < list.size(); ++o)
        if (above[list[o]]) {
          above[m] = true;
          if (o > 0) set |= k[m].op == Op::Where || k[m].op == Op::Logic || k[m].op == Op::Read ? supports[list[0]] : 0;
        }
    }
    return set;
  }

  /// What decides whether an earlier piece takes the position.
  uint64_t before(uint32_t p) const {
    uint64_t set = 0;
    for (uint32_t q = 0; q < p; ++q) set |= held(q);
    return set;
  }

  uint64_t held(uint32_t p) const {
    const Supports &supports = *depends;
    uint64_t set = supports[k.pieces[p].guard];
    for (const auto &box : k.pieces[p].boxes)
      for (const Range &r : box) {
        const uint8_t axis = r.axis == flat_axis ? uint8_t(flat_axis) : k.form.inner_axis;
        set |= supports[r.lo] | supports[r.hi] | (axis == no_axis ? 0 : Supports::bit(axis));
      }
    return set;
  }

  const std::vector<bool> &indexed, &bounded;
  const HostDomain &domain;
  const bool flat; // the flat position is used
  Intervals intervals;
  std::optional<Supports> depends;           // made for the first complaint
  std::vector<const Check *> failing, reads; // of the piece that is looked at
};

} // namespace

/// The magnitude that a sum of positions, lengths and constants has at most, whatever the call: within 62 bits, and so
/// never a fault. -1: that is not known.
static __int128 reach_of(const Kernel &k, NodeId n, const std::vector<__int128> &reach) {
  constexpr __int128 limit = __int128(1) << 62;
  const Inst &i = k[n];
  if (i.type != DType::Index) return -1;
  __int128 r = 0;
  if (is_position(k, n) || i.op == Op::Len || i.op == Op::ArgLen || i.op == Op::Origin) r = most_positions;
  else if (i.op == Op::Const) r = std::max(k.constants[i.a].integer, -k.constants[i.a].integer);
  else if (i.op == Op::Binary && (BinaryOp(i.sub) == BinaryOp::Add || BinaryOp(i.sub) == BinaryOp::Sub))
    r = reach[i.a] < 0 || reach[i.b] < 0 ? -1 : reach[i.a] + reach[i.b];
  else if (i.op == Op::Unary && UnaryOp(i.sub) == UnaryOp::Neg) r = reach[i.a];
  else if (i.op == Op::Call) {
    for (const NodeId o : operands(k, i)) r = r < 0 || reach[o] < 0 ? -1 : std::max(r, reach[o]);
  } else return -1;
  return r <= limit ? r : -1;
}

CallChecks::CallChecks(const Kernel &k)
    : kernel_(k), indexes_(k.pieces.size()), bounds_(k.pieces.size()), flat_(uses_flat(k)) {
  std::vector<bool> chooses(k.insts.size()); // a condition or a cast stands at or below the node
  std::vector<bool> holds(k.insts.size());   // index arithmetic, a uniform index or one beyond 64 bits, at or below it
  std::vector<__int128> reach(k.insts.size()); // see reach_of()
  for (NodeId n = 0; n < k.insts.size(); ++n) {
    const Inst &i = k[n];
    const bool position = is_position(k, n) || i.op == Op::Origin;
    const bool brief = i.op == Op::Const && fits(DType::I64, k.constants[i.a].integer);
    holds[n] = i.type == DType::Index && !brief && i.op != Op::Len && !position;
    chooses[n] = i.op == Op::Where || i.op == Op::Cast || i.op == Op::Read;
    if (i.op == Op::Read) {
      const Reading &r = k.reads[i.c];
      const bool depends = (r.checked & ~r.proved) || !r.premises.empty();
      holds[n] = depends, reads_ |= depends;
    }
    reach[n] = reach_of(k, n, reach);
    for (const NodeId o : operands(k, n)) holds[n] = holds[n] || holds[o], chooses[n] = chooses[n] || chooses[o];
    needed_ = needed_ || (i.stage == Stage::Host && i.type == DType::Index && i.op == Op::Binary); // it may be poisoned
  }
  for (size_t p = 0; p < k.pieces.size(); ++p) {
    if (k.pieces[p].guard != no_node) indexes_[p] = holds[k.pieces[p].guard];
    for (const NodeId v : k.pieces[p].values) indexes_[p] = indexes_[p] || holds[v];
    for (const auto &box : k.pieces[p].boxes)
      for (const Range &r : box)
        for (const NodeId b : {r.lo, r.hi})
          bounds_[p] =
              bounds_[p] || (b != no_node && ((chooses[b] && holds[b]) || (k[b].stage == Stage::Row && reach[b] < 0)));
    needed_ = needed_ || indexes_[p] || bounds_[p];
  }
  needed_ = needed_ || !k.checks.empty();
}

CallCheck CallChecks::run(std::span<const HostValue> values, std::span<const uint8_t> poisoned,
                          std::span<const Intervals::Look> looks, const HostDomain &domain) const {
  if (!kernel_.axes.empty() || kernel_.form.window)
    return RegionCall(kernel_, indexes_, bounds_, values, poisoned, looks, domain, flat_).run();
  return Call(kernel_, indexes_, bounds_, values, poisoned, looks, domain).run();
}

/// Premises are looked at here. None: everything that is proved holds, and nothing else is asked for.
std::vector<Intervals::Look> CallChecks::looks(const HostDomain &domain) const {
  std::vector<Intervals::Look> all;
  if (!reads_) return all;
  bool any = false;
  for (const Reading &r : kernel_.reads) {
    uint64_t failing = 0;
    for (const Premise &p : r.premises) {
      const int64_t length = domain.shapes[r.argument][p.axis];
      const int64_t least = p.what == Premise::NotEmpty ? 1 : p.of == flat_axis ? domain.count : domain.axes[p.of];
      if (length < least) failing |= uint64_t(1) << p.axis;
    }
    all.push_back({(r.checked & ~r.proved) | (failing & r.checked), failing & ~r.checked});
    any |= all.back().axes || all.back().never;
  }
  if (!any) all.clear();
  return all;
}

} // namespace elsewise
