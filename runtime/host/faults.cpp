// SPDX-License-Identifier: Apache-2.0
// Follows the pieces in order over the positions that are left, as runs. It raises nothing and names no exception.
#include "runtime/host/faults.h"
#include "compiler/ir/arithmetic.h"
#include "runtime/host/interval.h"
#include <algorithm>
#include <cmath>
#include <memory>

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
  case HostFault::Overflow:
    return "whole-number arithmetic leaves 64 bits";
  case HostFault::ZeroDivision:
    return "division of whole numbers by zero";
  case HostFault::NotANumber:
    return "a bound is not a number";
  case HostFault::None:
    break;
  }
  return {};
}

std::string decimal(__int128 v) {
  if (v == 0) return "0";
  std::string s;
  for (unsigned __int128 u = v < 0 ? -(unsigned __int128)v : (unsigned __int128)v; u; u /= 10)
    s += char('0' + int(u % 10));
  if (v < 0) s += '-';
  std::reverse(s.begin(), s.end());
  return s;
}

/// One call.
class Call {
public:
  Call(const Kernel &k, const std::vector<bool> &indexed, const std::vector<bool> &bounded,
       std::span<const HostValue> values, std::span<const uint8_t> poisoned, int64_t count)
      : k(k), indexed(indexed), bounded(bounded), values(values), poisoned(poisoned), count(count) {}

  CallCheck run() {
    for (const Check &c : k.checks)
      if (c.piece == ~0u && !check(c)) return found;
    Runs left;
    if (count > 0) left.push_back({0, count});
    for (uint32_t p = 0; p < k.pieces.size() && !left.empty(); ++p) {
      const Piece &piece = k.pieces[p];
      Runs boxes;
      for (const auto &box : piece.boxes)
        if (!bounds(box, p, boxes)) return found;
      const Runs mine = piece.boxes.empty() ? left : intersect(left, boxes);
      if (piece.guard == no_node) left = piece.boxes.empty() ? Runs{} : subtract(left, boxes);
      if (piece.guard != no_node) tested.push_back({p, mine});
      if (mine.empty()) continue;
      for (const Check &c : k.checks)
        if (c.piece == p && !check(c)) {
          if (reached(p, mine, c.in_guard)) return found;
          found.fault = {};
        }
      if (!indexes(p, mine)) return found;
    }
    return found;
  }

private:
  bool fail(HostFault::What what, NodeId n, Span where, std::string text = {}) {
    found.fault = {what, n, where, text.empty() ? message(what) : std::move(text)};
    return false;
  }

  bool fail(const Intervals::Found &f, uint32_t p) {
    const Span at = k.span(f.node);
    return fail(f.fault, f.node, at == Span{} ? k.pieces[p].where : at);
  }

  Intervals &walker() {
    if (!intervals) intervals = std::make_unique<Intervals>(k, values, poisoned);
    return *intervals;
  }

  bool bounds(const std::vector<Range> &box, uint32_t p, Runs &boxes) {
    Run r{0, count};
    for (const Range &range : box)
      for (const NodeId n : {range.lo, range.hi}) {
        if (n == no_node) continue;
        if (poisoned[n]) return fail(HostFault::What(poisoned[n]), n, k.pieces[p].where);
        if (bounded[p])
          if (const auto f = walker().bound(n); f.fault != HostFault::None) return fail(f, p);
        const int64_t at = clamp_bound(values[n], count);
        if (n == range.lo) r.begin = std::max(r.begin, at);
        if (n == range.hi) r.end = std::min(r.end, at);
      }
    if (r.begin < r.end) boxes.push_back(r);
    return true;
  }

  bool check(const Check &c) {
    if (c.what == Check::NotNaN)
      return std::isnan(values[c.node].real) ? fail(HostFault::NotANumber, c.node, c.where) : true;
    if (poisoned[c.node]) return fail(HostFault::What(poisoned[c.node]), c.node, c.where);
    const __int128 v = values[c.node].integer;
    if (c.what == Check::NonZero) return v ? true : fail(HostFault::ZeroDivision, c.node, c.where);
    return fits(c.dtype, v)
               ? true
               : fail(HostFault::Overflow, c.node, c.where, decimal(v) + " does not fit " + spelling(c.dtype));
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
            walker().guard(earlier, r.begin, r.end - 1) == Intervals::Truth::Always)
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
      if (tests && walker().guard(p, r.begin, r.end - 1) == Intervals::Truth::Never) continue;
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
      const Intervals::Found f = walker().piece(p, r.begin, r.end - 1);
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

  const Kernel &k;
  const std::vector<bool> &indexed, &bounded;
  std::span<const HostValue> values;
  std::span<const uint8_t> poisoned;
  const int64_t count;
  std::vector<std::pair<uint32_t, Runs>> tested; // pieces with a residual guard, and where it decides
  std::unique_ptr<Intervals> intervals;
  CallCheck found;
};

} // namespace

CallChecks::CallChecks(const Kernel &k) : kernel_(k), indexes_(k.pieces.size()), bounds_(k.pieces.size()) {
  std::vector<bool> chooses(k.insts.size()); // a condition or a cast stands at or below the node
  std::vector<bool> holds(k.insts.size());   // index arithmetic, or a uniform index, stands at or below the node
  for (NodeId n = 0; n < k.insts.size(); ++n) {
    const Inst &i = k[n];
    holds[n] = i.type == DType::Index && i.op != Op::Const && i.op != Op::Len && i.op != Op::Pos;
    chooses[n] = i.op == Op::Where || i.op == Op::Cast;
    for (const NodeId o : operands(k, n)) holds[n] = holds[n] || holds[o], chooses[n] = chooses[n] || chooses[o];
    needed_ = needed_ || (i.stage == Stage::Host && i.type == DType::Index && i.op == Op::Binary); // it may be poisoned
  }
  for (size_t p = 0; p < k.pieces.size(); ++p) {
    if (k.pieces[p].guard != no_node) indexes_[p] = holds[k.pieces[p].guard];
    for (const NodeId v : k.pieces[p].values) indexes_[p] = indexes_[p] || holds[v];
    for (const auto &box : k.pieces[p].boxes)
      for (const Range &r : box)
        for (const NodeId b : {r.lo, r.hi}) bounds_[p] = bounds_[p] || (b != no_node && chooses[b] && holds[b]);
    needed_ = needed_ || indexes_[p] || bounds_[p];
  }
  needed_ = needed_ || !k.checks.empty();
}

CallCheck CallChecks::run(std::span<const HostValue> values, std::span<const uint8_t> poisoned, int64_t count) const {
  return Call(kernel_, indexes_, bounds_, values, poisoned, count).run();
}

} // namespace elsewise
