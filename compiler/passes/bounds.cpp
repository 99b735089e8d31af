// SPDX-License-Identifier: Apache-2.0
// Index nodes as sums of atoms, conditions as formulas, and the question whether an index can leave its axis. It never
// takes a sum for exact that an element's type could wrap.
#include "compiler/passes/bounds.h"
#include "compiler/ir/arithmetic.h"
#include "compiler/ir/axes.h"
#include "compiler/ir/rows.h"
#include "compiler/ir/walk.h"
#include "compiler/passes/rewrite.h"
#include "compiler/prove/prover.h"
#include <algorithm>
#include <map>
#include <optional>
#include <set>

namespace elsewise {
namespace {

using prove::FormulaId;
using prove::Linear;

/// Every value that a node can have; none: nothing is known.
struct Between {
  __int128 lo, hi;
};
using Interval = std::optional<Between>;

Between of_type(DType d) { return {elsewise::least(d), elsewise::greatest(d)}; }
bool is_data(DType d) { return is_integer(d) && d != DType::Index; }
bool within(const Interval &i, DType d) {
  if (!i) return d == DType::Index;
  if (d == DType::Index) return true;
  const Between t = of_type(d);
  return t.lo <= i->lo && i->hi <= t.hi;
}
Interval from_corners(std::initializer_list<std::optional<__int128>> corners) {
  Interval r;
  for (const auto &c : corners) {
    if (!c) return std::nullopt;
    r = r ? Between{std::min(r->lo, *c), std::max(r->hi, *c)} : Between{*c, *c};
  }
  return r;
}

/// What is known of the nodes of one kernel. `reached`: of a position that reaches the read, where index arithmetic is
/// exact or the call refused; else of any position, where it may leave 64 bits unseen.
class Facts {
public:
  Facts(const Kernel &k, bool reached) : k(k), reached(reached), intervals(k.insts.size()) {}

  prove::Prover prover;

  /// Holds exactly where the Bool node is true.
  FormulaId condition(NodeId n) {
    if (const auto at = conditions.find(n); at != conditions.end()) return at->second;
    const FormulaId f = find_condition(n);
    conditions[n] = f;
    return f;
  }

  /// An Index node, or integer data, as a sum of atoms.
  Linear linear(NodeId n) {
    if (const auto at = linears.find(n); at != linears.end()) return at->second;
    Linear l = find_linear(n);
    if (!l.exact) l = unknown(n);
    linears[n] = l;
    return l;
  }

  Linear length_of(uint32_t argument, int axis) {
    bool is_new = false;
    const prove::Atom a = prover.atom("a" + std::to_string(argument) + "." + std::to_string(axis), &is_new);
    const Linear l = Linear::of_atom(a);
    if (is_new) prover.fact(a, prover.all({at_least(l, 0), at_most(l, Linear::of(most_positions))}));
    return l;
  }
  /// Where an element is looked at, no axis of the domain is empty.
  Linear length(uint32_t axis) {
    bool is_new = false;
    const prove::Atom a = prover.atom("l" + std::to_string(axis), &is_new);
    const Linear l = Linear::of_atom(a);
    if (is_new) prover.fact(a, prover.all({at_least(l, 1), at_most(l, Linear::of(most_positions))}));
    return l;
  }

  FormulaId at_most(const Linear &a, const Linear &b) { return prover.row(a.plus(b, -1)); }
  FormulaId at_least(const Linear &a, int64_t b) { return at_most(Linear::of(b), a); }
  FormulaId equal(const Linear &a, const Linear &b) { return prover.all({at_most(a, b), at_most(b, a)}); }

private:
  // ---- intervals, which know of no condition

  Interval interval(NodeId n) {
    if (intervals[n].first) return intervals[n].second;
    Interval i = find_interval(n);
    constexpr __int128 far = (__int128)1 << 100; // so that sums and products of two stay within 128 bits
    if (i && (i->lo < -far || i->hi > far)) i = std::nullopt;
    if (is_data(k[n].type) || k[n].type == DType::Bool)
      if (!i || !within(i, k[n].type)) i = of_type(k[n].type); // it may wrap
    if (!reached && k[n].type == DType::Index && k[n].op != Op::Const && !within(i, DType::I64)) i = std::nullopt;
    intervals[n] = {true, i};
    return i;
  }

