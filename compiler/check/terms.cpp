// SPDX-License-Identifier: Apache-2.0
// What stands on the sides of a comparison: whole numbers as sums of atoms, floats by their key. What may wrap, or is
// not understood, is an atom by itself.
#include "compiler/check/composite.h"
#include "compiler/check/guards.h"
#include "compiler/types/text.h"
#include <algorithm>
#include <bit>
#include <cmath>

namespace elsewise {

using prove::Atom;
using prove::FormulaId;
using prove::Linear;

namespace {

std::string print(const Linear &l) {
  std::string text = std::to_string(l.constant);
  for (const auto &[atom, coefficient] : l.terms)
    text += "+" + std::to_string(coefficient) + "@" + std::to_string(atom);
  return text;
}

/// Whether a row's value is always one of its operands.
bool selects(const Builtin &r) {
  if (r.meaning == Meaning::Least || r.meaning == Meaning::Greatest) return true;
  if (r.body.empty()) return false;
  const Composite c = composite(r);
  for (ExprId e = 0; e < c.ast.exprs.size(); ++e)
    if (c.ast[e].kind != ExprKind::Name &&
        (c.ast[e].kind != ExprKind::Call || !selects(builtins()[c.names.of[e].index])))
      return false;
  return true;
}

bool commutes(Operator op) {
  return op == Operator::Add || op == Operator::Mul || op == Operator::BitAnd || op == Operator::BitOr ||
         op == Operator::BitXor;
}

/// To nearest even with `fraction` bits of fraction, as a half holds it.
double round_half(double v, int fraction, int least_exponent, double greatest) {
  if (!std::isfinite(v) || v == 0) return v;
  const int unit = std::max(std::ilogb(v), least_exponent) - fraction;
  const double rounded = std::ldexp(std::nearbyint(std::ldexp(v, -unit)), unit);
  return std::fabs(rounded) > greatest ? std::copysign(HUGE_VAL, v) : rounded;
}

/// A constant as a comparison in that dtype sees it.
double rounded(double v, DType d) {
  switch (d) {
  case DType::F16:
    return round_half(v, 10, -14, 65504);
  case DType::BF16:
    return round_half(v, 7, -126, 0x1.fep127);
  case DType::F32:
    return float(v);
  default:
    return v;
  }
}

} // namespace

const Builtin *Guards::row(ExprId e) const { return called(ast_, names_, e); }

Atom Guards::bit(const std::string &key, bool *is_new) {
  bool created = false;
  const Atom a = prover_.atom(key, &created);
  if (created) between(a, Linear::of(0), Linear::of(1));
  if (is_new) *is_new = created;
  return a;
}

void Guards::between(Atom a, const Linear &least, const Linear &greatest) {
  prover_.fact(a, prover_.all({prover_.row(least.plus(Linear::of_atom(a), -1)),
                               prover_.row(Linear::of_atom(a).plus(greatest, -1))}));
}

/// An index or integer data: what is compared exactly. An argument of unknown kind is one under that premise.
bool Guards::is_whole(ExprId e) {
  const auto [known, is_new] = whole_.try_emplace(e, false);
  if (is_new) whole_[e] = find_whole(e);
  return whole_[e];
}

bool Guards::find_whole(ExprId e) {
  const Fact &f = kinds_[e];
  if (f.kind == Kind::Index || f.kind == Kind::Bool) return true;
  if (f.kind == Kind::Data) return is_integer(f.dtype);
  if (f.kind != Kind::Unknown || !premises_.unknown_is_number) return false;
  const Expr &x = ast_[e];
  if (x.kind == ExprKind::Name) return names_.of[e].binding == Binding::Argument;
  if (x.kind == ExprKind::Read) return true; // its element is one then
  if (x.kind == ExprKind::Binary && x.op == Operator::Div) return false;
  const Builtin *r = row(e);
  if (r && r->rule != Rule::Numeric && r->rule != Rule::Rounding && r->rule != Rule::CastInt && r->rule != Rule::Select)
    return false;
  for (uint32_t k = 0; k < x.count; ++k)
    if (!is_whole(child(e, k))) return false;
  return x.count != 0;
}

Linear Guards::linear(ExprId e, Use use) {
  if (const auto known = linears_.find({e, use}); known != linears_.end()) return known->second;
  Linear l = find_linear(e, use);
  if (!l.exact) l = named(e, use);
  linears_[{e, use}] = l;
  return l;
}

Linear Guards::find_linear(ExprId e, Use use) {
  const Fact &f = kinds_[e];
  if (f.constant) return Linear::of_wide(*f.constant);
  if (f.kind == Kind::Bool) {
    bool is_new = false;
    const Atom a = bit("flag " + key(e, Use::Value), &is_new);
    if (is_new) prover_.fact(a, choice(condition(e), set(a, true), set(a, false)));
    return Linear::of_atom(a);
  }
  const bool wraps = f.kind == Kind::Data;
  switch (names_.of[e].binding) {
  case Binding::Position:
    return position(names_.of[e].index);
  case Binding::Length:
    return length(names_.of[e].index);
  case Binding::ArgumentLength:
    return argument_length(names_.of[e]);
  case Binding::Border:
    return border(e);
  default:
    break;
  }
  switch (ast_[e].kind) {
  case ExprKind::Unary:
    if (!wraps) return whole_unary(e, use);
    break;
  case ExprKind::Binary:
    if (!wraps) return whole_binary(e, use);
    break;
  case ExprKind::Call:
    return whole_call(e, use);
  default:
    break;
  }
  return {.exact = false};
}

/// A header that names one axis alone names the flat one.
uint32_t Guards::axis(uint32_t given) const {
  const Header &h = ast_.header;
  return h.dots < 0 && h.axes.size() == 1 ? flat_axis : given;
}

Linear Guards::length(uint32_t given) {
  const uint32_t axis = this->axis(given);
  bool is_new = false;
  const Atom n = prover_.atom("length " + std::to_string(axis), &is_new);
  if (is_new) prover_.fact(n, prover_.row(Linear::of(1).plus(Linear::of_atom(n), -1))); // there is an element at all
  return Linear::of_atom(n);
}

Linear Guards::position(uint32_t given) {
  const uint32_t axis = this->axis(given);
  bool is_new = false;
  const Atom p = prover_.atom("position " + std::to_string(axis), &is_new);
  if (is_new) between(p, Linear::of(0), length(axis).plus(Linear::of(-1)));
  return Linear::of_atom(p);
}

Linear Guards::argument_length(const Resolved &r) {
  bool is_new = false;
  const Atom n = prover_.atom("length of " + std::to_string(r.index) + " along " + std::to_string(r.dim), &is_new);
  if (is_new) prover_.fact(n, prover_.row(Linear::of_atom(n).times(-1)));
  return Linear::of_atom(n);
}

/// The least of p and len-1-p over its axes. Of axes without a name nothing is known but that it is no more than over
/// the others.
Linear Guards::border(ExprId e) {
  const Header &h = ast_.header;
  std::vector<Linear> distances;
  const auto add = [&](uint32_t axis) {
    const Linear p = position(axis);
    distances.push_back(p);
    distances.push_back(length(axis).plus(Linear::of(-1)).plus(p, -1));
  };
  for (uint32_t k = 0; k < ast_[e].count; ++k) add(names_.of[child(e, k)].index);
  const bool all = ast_[e].count == 0;
  if (all)
    for (uint32_t axis = 0; axis < h.axes.size(); ++axis) add(axis);
  if (!all || (h.present && h.dots < 0)) return extreme(distances, false);
  bool is_new = false;
  const Atom b = prover_.atom("distance", &is_new);
  if (is_new) {
    std::vector<FormulaId> facts = {prover_.row(Linear::of_atom(b).times(-1))};
    for (const Linear &d : distances) facts.push_back(prover_.row(Linear::of_atom(b).plus(d, -1)));
    prover_.fact(b, prover_.all(facts));
  }
  return Linear::of_atom(b);
}

/// An atom by itself, with the bounds of its dtype.
Linear Guards::named(ExprId e, Use use) {
  const Fact &f = kinds_[e];
  if (f.kind == Kind::Unknown && ast_[e].kind == ExprKind::Name) unknown_arguments_.insert(names_.of[e].index);
  bool is_new = false;
  const Atom a = prover_.atom("whole " + structure(e, use), &is_new);
  if (is_new && f.kind == Kind::Unknown && premises_.unknown_is_unsigned)
    prover_.fact(a, prover_.row(Linear::of_atom(a).times(-1)));
  if (is_new && f.kind == Kind::Data) {
    Linear low = Linear::of_wide(least(f.dtype)), high = Linear::of_wide(greatest(f.dtype));
    if (bytes(f.dtype) < 8) between(a, low, high);
    else if (dclass(f.dtype) == DClass::UInt) prover_.fact(a, prover_.row(low.plus(Linear::of_atom(a), -1)));
  }
  return Linear::of_atom(a);
}

Linear Guards::whole_unary(ExprId e, Use use) {
  const Linear a = linear(child(e, 0), operands(e, use));
  switch (ast_[e].op) {
  case Operator::Plus:
    return a;
  case Operator::Neg:
    return a.times(-1);
  case Operator::BitNot:
    return a.times(-1).plus(Linear::of(-1));
  default:
    return {.exact = false};
  }
}

Linear Guards::whole_binary(ExprId e, Use use) {
  const Operator op = ast_[e].op;
  if (op == Operator::Pow || op == Operator::BitAnd || op == Operator::BitOr || op == Operator::BitXor)
    return {.exact = false};
  const Use inner = operands(e, use);
  const Linear a = linear(child(e, 0), inner), b = linear(child(e, 1), inner);
  switch (op) {
  case Operator::Add:
    return a.plus(b);
  case Operator::Sub:
    return a.plus(b, -1);
  case Operator::Mul:
    if (b.is_constant()) return a.times(b.constant);
    if (a.is_constant()) return b.times(a.constant);
    break;
  case Operator::Div: // an index quotient
  case Operator::FloorDiv:
    if (b.is_constant()) return floor_div(a, b.constant);
    break;
  case Operator::Mod:
    if (b.is_constant() && b.constant != 0) {
      const Linear q = floor_div(a, b.constant);
      return q.exact ? a.plus(q.times(b.constant), -1) : q;
    }
    break;
  case Operator::Shl:
    if (b.is_constant() && b.constant >= 0 && b.constant < 62) return a.times(int64_t(1) << b.constant);
    break;
  case Operator::Shr:
    if (b.is_constant() && b.constant >= 0 && b.constant < 62) return floor_div(a, int64_t(1) << b.constant);
    break;
  default:
    break;
  }
  return {.exact = false};
}

/// q with d*q <= a <= d*q + d-1.
Linear Guards::floor_div(const Linear &a, int64_t d) {
  if (d == 0 || d == INT64_MIN || !a.exact) return {.exact = false};
  if (d < 0) return floor_div(a.times(-1), -d);
  if (d == 1) return a;
  if (a.is_constant()) return Linear::of(a.constant / d - (a.constant % d < 0));
  bool is_new = false;
  const Atom q = prover_.atom("quotient " + print(a) + " / " + std::to_string(d), &is_new);
  const Linear rest = a.plus(Linear::of_atom(q), -d);
  if (!rest.exact) return {.exact = false};
  if (is_new) prover_.fact(q, prover_.all({prover_.row(rest.times(-1)), prover_.row(rest.plus(Linear::of(1 - d)))}));
  return Linear::of_atom(q);
}

Linear Guards::whole_call(ExprId e, Use use) {
  const Builtin *r = row(e);
  const Fact &f = kinds_[e];
  if (!r) return {.exact = false};
  const ExprId first = child(e, 0);
  const Fact &a = kinds_[first];
  const Use inner = operands(e, use);
  switch (r->rule) {
  case Rule::Rounding:
    return linear(first, inner);
  case Rule::CastInt:
  case Rule::CastTo: {
    const bool fits =
        f.kind == Kind::Data && ((a.kind == Kind::Index && f.dtype == DType::I64) || a.kind == Kind::Bool ||
                                 (a.kind == Kind::Data && is_integer(a.dtype) && least(a.dtype) >= least(f.dtype) &&
                                  greatest(a.dtype) <= greatest(f.dtype)));
    if (fits || a.kind == Kind::Index || (a.kind == Kind::Unknown && is_whole(first))) {
      if (!fits && f.kind == Kind::Data) return {.exact = false};
      return linear(first, inner);
    }
    return {.exact = false};
  }
  case Rule::Select: {
    const Linear x = linear(child(e, 1), inner), y = linear(child(e, 2), inner);
    bool is_new = false;
    const Atom s = prover_.atom("select " + structure(e, use), &is_new);
    const auto equal = [&](const Linear &l) {
      const Linear d = l.plus(Linear::of_atom(s), -1);
      return prover_.all({prover_.row(d), prover_.row(d.times(-1))});
    };
    if (is_new) prover_.fact(s, choice(condition(child(e, 0)), equal(x), equal(y)));
    return Linear::of_atom(s);
  }
  case Rule::Numeric: {
    if (f.kind == Kind::Data && r->meaning == Meaning::Magnitude)
      return {.exact = false}; // of the least integer it is itself
    std::vector<Linear> parts;
    for (uint32_t k = 0; k < ast_[e].count; ++k) parts.push_back(linear(child(e, k), inner));
    return apply(*r, parts);
  }
  default:
    return {.exact = false};
  }
}

/// A row of the table applied to whole numbers: by what it means, or by its body.
Linear Guards::apply(const Builtin &r, std::vector<Linear> operands) {
  switch (r.meaning) {
  case Meaning::Least:
    return extreme(operands, false);
  case Meaning::Greatest:
    return extreme(operands, true);
  case Meaning::Magnitude:
    return extreme({operands[0], operands[0].times(-1)}, true);
  default:
    break;
  }
  if (r.body.empty()) return {.exact = false};
  const Composite c = composite(r);
  std::vector<Linear> of(c.ast.exprs.size(), Linear{.exact = false});
  for (ExprId e = 0; e < c.ast.exprs.size(); ++e) { // operands stand before users
    const Expr &x = c.ast[e];
    if (x.kind == ExprKind::Name) of[e] = operands[c.parameter(e)];
    if (x.kind == ExprKind::Literal && c.ast.literal(e).kind == LiteralKind::Int)
      of[e] = Linear::of_wide(c.ast.literal(e).integer);
    if (const Builtin *const row = called(c.ast, c.names, e)) {
      std::vector<Linear> parts;
      for (uint32_t k = 0; k < x.count; ++k) parts.push_back(of[c.ast.child(e, k)]);
      of[e] = apply(*row, parts);
    }
  }
  return of[c.body];
}

Linear Guards::extreme(std::vector<Linear> operands, bool greatest) {
  std::string name = greatest ? "greatest" : "least";
  std::vector<std::string> names;
  for (const Linear &l : operands) {
    if (!l.exact) return l;
    names.push_back(print(l));
  }
  std::sort(names.begin(), names.end());
  for (const std::string &n : names) name += " " + n;
  bool is_new = false;
  const Atom m = prover_.atom(name, &is_new);
  if (is_new) {
    std::vector<FormulaId> bounds, ties;
    for (const Linear &l : operands) {
      const Linear above = l.plus(Linear::of_atom(m), -1), below = above.times(-1);
      bounds.push_back(prover_.row(greatest ? above : below));
      ties.push_back(prover_.row(greatest ? below : above));
    }
    bounds.push_back(prover_.any(ties));
    prover_.fact(m, prover_.all(bounds));
  }
  return Linear::of_atom(m);
}

Guards::Real Guards::real(ExprId e, Use use, DType nominal) {
  Real r;
  r.expr = e;
  const Fact &f = kinds_[e];
  const Expr &x = ast_[e];
  const ExprId leaf = x.kind == ExprKind::Unary && x.op == Operator::Neg ? child(e, 0) : e;
  const bool literal = ast_[leaf].kind == ExprKind::Literal && ast_.literal(leaf).kind == LiteralKind::Float;
  if (literal || f.constant) {
    const double v = f.constant ? double(*f.constant) : leaf == e ? ast_.literal(leaf).real : -ast_.literal(leaf).real;
    r.constant = true, r.value = rounded(v, nominal), r.may_be_nan = std::isnan(v);
    r.key = "constant " + std::to_string(std::bit_cast<uint64_t>(r.value));
    return r;
  }
  r.self = r.key = key(e, use);
  const bool converted = f.kind == Kind::Index || f.kind == Kind::WeakFloat || (f.kind != Kind::Unknown && is_whole(e));
  if (converted) r.key += std::string(" as ") + spelling(nominal);
  r.may_be_nan = !is_whole(e) && magnitude(e).nan;
  return r;
}

Guards::Magnitude Guards::magnitude(ExprId e) {
  if (const auto known = magnitudes_.find(e); known != magnitudes_.end()) return known->second;
  const Magnitude m = find_magnitude(e);
  magnitudes_[e] = m;
  return m;
}

Guards::Magnitude Guards::find_magnitude(ExprId e) {
  const Fact &f = kinds_[e];
  const Expr &x = ast_[e];
  const double inf = HUGE_VAL;
  if (f.constant) return {std::fabs(double(*f.constant)), std::fabs(double(*f.constant)), false};
  if (f.kind == Kind::Index || f.kind == Kind::Bool || (f.kind == Kind::Data && is_integer(f.dtype))) {
    const bool length = names_.of[e].binding == Binding::Length;
    return {length ? 1.0 : 0.0, 0x1p127, false};
  }
  Magnitude m;
  if (x.kind == ExprKind::Literal) {
    const double v = std::fabs(ast_.literal(e).real);
    m = {std::isnan(v) ? 0 : v, std::isnan(v) ? inf : v, std::isnan(v)};
  } else if (x.kind == ExprKind::Unary) {
    m = magnitude(child(e, 0));
  } else if (x.kind == ExprKind::Binary) {
    const Magnitude a = magnitude(child(e, 0)), b = magnitude(child(e, 1));
    const bool infinite = a.greatest == inf || b.greatest == inf, either = a.nan || b.nan;
    switch (x.op) {
    case Operator::Add:
    case Operator::Sub:
      m = {0, a.greatest + b.greatest, either || (a.greatest == inf && b.greatest == inf)};
      break;
    case Operator::Mul:
      m = {a.least * b.least, infinite ? inf : a.greatest * b.greatest,
           either || (infinite && (a.least == 0 || b.least == 0))};
      break;
    case Operator::Div:
      m = {b.greatest == inf ? 0 : a.least / b.greatest, b.least > 0 ? a.greatest / b.least : inf,
           either || (a.greatest == inf && b.greatest == inf) || (a.least == 0 && b.least == 0)};
      break;
    default:
      break;
    }
  } else if (x.kind == ExprKind::Call) {
    m = magnitude_of_call(e);
  }
  // What a float may not hold is infinite, or zero.
  const bool half = f.kind == Kind::Data && f.dtype == DType::F16;
  if (!(m.greatest < (half ? 6e4 : 3e38))) m.greatest = inf;
  if (!(m.least > (half ? 1e-4 : 1e-37))) m.least = 0;
  return m;
}

Guards::Magnitude Guards::magnitude_of_call(ExprId e) {
  const Builtin *r = row(e);
  Magnitude m;
  if (!r || ast_[e].count == 0) return m;
  const Magnitude a = magnitude(child(e, 0));
  switch (r->rule) {
  case Rule::CastTo:
  case Rule::CastFloat:
    return a;
  case Rule::Rounding:
    return {0, a.greatest + 1, a.nan};
  case Rule::Noise:
    return {0, 8, false}; // the furthest normal number is 6.4
  case Rule::Select: {
    const Magnitude x = magnitude(child(e, 1)), y = magnitude(child(e, 2));
    return {std::min(x.least, y.least), std::max(x.greatest, y.greatest), x.nan || y.nan};
  }
  case Rule::Numeric:
    if (r->meaning == Meaning::Magnitude) return a;
    if (!selects(*r)) return m;
    m = {0, 0, false}; // some operand
    for (uint32_t k = 0; k < ast_[e].count; ++k) {
      const Magnitude one = magnitude(child(e, k));
      m.greatest = std::max(m.greatest, one.greatest);
      m.nan |= one.nan;
    }
    return m;
  default:
    return m;
  }
}

/// The use in which a node's operands are typed; conditions and data have one use only.
Use Guards::operands(ExprId e, Use use) const {
  const Kind kind = kinds_[e].kind;
  return typed_.at(e, kind == Kind::Bool || kind == Kind::Data ? Use::Value : use).operands;
}

/// What an expression is called: the same text for the same value.
std::string Guards::key(ExprId e, Use use) {
  const Fact &f = kinds_[e];
  const bool exact = f.kind == Kind::Index || (f.kind == Kind::Data && is_integer(f.dtype));
  if (exact) return "(" + print(linear(e, use)) + ")";
  if (const auto known = keys_.find({e, use}); known != keys_.end()) return known->second;
  const std::string text = structure(e, use); // names its operands first
  const size_t name = structures_.try_emplace(text, structures_.size()).first->second;
  return keys_[{e, use}] = "~" + std::to_string(name);
}

std::string Guards::structure(ExprId e, Use use) {
  const Expr &x = ast_[e];
  if (x.kind == ExprKind::Literal) {
    const Literal &l = ast_.literal(e);
    if (is_extreme(l.kind)) return l.kind == LiteralKind::Lowest ? "#lowest" : "#highest";
    return l.kind == LiteralKind::Float ? "#" + std::to_string(std::bit_cast<uint64_t>(l.real))
                                        : "#" + decimal(l.integer);
  }
  if (x.kind == ExprKind::Name)
    return "$" + std::to_string(int(names_.of[e].binding)) + "." + std::to_string(names_.of[e].index);
  if (x.kind == ExprKind::Error) return "?" + std::to_string(e);
  if (x.kind == ExprKind::Read) {
    std::string text = "read" + std::to_string(names_.of[e].index) + "." + std::to_string(x.dots) + "(";
    for (uint32_t k = 0; k < x.count; ++k) text += key(child(e, k), Use::Index) + ",";
    return text + ")";
  }
  if (x.kind == ExprKind::Call && !row(e)) return "?" + std::to_string(e); // a length or a border beyond 64 bits
  const bool one_use = kinds_[e].kind == Kind::Bool || kinds_[e].kind == Kind::Data;
  std::string text =
      x.kind == ExprKind::Call ? "call" + std::to_string(names_.of[e].index) : spelling(x.op) + std::to_string(x.count);
  text += std::string(":") + spelling(typed_.at(e, one_use ? Use::Value : use).compute) + "(";
  const Builtin *r = row(e);
  std::vector<std::string> keys;
  for (uint32_t k = 0; k < x.count; ++k) {
    const bool condition = r && r->rule == Rule::Select && k == 0;
    keys.push_back(key(child(e, k), condition ? Use::Value : operands(e, use)));
  }
  if (x.kind == ExprKind::Binary && commutes(x.op)) std::sort(keys.begin(), keys.end());
  for (const std::string &k : keys) text += k + ",";
  return text + ")";
}

} // namespace elsewise
