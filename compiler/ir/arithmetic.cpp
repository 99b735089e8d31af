// SPDX-License-Identifier: Apache-2.0
// Exact arithmetic on constants. Floats are worked in their own type, without contraction, and never in a wider one.
#include "compiler/ir/arithmetic.h"
#include "compiler/ir/functions.h"
#include "compiler/ir/rows.h"
#include <array>
#include <bit>
#include <cmath>
#include <limits>

namespace elsewise {
namespace {

constexpr __int128 greatest128 = (__int128)(~(unsigned __int128)0 >> 1);
constexpr __int128 least128 = -greatest128 - 1;
// Where a double saturates as an index: below the ends, so that a bound can still be moved by one.
constexpr __int128 far = greatest128 - ((__int128)1 << 100);

int width(DType d) { return d == DType::Index ? 128 : 8 * bytes(d); }

// `fraction`: stored bits of the significand; `least_exponent`: of the smallest normal number.
double round_bits(double v, int fraction, int least_exponent, int greatest_exponent) {
  if (v == 0 || !std::isfinite(v)) return v;
  const int exponent = std::ilogb(v);
  const int unit = std::max(exponent, least_exponent) - fraction; // the last bit kept is worth 2^unit
  const uint64_t bits = std::bit_cast<uint64_t>(v);
  const int stored = int(bits >> 52 & 2047);
  uint64_t significand = (bits & ((1ull << 52) - 1)) | (stored ? 1ull << 52 : 0); // v = significand * 2^(weight)
  const int weight = (stored ? stored : 1) - 1075;
  const int drop = unit - weight;
  if (drop > 0) {
    if (drop > 54) return std::copysign(0.0, v);
    const uint64_t rest = significand & ((1ull << drop) - 1), half = 1ull << (drop - 1);
    significand >>= drop;
    significand += rest > half || (rest == half && (significand & 1));
    significand <<= drop;
  }
  const double rounded = std::copysign(std::ldexp(double(significand), weight), v); // exact: at most 53 bits
  return std::fabs(rounded) >= std::ldexp(1.0, greatest_exponent + 1)
             ? std::copysign(std::numeric_limits<double>::infinity(), v)
             : rounded;
}

__int128 truncate(double v, DType d) {
  if (std::isnan(v)) return 0;
  const __int128 lo = d == DType::Index ? -far : least(d), hi = d == DType::Index ? far : greatest(d);
  const double t = std::trunc(v);
  if (t >= std::ldexp(1.0, 127)) return hi;
  if (t < -std::ldexp(1.0, 127)) return lo;
  const __int128 i = (__int128)t;
  return i < lo ? lo : i > hi ? hi : i;
}

template <class T> T modulo(T a, T b) { // torch.remainder
  T m = std::fmod(a, b);
  if (m != 0 && (b < 0) != (m < 0)) m += b;
  return m;
}

template <class T> T floor_quotient(T a, T b) { // torch's floor division
  if (b == 0) return a / b;
  const T m = std::fmod(a, b);
  T q = (a - m) / b;
  if (m != 0 && (b < 0) != (m < 0)) q -= T(1);
  if (q == 0) return std::copysign(T(0), a / b);
  const T f = std::floor(q);
  return q - f > T(0.5) ? f + T(1) : f;
}

template <class T> double on_floats(BinaryOp op, DType d, T a, T b) {
  switch (op) {
  case BinaryOp::Add:
    return a + b;
  case BinaryOp::Sub:
    return a - b;
  case BinaryOp::Mul:
    return a * b;
  case BinaryOp::Div:
    return a / b;
  case BinaryOp::FloorDiv:
    return floor_quotient(a, b);
  case BinaryOp::Mod:
    return modulo(a, b);
  case BinaryOp::Pow:
    return functions::evaluate(builtins()[power_row()], d, std::array{double(a), double(b)}.data());
  default:
    return std::numeric_limits<double>::quiet_NaN(); // the verifier refuses the others
  }
}

Trouble power(DType d, __int128 base, __int128 n, __int128 &r) {
  if (n < 0) {
    r = base == 1 ? 1 : base == -1 ? (n & 1 ? -1 : 1) : 0;
    return Trouble::None;
  }
  if (base == 0 || base == 1 || base == -1) {
    r = n == 0 ? 1 : base == -1 ? (n & 1 ? -1 : 1) : base;
    return Trouble::None;
  }
  for (r = 1; n; n >>= 1) {
    if (d == DType::Index) {
      if (n & 1 && __builtin_mul_overflow(r, base, &r)) return Trouble::Overflow;
      if (n > 1 && __builtin_mul_overflow(base, base, &base)) return Trouble::Overflow;
    } else {
      if (n & 1) r = wrap(d, (__int128)((unsigned __int128)r * (unsigned __int128)base));
      base = wrap(d, (__int128)((unsigned __int128)base * (unsigned __int128)base));
    }
  }
  return Trouble::None;
}

Trouble on_integers(BinaryOp op, DType d, __int128 a, __int128 b, __int128 &r) {
  const bool index = d == DType::Index;
  bool over = false;
  r = 0;
  switch (op) {
  case BinaryOp::Add:
    over = __builtin_add_overflow(a, b, &r);
    break;
  case BinaryOp::Sub:
    over = __builtin_sub_overflow(a, b, &r);
    break;
  case BinaryOp::Mul:
    over = __builtin_mul_overflow(a, b, &r);
    break;
  case BinaryOp::FloorDiv:
  case BinaryOp::Mod:
    if (b == 0) return index ? Trouble::ZeroDivision : Trouble::None;
    if (b == -1) { // also keeps the least integer from trapping
      if (op == BinaryOp::FloorDiv) over = __builtin_sub_overflow((__int128)0, a, &r);
      break;
    }
    r = floor_divide(a, b);
    if (op == BinaryOp::Mod) r = a - r * b;
    break;
  case BinaryOp::Pow:
    if (power(d, a, b, r) != Trouble::None) return Trouble::Overflow;
    break;
  case BinaryOp::Shl:
    if (b < 0) break;
    if (b >= width(d)) over = index && a != 0;
    else r = (__int128)((unsigned __int128)a << int(b)), over = index && (r >> int(b)) != a;
    break;
  case BinaryOp::Shr:
    r = b < 0 || b >= width(d) ? (a < 0 ? -1 : 0) : a >> int(b);
    break;
  case BinaryOp::BitAnd:
    r = a & b;
    break;
  case BinaryOp::BitOr:
    r = a | b;
    break;
  case BinaryOp::BitXor:
    r = a ^ b;
    break;
  case BinaryOp::Div:
    break; // of floats only
  }
  if (over && index) return Trouble::Overflow;
  r = wrap(d, r);
  return Trouble::None;
}

/// What functions of bits look at: as many as the type has, 64 of an index.
__int128 bits_of(DType d, __int128 v) {
  const int width = d == DType::Index ? 64 : 8 * bytes(d);
  return __int128((unsigned __int128)v & (((unsigned __int128)1 << width) - 1));
}

} // namespace

__int128 floor_divide(__int128 a, __int128 b) {
  const __int128 q = a / b;
  return q * b != a && (a < 0) != (b < 0) ? q - 1 : q;
}

double round_to(DType d, double v) {
  switch (d) {
  case DType::F32:
    return double(float(v));
  case DType::F16:
    return round_bits(v, 10, -14, 15);
  case DType::BF16:
    return round_bits(v, 7, -126, 127);
  default:
    return v;
  }
}

__int128 wrap(DType d, __int128 v) {
  if (d == DType::Index) return v;
  if (d == DType::Bool) return v != 0;
  const int drop = 128 - 8 * bytes(d);
  const auto up = (unsigned __int128)v << drop;
  return dclass(d) == DClass::Int ? (__int128)up >> drop : (__int128)(up >> drop);
}

bool fits(DType d, __int128 v) { return wrap(d == DType::Index ? DType::I64 : d, v) == v; }

Constant extreme(DType d, bool high) {
  const auto real = [&](double most) { return Constant{0, high ? most : -most}; };
  switch (d) {
  case DType::F16:
    return real(65504);
  case DType::BF16:
    return real(0x1.fep127);
  case DType::F32:
    return real(std::numeric_limits<float>::max());
  case DType::F64:
    return real(std::numeric_limits<double>::max());
  case DType::Bool:
    return {high, 0};
  default:
    return {high ? greatest(d) : least(d), 0};
  }
}

Constant convert(const Constant &v, DType from, DType to) {
  Constant r;
  if (is_float(to)) {
    if (is_float(from)) r.real = round_to(to, v.real);
    else if (to == DType::F64) r.real = double(v.integer);
    else r.real = round_to(to, double(float(v.integer))); // one rounding to F32; halves go through it
  } else if (is_float(from)) {
    r.integer = to == DType::Bool ? v.real != 0 : truncate(v.real, to); // NaN != 0
  } else {
    r.integer = wrap(to, v.integer);
  }
  return r;
}

Trouble apply(const Inst &i, DType from, std::span<const Constant> v, Constant &out) {
  out = {};
  switch (i.op) {
  case Op::Unary:
    if (is_float(i.type)) out.real = -v[0].real;
    else if (UnaryOp(i.sub) == UnaryOp::BitNot) out.integer = wrap(i.type, ~v[0].integer);
    else if (__builtin_sub_overflow((__int128)0, v[0].integer, &out.integer)) return Trouble::Overflow;
    else out.integer = wrap(i.type, out.integer);
    return Trouble::None;
  case Op::Binary: {
    const BinaryOp op = BinaryOp(i.sub);
    if (i.type == DType::F32) out.real = on_floats(op, i.type, float(v[0].real), float(v[1].real));
    else if (i.type == DType::F64) out.real = on_floats(op, i.type, v[0].real, v[1].real);
    else return on_integers(op, i.type, v[0].integer, v[1].integer, out.integer);
    return Trouble::None;
  }
  case Op::Compare:
    out.integer = is_float(from) ? ordered(CompareOp(i.sub), v[0].real, v[1].real)
                                 : ordered(CompareOp(i.sub), v[0].integer, v[1].integer);
    return Trouble::None;
  case Op::Logic:
    out.integer = LogicOp(i.sub) == LogicOp::Not   ? !v[0].integer
                  : LogicOp(i.sub) == LogicOp::And ? v[0].integer && v[1].integer
                                                   : v[0].integer || v[1].integer;
    return Trouble::None;
  case Op::Where:
    out = v[0].integer ? v[1] : v[2];
    return Trouble::None;
  case Op::Cast:
    out = convert(v[0], from, i.type);
    return Trouble::None;
  case Op::Call: {
    const Builtin &row = builtins()[i.sub];
    if (is_float(from)) {
      double list[3] = {};
      for (size_t n = 0; n < v.size() && n < 3; ++n) list[n] = v[n].real;
      if (i.type == DType::Bool) out.integer = row.real(list) != 0;
      else out.real = functions::evaluate(row, i.type, list);
    } else {
      __int128 list[3] = {};
      for (size_t n = 0; n < v.size() && n < 3; ++n) {
        list[n] = row.rule == Rule::Whole ? bits_of(from, v[n].integer) : v[n].integer;
        if (list[n] == least128 && row.meaning != Meaning::Least && row.meaning != Meaning::Greatest)
          return Trouble::Overflow; // its magnitude leaves 128 bits
      }
      out.integer = wrap(i.type, row.integer(list));
    }
    return Trouble::None;
  }
  default:
    return Trouble::None; // leaves have no operands
  }
}

} // namespace elsewise