  static std::optional<__int128> product(__int128 a, __int128 b) {
    __int128 r;
    if (__builtin_mul_overflow(a, b, &r)) return std::nullopt;
    return r;
  }

  Interval find_interval(NodeId n) {
    const Inst &i = k[n];
    switch (i.op) {
    case Op::Const:
      if (is_float(i.type)) return std::nullopt;
      return Between{k.constants[i.a].integer, k.constants[i.a].integer};
    case Op::Pos:
      return Between{0, most_positions - 1};
    case Op::Len:
      return Between{1, most_positions};
    case Op::ArgLen:
      return Between{0, most_positions};
    case Op::Cast:
      return k[i.a].type == DType::Bool || is_integer(k[i.a].type) ? interval(i.a) : std::nullopt;
    case Op::Unary: {
      const Interval a = interval(i.a);
      if (!a) return std::nullopt;
      return UnaryOp(i.sub) == UnaryOp::Neg ? Between{-a->hi, -a->lo} : Between{-1 - a->hi, -1 - a->lo};
    }
    case Op::Binary: {
      const Interval a = interval(i.a), b = interval(i.b);
      if (!a || !b) return std::nullopt;
      switch (BinaryOp(i.sub)) {
      case BinaryOp::Add:
        return Between{a->lo + b->lo, a->hi + b->hi};
      case BinaryOp::Sub:
        return Between{a->lo - b->hi, a->hi - b->lo};
      case BinaryOp::Mul:
        return from_corners(
            {product(a->lo, b->lo), product(a->lo, b->hi), product(a->hi, b->lo), product(a->hi, b->hi)});
      case BinaryOp::FloorDiv:
        if (b->lo < 1) return std::nullopt;
        return from_corners({floor_divide(a->lo, b->lo), floor_divide(a->lo, b->hi), floor_divide(a->hi, b->lo),
                             floor_divide(a->hi, b->hi)});
      case BinaryOp::Mod:
        if (b->lo < 0) return std::nullopt; // by 0 it is 0, or the call is refused
        return Between{0, std::max<__int128>(b->hi - 1, 0)};
      default:
        return std::nullopt;
      }
    }
    case Op::Where: {
      const Interval a = interval(i.b), b = interval(i.c);
      return a && b ? Interval(Between{std::min(a->lo, b->lo), std::max(a->hi, b->hi)}) : std::nullopt;
    }
    case Op::Call: {
      if (!is_integer(k[k.operands[i.a]].type)) return std::nullopt;
      const Interval a = interval(k.operands[i.a]);
      if (i.sub == magnitude && a) return Between{0, std::max(a->hi, -a->lo)};
      if ((i.sub != least && i.sub != greatest) || i.b != 2) return std::nullopt;
      const Interval b = interval(k.operands[i.a + 1]);
      if (!a || !b) return std::nullopt;
      return i.sub == least ? Between{std::min(a->lo, b->lo), std::min(a->hi, b->hi)}
                            : Between{std::max(a->lo, b->lo), std::max(a->hi, b->hi)};
    }
    default:
      return std::nullopt;
    }
  }

  // ---- sums

  /// The node by itself, of which its type alone is known.
  Linear unknown(NodeId n) { return atom_of(n, "n" + std::to_string(n)); }

  Linear atom_of(NodeId n, const std::string &key) {
    bool is_new = false;
    const prove::Atom a = prover.atom(key, &is_new);
    const Linear l = Linear::of_atom(a);
    if (is_new) {
      const Interval i = interval(n);
      std::vector<FormulaId> facts;
      if (i && i->lo >= INT64_MIN) facts.push_back(at_least(l, int64_t(std::min<__int128>(i->lo, INT64_MAX))));
      if (i && i->hi <= INT64_MAX)
        facts.push_back(at_most(l, Linear::of(int64_t(std::max<__int128>(i->hi, INT64_MIN)))));
      if (!facts.empty()) prover.fact(a, prover.all(std::move(facts)));
    }
    return l;
  }

