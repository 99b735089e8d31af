// SPDX-License-Identifier: Apache-2.0
// Interval arithmetic by corners. Where an operation is not monotone it gives more than can occur, never less.
#include "runtime/host/interval_arithmetic.h"
#include "compiler/ir/arithmetic.h"
#include "grammar/builtins.h"
#include <algorithm>
#include <bit>
#include <cmath>
#include <initializer_list>
#include <limits>

namespace elsewise::interval {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
const Value off_limits{.overflow = true};
const Value nothing_but_nan{.real_lo = infinity, .real_hi = -infinity, .nan = true};

Value between(__int128 lo, __int128 hi) { return {.lo = lo, .hi = hi}; }
Value hull(std::initializer_list<__int128> corners) { return between(std::min(corners), std::max(corners)); }
bool holds(const Value &v, __int128 x) { return v.lo <= x && x <= v.hi; }

/// Of data: what leaves the dtype wraps to anywhere in it.
Value wrapped(DType d, const Value &v) {
  if (d == DType::Index) return v;
  return !v.overflow && fits(d, v.lo) && fits(d, v.hi) ? v : anything(d);
}

/// The corners of an operation that is monotone in each operand.
Value corners(BinaryOp op, const Value &a, const Value &b) {
  Value r;
  bool first = true;
  for (const __int128 x : {a.lo, a.hi})
    for (const __int128 y : {b.lo, b.hi}) {
      Constant out, pair[2] = {{x, 0}, {y, 0}};
      const Inst i{.op = Op::Binary, .sub = uint8_t(op), .type = DType::Index};
      if (apply(i, DType::Index, pair, out) == Trouble::Overflow) return off_limits;
      r = first ? between(out.integer, out.integer) : between(std::min(r.lo, out.integer), std::max(r.hi, out.integer));
      first = false;
    }
  return r;
}

Value join(const Value &a, const Value &b) {
  if (a.overflow || b.overflow) return off_limits;
  return between(std::min(a.lo, b.lo), std::max(a.hi, b.hi));
}

/// The divisor in its negative, zero and positive part; division by a zero position gives 0.
template <class Part> Value by_sign(const Value &b, Part part) {
  Value r;
  bool any = false;
  auto add = [&](const Value &v) { r = any ? join(r, v) : v, any = true; };
  if (b.lo < 0) add(part(between(b.lo, std::min<__int128>(b.hi, -1))));
  if (holds(b, 0)) add(between(0, 0));
  if (b.hi > 0) add(part(between(std::max<__int128>(b.lo, 1), b.hi)));
  return r;
}

Value modulo(const Value &a, const Value &b) {
  const bool positive = b.lo > 0;
  if (b.lo == b.hi && b.lo != -1 && floor_divide(a.lo, b.lo) == floor_divide(a.hi, b.lo)) {
    const __int128 q = floor_divide(a.lo, b.lo) * b.lo;
    return between(a.lo - q, a.hi - q);
  }
  const Value r = positive ? between(0, b.hi - 1) : between(b.lo + 1, 0);
  if (positive && a.lo >= 0) return between(0, std::min(a.hi, r.hi));
  return r;
}

Value power(const Value &a, const Value &b) {
  if (b.hi < 0) return between(-1, 1);
  const Value n = between(std::max<__int128>(b.lo, 0), b.hi);
  Value r;
  if (a.lo >= 0) {
    r = corners(BinaryOp::Pow, a, n);
    if (!r.overflow && a.lo == 0 && n.lo == 0) r.hi = std::max<__int128>(r.hi, 1); // 0**0
  } else if (n.lo == n.hi && (n.lo & 1)) {
    r = corners(BinaryOp::Pow, a, n);
  } else {
    if (a.lo == -a.lo) return off_limits; // the least of 128 bits
    const __int128 size = std::max(-a.lo, a.hi);
    r = corners(BinaryOp::Pow, between(size, size), between(n.hi, n.hi));
    if (!r.overflow) r = between(-r.hi, r.hi);
    if (!r.overflow && n.lo == n.hi) r.lo = 0;
  }
  return b.lo < 0 ? join(r, between(-1, 1)) : r;
}

Value shift_left(DType d, const Value &a, const Value &b) {
  const int width = d == DType::Index ? 128 : 8 * bytes(d);
  Value r = between(0, 0);
  if (b.hi < 0) return r;
  const Value n = between(std::max<__int128>(b.lo, 0), std::min<__int128>(b.hi, 127));
  if (b.hi >= width && (a.lo != 0 || a.hi != 0)) return d == DType::Index ? off_limits : anything(d);
  r = corners(BinaryOp::Shl, a, n);
  return b.lo < 0 ? join(r, between(0, 0)) : r;
}

Value shift_right(const Value &a, const Value &b) {
  const Value n = between(std::clamp<__int128>(b.lo, 0, 127), std::clamp<__int128>(b.hi, 0, 127));
  Value r = corners(BinaryOp::Shr, a, n);
  if (b.lo < 0 || b.hi > 7) r = join(r, hull({a.lo < 0 ? -1 : 0, a.hi < 0 ? -1 : 0})); // a dtype's width may be reached
  return r;
}

/// Results of bit operations stay within the power of two above their operands.
Value bits(BinaryOp op, const Value &a, const Value &b) {
  if (op == BinaryOp::BitAnd && a.lo >= 0 && b.lo >= 0) return between(0, std::min(a.hi, b.hi));
  if (op == BinaryOp::BitAnd && (a.lo >= 0 || b.lo >= 0)) return between(0, a.lo >= 0 ? a.hi : b.hi);
  unsigned __int128 size = 0;
  for (const __int128 v : {a.lo, a.hi, b.lo, b.hi}) size |= (unsigned __int128)(v < 0 ? ~v : v);
  for (int s = 1; s < 128; s *= 2) size |= size >> s;
  const __int128 top = __int128(size);
  return between(a.lo >= 0 && b.lo >= 0 ? 0 : ~top, top);
}

Value on_integers(BinaryOp op, DType d, const Value &a, const Value &b) {
  if (a.overflow || b.overflow) return off_limits;
  switch (op) {
  case BinaryOp::Add:
  case BinaryOp::Sub:
  case BinaryOp::Mul:
    return corners(op, a, b);
  case BinaryOp::FloorDiv:
    return by_sign(b, [&](const Value &part) { return corners(op, a, part); });
  case BinaryOp::Mod:
    return by_sign(b, [&](const Value &part) { return modulo(a, part); });
  case BinaryOp::Pow:
    return power(a, b);
  case BinaryOp::Shl:
    return shift_left(d, a, b);
  case BinaryOp::Shr:
    return shift_right(a, b);
  case BinaryOp::BitAnd:
  case BinaryOp::BitOr:
  case BinaryOp::BitXor:
    return bits(op, a, b);
  case BinaryOp::Div:
    break;
  }
  return off_limits;
}

bool is_nan(const Value &v) { return v.nan && v.real_lo > v.real_hi; }
bool finite(const Value &v) { return std::isfinite(v.real_lo) && std::isfinite(v.real_hi); }

Value on_floats(BinaryOp op, DType d, const Value &a, const Value &b) {
  if (op > BinaryOp::Div) return anything(d);
  if (is_nan(a) || is_nan(b)) return nothing_but_nan;
  if (!finite(a) || !finite(b)) return anything(d);
  if (op == BinaryOp::Div && b.real_lo <= 0 && b.real_hi >= 0) return anything(d);
  Value r{.real_lo = infinity, .real_hi = -infinity, .nan = a.nan || b.nan};
  const Inst i{.op = Op::Binary, .sub = uint8_t(op), .type = d};
  for (const double x : {a.real_lo, a.real_hi})
    for (const double y : {b.real_lo, b.real_hi}) {
      Constant out, pair[2] = {{0, x}, {0, y}};
      apply(i, d, pair, out); // rounding is monotone, so corners bound the rounded results too
      r.real_lo = std::min(r.real_lo, out.real), r.real_hi = std::max(r.real_hi, out.real);
    }
  return r;
}

Value certain(bool yes, bool no) { return between(yes, !no); } // neither: either

} // namespace

