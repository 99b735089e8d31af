// SPDX-License-Identifier: Apache-2.0
// Conditions as formulas: logic, and comparisons of whole numbers, of floats, and of one with the other. What the
// operands are is in terms.cpp.
#include "compiler/check/guards.h"
#include "grammar/builtins.h"
#include <cmath>

namespace elsewise {

using prove::Atom;
using prove::FormulaId;
using prove::Linear;

namespace {

bool compare(Operator op, double a, double b) {
  switch (op) {
  case Operator::Lt:
    return a < b;
  case Operator::Le:
    return a <= b;
  case Operator::Gt:
    return a > b;
  case Operator::Ge:
    return a >= b;
  case Operator::Eq:
    return a == b;
  default:
    return a != b;
  }
}

} // namespace

FormulaId Guards::condition(ExprId e) {
  if (const auto known = found_.find(e); known != found_.end()) return known->second;
  const FormulaId f = find(e);
  found_[e] = f;
  return f;
}

Origin Guards::origin(uint32_t tag) const {
  Origin o = origins_[tag / 2];
  o.negated = tag % 2;
  return o;
}

uint32_t Guards::tag(ExprId e, Operator op) {
  origins_.push_back({e, op});
  return uint32_t(origins_.size() - 1) * 2;
}

FormulaId Guards::find(ExprId e) {
  switch (ast_[e].kind) {
  case ExprKind::Literal:
    return prover_.truth(ast_.literal(e).integer != 0);
  case ExprKind::Unary:
  case ExprKind::Binary:
    return operation(e);
  case ExprKind::Call:
    return call(e);
  default:
    return opaque(e);
  }
}

FormulaId Guards::operation(ExprId e) {
  const Operator op = ast_[e].op;
  if (ast_[e].kind == ExprKind::Binary && is_comparison(op)) return comparison(e);
  for (uint32_t k = 0; k < ast_[e].count; ++k)
    if (kinds_[child(e, k)].kind != Kind::Bool && !is_logic(op)) return opaque(e);
  switch (op) {
  case Operator::Plus:
    return condition(child(e, 0));
  case Operator::Not:
  case Operator::BitNot:
    return prover_.negated(condition(child(e, 0)));
  case Operator::And:
  case Operator::Mul:
  case Operator::BitAnd:
    return prover_.all({condition(child(e, 0)), condition(child(e, 1))});
  case Operator::Or:
  case Operator::Add:
  case Operator::BitOr:
    return prover_.any({condition(child(e, 0)), condition(child(e, 1))});
  case Operator::BitXor: {
    const FormulaId a = condition(child(e, 0)), b = condition(child(e, 1));
    return choice(a, prover_.negated(b), b);
  }
  default:
    return opaque(e);
  }
}

FormulaId Guards::call(ExprId e) {
  const Builtin *r = row(e);
  if (!r) return opaque(e);
  if (r->rule == Rule::Select && kinds_[child(e, 1)].kind == Kind::Bool && kinds_[child(e, 2)].kind == Kind::Bool)
    return choice(condition(child(e, 0)), condition(child(e, 1)), condition(child(e, 2)));
  if (r->meaning == Meaning::NotANumber && kinds_[child(e, 0)].kind != Kind::Unknown) {
    if (is_whole(child(e, 0))) return prover_.truth(false);
    const ExprType &t = typed_.at(e, Use::Value);
    return nan(real(child(e, 0), t.operands, t.nominal), tag(e, Operator::Or));
  }
  return opaque(e);
}

FormulaId Guards::choice(FormulaId c, FormulaId a, FormulaId b) {
  return prover_.any({prover_.all({c, a}), prover_.all({prover_.negated(c), b})});
}

/// A condition of which nothing is known but that it is true or false.
FormulaId Guards::opaque(ExprId e) { return set(bit("bit " + structure(e, Use::Value)), true, tag(e, Operator::Or)); }

FormulaId Guards::set(Atom a, bool on, uint32_t tag) {
  return prover_.row(on ? Linear::of(1).plus(Linear::of_atom(a), -1) : Linear::of_atom(a), tag);
}

FormulaId Guards::nan(const Real &r, uint32_t tag) {
  if (!r.may_be_nan) return prover_.truth(false);
  const Fact &f = kinds_[r.expr];
  const bool checkable = f.kind == Kind::Unknown || (f.kind == Kind::WeakFloat && f.stage == Stage::Host);
  if (checkable ? premises_.uniforms_are_numbers : premises_.data_is_number) {
    if (f.kind != Kind::Unknown) numbers_.try_emplace(r.self, r.expr);
    return prover_.truth(false);
  }
  return set(bit("nan " + r.self), true, tag);
}

FormulaId Guards::ordered(const Real &r) { return prover_.negated(nan(r)); }

FormulaId Guards::comparison(ExprId e) {
  const Operator op = ast_[e].op;
  const ExprId left = child(e, 0), right = child(e, 1);
  const Fact &f = kinds_[e], &a = kinds_[left], &b = kinds_[right];
  const bool whole_a = is_whole(left), whole_b = is_whole(right);
  const bool equality = op == Operator::Eq || op == Operator::Ne;
  const auto may_be_condition = [&](const Fact &one) { // what is compared with one is one
    return one.kind == Kind::Bool || (one.kind == Kind::Unknown && equality && premises_.unknown_is_number);
  };
  if ((a.kind == Kind::Bool || b.kind == Kind::Bool) && may_be_condition(a) && may_be_condition(b)) {
    if (!equality) return compare_whole(e, op, linear(left, Use::Value), linear(right, Use::Value));
    const FormulaId x = condition(left), y = condition(right);
    const FormulaId same = choice(x, y, prover_.negated(y));
    return op == Operator::Eq ? same : prover_.negated(same);
  }
  if (whole_a && whole_b && (f.joint != Kind::Data || !is_float(f.nominal)))
    return compare_whole(e, op, linear(left, operands(e, Use::Value)), linear(right, operands(e, Use::Value)));
  const ExprType &t = typed_.at(e, Use::Value);
  const Real x = real(left, t.operands, f.nominal), y = real(right, t.operands, f.nominal);
  if ((x.constant && std::isnan(x.value)) || (y.constant && std::isnan(y.value)))
    return prover_.truth(op == Operator::Ne);
  if (x.constant && y.constant) return prover_.truth(compare(op, x.value, y.value));
  const bool exact = f.joint == Kind::WeakFloat || (f.joint == Kind::Unknown && premises_.unknown_is_number);
  if (exact && whole_a != whole_b) // an index and a double: compared exactly
    return whole_a ? compare_mixed(e, op, linear(left, t.operands), y)
                   : compare_mixed(e, mirrored(op), linear(right, t.operands), x);
  if (f.joint == Kind::Unknown && !exact) return compare_pair(e, op, x, y);
  if (y.constant) return compare_cut(e, op, x, y.value);
  if (x.constant) return compare_cut(e, mirrored(op), y, x.value);
  return compare_pair(e, op, x, y);
}

FormulaId Guards::compare_whole(ExprId e, Operator op, const Linear &a, const Linear &b) {
  const Linear difference = a.plus(b, -1), opposite = b.plus(a, -1);
  if (!difference.exact || !opposite.exact) return opaque(e);
  const Linear one = Linear::of(1);
  switch (op) {
  case Operator::Lt:
    return prover_.row(difference.plus(one), tag(e, op));
  case Operator::Le:
    return prover_.row(difference, tag(e, op));
  case Operator::Gt:
    return prover_.row(opposite.plus(one), tag(e, op));
  case Operator::Ge:
    return prover_.row(opposite, tag(e, op));
  default:
    break;
  }
  const FormulaId equal =
      prover_.all({prover_.row(opposite, tag(e, Operator::Ge)), prover_.row(difference, tag(e, Operator::Le))});
  return op == Operator::Eq ? equal : prover_.negated(equal);
}

/// `whole op real`. A whole number is below r exactly if it is below ceil(r), and not above r exactly if it is not
/// above floor(r).
FormulaId Guards::compare_mixed(ExprId e, Operator op, const Linear &whole, const Real &r) {
  Linear floor, ceil;
  if (r.constant) {
    if (std::isinf(r.value)) return prover_.truth(compare(op, 0, r.value));
    if (std::fabs(r.value) > 0x1p62) return opaque(e);
    floor = Linear::of(int64_t(std::floor(r.value))), ceil = Linear::of(int64_t(std::ceil(r.value)));
  } else {
    bool is_new = false;
    const Atom f = prover_.atom("floor " + r.key), c = prover_.atom("ceil " + r.key, &is_new);
    floor = Linear::of_atom(f), ceil = Linear::of_atom(c);
    if (is_new) {
      between(c, floor, floor.plus(Linear::of(1)));
      prover_.fact(f, prover_.row(floor.plus(ceil, -1)));
    }
  }
  const Linear one = Linear::of(1);
  const auto row = [&](const Linear &sum, Operator o) { return sum.exact ? prover_.row(sum, tag(e, o)) : opaque(e); };
  // Which side of the comparison in the source the whole number stands on is the message's business; the tag says how
  // the source reads.
  const bool swapped = op != ast_[e].op;
  const auto as_written = [&](Operator o) { return swapped ? mirrored(o) : o; };
  const FormulaId at_most = row(whole.plus(floor, -1), as_written(Operator::Le));
  const FormulaId at_least = row(ceil.plus(whole, -1), as_written(Operator::Ge));
  switch (op) {
  case Operator::Lt:
    return prover_.all({row(whole.plus(ceil, -1).plus(one), as_written(op)), ordered(r)});
  case Operator::Le:
    return prover_.all({at_most, ordered(r)});
  case Operator::Gt:
    return prover_.all({row(floor.plus(one).plus(whole, -1), as_written(op)), ordered(r)});
  case Operator::Ge:
    return prover_.all({at_least, ordered(r)});
  default:
    break;
  }
  const FormulaId equal = prover_.all({at_most, at_least, ordered(r)});
  return op == Operator::Eq ? equal : prover_.negated(equal);
}

/// A float against a constant: two conditions a constant, and an order between those of neighbouring constants.
FormulaId Guards::compare_cut(ExprId e, Operator op, const Real &r, double constant) {
  if (constant == 0) constant = 0; // -0 and 0 are one
  auto &cuts = cuts_[r.key];
  const auto [here, is_new] = cuts.try_emplace(constant);
  auto &[below, at_most] = here->second;
  if (is_new) {
    const std::string name = r.key + " " + std::to_string(cuts.size());
    below = bit("below " + name), at_most = bit("at most " + name);
    const auto implies = [&](Atom a, Atom b) {
      const FormulaId f = prover_.row(Linear::of_atom(a).plus(Linear::of_atom(b), -1));
      prover_.fact(a, f), prover_.fact(b, f);
    };
    implies(below, at_most);
    if (here != cuts.begin()) implies(std::prev(here)->second.second, below);
    if (std::next(here) != cuts.end()) implies(at_most, std::next(here)->second.first);
    if (r.may_be_nan) // neither, if it is not a number
      prover_.fact(at_most, prover_.any({set(at_most, false), ordered(r)}));
  }
  const uint32_t t = tag(e, Operator::Or);
  switch (op) {
  case Operator::Lt:
    return set(below, true, t);
  case Operator::Le:
    return set(at_most, true, t);
  case Operator::Gt:
    return prover_.all({set(at_most, false, t), ordered(r)});
  case Operator::Ge:
    return prover_.all({set(below, false, t), ordered(r)});
  default:
    break;
  }
  const FormulaId equal = prover_.all({set(at_most, true, t), set(below, false, t)});
  return op == Operator::Eq ? equal : prover_.any({set(at_most, false, t), set(below, true, t)});
}

/// Two floats: less, equal, greater, or one is not a number.
FormulaId Guards::compare_pair(ExprId e, Operator op, Real a, Real b) {
  if (a.key == b.key) {
    if (op == Operator::Lt || op == Operator::Gt) return prover_.truth(false);
    return op == Operator::Ne ? nan(a) : ordered(a);
  }
  if (b.key < a.key) std::swap(a, b), op = mirrored(op);
  const std::string both = a.key + " , " + b.key;
  bool is_new = false;
  const Atom less = bit("less " + both, &is_new), equal = bit("equal " + both), greater = bit("greater " + both);
  if (is_new) {
    const Linear sum = Linear::of_atom(less).plus(Linear::of_atom(equal)).plus(Linear::of_atom(greater));
    const FormulaId none = prover_.row(sum), one = prover_.all({prover_.row(sum.plus(Linear::of(1), -1)),
                                                                prover_.row(Linear::of(1).plus(sum, -1))});
    const FormulaId unordered = prover_.any({nan(a), nan(b)});
    const FormulaId f = prover_.any({prover_.all({one, prover_.negated(unordered)}), prover_.all({none, unordered})});
    for (Atom atom : {less, equal, greater}) prover_.fact(atom, f);
  }
  const uint32_t t = tag(e, Operator::Or);
  const auto some = [&](Atom x, Atom y) {
    return prover_.row(Linear::of(1).plus(Linear::of_atom(x), -1).plus(Linear::of_atom(y), -1), t);
  };
  switch (op) {
  case Operator::Lt:
    return set(less, true, t);
  case Operator::Le:
    return some(less, equal);
  case Operator::Gt:
    return set(greater, true, t);
  case Operator::Ge:
    return some(greater, equal);
  case Operator::Eq:
    return set(equal, true, t);
  default:
    return set(equal, false, t);
  }
}

} // namespace elsewise