  /// An atom for the node, and what holds of it. Operations of one kind on equal operands are one atom, so that
  /// elements read under different conditions do not tell them apart.
  template <class Say> Linear described(NodeId n, Say say) {
    const Linear l = atom_of(n, key_of(n)); // which may have been made before as one of which nothing is known
    if (told.insert(l.terms[0].first).second) prover.fact(l.terms[0].first, say(l));
    return l;
  }

  std::string key_of(NodeId n) {
    const Inst &i = k[n];
    if (i.op != Op::Unary && i.op != Op::Binary && i.op != Op::Call) return "n" + std::to_string(n);
    std::string key = "o" + std::to_string(int(i.op)) + "." + std::to_string(i.sub) + "." + std::to_string(int(i.type));
    for (const NodeId o : operands(k, n)) {
      const Linear l = linear(o);
      key += "(" + std::to_string(l.constant);
      for (const auto &[atom, coefficient] : l.terms)
        key += "+" + std::to_string(coefficient) + "*" + std::to_string(atom);
      key += ")";
    }
    return key;
  }

  /// What arithmetic gives: exact for an index, which the host sees to; for data where its type cannot wrap it, and
  /// else wherever the sum is far from its ends.
  Linear arithmetic(NodeId n, const Linear &sum, bool exact) {
    if (!sum.exact) return unknown(n);
    if (exact) return sum;
    const Between t = of_type(k[n].type == DType::Index ? DType::I64 : k[n].type);
    constexpr __int128 far = (__int128)1 << 61;
    const int64_t lo = int64_t(std::max(t.lo, -far)), hi = int64_t(std::min(t.hi, far));
    return described(n, [&](const Linear &l) {
      return prover.any({at_most(sum, Linear::of(lo - 1)), at_least(sum, hi + 1), equal(l, sum)});
    });
  }

  /// What the operation gives before it could wrap stays within the node's type.
  bool exact(NodeId n) {
    if (k[n].type == DType::Index && reached) return true;
    const Interval i = find_interval(n);
    return i && within(i, k[n].type == DType::Index ? DType::I64 : k[n].type);
  }

  Linear find_linear(NodeId n) {
    const Inst &i = k[n];
    switch (i.op) {
    case Op::Const:
      return Linear::of_wide(k.constants[i.a].integer);
    case Op::Pos: {
      bool is_new = false;
      const prove::Atom a = prover.atom("p" + std::to_string(i.a), &is_new);
      const Linear l = Linear::of_atom(a);
      if (is_new) prover.fact(a, prover.all({at_least(l, 0), at_most(l.plus(Linear::of(1)), length(i.a))}));
      return l;
    }
    case Op::Len:
      return i.a == no_axis ? unknown(n) : length(i.a);
    case Op::ArgLen: {
      const int rank = k.arguments[i.a].type.rank, dim = int32_t(i.b);
      return length_of(i.a, dim < 0 && rank >= 0 ? dim + rank : dim);
    }
    case Op::Cast: {
      const DType from = k[i.a].type;
      if (from == DType::Bool)
        return described(n, [&](const Linear &l) { return choice(i.a, l, Linear::of(1), Linear::of(0)); });
      if (!is_integer(from)) return unknown(n);
      return arithmetic(n, linear(i.a), within(interval(i.a), i.type));
    }
    case Op::Unary:
      if (UnaryOp(i.sub) == UnaryOp::Neg) return arithmetic(n, linear(i.a).times(-1), exact(n));
      return dclass(i.type) == DClass::UInt ? unknown(n) : linear(i.a).times(-1).plus(Linear::of(-1));
    case Op::Binary:
      return binary(n, i);
    case Op::Where:
      return described(n, [&](const Linear &l) { return choice(i.a, l, linear(i.b), linear(i.c)); });
    case Op::Call:
      return call(n, i);
    case Op::Read: // where its condition fails the element is 0, and nobody uses it
      return element(n, i);
    default:
      return unknown(n);
    }
  }