Value anything(DType d) {
  if (is_float(d)) return {.real_lo = -infinity, .real_hi = infinity, .nan = true};
  if (d == DType::Bool) return between(0, 1);
  const DType limits = d == DType::Index ? DType::I64 : d;
  const bool negative = dclass(limits) == DClass::Int;
  const __int128 top = ((__int128)1 << (8 * bytes(limits) - negative)) - 1;
  return between(negative ? -top - 1 : 0, top);
}

Value point(const Constant &c) {
  return std::isnan(c.real) ? nothing_but_nan : Value{c.integer, c.integer, c.real, c.real};
}

bool is_point(DType d, const Value &v) {
  if (is_float(d) && v.nan) return is_nan(v);
  if (is_float(d)) return std::bit_cast<uint64_t>(v.real_lo) == std::bit_cast<uint64_t>(v.real_hi);
  return !v.overflow && v.lo == v.hi;
}

Value either(DType d, const Value &a, const Value &b) {
  if (!is_float(d)) return join(a, b);
  return {.real_lo = std::min(a.real_lo, b.real_lo), .real_hi = std::max(a.real_hi, b.real_hi), .nan = a.nan || b.nan};
}

Value cast(const Value &v, DType from, DType to) {
  if (is_float(to)) {
    if (!is_float(from) && v.overflow) return anything(to);
    const Constant lo{v.lo, v.real_lo}, hi{v.hi, v.real_hi};
    return {.real_lo = convert(lo, from, to).real, .real_hi = convert(hi, from, to).real, .nan = v.nan};
  }
  if (is_float(from)) {
    if (to == DType::Bool) return anything(to);
    if (is_nan(v)) return between(0, 0);
    const __int128 lo = convert({0, v.real_lo}, from, to).integer, hi = convert({0, v.real_hi}, from, to).integer;
    return v.nan ? hull({lo, hi, 0}) : between(lo, hi);
  }
  if (to == DType::Bool) return v.overflow ? anything(to) : certain(!holds(v, 0), v.lo == 0 && v.hi == 0);
  return wrapped(to, v);
}

