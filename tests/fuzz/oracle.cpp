// SPDX-License-Identifier: Apache-2.0
// The oracle's arithmetic, written for plainness: one element, one operator. It shares with the compiler only the
// bodies of composites and the library of functions, and optimises nothing.
#include "tests/fuzz/oracle.h"
#include "compiler/check/composite.h"
#include "compiler/ir/functions.h"
#include "grammar/builtins.h"
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <utility>

namespace elsewise::fuzz {
namespace {

int width(DType d) { return 8 * bytes(d); }

__int128 wrap(__int128 v, DType d) {
  if (d == DType::Index) return v;
  if (d == DType::Bool) return v != 0;
  const int w = width(d);
  const unsigned __int128 mask = ((unsigned __int128)1 << w) - 1;
  unsigned __int128 u = (unsigned __int128)v & mask;
  if (dclass(d) == DClass::Int && (u >> (w - 1) & 1)) return (__int128)u - ((__int128)1 << w);
  return (__int128)u;
}

__int128 smallest(DType d) { return dclass(d) == DClass::Int ? -((__int128)1 << (width(d) - 1)) : 0; }
__int128 largest(DType d) { return ((__int128)1 << (width(d) - (dclass(d) == DClass::Int ? 1 : 0))) - 1; }

// Rounds an exact double to `fraction` bits of fraction and the given exponent range, to nearest, ties to even.
double round_to(double v, int fraction, int least_exponent, double greatest_finite) {
  if (std::isnan(v) || std::isinf(v) || v == 0) return v;
  int exponent;
  std::frexp(v, &exponent); // |v| = m * 2^exponent, m in [0.5, 1)
  const int unit = std::max(exponent - 1, least_exponent) - fraction;
  const double scaled = std::ldexp(v, -unit); // exact: only the exponent changes
  const double rounded = std::ldexp(std::nearbyint(scaled), unit);
  if (std::fabs(rounded) > greatest_finite) return std::copysign(std::numeric_limits<double>::infinity(), v);
  return std::copysign(rounded, v);
}

double round_float(double v, DType d) {
  if (d == DType::F32) return (double)(float)v;
  if (d == DType::F16) return round_to(v, 10, -14, 65504.0);
  if (d == DType::BF16) return round_to(v, 7, -126, std::ldexp(255.0, 120));
  return v;
}

__int128 truncate(double v, DType d) {
  if (d == DType::Bool) return v != 0;
  if (std::isnan(v)) return 0;
  const DType limits = d == DType::Index ? DType::I64 : d; // an index holds 64 bits; infinities end at them
  const double t = std::trunc(v);
  if (t <= (double)smallest(limits)) return smallest(limits);
  if (t >= std::ldexp(1.0, width(limits) - (dclass(limits) == DClass::Int ? 1 : 0))) return largest(limits);
  return (__int128)t;
}

double to_double(__int128 v, DType d) { // one rounding, straight to the target
  if (d == DType::F32) return (double)(float)v;
  return (double)v;
}

__int128 floor_div(__int128 a, __int128 b) {
  __int128 q = a / b;
  return q * b != a && (a < 0) != (b < 0) ? q - 1 : q;
}

template <class T> T float_mod(T a, T b) { // torch.remainder: the divisor's sign
  T m = std::fmod(a, b);
  if (m != 0 && (b < 0) != (m < 0)) m += b;
  return m;
}

template <class T> T float_floor_div(T a, T b) { // torch's div_floor_floating
  if (b == 0) return a / b;
  T m = std::fmod(a, b), q = (a - m) / b;
  if (m != 0 && (b < 0) != (m < 0)) q -= 1;
  if (q == 0) return std::copysign(T(0), a / b);
  T f = std::floor(q);
  if (q - f > T(0.5)) f += 1;
  return f;
}

template <class T> double float_operate(Operator op, T a, T b) {
  switch (op) {
  case Operator::Add:
    return a + b;
  case Operator::Sub:
    return a - b;
  case Operator::Mul:
    return a * b;
  case Operator::Div:
    return a / b;
  case Operator::FloorDiv:
    return float_floor_div(a, b);
  case Operator::Mod:
    return float_mod(a, b);
  default:
    return std::numeric_limits<double>::quiet_NaN();
  }
}

} // namespace

Scalar convert(const Scalar &v, DType to) {
  Scalar r{to};
  r.made = v.made && is_float(to);
  if (is_float(to)) {
    if (is_float(v.type)) r.real = round_float(v.real, to);
    else if (is_half(to))
      r.real = round_float(to_double(v.integer, DType::F32), to); // through the computing type, as every backend does
    else r.real = to_double(v.integer, to);
    return r;
  }
  r.integer = is_float(v.type) ? truncate(v.real, to) : wrap(v.integer, to);
  return r;
}

Scalar decode(DType d, const uint8_t *p) {
  Scalar r{d};
  auto as = [&]<class T>(T) {
    T t;
    std::memcpy(&t, p, sizeof t);
    return t;
  };
  switch (d) {
  case DType::Bool:
    r.integer = *p != 0;
    break;
  case DType::U8:
    r.integer = *p;
    break;
  case DType::I8:
    r.integer = as(int8_t{});
    break;
  case DType::I16:
    r.integer = as(int16_t{});
    break;
  case DType::I32:
    r.integer = as(int32_t{});
    break;
  case DType::I64:
    r.integer = as(int64_t{});
    break;
  case DType::U16:
    r.integer = as(uint16_t{});
    break;
  case DType::U32:
    r.integer = as(uint32_t{});
    break;
  case DType::U64:
    r.integer = as(uint64_t{});
    break;
  case DType::F32:
    r.real = as(float{});
    break;
  case DType::F64:
    r.real = as(double{});
    break;
  case DType::BF16:
    r.real = std::bit_cast<float>((uint32_t)as(uint16_t{}) << 16);
    break;
  case DType::F16: {
    const uint16_t h = as(uint16_t{});
    const int e = h >> 10 & 31, m = h & 1023;
    const double a = e == 31 ? (m ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity())
                     : e     ? std::ldexp(1024 + m, e - 25)
                             : std::ldexp(m, -24);
    r.real = std::copysign(a, h >> 15 ? -1.0 : 1.0);
    break;
  }
  case DType::Index:
    break;
  }
  return r;
}

void encode(const Scalar &v, uint8_t *p) {
  auto put = [&](auto t) { std::memcpy(p, &t, sizeof t); };
  switch (v.type) {
  case DType::Bool:
    *p = v.integer != 0;
    break;
  case DType::U8:
    *p = (uint8_t)v.integer;
    break;
  case DType::I8:
    put((int8_t)v.integer);
    break;
  case DType::I16:
    put((int16_t)v.integer);
    break;
  case DType::I32:
    put((int32_t)v.integer);
    break;
  case DType::I64:
    put((int64_t)v.integer);
    break;
  case DType::U16:
    put((uint16_t)v.integer);
    break;
  case DType::U32:
    put((uint32_t)v.integer);
    break;
  case DType::U64:
    put((uint64_t)v.integer);
    break;
  case DType::F32:
    put((float)v.real);
    break;
  case DType::F64:
    put(v.real);
    break;
  case DType::BF16:
    put((uint16_t)(std::bit_cast<uint32_t>((float)v.real) >> 16));
    break;
  case DType::F16: {
    const uint16_t sign = std::signbit(v.real) ? 0x8000 : 0;
    const double a = std::fabs(v.real);
    if (std::isnan(a)) put((uint16_t)(sign | 0x7e00));
    else if (std::isinf(a)) put((uint16_t)(sign | 0x7c00));
    else if (a < std::ldexp(1.0, -14)) put((uint16_t)(sign | (uint16_t)std::ldexp(a, 24)));
    else {
      int e;
      const double m = std::frexp(a, &e); // a = m * 2^e, m in [0.5, 1)
      put((uint16_t)(sign | (e + 14) << 10 | ((int)std::ldexp(m, 11) - 1024)));
    }
    break;
  }
  case DType::Index:
    break;
  }
}

Oracle::Oracle(const Ast &ast, const Names &names, const Typed &typed, std::vector<Operand> operands,
               std::vector<int64_t> domain)
    : ast_(ast), names_(names), typed_(typed), operands_(std::move(operands)), domain_(std::move(domain)),
      where_(domain_.size()), known_(ast.exprs.size() * 6) {
  count_ = 1;
  for (int64_t d : domain_) count_ *= d;
}

// What arithmetic gave: a NaN of it has no sign that the language promises.
static Scalar made(DType c, double v) { return {c, 0, v, std::isnan(v)}; }

static bool related(Operator op, const Scalar &a, const Scalar &b) {
  const auto by = [&](auto x, auto y) {
    return op == Operator::Lt   ? x < y
           : op == Operator::Le ? x <= y
           : op == Operator::Gt ? x > y
           : op == Operator::Ge ? x >= y
           : op == Operator::Eq ? x == y
                                : x != y;
  };
  return is_float(a.type) ? by(a.real, b.real) : by(a.integer, b.integer);
}

// The ramp from its definition: e, a, b of one type.
static Scalar quotient(const std::vector<Scalar> &v, DType c) {
  if (related(Operator::Ge, v[0], v[2])) return {c, 0, 1};
  if (related(Operator::Le, v[0], v[1])) return {c, 0, 0};
  const auto difference = [&](const Scalar &x, const Scalar &y) {
    if (!is_float(x.type)) return to_double(x.integer - y.integer, c);
    return round_float(round_float(x.real - y.real, x.type), c);
  };
  return made(c, round_float(difference(v[0], v[1]) / difference(v[2], v[1]), c));
}

Scalar Oracle::whole_power(DType c, const Scalar &a, const Scalar &b) {
  __int128 base = a.integer, n = b.integer, r = 1;
  bool over = false;
  if (n < 0) {
    r = base == 1 ? 1 : base == -1 ? (n % 2 ? -1 : 1) : 0;
    n = 0;
  }
  for (; n; n >>= 1) {
    if (n & 1) over |= __builtin_mul_overflow(r, base, &r);
    if (n > 1) over |= __builtin_mul_overflow(base, base, &base);
    if (c != DType::Index) r = wrap(r, c), base = wrap(base, c), over = false;
  }
  return c == DType::Index ? index_result(r, over) : Scalar{c, wrap(r, c), 0};
}

/// Made of literals alone.
bool Oracle::is_constant(ExprId e) const {
  const Expr &x = ast_[e];
  if (x.kind == ExprKind::Literal) return !is_extreme(ast_.literal(e).kind);
  if (x.kind == ExprKind::Name || x.kind == ExprKind::Read) return false;
  if (x.kind == ExprKind::Call &&
      (names_.of[e].binding != Binding::Builtin || builtins()[names_.of[e].index].rule == Rule::Noise))
    return false;
  for (uint32_t k = 0; k < x.count; ++k)
    if (!is_constant(ast_.child(e, k))) return false;
  return true;
}

/// The language's exact forms, of exponents that are known: rounded at each step, as torch's are. A root of what lies
/// below zero is NaN, also of -inf, and of -0 it is -0.
std::optional<Scalar> Oracle::exact_power(DType c, const Scalar &base, const Scalar &by, ExprId exponent) {
  if (!is_constant(exponent)) return std::nullopt;
  const double x = base.real, n = by.real;
  const auto rounded = [&](double v) { return made(c, c == DType::F32 ? (double)(float)v : v); };
  if (n == 1) return base;
  if (n == 2) return rounded(x * x);
  if (n == 3) return rounded(rounded(x * x).real * x);
  if (n == -1) return rounded(1 / x);
  if (n == 0.5) return rounded(std::sqrt(x)); // twice rounded is once rounded: a double has more than 2*24+2 bits
  return std::nullopt;
}

/// Functions that promise no bits are the library's scalar ones here, as they are in the CPU's code and in the shim.
static double function(const Builtin &row, DType d, const double *v) {
  return row.cpu.empty() ? round_float(row.real(v), d) : functions::evaluate(row, d, v);
}

// Of floats, and of the whole numbers that a body works.
Scalar Oracle::arithmetic(Operator op, DType c, const Scalar &a, const Scalar &b) {
  if (is_float(c) && op == Operator::Pow) {
    const double v[] = {a.real, b.real};
    for (const Builtin &row : builtins())
      if (row.meaning == Meaning::Power) return made(c, function(row, c, v));
  }
  if (c == DType::F32) return made(c, float_operate<float>(op, (float)a.real, (float)b.real));
  if (c == DType::F64) return made(c, float_operate<double>(op, a.real, b.real));
  __int128 r = 0;
  const int w = c == DType::Index ? 128 : width(c);
  switch (op) {
  case Operator::Add:
    r = a.integer + b.integer;
    break;
  case Operator::Sub:
    r = a.integer - b.integer;
    break;
  case Operator::Mul:
    r = (__int128)((unsigned __int128)a.integer * (unsigned __int128)b.integer);
    break;
  case Operator::Mod:
    r = b.integer == 0 ? 0 : a.integer - floor_div(a.integer, b.integer) * b.integer;
    break;
  case Operator::Shr:
    r = b.integer < 0 || b.integer >= w ? (a.integer < 0 ? -1 : 0) : a.integer >> (int)b.integer;
    break;
  case Operator::BitAnd:
    r = a.integer & b.integer;
    break;
  case Operator::Pow:
    return whole_power(c, a, b);
  default:
    break;
  }
  return c == DType::Index ? index_result(r, false) : Scalar{c, wrap(r, c), 0};
}

Scalar Oracle::load(const Operand &o) const {
  int64_t at = 0;
  const size_t lead = domain_.size() - o.shape.size();
  for (size_t d = 0; d < o.shape.size(); ++d)
    if (o.shape[d] != 1) at += where_[lead + d] * o.stride[d];
  // In a window the whole begins outside of what there is.
  const auto data = reinterpret_cast<uintptr_t>(o.data) + uintptr_t(at) * uintptr_t(bytes(o.type.dtype));
  return decode(o.type.dtype, reinterpret_cast<const uint8_t *>(data));
}

/// The element at indices, one an axis; what `..` stands for is read at the element's own place. What is out of bounds
/// is not read.
Scalar Oracle::read(ExprId e) {
  const Operand &o = operands_[names_.of[e].index];
  const Expr &x = ast_[e];
  const bool was = exact_;
  exact_ = false; // an index is worked in 64 bits wherever its element is used
  int64_t at = 0;
  for (size_t d = 0, written = 0; d < o.shape.size(); ++d) {
    const bool own = x.dots >= 0 && int(d) >= x.dots && d < o.shape.size() - (x.count - size_t(x.dots));
    const __int128 index = own ? o.shape[d] == 1 ? 0 : where_[domain_.size() - o.shape.size() + d]
                               : evaluate(ast_.child(e, uint32_t(written++)), Use::Index).integer;
    if ((index < 0 || index >= o.shape[d]) && fault_ == Outcome::Value) fault_ = Outcome::OutOfBounds;
    if (fault_ == Outcome::Value) at += int64_t(index) * o.stride[d];
  }
  exact_ = was;
  return fault_ == Outcome::Value ? decode(o.type.dtype, o.data + at * bytes(o.type.dtype)) : Scalar{o.type.dtype};
}

Outcome Oracle::element(int64_t position, uint8_t *out) {
  position_ = position, fault_ = Outcome::Value;
  ++element_;
  int64_t rest = position;
  for (size_t d = domain_.size(); d-- > 0;) where_[d] = rest % domain_[d], rest /= domain_[d];
  for (piece_ = 0; piece_ < ast_.pieces.size(); ++piece_) {
    const SpecPiece &piece = ast_.pieces[piece_];
    const bool holds = piece.guard == no_expr || evaluate(piece.guard, Use::Value).integer;
    if (!typed_.reachable[piece_] && fault_ != Outcome::Value) { // a guard that never holds is not evaluated at all
      fault_ = Outcome::Value, ++element_;
      continue;
    }
    if (!holds) {
      if (fault_ != Outcome::Value) return fault_;
      continue;
    }
    std::vector<DType> through;
    encode(stored(piece.value, through), out);
    return fault_;
  }
  return fault_;
}

Scalar Oracle::index_result(__int128 v, bool overflow) {
  beyond_ |= overflow;
  if ((overflow || (!exact_ && wrap(v, DType::I64) != v)) && fault_ == Outcome::Value) fault_ = Outcome::Overflow;
  return {DType::Index, v, 0};
}

/// What a where is worked in says nothing of `lowest` and `highest`, which are those of the stored dtype.
bool Oracle::holds_extreme(ExprId e) const {
  if (ast_[e].kind == ExprKind::Literal) return is_extreme(ast_.literal(e).kind);
  return ast_[e].kind == ExprKind::Call && names_.of[e].binding == Binding::Builtin &&
         builtins()[names_.of[e].index].rule == Rule::Select &&
         (holds_extreme(ast_.child(e, 1)) || holds_extreme(ast_.child(e, 2)));
}

Scalar Oracle::stored(ExprId e, std::vector<DType> &through) {
  const DType to = typed_.result;
  if (!holds_extreme(e)) {
    if (through.empty()) return operand(e, Use::Value, to);
    Scalar v = evaluate(e, Use::Value);
    const bool uniform = typed_.at(e, Use::Value).type.stage == Stage::Host;
    const auto bring = [&](DType d) {
      const Scalar r = convert(v, d);
      if (v.type == DType::Index && uniform && d != DType::Index && is_integer(d) && r.integer != v.integer &&
          fault_ == Outcome::Value)
        fault_ = Outcome::Overflow;
      return r;
    };
    for (size_t k = through.size(); k-- > 0;) v = bring(through[k]);
    return bring(to);
  }
  if (ast_[e].kind == ExprKind::Literal) {
    const bool high = ast_.literal(e).kind == LiteralKind::Highest;
    if (!is_float(to)) return {to, high ? (to == DType::Bool ? 1 : largest(to)) : smallest(to), 0};
    double most = std::numeric_limits<double>::max();
    if (to == DType::F32) most = std::numeric_limits<float>::max();
    else if (to == DType::F16) most = 65504;
    else if (to == DType::BF16) most = std::ldexp(255.0, 120);
    return {to, 0, high ? most : -most};
  }
  const ExprType &t = typed_.at(e, Use::Value);
  const bool taken = evaluate(ast_.child(e, 0), Use::Value).integer != 0, worked = t.type.kind != Kind::Extreme;
  if (worked) through.push_back(t.compute);
  const Scalar v = stored(ast_.child(e, taken ? 1 : 2), through);
  if (worked) through.pop_back();
  return v;
}

// In the type that the operation is worked in. A uniform integer has to fit the data's dtype.
Scalar Oracle::operand(ExprId e, Use use, DType to) {
  const Scalar v = evaluate(e, use), r = convert(v, to);
  if (v.type == DType::Index && typed_.at(e, use).type.stage == Stage::Host && to != DType::Index && is_integer(to) &&
      r.integer != v.integer && fault_ == Outcome::Value)
    fault_ = Outcome::Overflow;
  return r;
}

/// Which of the domain's axes a header's axis is.
size_t Oracle::dimension(uint32_t axis) const {
  const Header &h = ast_.header;
  return h.dots < 0 || int(axis) < h.dots ? axis : domain_.size() - h.axes.size() + axis;
}

Scalar Oracle::measure(ExprId e) const {
  const Resolved r = names_.of[e];
  if (r.binding == Binding::Length) return {DType::Index, r.index == flat_axis ? count_ : domain_[dimension(r.index)]};
  const std::vector<int64_t> &shape = operands_[r.index].shape;
  return {DType::Index, shape[size_t(r.dim < 0 ? r.dim + int(shape.size()) : r.dim)]};
}

Scalar Oracle::border(ExprId e) const {
  int64_t nearest = std::numeric_limits<int64_t>::max();
  for (size_t d = 0; d < domain_.size(); ++d) {
    bool asked = ast_[e].count == 0;
    for (uint32_t k = 0; k < ast_[e].count; ++k) asked |= dimension(names_.of[ast_.child(e, k)].index) == d;
    if (asked) nearest = std::min({nearest, where_[d], domain_[d] - 1 - where_[d]});
  }
  return {DType::Index, nearest};
}

/// Each expression once an element, use and exactness: lets are shared.
Scalar Oracle::evaluate(ExprId e, Use use) {
  Known &known = known_[size_t(e) * 6 + size_t(use) * 2 + exact_];
  if (known.element == element_) return known.value;
  Scalar value = find(e, use);
  // Integer data is i64 first between brackets.
  if (use == Use::Index && value.type != DType::Index && is_integer(value.type)) value = convert(value, DType::I64);
  known = {element_, value};
  return value;
}

Scalar Oracle::find(ExprId e, Use use) {
  const Expr &x = ast_[e];
  switch (x.kind) {
  case ExprKind::Literal: {
    const Literal &l = ast_.literal(e);
    if (l.kind == LiteralKind::Float) return made(DType::F64, l.real);
    return {l.kind == LiteralKind::Bool ? DType::Bool : DType::Index, l.integer, 0};
  }
  case ExprKind::Name: {
    const Resolved r = names_.of[e];
    if (r.binding == Binding::Position)
      return {DType::Index, r.index == flat_axis ? position_ : where_[dimension(r.index)], 0};
    if (r.binding == Binding::Length) return measure(e);
    const Operand &o = operands_[r.index];
    switch (o.type.kind) {
    case ArgKind::Tensor:
      return load(o);
    case ArgKind::Float:
      return {DType::F64, 0, o.real};
    case ArgKind::Bool:
      return {DType::Bool, o.integer, 0};
    default:
      return {DType::Index, o.integer, 0};
    }
  }
  case ExprKind::Call:
    return call(e, use);
  case ExprKind::Read:
    return read(e);
  default:
    return operate(e, use);
  }
}

// Both sides in the comparison's own type. Index against double is compared exactly, whatever their sizes.
bool Oracle::compare(ExprId e, const ExprType &t) {
  const bool was = exact_, good = fault_ == Outcome::Value;
  Scalar v[2];
  for (int k = 0; k < 2; ++k) {
    const ExprId operand = ast_.child(e, k);
    const Type &type = typed_.at(operand, t.operands).type;
    exact_ = was || t.operands == Use::Compare || type.stage == Stage::Host; // beside data a uniform is exact as well
    v[k] = evaluate(operand, t.operands);
    if (is_half(t.nominal) && type.category == Category::Scalar && type.stage == Stage::Host)
      v[k] = convert(v[k], t.nominal);
  }
  exact_ = was;
  // A number that no element of the dtype can be settles it: nobody may ever look at the element.
  for (int k = 0; k < 2 && good && fault_ != Outcome::Value; ++k) {
    const Scalar &element = v[k], &bound = v[1 - k];
    const bool host = typed_.at(ast_.child(e, 1 - k), t.operands).type.stage == Stage::Host;
    if (element.type == DType::Index || !is_integer(element.type) || bound.type != DType::Index || !host) continue;
    if (bound.integer >= smallest(element.type) && bound.integer <= largest(element.type)) continue;
    fault_ = Outcome::Value, ++element_; // what was remembered of the fault's operands
  }
  const bool mixed = t.operands == Use::Compare && is_float(v[0].type) != is_float(v[1].type);
  if (!mixed)
    for (Scalar &s : v)
      if (!(t.compute == DType::Index && !is_float(s.type))) s = convert(s, t.compute);
  int order = 2; // -1, 0, 1; 2: unordered
  if (mixed) {
    const bool flipped = is_float(v[0].type);
    const double d = v[flipped ? 0 : 1].real;
    const __int128 i = v[flipped ? 1 : 0].integer;
    if (!std::isnan(d)) {
      const double f = std::floor(d);
      if (f >= std::ldexp(1.0, 126)) order = -1;
      else if (f <= -std::ldexp(1.0, 126)) order = 1;
      else order = i<(__int128)f ? -1 : i>(__int128) f ? 1 : d > f ? -1 : 0;
      if (flipped) order = -order;
    }
  } else if (is_float(v[0].type)) {
    if (v[0].real < v[1].real) order = -1;
    else if (v[0].real > v[1].real) order = 1;
    else if (v[0].real == v[1].real) order = 0;
  } else order = v[0].integer < v[1].integer ? -1 : v[0].integer > v[1].integer;
  switch (ast_[e].op) {
  case Operator::Lt:
    return order == -1;
  case Operator::Le:
    return order == -1 || order == 0;
  case Operator::Gt:
    return order == 1;
  case Operator::Ge:
    return order == 1 || order == 0;
  case Operator::Eq:
    return order == 0;
  default:
    return order != 0;
  }
}

Scalar Oracle::operate(ExprId e, Use use) {
  const Expr &x = ast_[e];
  const ExprType &t = typed_.at(e, use);
  if (x.op == Operator::Not) return {DType::Bool, !evaluate(ast_.child(e, 0), Use::Value).integer, 0};
  if (x.op == Operator::And || x.op == Operator::Or) {
    const bool settles = x.op == Operator::Or;
    const bool good = fault_ == Outcome::Value;
    const bool left = evaluate(ast_.child(e, 0), Use::Value).integer != 0;
    if (good && fault_ != Outcome::Value) { // where the other side settles it, nobody may ever look at this one
      const Outcome fault = std::exchange(fault_, Outcome::Value);
      const bool right = evaluate(ast_.child(e, 1), Use::Value).integer != 0;
      ++element_; // what was remembered of the fault's operands
      if (fault_ != Outcome::Value || right != settles) fault_ = fault;
      return {DType::Bool, right, 0};
    }
    if (left == settles || fault_ != Outcome::Value) return {DType::Bool, left, 0};
    return {DType::Bool, evaluate(ast_.child(e, 1), Use::Value).integer != 0, 0};
  }
  if (is_comparison(x.op)) return {DType::Bool, compare(e, t), 0};

  const bool good = fault_ == Outcome::Value;
  Scalar a = operand(ast_.child(e, 0), t.operands, t.compute), b{};
  const DType c = t.compute;
  if (c == DType::Bool && good && x.kind != ExprKind::Unary && x.op != Operator::BitXor) {
    // As `and` and `or`, but both sides are operands: where one settles it, nobody may ever look at the other.
    const bool settles = x.op != Operator::Mul && x.op != Operator::BitAnd;
    const Outcome left = std::exchange(fault_, Outcome::Value);
    b = operand(ast_.child(e, 1), t.operands, c);
    const Outcome right = std::exchange(fault_, Outcome::Value);
    if (left != Outcome::Value || right != Outcome::Value) ++element_; // what was remembered of the fault's operands
    const bool settled = (left == Outcome::Value && (a.integer != 0) == settles) ||
                         (right == Outcome::Value && (b.integer != 0) == settles);
    if (settled) return {DType::Bool, settles, 0};
    fault_ = left != Outcome::Value ? left : right;
    return {DType::Bool, settles ? a.integer || b.integer : a.integer && b.integer, 0};
  }
  if (x.kind == ExprKind::Unary) {
    if (x.op == Operator::Plus) return a;
    if (is_float(c)) return {c, 0, -a.real, a.made};
    if (x.op == Operator::BitNot)
      return c == DType::Bool ? Scalar{c, !a.integer, 0} : Scalar{c, wrap(~a.integer, c), 0};
    return c == DType::Index ? index_result(-a.integer, false) : Scalar{c, wrap(-a.integer, c), 0};
  }
  b = operand(ast_.child(e, 1), t.operands, c);
  if (is_float(c) && x.op == Operator::Pow)
    if (const auto exact = exact_power(c, a, b, ast_.child(e, 1))) return *exact;
  if (is_float(c)) return arithmetic(x.op, c, a, b);
  if (c == DType::Bool) {
    switch (x.op) {
    case Operator::Mul:
    case Operator::BitAnd:
      return {c, a.integer && b.integer, 0};
    case Operator::BitXor:
      return {c, a.integer != b.integer, 0};
    default:
      return {c, a.integer || b.integer, 0};
    }
  }
  const bool index = c == DType::Index;
  const bool uniform_divisor = index && typed_.at(ast_.child(e, 1), t.operands).type.stage == Stage::Host;
  const int w = index ? 128 : width(c);
  __int128 r = 0;
  bool over = false;
  switch (x.op) {
  case Operator::Add:
    over = __builtin_add_overflow(a.integer, b.integer, &r);
    break;
  case Operator::Sub:
    over = __builtin_sub_overflow(a.integer, b.integer, &r);
    break;
  case Operator::Mul:
    over = __builtin_mul_overflow(a.integer, b.integer, &r);
    break;
  case Operator::Div: // an index quotient
  case Operator::FloorDiv:
  case Operator::Mod:
    if (b.integer == 0) {
      if (uniform_divisor && fault_ == Outcome::Value) fault_ = Outcome::ZeroDivision;
      break;
    }
    r = floor_div(a.integer, b.integer);
    if (x.op == Operator::Mod) r = a.integer - r * b.integer;
    break;
  case Operator::Shl:
    if (b.integer < 0 || b.integer >= w) r = 0, over = index && a.integer != 0 && b.integer > 0;
    else {
      r = (__int128)((unsigned __int128)a.integer << (int)b.integer);
      over = index && (r >> (int)b.integer) != a.integer;
    }
    break;
  case Operator::Shr:
    if (b.integer < 0 || b.integer >= w) r = a.integer < 0 ? -1 : 0;
    else r = a.integer >> (int)b.integer;
    break;
  case Operator::BitAnd:
    r = a.integer & b.integer;
    break;
  case Operator::BitOr:
    r = a.integer | b.integer;
    break;
  case Operator::BitXor:
    r = a.integer ^ b.integer;
    break;
  case Operator::Pow:
    return whole_power(c, a, b);
  default:
    break;
  }
  return index ? index_result(r, over) : Scalar{c, wrap(r, c), 0};
}

/// Salmon et al., Philox 4x32 with ten rounds.
static uint32_t noise(int64_t position, uint64_t seed, uint64_t stream) {
  const uint64_t block = (uint64_t)position / 4;
  std::array<uint32_t, 4> x = {(uint32_t)block, (uint32_t)(block >> 32), (uint32_t)stream, (uint32_t)(stream >> 32)};
  uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
  for (int r = 0; r < 10; ++r) {
    const uint64_t first = 0xD2511F53ull * x[0], second = 0xCD9E8D57ull * x[2];
    x = {(uint32_t)(second >> 32) ^ x[1] ^ key[0], (uint32_t)second, (uint32_t)(first >> 32) ^ x[3] ^ key[1],
         (uint32_t)first};
    key[0] += 0x9E3779B9u, key[1] += 0xBB67AE85u;
  }
  return x[(size_t)(position % 4)];
}

/// The normal number below which (word + 1/2) / 2^32 of all lie: Wichura's AS 241 in floats.
static float normal(uint32_t word) {
  const bool upper = word >= 0x80000000u;
  const uint32_t rest = upper ? 0xffffffffu - word : word;
  const float off = std::ldexp((float)(0x7fffffffu - rest) + 0.5f, -32);
  const auto polynomial = [](float at, std::initializer_list<float> coefficients) {
    float sum = 0;
    for (const float c : coefficients) sum = sum * at + c;
    return sum;
  };
  float x;
  if (off <= 0.425f) {
    const float r = 0.180625f - off * off;
    x = off * polynomial(r, {59.109374720f, 159.29113202f, 50.434271938f, 3.3871327179f});
    x /= polynomial(r, {67.187563600f, 78.757757664f, 17.895169469f, 1});
  } else {
    int exponent;
    const float m = 2 * std::frexp((float)rest + 0.5f, &exponent), root_2 = std::sqrt(2.0f);
    const float s = (m - root_2) / (m + root_2);
    const float log_m = s * polynomial(s * s, {2.0f / 7, 2.0f / 5, 2.0f / 3, 2}) + float(std::log(2.0) / 2);
    const float t = std::sqrt(float(33 - exponent) * float(std::log(2.0)) - log_m) - 1.6f;
    x = polynomial(t, {.17023821103f, 1.3067284816f, 2.7568153900f, 1.4234372777f}) /
        polynomial(t, {.12021132975f, .73700164250f, 1});
  }
  return upper ? x : -x;
}

Scalar Oracle::call(ExprId e, Use use) {
  const Binding binding = names_.of[e].binding;
  if (binding == Binding::Length || binding == Binding::ArgumentLength) return measure(e);
  if (binding == Binding::Border) return border(e);
  const Expr &x = ast_[e];
  const ExprType &t = typed_.at(e, use);
  const Builtin &row = builtins()[names_.of[e].index];
  switch (row.rule) {
  case Rule::Select: {
    const bool taken = evaluate(ast_.child(e, 0), Use::Value).integer != 0;
    return operand(ast_.child(e, taken ? 1 : 2), t.operands, t.compute);
  }
  case Rule::CastTo:
    return convert(evaluate(ast_.child(e, 0), t.operands), t.type.dtype);
  case Rule::CastInt: {
    const Scalar v = evaluate(ast_.child(e, 0), t.operands);
    if (t.type.kind == Kind::Index)
      return v.type == DType::Index ? v : index_result(truncate(v.real, DType::Index), false);
    return convert(v, DType::I64);
  }
  case Rule::CastFloat: {
    const Scalar v = evaluate(ast_.child(e, 0), t.operands);
    if (is_float(v.type)) return v;
    return convert(v, t.type.kind == Kind::WeakFloat ? (t.type.stage == Stage::Host ? DType::F64 : t.type.dtype)
                                                     : DType::F32);
  }
  default:
    break;
  }
  if (row.rule == Rule::Ratio) return ratio(e, t);
  if (row.rule == Rule::Noise) {
    uint64_t key[2] = {};
    for (uint32_t k = 0; k < x.count; ++k) key[k] = (uint64_t)evaluate(ast_.child(e, k), t.operands).integer;
    const uint32_t word = noise(position_, key[0], key[1]);
    const float v = row.meaning == Meaning::Normal ? normal(word) : (float)std::ldexp((double)(word >> 8), -24);
    return convert({DType::F32, 0, v}, t.type.dtype);
  }
  std::vector<Scalar> v;
  for (uint32_t k = 0; k < x.count; ++k) v.push_back(operand(ast_.child(e, k), t.operands, t.compute));
  if (row.rule == Rule::Predicate) {
    double r = is_float(t.compute) ? v[0].real : 0;
    return {DType::Bool, row.real(&r) != 0, 0};
  }
  if (row.rule == Rule::Rounding && !is_float(t.compute)) return v[0];
  if (t.compute == DType::Index && !row.body.empty() && v.size() == 2 && v[1].integer == 0 &&
      fault_ == Outcome::Value && row.body.find(" % b") != std::string_view::npos &&
      typed_.at(ast_.child(e, 1), t.operands).type.stage == Stage::Host)
    fault_ = Outcome::ZeroDivision; // a body that divides by its second operand
  if (row.meaning == Meaning::Power && is_float(t.compute))
    if (const auto exact = exact_power(t.compute, v[0], v[1], ast_.child(e, 1))) return *exact;
  return apply(row, v, t.compute);
}

Scalar Oracle::primitive(const Builtin &row, const std::vector<Scalar> &list, DType c) {
  if (is_float(c)) {
    double r[3] = {};
    for (size_t k = 0; k < list.size(); ++k) r[k] = list[k].real;
    const double result = function(row, c, r);
    open_ |= row.name == "copysign" && list[1].made && !std::isnan(result);
    return made(c, result);
  }
  __int128 r[3] = {};
  for (size_t k = 0; k < list.size(); ++k) {
    r[k] = list[k].integer;
    if (row.rule == Rule::Whole && c != DType::Index)
      r[k] &= ((__int128)1 << width(c)) - 1; // a function of the bits that the type has
  }
  return c == DType::Index ? index_result(row.integer(r), false) : Scalar{c, wrap(row.integer(r), c), 0};
}

/// A row on operands of the computing type; a composite is written again from its body, so that its expansion is under
/// test too.
Scalar Oracle::apply(const Builtin &row, std::vector<Scalar> v, DType c) {
  const auto once = [&](const std::vector<Scalar> &list) {
    return row.body.empty() ? primitive(row, list, c) : body(row, list, c);
  };
  if (row.max_arguments != 255) return once(v);
  Scalar r = v[0];
  for (size_t k = 1; k < v.size(); ++k) r = once({r, v[k]});
  return r;
}

Scalar Oracle::body(const Builtin &row, const std::vector<Scalar> &v, DType c) {
  const Composite whole = composite(row);
  const std::function<Scalar(ExprId)> at = [&](ExprId e) -> Scalar {
    const Expr &x = whole.ast[e];
    const auto child = [&](uint32_t k) { return at(whole.ast.child(e, k)); };
    switch (x.kind) {
    case ExprKind::Literal: {
      const Literal &l = whole.ast.literal(e);
      if (l.kind == LiteralKind::Int) return convert({DType::Index, l.integer, 0}, c);
      return convert({DType::F64, 0, l.real}, c);
    }
    case ExprKind::Name:
      return v[whole.parameter(e)];
    case ExprKind::Unary: {
      const Scalar a = child(0);
      if (is_float(c)) return {c, 0, -a.real, a.made};
      return {c, wrap(-a.integer, c), 0};
    }
    case ExprKind::Binary: {
      const Scalar a = child(0), b = child(1);
      if (x.op == Operator::And) return {DType::Bool, a.integer && b.integer, 0};
      if (x.op == Operator::Or) return {DType::Bool, a.integer || b.integer, 0};
      if (is_comparison(x.op)) return {DType::Bool, related(x.op, a, b), 0};
      return arithmetic(x.op, c, a, b);
    }
    default:
      break;
    }
    const Builtin &called = builtins()[whole.names.of[e].index];
    if (called.rule == Rule::Select) return child(0).integer ? child(1) : child(2);
    std::vector<Scalar> list;
    for (uint32_t k = 0; k < x.count; ++k) list.push_back(child(k));
    if (called.rule == Rule::Ratio) return quotient(list, c);
    if (called.rule == Rule::Rounding && !is_float(c)) return list[0];
    return apply(called, list, c);
  };
  return at(whole.body);
}

/// Operands as they are; whole numbers are compared and subtracted as such.
Scalar Oracle::ratio(ExprId e, const ExprType &t) {
  const Expr &x = ast_[e];
  const Builtin &row = builtins()[names_.of[e].index];
  const bool was = exact_;
  std::vector<Scalar> v(x.count);
  bool whole = true, host = true, good = false; // good: of e and b
  for (const uint32_t k : {0u, 2u, 1u}) {
    if (k == 1) good = fault_ == Outcome::Value;
    v[k] = evaluate(ast_.child(e, k), t.operands);
    whole &= !is_float(v[k].type);
    host &= typed_.at(ast_.child(e, k), t.operands).type.stage == Stage::Host;
  }
  exact_ = was;
  const DType result = t.type.kind == Kind::Data ? t.compute : host ? DType::F64 : t.type.dtype;
  bool wide = false, placed = false; // u64 data without a position: beyond i64
  for (uint32_t k = 0; k < x.count; ++k) {
    const bool uniform = typed_.at(ast_.child(e, k), t.operands).type.stage == Stage::Host;
    wide |= v[k].type == DType::U64, placed |= v[k].type == DType::Index && !uniform;
  }
  const DType common = wide && !placed ? DType::U64 : DType::I64;
  for (const Scalar &s : v)
    if (whole && common == DType::U64 && s.type == DType::Index && wrap(s.integer, common) != s.integer &&
        fault_ == Outcome::Value)
      fault_ = Outcome::Overflow;
  for (Scalar &s : v) s = convert(s, whole ? common : t.type.kind == Kind::Data ? t.compute : DType::F64);
  if (good && fault_ != Outcome::Value && related(Operator::Ge, v[0], v[2])) // 1, whatever a is
    fault_ = Outcome::Value, ++element_; // what was remembered of the fault's operands
  return row.body.empty() ? quotient(v, result) : body(row, v, result);
}

} // namespace elsewise::fuzz