  /// What stands at the indices, whatever condition a read of it has.
  Linear element(NodeId n, const Inst &i) {
    std::string key = "e" + std::to_string(k.reads[i.c].argument);
    const std::vector<NodeId> list = operands(k, n);
    for (size_t o = i.sub; o < list.size(); ++o) key += "." + std::to_string(list[o]);
    bool is_new = false;
    const prove::Atom a = prover.atom(key, &is_new);
    const Linear l = Linear::of_atom(a);
    if (is_new) {
      const Between t = of_type(i.type);
      prover.fact(a, at_least(l, int64_t(t.lo)));
      if (t.hi <= INT64_MAX) prover.fact(a, at_most(l, Linear::of(int64_t(t.hi)))); // u64 goes beyond
    }
    return l;
  }

  FormulaId choice(NodeId c, const Linear &l, const Linear &yes, const Linear &no) {
    const FormulaId holds = condition(c);
    return prover.any({prover.all({holds, equal(l, yes)}), prover.all({prover.negated(holds), equal(l, no)})});
  }

  std::optional<int64_t> constant(const Linear &l) const {
    if (!l.exact || !l.is_constant()) return std::nullopt;
    return l.constant;
  }

  /// floor(a / c), c > 0.
  Linear quotient(NodeId n, const Linear &a, int64_t c) {
    return described(n, [&](const Linear &q) {
      return prover.all({at_most(q.times(c), a), at_most(a, q.times(c).plus(Linear::of(c - 1)))});
    });
  }

  Linear binary(NodeId n, const Inst &i) {
    const BinaryOp op = BinaryOp(i.sub);
    const Linear a = linear(i.a), b = linear(i.b);
    const auto by = constant(b);
    switch (op) {
    case BinaryOp::Add:
      return arithmetic(n, a.plus(b), exact(n));
    case BinaryOp::Sub:
      return arithmetic(n, a.plus(b, -1), exact(n));
    case BinaryOp::Mul:
      if (const auto other = constant(a)) return arithmetic(n, b.times(*other), exact(n));
      if (by) return arithmetic(n, a.times(*by), exact(n));
      return unknown(n);
    case BinaryOp::FloorDiv:
      if (by && *by > 0) return quotient(n, a, *by);
      if (by) return unknown(n);
      return described(n, [&](const Linear &q) { // of nothing negative by something positive
        return prover.any(
            {at_most(b, Linear::of(0)), at_most(a, Linear::of(-1)), prover.all({at_least(q, 0), at_most(q, a)})});
      });
    case BinaryOp::Mod:
      return described(n, [&](const Linear &m) { // Python's sign; by 0 it is 0, or the call is refused
        std::vector<FormulaId> positive{at_least(m, 0), at_most(m.plus(Linear::of(1)), b)};
        const FormulaId unchanged = prover.any({at_most(a, Linear::of(-1)), at_most(m, a)});
        positive.push_back(unchanged);
        return prover.any({prover.all(std::move(positive)), at_most(b, Linear::of(0))});
      });
    case BinaryOp::Shr:
      if (by && *by >= 0 && *by < 62 && *by < 8 * bytes(i.type)) return quotient(n, a, int64_t(1) << *by);
      return unknown(n);
    case BinaryOp::BitAnd:
      return described(n, [&](const Linear &m) { // with something not negative it is no more than that
        auto side = [&](const Linear &s) {
          return prover.any({at_most(s, Linear::of(-1)), prover.all({at_least(m, 0), at_most(m, s)})});
        };
        return prover.all({side(a), side(b)});
      });
    default:
      return unknown(n);
    }
  }

  Linear call(NodeId n, const Inst &i) {
    if (!is_integer(k[k.operands[i.a]].type)) return unknown(n);
    const Linear a = linear(k.operands[i.a]);
    if (i.sub == magnitude) {
      if (!exact(n)) return unknown(n); // the least integer of a type stays as it is
      return described(n, [&](const Linear &l) {
        return prover.any({prover.all({at_least(a, 0), equal(l, a)}),
                           prover.all({at_most(a, Linear::of(0)), equal(l, a.times(-1))})});
      });
    }
    if ((i.sub != least && i.sub != greatest) || i.b != 2) return unknown(n);
    const Linear b = linear(k.operands[i.a + 1]);
    return described(n, [&](const Linear &l) {
      const Linear &x = i.sub == least ? a : b, &y = i.sub == least ? b : a; // x <= y: the first operand
      return prover.any({prover.all({at_most(x, y), equal(l, a)}), prover.all({at_most(y, x), equal(l, b)})});
    });
  }

