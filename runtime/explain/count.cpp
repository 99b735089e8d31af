// SPDX-License-Identifier: Apache-2.0
// Follows the pieces in order along each row that differs from the others, with bounds as exact numbers. What an
// element or a residual guard decides is kept apart as positions that may be taken.
#include "runtime/explain/count.h"
#include "compiler/ir/arithmetic.h"
#include "compiler/ir/walk.h"
#include <algorithm>
#include <optional>

namespace elsewise {
namespace {

constexpr int64_t most_rows = 1 << 20;           // that are looked at
constexpr int64_t most_steps = int64_t(1) << 25; // nodes and boxes of all those rows

using Runs = std::vector<Run>; // sorted, disjoint, none empty

int64_t length(const Runs &runs) {
  int64_t n = 0;
  for (const Run &s : runs) n += s.end - s.begin;
  return n;
}

Runs joined(Runs runs) {
  std::sort(runs.begin(), runs.end(), [](const Run &a, const Run &b) { return a.begin < b.begin; });
  Runs r;
  for (const Run &s : runs)
    if (s.begin >= s.end) continue;
    else if (!r.empty() && s.begin <= r.back().end) r.back().end = std::max(r.back().end, s.end);
    else r.push_back(s);
  return r;
}

// Both are sorted and disjoint, so one step along either is enough.
Runs intersect(const Runs &a, const Runs &b) {
  Runs r;
  for (size_t x = 0, y = 0; x < a.size() && y < b.size();) {
    const Run s{std::max(a[x].begin, b[y].begin), std::min(a[x].end, b[y].end)};
    if (s.begin < s.end) r.push_back(s);
    a[x].end < b[y].end ? ++x : ++y;
  }
  return r;
}

Runs subtract(const Runs &a, const Runs &b) {
  Runs r;
  size_t y = 0;
  for (Run s : a) {
    while (y < b.size() && b[y].end <= s.begin) ++y;
    for (size_t at = y; at < b.size() && b[at].begin < s.end; ++at) {
      if (s.begin < b[at].begin) r.push_back({s.begin, b[at].begin});
      s.begin = std::max(s.begin, b[at].end);
    }
    if (s.begin < s.end) r.push_back(s);
  }
  return r;
}

class Counter {
public:
  Counter(const Kernel &k, const Loop &loop, std::span<const HostValue> values, std::span<const uint8_t> poisoned,
          const HostDomain &domain)
      : k(k), loop(loop), domain(domain), at(k.insts.size()), known(k.insts.size(), false) {
    for (NodeId n = 0; n < k.insts.size(); ++n) {
      if (k[n].op == Op::Const) at[n] = k.constants[k[n].a], known[n] = true;
      else if (k[n].stage == Stage::Host && n < values.size())
        at[n] = constant_of(k[n].type, values[n]), known[n] = !poisoned[n];
      far.push_back(n < poisoned.size() && poisoned[n] == HostFault::Far);
    }
    for (const NodeId n : k.row) inputs.push_back(operands(k, n));
    counted.pieces.resize(k.pieces.size());
    counted.loaded.assign(k.arguments.size(), 0);
    for (const Piece &p : k.pieces) {
      std::vector<bool> &of = counted.loads.emplace_back(k.arguments.size());
      for (const NodeId root : {p.values[0], p.guard})
        if (root != no_node)
          walk(k, root, [&](NodeId n) {
            if (k[n].op == Op::Load) of[k[n].a] = true;
          });
    }
  }

  Counted run() {
    if (domain.extent == 0) return std::move(counted); // the loop is empty
    bool inner = false, flat = false;
    size_t boxes = 0;
    for (const Piece &p : k.pieces)
      for (const auto &box : p.boxes)
        for (const Range &r : box) {
          ++boxes;
          (r.axis == flat_axis ? flat : inner) = true;
        }
    if (!inner && !k.form.window &&
        !uses_row_bounds()) { // the row-major index alone: how it lies in memory does not matter
      extent = domain.count, pitch = 1, times = 1;
      row();
      counted.line = exact();
      return std::move(counted);
    }
    extent = domain.extent, pitch = loop.inner_pitch;
    std::vector<size_t> axes; // of the rows, those that tell rows apart
    for (size_t d = 0; d < loop.lengths.size(); ++d) {
      const bool differs = flat || reads(d);
      if (differs) axes.push_back(d);
      else times *= loop.lengths[d];
    }
    int64_t rows = 1;
    for (const size_t d : axes) rows = std::min(rows * std::min(loop.lengths[d], most_rows + 1), most_rows + 1);
    if (rows > most_rows || rows * int64_t(k.row.size() + boxes + 1) > most_steps) {
      unwalked();
      return std::move(counted);
    }
    place.assign(loop.lengths.size(), 0);
    for (int64_t r = 0; r < rows; ++r) {
      base = 0;
      for (size_t d = 0; d < place.size(); ++d) base += place[d] * loop.pitches[d];
      work_row();
      row();
      for (const size_t d : axes) {
        if (++place[d] < loop.lengths[d]) break;
        place[d] = 0;
      }
    }
    counted.line = loop.lengths.empty() && exact();
    return std::move(counted);
  }

private:
  bool uses_row_bounds() const {
    for (const Piece &p : k.pieces)
      for (const auto &box : p.boxes)
        for (const Range &r : box)
          for (const NodeId n : {r.lo, r.hi})
            if (n != no_node && k[n].stage != Stage::Host) return true;
    return false;
  }

  // A bound asks for the position along row axis `d`.
  bool reads(size_t d) const {
    const uint8_t axis = d < k.form.row_axes.size() ? k.form.row_axes[d] : no_axis;
    for (const NodeId n : k.row)
      if (k[n].op == Op::Pos && (k[n].a == flat_axis || (axis != no_axis && k[n].a == axis))) return true;
    return false;
  }