Value unary(UnaryOp op, DType d, const Value &v) {
  if (is_float(d)) return {.real_lo = -v.real_hi, .real_hi = -v.real_lo, .nan = v.nan};
  if (v.overflow) return v;
  if (op == UnaryOp::BitNot) return wrapped(d, between(~v.hi, ~v.lo));
  return wrapped(d, on_integers(BinaryOp::Sub, DType::Index, between(0, 0), v));
}

Value binary(BinaryOp op, DType d, const Value &a, const Value &b) {
  return is_float(d) ? on_floats(op, d, a, b) : wrapped(d, on_integers(op, d, a, b));
}

Value compare(CompareOp op, DType d, const Value &a, const Value &b) {
  if (is_nan(a) || is_nan(b)) return between(op == CompareOp::Ne, op == CompareOp::Ne);
  if (a.overflow || b.overflow || a.nan || b.nan) return anything(DType::Bool);
  bool below, above, same; // certainly a < b, a > b, a == b
  bool not_above, not_below;
  if (is_float(d)) {
    below = a.real_hi<b.real_lo, above = a.real_lo> b.real_hi;
    not_above = a.real_hi <= b.real_lo, not_below = a.real_lo >= b.real_hi;
  } else {
    below = a.hi<b.lo, above = a.lo> b.hi;
    not_above = a.hi <= b.lo, not_below = a.lo >= b.hi;
  }
  same = not_above && not_below;
  switch (op) {
  case CompareOp::Lt:
    return certain(below, not_below);
  case CompareOp::Le:
    return certain(not_above, above);
  case CompareOp::Gt:
    return certain(above, not_above);
  case CompareOp::Ge:
    return certain(not_below, below);
  case CompareOp::Eq:
    return certain(same, below || above);
  case CompareOp::Ne:
    return certain(below || above, same);
  }
  return anything(DType::Bool);
}

Value call(uint8_t row, DType d, const Value &a, const Value &b) {
  const Builtin &r = builtins()[row];
  if (r.rule == Rule::Predicate) return anything(DType::Bool);
  if (is_float(d)) {
    const bool grows = r.meaning == Meaning::Floor || r.meaning == Meaning::Ceil || r.meaning == Meaning::Nearest ||
                       r.meaning == Meaning::Least || r.meaning == Meaning::Greatest ||
                       (r.meaning == Meaning::SquareRoot && a.real_lo >= 0);
    if (!grows) return anything(d);
    if (is_nan(a) || is_nan(b)) return nothing_but_nan;
    const double lo[] = {a.real_lo, b.real_lo}, hi[] = {a.real_hi, b.real_hi};
    return {.real_lo = round_to(d, r.real(lo)), .real_hi = round_to(d, r.real(hi)), .nan = a.nan || b.nan};
  }
  if (a.overflow || b.overflow) return off_limits;
  if (r.meaning == Meaning::Least) return between(std::min(a.lo, b.lo), std::min(a.hi, b.hi));
  if (r.meaning == Meaning::Greatest) return between(std::max(a.lo, b.lo), std::max(a.hi, b.hi));
  if (r.meaning == Meaning::Magnitude) {
    if (a.lo >= 0) return a;
    const Value minus = on_integers(BinaryOp::Sub, DType::Index, between(0, 0), a);
    if (minus.overflow || a.hi <= 0) return wrapped(d, minus);
    return wrapped(d, between(0, std::max(a.hi, minus.hi)));
  }
  if (r.meaning == Meaning::BitCount) return between(0, 8 * bytes(d));
  return d == DType::Index ? off_limits : anything(d);
}

} // namespace elsewise::interval