  // ---- conditions

  FormulaId opaque(NodeId n) {
    bool is_new = false;
    const prove::Atom a = prover.atom("c" + std::to_string(n), &is_new);
    const Linear l = Linear::of_atom(a);
    if (is_new) prover.fact(a, prover.all({at_least(l, 0), at_most(l, Linear::of(1))}));
    return at_least(l, 1);
  }

  FormulaId find_condition(NodeId n) {
    const Inst &i = k[n];
    switch (i.op) {
    case Op::Const:
      return prover.truth(k.constants[i.a].integer != 0);
    case Op::Logic: {
      const FormulaId a = condition(i.a);
      if (LogicOp(i.sub) == LogicOp::Not) return prover.negated(a);
      const FormulaId b = condition(i.b);
      return LogicOp(i.sub) == LogicOp::And ? prover.all({a, b}) : prover.any({a, b});
    }
    case Op::Where: {
      const FormulaId c = condition(i.a), a = condition(i.b), b = condition(i.c);
      return prover.any({prover.all({c, a}), prover.all({prover.negated(c), b})});
    }
    case Op::Compare:
      return comparison(n, i);
    case Op::Read:
      return at_least(element(n, i), 1);
    default:
      return opaque(n);
    }
  }

  FormulaId comparison(NodeId n, const Inst &i) {
    const DType d = k[i.a].type;
    if (d == DType::Bool && (CompareOp(i.sub) == CompareOp::Eq || CompareOp(i.sub) == CompareOp::Ne)) {
      const FormulaId a = condition(i.a), b = condition(i.b), not_a = prover.negated(a), not_b = prover.negated(b);
      return CompareOp(i.sub) == CompareOp::Eq ? prover.any({prover.all({a, b}), prover.all({not_a, not_b})})
                                               : prover.any({prover.all({a, not_b}), prover.all({not_a, b})});
    }
    if (!is_integer(d)) return opaque(n);
    if (const Interval x = interval(i.a), y = interval(i.b); x && y && (x->hi < y->lo || y->hi < x->lo)) {
      const CompareOp op = CompareOp(i.sub);
      const bool less = x->hi < y->lo, lower = op == CompareOp::Lt || op == CompareOp::Le,
                 greater = op == CompareOp::Gt || op == CompareOp::Ge;
      return prover.truth(op == CompareOp::Ne || (less ? lower : greater));
    }
    const Linear a = linear(i.a), b = linear(i.b), less = a.plus(b, -1), more = b.plus(a, -1), one = Linear::of(1);
    // A row that is not exact says nothing, and then its negation would say too much.
    if (!less.plus(one).exact || !more.plus(one).exact || !less.plus(one, -1).exact || !more.plus(one, -1).exact)
      return opaque(n);
    const FormulaId lt = prover.row(less.plus(one)), le = prover.row(less), gt = prover.row(more.plus(one)),
                    ge = prover.row(more);
    switch (CompareOp(i.sub)) {
    case CompareOp::Lt:
      return lt;
    case CompareOp::Le:
      return le;
    case CompareOp::Gt:
      return gt;
    case CompareOp::Ge:
      return ge;
    case CompareOp::Eq:
      return prover.all({le, ge});
    case CompareOp::Ne:
      return prover.any({lt, gt});
    }
    return opaque(n);
  }