  bool exact() const {
    return std::all_of(counted.pieces.begin(), counted.pieces.end(),
                       [](const PieceCount &c) { return c.least == c.most; });
  }

  void unwalked() {
    counted.walked = false;
    int64_t all = extent;
    for (const int64_t l : loop.lengths) all *= l;
    for (PieceCount &c : counted.pieces) c.most = all;
    for (size_t p = 0; p < counted.loads.size(); ++p)
      for (size_t a = 0; a < counted.loaded.size(); ++a)
        if (counted.loads[p][a]) counted.loaded[a] = all;
  }

  // The nodes of a row that bounds need.
  void work_row() {
    for (size_t s = 0; s < k.row.size(); ++s) {
      const NodeId n = k.row[s];
      const Inst &i = k[n];
      known[n] = false;
      if (i.op == Op::Pos) {
        at[n].integer = base, known[n] = i.a == flat_axis;
        for (size_t d = 0; d < place.size() && d < k.form.row_axes.size(); ++d)
          if (k.form.row_axes[d] == i.a) at[n].integer = place[d], known[n] = true;
        if (i.a == k.form.inner_axis) known[n] = false;
        continue;
      }
      if (i.op == Op::Where || (i.op == Op::Logic && LogicOp(i.sub) != LogicOp::Not)) {
        lazily(n, i);
        continue;
      }
      if (i.op == Op::Read || i.op == Op::Load) continue; // an element's value
      Constant list[3];
      bool all = inputs[s].size() <= 3;
      for (size_t o = 0; all && o < inputs[s].size(); ++o) list[o] = at[inputs[s][o]], all = known[inputs[s][o]];
      if (!all || inputs[s].empty()) continue;
      known[n] = apply(i, k[inputs[s][0]].type, std::span(list, inputs[s].size()), at[n]) == Trouble::None;
    }
  }
  void lazily(NodeId n, const Inst &i) {
    auto take = [&](NodeId o) { at[n] = at[o], known[n] = known[o]; };
    if (i.op == Op::Where) {
      if (known[i.a]) take(at[i.a].integer ? i.b : i.c);
      return;
    }
    const bool both = LogicOp(i.sub) == LogicOp::And; // where one side settles it, the other may be unknown
    for (const NodeId o : {i.a, i.b})
      if (known[o] && (at[o].integer != 0) != both) return take(o);
    if (known[i.a] && known[i.b]) take(i.b);
  }

  // A bound as one on the row's inner position, within it; nullopt: an element decides.
  std::optional<int64_t> end(NodeId n, uint8_t axis) const {
    if (!known[n] && !far[n]) return std::nullopt;
    __int128 v = at[n].integer;
    if (axis == flat_axis) {
      v = std::max<__int128>(v - base, 0);
      v = v / pitch + (v % pitch != 0);
    }
    return int64_t(std::clamp<__int128>(v, 0, extent));
  }

  // Every piece along one row, which stands for `times` of them.
  void row() {
    Runs left{{0, extent}}, maybe; // nobody's; what elements may have given to an earlier piece
    std::vector<Runs> loaded(counted.loaded.size());
    for (size_t p = 0; p < k.pieces.size() && !(left.empty() && maybe.empty()); ++p) {
      const Piece &piece = k.pieces[p];
      bool sure = piece.guard == no_node;
      Runs here;
      if (piece.boxes.empty()) here = {{0, extent}};
      for (const auto &box : piece.boxes) {
        Run s{0, extent};
        for (const Range &r : box) {
          const auto lo = r.lo == no_node ? 0 : end(r.lo, r.axis), hi = r.hi == no_node ? extent : end(r.hi, r.axis);
          sure &= lo && hi;
          s.begin = std::max(s.begin, lo.value_or(0)), s.end = std::min(s.end, hi.value_or(extent));
        }
        if (s.begin < s.end) here.push_back(s);
      }
      here = joined(std::move(here));
      const Runs mine = intersect(left, here), perhaps = intersect(maybe, here);
      PieceCount &c = counted.pieces[p];
      const int64_t certain = length(mine), possible = certain + length(perhaps);
      c.most += possible * times;
      if (sure) {
        c.least += certain * times;
        c.segments = mine;
        left = subtract(left, here), maybe = subtract(maybe, here);
      } else {
        left = subtract(left, here);
        maybe.insert(maybe.end(), mine.begin(), mine.end());
        maybe = joined(std::move(maybe));
      }
      for (size_t a = 0; a < loaded.size(); ++a)
        if (counted.loads[p][a]) {
          loaded[a].insert(loaded[a].end(), mine.begin(), mine.end());
          loaded[a].insert(loaded[a].end(), perhaps.begin(), perhaps.end());
        }
    }
    for (size_t a = 0; a < loaded.size(); ++a)
      if (!loaded[a].empty()) counted.loaded[a] += length(joined(std::move(loaded[a]))) * times;
  }

  const Kernel &k;
  const Loop &loop;
  const HostDomain &domain;
  std::vector<Constant> at;
  std::vector<bool> known, far;            // far: beyond 128 bits, and `at` holds the end on its side
  std::vector<std::vector<NodeId>> inputs; // by Kernel::row
  llvm::SmallVector<int64_t, 8> place;     // of the row, by row axis
  int64_t base = 0;                        // its first row-major position
  int64_t extent = 0, pitch = 1, times = 1;
  Counted counted;
};

} // namespace

Counted count_positions(const Kernel &scheduled, const Loop &loop, std::span<const HostValue> values,
                        std::span<const uint8_t> poisoned, const HostDomain &domain) {
  return Counter(scheduled, loop, values, poisoned, domain).run();
}

} // namespace elsewise