  const Kernel &k;
  const bool reached;
  const uint8_t least = least_row(), greatest = greatest_row(), magnitude = magnitude_row();
  std::vector<std::pair<bool, Interval>> intervals;
  std::set<prove::Atom> told; // atoms of which it was said what they are
  std::map<NodeId, Linear> linears;
  std::map<NodeId, FormulaId> conditions;
};

/// Which pieces reach a read: through the guard, or through a value alone.
struct Place {
  uint32_t piece;
  bool in_guard;
};

class Bounds {
public:
  explicit Bounds(const Kernel &k) : k(k), anywhere(k, false), here(k, true), places(k.insts.size()) {
    for (uint32_t p = 0; p < k.pieces.size(); ++p) {
      std::vector<bool> seen(k.insts.size());
      reach(k.pieces[p].guard, {p, true}, seen);
      for (const NodeId v : k.pieces[p].values) reach(v, {p, false}, seen);
    }
  }

  Reading settled(NodeId n) {
    Reading r = k.reads[k[n].c];
    r.settled = true, r.free = true;
    const auto indices = operands(k, n);
    const size_t rank = indices.size() - k[n].sub;
    for (uint32_t axis = 0; axis < rank && axis < 64; ++axis) {
      if (r.own >> axis & 1) continue;
      const NodeId index = indices[k[n].sub + axis];
      bool free = false;
      std::vector<Premise> premises;
      const bool proved = prove(n, index, r.argument, uint8_t(axis), free, premises);
      if (proved) {
        r.proved |= uint64_t(1) << axis, r.free = r.free && free;
        r.premises.insert(r.premises.end(), premises.begin(), premises.end());
      }
      if ((!proved || !premises.empty()) && host_can_tell(index)) r.checked |= uint64_t(1) << axis;
    }
    if ((r.own | r.proved) != all_axes(rank)) r.free = false;
    return r;
  }

  /// May the index be less than 0, or the length and more, with everything that could be known?
  Unproved sides(NodeId n, uint32_t axis) {
    const NodeId index = operands(k, n)[k[n].sub + axis];
    const uint32_t argument = k.reads[k[n].c].argument;
    Unproved u{n, axis, false, false};
    for (const Place &place : places[n]) {
      prove::State s = state(here, n, &place);
      here.prover.assume(s, here.at_least(here.length_of(argument, int(axis)), 1));
      u.below |= !never(here, s, below(here, index));
      u.above |= !never(here, s, above(here, index, argument, axis));
    }
    return u;
  }

private:
  void reach(NodeId root, Place place, std::vector<bool> &seen) {
    if (root == no_node) return;
    std::vector<NodeId> todo{root};
    while (!todo.empty()) {
      const NodeId n = todo.back();
      todo.pop_back();
      if (seen[n]) continue;
      seen[n] = true;
      if (k[n].op == Op::Read) places[n].push_back(place);
      for (const NodeId o : operands(k, n)) todo.push_back(o);
    }
  }

  static FormulaId below(Facts &facts, NodeId index) { return facts.at_most(facts.linear(index), Linear::of(-1)); }
  static FormulaId above(Facts &facts, NodeId index, uint32_t argument, uint32_t axis) {
    return facts.at_most(facts.length_of(argument, int(axis)), facts.linear(index));
  }
  static bool never(Facts &facts, const prove::State &s, FormulaId f) {
    return s.contradictory || facts.prover.refutes(s, f);
  }

  /// What leads to a read: its own condition, and in a place its guard and those before it, which failed.
  prove::State state(Facts &facts, NodeId n, const Place *place) {
    prove::State s;
    if (k[n].sub) facts.prover.assume(s, facts.condition(operands(k, n)[0]));
    if (!place) return s;
    if (!place->in_guard && k.pieces[place->piece].guard != no_node)
      facts.prover.assume(s, facts.condition(k.pieces[place->piece].guard));
    // To leave guards away proves less and never something wrong.
    constexpr uint32_t most_earlier = 32;
    for (uint32_t q = place->piece, taken = 0; q-- > 0 && taken < most_earlier; ++taken)
      if (k.pieces[q].guard != no_node)
        facts.prover.assume(s, facts.prover.negated(facts.condition(k.pieces[q].guard)));
    return s;
  }

  bool holds(NodeId n, NodeId index, uint32_t argument, uint8_t axis, const std::vector<Premise> &premises, bool free) {
    Facts &facts = free ? anywhere : here;
    auto in = [&](prove::State s) {
      for (const Premise &p : premises)
        facts.prover.assume(s, p.what == Premise::NotEmpty
                                   ? facts.at_least(facts.length_of(argument, p.axis), 1)
                                   : facts.at_most(facts.length(p.of), facts.length_of(argument, p.axis)));
      return never(facts, s, below(facts, index)) && never(facts, s, above(facts, index, argument, axis));
    };
    if (free) return in(state(facts, n, nullptr));
    return std::all_of(places[n].begin(), places[n].end(), [&](const Place &p) { return in(state(facts, n, &p)); });
  }

  /// With as few premises as will do, and without guards if that will do too.
  bool prove(NodeId n, NodeId index, uint32_t argument, uint8_t axis, bool &free, std::vector<Premise> &premises) {
    std::vector<std::vector<Premise>> tries{{}, {{Premise::NotEmpty, axis}}};
    for (const uint8_t of : candidates(index, argument)) tries.push_back({{Premise::AsLong, axis, of}});
    for (const auto &given : tries)
      for (const bool without_guards : {true, false})
        if (holds(n, index, argument, axis, given, without_guards)) {
          free = without_guards, premises = given;
          return true;
        }
    return false;
  }

  /// Axes of the domain that the argument's axis may be as long as: those that the index speaks of, and where there are
  /// few, any. A premise costs a comparison at a call.
  std::set<uint8_t> candidates(NodeId index, uint32_t argument) const {
    std::set<uint8_t> found;
    walk(k, index, [&](NodeId n) {
      if ((k[n].op == Op::Pos || k[n].op == Op::Len) && k[n].a != no_axis) found.insert(uint8_t(k[n].a));
    });
    constexpr size_t most_axes = 8; // beyond them, only those that the index speaks of
    for (uint8_t a = 0; a < k.axes.size() && k.axes.size() <= most_axes; ++a) found.insert(a);
    const int rank = k.arguments[argument].type.rank;
    if (rank == 1 && k.axes.empty()) found.insert(flat_axis);
    return found;
  }

  /// No element enters the index, and the host works it out to the bit as a device does.
  bool host_can_tell(NodeId index) const {
    bool can = true;
    walk(k, index, [&](NodeId n) {
      const Inst &i = k[n];
      can = can && i.op != Op::Load && i.op != Op::Read && (i.stage == Stage::Host || same_everywhere(k, n));
    });
    return can;
  }

  const Kernel &k;
  Facts anywhere, here;
  std::vector<std::vector<Place>> places; // by node
};

} // namespace

bool same_everywhere(const Kernel &k, NodeId n) {
  const Inst &i = k[n];
  if (i.op == Op::Call) return builtins()[i.sub].sameness == Sameness::Bits || !is_float(k[k.operands[i.a]].type);
  return i.op != Op::Binary || BinaryOp(i.sub) != BinaryOp::Pow || !is_float(i.type);
}

Kernel bounds(const Kernel &from, const PassOptions &) {
  if (std::all_of(from.reads.begin(), from.reads.end(), [](const Reading &r) { return r.settled; })) return from;
  Kernel k = from;
  Bounds all(from);
  for (NodeId n = 0; n < from.insts.size(); ++n) {
    if (from[n].op != Op::Read || from.reads[from[n].c].settled) continue;
    k.insts[n].c = uint32_t(k.reads.size());
    k.reads.push_back(all.settled(n));
  }
  return prune(k);
}

std::vector<Unproved> unproved(const Kernel &k) {
  std::vector<Unproved> found;
  std::optional<Bounds> all;
  for (NodeId n = 0; n < k.insts.size(); ++n) {
    if (k[n].op != Op::Read) continue;
    const Reading &r = k.reads[k[n].c];
    for (uint32_t axis = 0; axis + k[n].sub < k[n].b && axis < 64; ++axis) {
      if ((r.own | r.proved | r.checked) >> axis & 1) continue;
      if (!all) all.emplace(k);
      found.push_back(all->sides(n, axis));
    }
  }
  return found;
}

} // namespace elsewise
