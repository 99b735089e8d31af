// SPDX-License-Identifier: Apache-2.0
// Every operation of the IR on every dtype, run as CPU code and compared bit by bit with plain C++. Loops, rows and
// segments stand in llvm_loops_test.cpp.
#include "compiler/ir/arithmetic.h"
#include "compiler/ir/functions.h"
#include "compiler/ir/rows.h"
#include "tests/unit/cpu_kernels.h"
#include <bit>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <random>

namespace elsewise::test {
namespace {

/// One value, as exactly as C++ holds it: floats in `real`, everything else in `integer`.
struct Number {
  __int128 integer = 0;
  double real = 0;
};

int width(DType d) { return 8 * bytes(d); }
bool is_signed(DType d) { return dclass(d) == DClass::Int; }

__int128 wrap(__int128 v, DType d) {
  if (d == DType::Bool) return v != 0;
  const unsigned __int128 mask = ((unsigned __int128)1 << width(d)) - 1;
  const __int128 low = __int128((unsigned __int128)v & mask);
  return is_signed(d) && low >> (width(d) - 1) ? low - ((__int128)1 << width(d)) : low;
}
__int128 smallest(DType d) { return is_signed(d) ? -((__int128)1 << (width(d) - 1)) : 0; }
__int128 largest(DType d) { return d == DType::Bool ? 1 : ((__int128)1 << (width(d) - is_signed(d))) - 1; }

// The half that is nearest, found by trying: the last place of a number of this size, then nearbyint in units of it.
uint16_t encode_half(double v, int fraction, int least_exponent, int greatest_exponent) {
  const int bits = 15 - fraction, top = (1 << bits) - 1;
  const uint16_t sign = uint16_t(std::signbit(v)) << 15;
  if (std::isnan(v)) return uint16_t(sign | top << fraction | 1 << (fraction - 1));
  double a = std::fabs(v);
  if (std::isinf(a)) return uint16_t(sign | top << fraction);
  int exponent = a == 0 ? least_exponent : std::max(std::ilogb(a), least_exponent);
  double units = std::nearbyint(std::ldexp(a, fraction - exponent));
  if (units == std::ldexp(1, fraction + 1)) units /= 2, ++exponent;
  if (exponent > greatest_exponent) return uint16_t(sign | top << fraction);
  if (units < std::ldexp(1, fraction)) return uint16_t(sign | int(units)); // subnormal, or zero
  return uint16_t(sign | (exponent - least_exponent + 1) << fraction | (int(units) - (1 << fraction)));
}
double decode_half(uint16_t h, int fraction, int least_exponent) {
  const int top = (1 << (15 - fraction)) - 1, e = h >> fraction & top, m = h & ((1 << fraction) - 1);
  double a = e == top ? (m ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity())
             : e      ? std::ldexp(m + (1 << fraction), least_exponent - fraction + e - 1)
                      : std::ldexp(m, least_exponent - fraction);
  return h >> 15 ? -a : a;
}

Number decode(DType d, const uint8_t *p) {
  uint64_t raw = 0;
  std::memcpy(&raw, p, size_t(bytes(d)));
  Number n;
  if (d == DType::F64) n.real = std::bit_cast<double>(raw);
  else if (d == DType::F32) n.real = std::bit_cast<float>(uint32_t(raw));
  else if (d == DType::F16) n.real = decode_half(uint16_t(raw), 10, -14);
  else if (d == DType::BF16) n.real = decode_half(uint16_t(raw), 7, -126);
  else n.integer = wrap(__int128(raw), d);
  return n;
}
uint64_t encode(DType d, const Number &n) {
  if (d == DType::F64) return std::bit_cast<uint64_t>(n.real);
  if (d == DType::F32) return std::bit_cast<uint32_t>(float(n.real));
  if (d == DType::F16) return encode_half(n.real, 10, -14, 15);
  if (d == DType::BF16) return encode_half(n.real, 7, -126, 127);
  return uint64_t(n.integer) & (width(d) == 64 ? ~0ull : (1ull << width(d)) - 1);
}
bool is_nan(DType d, uint64_t raw) {
  uint8_t b[8];
  std::memcpy(b, &raw, 8);
  return is_float(d) && std::isnan(decode(d, b).real);
}

using Bytes = std::vector<uint8_t>;

/// Values worth trying: the edges of the dtype, and random ones of every size.
Bytes samples(DType d, size_t count, uint32_t seed) {
  std::vector<uint64_t> raw;
  if (d == DType::Bool) raw = {0, 1, 1, 0, 255, 2};
  else if (is_float(d)) {
    for (double v : {0.0,
                     1.0,
                     0.5,
                     1.5,
                     2.5,
                     3.0,
                     7.0,
                     1e-3,
                     255.5,
                     65504.0,
                     65520.0,
                     1e9,
                     2147483648.0,
                     4294967296.0,
                     9.3e18,
                     1e30,
                     6e-8,
                     3e-8,
                     1e-40,
                     1e300,
                     5e-324,
                     std::numeric_limits<double>::infinity(),
                     std::numeric_limits<double>::quiet_NaN()})
      for (double s : {v, -v}) raw.push_back(encode(d, {0, s}));
  } else {
    for (__int128 v : {(__int128)0, (__int128)1, (__int128)2, (__int128)3, (__int128)7, (__int128)31, (__int128)64,
                       smallest(d), smallest(d) + 1, largest(d), largest(d) - 1})
      for (__int128 s : {v, -v}) raw.push_back(encode(d, {wrap(s, d), 0}));
  }
  if (d == DType::I64 ||
      d == DType::U64) // beside the middle of two floats: rounding to a double on the way would take them there
    for (int top = 54; top < 63; ++top)
      for (int64_t beside : {-1, 0, 1})
        for (int64_t sign : {1, -1}) raw.push_back(uint64_t(sign * ((1ll << top) + (1ll << (top - 24)) + beside)));
  std::mt19937_64 random(seed);
  while (raw.size() < count) {
    uint64_t r = random();
    if (is_float(d) && random() % 2) r = encode(d, {0, std::ldexp(double(int64_t(r)), int(random() % 40) - 70)});
    else if (!is_float(d) && random() % 2) r = uint64_t(int64_t(r) >> (random() % 60)); // small ones too
    if (d == DType::Bool) r &= 1;
    if (is_nan(d, r))
      r = encode(d, {0, std::numeric_limits<double>::quiet_NaN()}); // C's own functions tell signalling ones apart
    raw.push_back(r);
  }
  raw.resize(count);
  Bytes out(count * size_t(bytes(d)));
  for (size_t i = 0; i < count; ++i) std::memcpy(&out[i * size_t(bytes(d))], &raw[i], size_t(bytes(d)));
  return out;
}

Number convert(const Number &v, DType from, DType to) {
  Number r;
  if (is_float(to)) {
    r.real = v.real;
    if (!is_float(from))
      r.real = to == DType::F64 ? double(v.integer) : double(float(v.integer)); // halves through the computing type
    return r;                                                                   // encode() rounds
  }
  if (!is_float(from)) r.integer = wrap(v.integer, to);
  else if (to == DType::Bool) r.integer = v.real != 0;
  else if (!std::isnan(v.real)) {
    const double t = std::trunc(v.real);
    r.integer = t <= double(smallest(to))                       ? smallest(to)
                : t >= std::ldexp(1, width(to) - is_signed(to)) ? largest(to)
                                                                : __int128(t);
  }
  return r;
}

__int128 power(__int128 a, __int128 e, DType d) {
  if (e < 0) return a == 1 ? 1 : a == -1 ? (e % 2 ? -1 : 1) : 0;
  __int128 r = 1;
  for (; e; e >>= 1, a = wrap(a * a, d))
    if (e & 1) r = wrap(r * a, d);
  return r;
}

__int128 integers(BinaryOp op, __int128 a, __int128 b, DType d) {
  const bool inside = b >= 0 && b < width(d);
  switch (op) {
  case BinaryOp::Add:
    return a + b;
  case BinaryOp::Sub:
    return a - b;
  case BinaryOp::Mul:
    return __int128((unsigned __int128)a * (unsigned __int128)b);
  case BinaryOp::FloorDiv:
    return b == 0 ? 0 : a / b - (a % b != 0 && (a < 0) != (b < 0));
  case BinaryOp::Mod:
    return b == 0 ? 0 : a % b + (a % b != 0 && (a < 0) != (b < 0) ? b : 0);
  case BinaryOp::Pow:
    return power(a, b, d);
  case BinaryOp::Shl:
    return inside ? __int128((unsigned __int128)a << int(b)) : 0;
  case BinaryOp::Shr:
    return inside ? a >> int(b) : a < 0 ? -1 : 0;
  case BinaryOp::BitAnd:
    return a & b;
  case BinaryOp::BitOr:
    return a | b;
  case BinaryOp::BitXor:
    return a ^ b;
  case BinaryOp::Div:
    break;
  }
  return 0;
}

template <class T> T floats(BinaryOp op, T a, T b) {
  switch (op) {
  case BinaryOp::Add:
    return a + b;
  case BinaryOp::Sub:
    return a - b;
  case BinaryOp::Mul:
    return a * b;
  case BinaryOp::Div:
    return a / b;
  case BinaryOp::Mod: {
    T m = std::fmod(a, b);
    return m != 0 && (b < 0) != (m < 0) ? m + b : m;
  }
  case BinaryOp::FloorDiv: { // as in torch
    if (b == 0) return a / b;
    T m = std::fmod(a, b), q = (a - m) / b;
    if (m != 0 && (b < 0) != (m < 0)) q -= 1;
    if (q == 0) return std::copysign(T(0), a / b);
    T f = std::floor(q);
    return q - f > T(0.5) ? f + 1 : f;
  }
  case BinaryOp::Pow: {
    const double v[] = {double(a), double(b)};
    return T(functions::evaluate(builtins()[power_row()], std::is_same_v<T, float> ? DType::F32 : DType::F64, v));
  }
  default:
    return 0;
  }
}

constexpr size_t count = 1000; // many vectors and a tail

/// Runs a kernel of up to two elementwise inputs and compares every element with `want`, NaNs as one class.
void check(const Kernel &k, const std::vector<Bytes> &in,
           const std::function<Number(const std::vector<Number> &)> &want, const std::string &what,
           const char *cpu = "") {
  std::string error;
  const auto code = compile_cpu(k, error, cpu);
  ASSERT_TRUE(code) << what << ": " << error;
  const DType to = k.outputs[0];
  const size_t n = in[0].size() / size_t(bytes(k.arguments[0].type.dtype)), size = size_t(bytes(to));
  Bytes out(n * size, 0xa5);
  Operands run;
  run.out = out.data(), run.extent = int64_t(n);
  for (const Bytes &b : in) run.in.push_back(b.data());
  code->function(fill(k, run).data(), 0, 1, 0, int64_t(n));
  int wrong = 0;
  for (size_t i = 0; i < n && wrong < 3; ++i) {
    std::vector<Number> operands;
    for (size_t a = 0; a < in.size(); ++a)
      operands.push_back(decode(k.arguments[a].type.dtype, &in[a][i * size_t(bytes(k.arguments[a].type.dtype))]));
    uint64_t got = 0;
    std::memcpy(&got, &out[i * size], size);
    const uint64_t expected = encode(to, want(operands));
    if (got == expected || (is_nan(to, got) && is_nan(to, expected))) continue;
    ++wrong;
    ADD_FAILURE() << what << " at " << i << ": got " << std::hex << got << ", want " << expected << std::dec
                  << "; operands " << operands[0].real << ' ' << (long long)operands[0].integer << ", "
                  << (operands.size() > 1 ? operands[1].real : 0) << ' '
                  << (operands.size() > 1 ? (long long)operands[1].integer : 0);
  }
}

// Operands in pairs: every edge with every edge first.
std::vector<Bytes> pairs(DType d, uint32_t seed) {
  const size_t size = size_t(bytes(d));
  const Bytes a = samples(d, count, seed), b = samples(d, count, seed + 1);
  std::vector<Bytes> result{a, b};
  constexpr size_t edges = 22;
  for (size_t i = 0; i < edges * edges; ++i) {
    std::memcpy(&result[0][i * size], &a[i / edges * size], size);
    std::memcpy(&result[1][i * size], &a[i % edges * size], size);
  }
  return result;
}

constexpr DType numbers[] = {DType::U8, DType::I8, DType::I16, DType::I32, DType::I64, DType::F32, DType::F64};

std::string name(const char *op, DType d) { return std::string(op) + "." + spelling(d); }

/// This computer's CPU, and lesser ones for which conversions are spelt in integers or sums.
std::vector<const char *> cpus() {
  std::vector<const char *> list{""};
  if (__builtin_cpu_supports("x86-64-v2")) list.push_back("x86-64-v2");
  if (__builtin_cpu_supports("x86-64-v3")) list.push_back("x86-64-v3");
  return list;
}

TEST(Llvm, BinaryOperations) {
  for (DType d : numbers)
    for (int o = 0; o <= int(BinaryOp::BitXor); ++o) {
      const BinaryOp op = BinaryOp(o);
      if (is_float(d) ? op >= BinaryOp::Shl : op == BinaryOp::Div) continue;
      Maker m({d, d}, d);
      m.piece(m.b.binary(op, m.b.load(0), m.b.load(1)));
      check(
          m.scheduled(), pairs(d, 11),
          [&](const std::vector<Number> &v) -> Number {
            if (d == DType::F64) return {0, floats(op, v[0].real, v[1].real)};
            if (d == DType::F32) return {0, floats(op, float(v[0].real), float(v[1].real))};
            return {wrap(integers(op, v[0].integer, v[1].integer, d), d), 0};
          },
          name(spelling(op), d));
    }
}

// A known right operand takes other paths: no guards, multiplications instead of divisions, powers by squaring.
TEST(Llvm, BinaryOperationsWithConstants) {
  for (DType d : numbers)
    for (int o = 0; o <= int(BinaryOp::BitXor); ++o)
      for (int c : {-7, -1, 0, 1, 2, 3, 5, 16, 40}) {
        const BinaryOp op = BinaryOp(o);
        if (is_float(d) ? op >= BinaryOp::Shl : op == BinaryOp::Div || (c < 0 && d == DType::U8)) continue;
        Maker m({d}, d);
        m.piece(m.b.binary(op, m.b.load(0), is_float(d) ? m.b.real(d, c) : m.b.integer(d, c)));
        check(
            m.scheduled(), {samples(d, count, 5)},
            [&](const std::vector<Number> &v) -> Number {
              const double x = v[0].real;
              if (is_float(d) && op == BinaryOp::Pow && (c == -1 || c == 2 || c == 3)) { // torch's own forms
                if (d == DType::F32)
                  return {0, c == 2 ? float(x) * float(x) : c == 3 ? float(x) * float(x) * float(x) : 1 / float(x)};
                return {0, c == 2 ? x * x : c == 3 ? x * x * x : 1 / x};
              }
              if (d == DType::F64) return {0, floats(op, x, double(c))};
              if (d == DType::F32) return {0, floats(op, float(x), float(c))};
              return {wrap(integers(op, v[0].integer, c, d), d), 0};
            },
            name(spelling(op), d) + " " + std::to_string(c));
      }
}

TEST(Llvm, SquareRootForTheHalfPower) {
  Maker m({DType::F32}, DType::F32);
  m.piece(m.b.binary(BinaryOp::Pow, m.b.load(0), m.b.real(DType::F32, 0.5)));
  check(
      m.scheduled(), {samples(DType::F32, count, 8)},
      [](const std::vector<Number> &v) -> Number { return {0, std::sqrt(float(v[0].real))}; }, "pow.f32 0.5");
}

TEST(Llvm, UnaryOperations) {
  for (DType d : numbers)
    for (UnaryOp op : {UnaryOp::Neg, UnaryOp::BitNot}) {
      if (op == UnaryOp::BitNot && is_float(d)) continue;
      Maker m({d}, d);
      m.piece(m.b.unary(op, m.b.load(0)));
      check(
          m.scheduled(), {samples(d, count, 3)},
          [&](const std::vector<Number> &v) -> Number {
            if (is_float(d)) return {0, -v[0].real};
            return {wrap(op == UnaryOp::Neg ? -v[0].integer : ~v[0].integer, d), 0};
          },
          name(spelling(op), d));
    }
}

TEST(Llvm, Comparisons) {
  for (DType d : numbers)
    for (int o = 0; o <= int(CompareOp::Ne); ++o) {
      Maker m({d, d}, DType::Bool);
      m.piece(m.b.compare(CompareOp(o), m.b.load(0), m.b.load(1)));
      check(
          m.scheduled(), pairs(d, 21),
          [&](const std::vector<Number> &v) -> Number {
            return {is_float(d) ? ordered(CompareOp(o), v[0].real, v[1].real)
                                : ordered(CompareOp(o), v[0].integer, v[1].integer),
                    0};
          },
          name(spelling(CompareOp(o)), d));
    }
}

TEST(Llvm, LogicReadsAnyByteButZeroAsTrue) {
  for (LogicOp op : {LogicOp::And, LogicOp::Or, LogicOp::Not}) {
    Maker m({DType::Bool, DType::Bool}, DType::Bool);
    m.piece(m.b.logic(op, m.b.load(0), op == LogicOp::Not ? no_node : m.b.load(1)));
    check(
        m.scheduled(), {samples(DType::Bool, count, 1), samples(DType::Bool, count, 2)},
        [&](const std::vector<Number> &v) -> Number {
          const bool a = v[0].integer, b = v[1].integer;
          return {op == LogicOp::And ? a && b : op == LogicOp::Or ? a || b : !a, 0};
        },
        spelling(op));
  }
}

TEST(Llvm, Casts) {
  for (const char *cpu : cpus()) {
    for (int f = 0; f < dtype_count; ++f)
      for (int t = 0; t < dtype_count; ++t) {
        const DType from = DType(f), to = DType(t);
        if (from == to) continue;
        Maker m({from}, to);
        m.piece(m.b.cast(m.b.load(0), to));
        check(
            m.scheduled(), {samples(from, 3000, 17)},
            [&](const std::vector<Number> &v) -> Number { return convert(v[0], from, to); }, name(spelling(from), to),
            cpu);
      }
  }
}

TEST(Llvm, EveryHalfBothWays) {
  for (const char *cpu : cpus()) {
    for (DType half : {DType::F16, DType::BF16}) {
      Bytes all(2 << 16);
      for (uint32_t h = 0; h < 1 << 16; ++h) std::memcpy(&all[2 * h], &h, 2);
      Maker up({half}, DType::F32);
      up.piece(up.b.cast(up.b.load(0), DType::F32));
      check(
          up.scheduled(), {all}, [&](const std::vector<Number> &v) -> Number { return v[0]; }, name("to f32", half),
          cpu);
      // Every half, the midpoint to the next, and the doubles beside both: where rounding once and rounding twice
      // differ.
      std::vector<double> near;
      for (uint32_t h = 0; h < 0x7c00; ++h) {
        const int fraction = half == DType::F16 ? 10 : 7, least = half == DType::F16 ? -14 : -126;
        const double a = decode_half(uint16_t(h), fraction, least), b = decode_half(uint16_t(h + 1), fraction, least);
        for (double v : {a, std::isinf(b) ? a * (1 + 0.5 / (1 << (fraction + 1))) : (a + b) / 2})
          for (double s : {v, std::nextafter(v, 1e300), std::nextafter(v, -1e300)}) near.push_back(h % 2 ? s : -s);
      }
      Bytes doubles(near.size() * 8), singles(near.size() * 4);
      std::memcpy(doubles.data(), near.data(), doubles.size());
      for (size_t i = 0; i < near.size(); ++i) {
        const float f = std::nextafterf(float(near[i]), i % 3 == 0 ? 1e30f : i % 3 == 1 ? -1e30f : float(near[i]));
        std::memcpy(&singles[4 * i], &f, 4);
      }
      Maker down({DType::F64}, half);
      down.piece(down.b.cast(down.b.load(0), half));
      check(
          down.scheduled(), {doubles}, [&](const std::vector<Number> &v) -> Number { return v[0]; },
          name("from f64", half), cpu);
      Maker single({DType::F32}, half);
      single.piece(single.b.cast(single.b.load(0), half));
      check(
          single.scheduled(), {singles}, [&](const std::vector<Number> &v) -> Number { return v[0]; },
          name("from f32", half), cpu);
    }
  }
}

TEST(Llvm, EveryBuiltinRow) {
  for (const char *cpu : cpus()) {
    int tried = 0;
    for (size_t row = 0; row < builtins().size(); ++row) {
      const Builtin &f = builtins()[row];
      if (f.llvm.empty() && f.llvm_signed.empty()) continue;
      for (DType d : numbers) {
        if (is_float(d) ? f.llvm.empty() : is_signed(d) ? f.llvm_signed.empty() : f.llvm_unsigned.empty()) continue;
        const bool predicate = f.rule == Rule::Predicate, two = f.max_arguments > 1;
        Maker m({d, d}, predicate ? DType::Bool : d);
        std::vector<NodeId> operands{m.b.load(0)};
        if (two) operands.push_back(m.b.load(1));
        m.piece(m.b.call(uint8_t(row), predicate ? DType::Bool : d, operands));
        ++tried;
        check(
            m.scheduled(), pairs(d, 31),
            [&](const std::vector<Number> &v) -> Number {
              const double real[] = {v[0].real, v[1].real};
              __int128 integer[] = {v[0].integer, v[1].integer};
              if (f.rule == Rule::Whole) integer[0] &= ((__int128)1 << 8 * bytes(d)) - 1; // of the bits it has
              if (!is_float(d)) return {wrap(f.integer(integer), d), 0};
              const double r = f.real(real);
              return predicate ? Number{r != 0, 0} : Number{0, r};
            },
            name(std::string(f.name).c_str(), d), cpu);
      }
    }
    EXPECT_GE(tried, 20);
  }
}

TEST(Llvm, FunctionsHaveTheBitsOfTheScalarOneOnEveryCpu) {
  std::vector<const char *> list{"", "x86-64-v3"};
  if (__builtin_cpu_supports("x86-64-v4")) list.insert(list.end(), {"x86-64-v4", "znver5"});
  int tried = 0;
  for (const char *cpu : list)
    for (size_t row = 0; row < builtins().size(); ++row) {
      const Builtin &f = builtins()[row];
      if (f.cpu.empty()) continue;
      for (DType d : {DType::F32, DType::F64}) {
        Maker m({d, d}, d);
        const NodeId x = m.b.load(0), y = m.b.load(1);
        if (f.meaning == Meaning::Power) m.piece(m.b.binary(BinaryOp::Pow, x, y));
        else m.piece(f.max_arguments == 2 ? m.b.call(uint8_t(row), d, {x, y}) : m.b.call(uint8_t(row), d, {x}));
        ++tried;
        check(
            m.scheduled(), pairs(d, 31),
            [&](const std::vector<Number> &v) -> Number {
              const double real[] = {v[0].real, v[1].real};
              return {0, functions::evaluate(f, d, real)};
            },
            name(std::string(f.name).c_str(), d), cpu);
      }
    }
  EXPECT_GE(tried, 80);
}

// Positions of any size, which no call can have: as data.
TEST(Llvm, NoiseIsPhiloxAtEveryPosition) {
  const auto reference = [](uint64_t position, uint64_t seed, uint64_t stream) {
    uint32_t x[] = {uint32_t(position >> 2), uint32_t(position >> 34), uint32_t(stream), uint32_t(stream >> 32)};
    uint32_t key[] = {uint32_t(seed), uint32_t(seed >> 32)};
    for (int r = 0; r < 10; ++r) {
      const uint64_t p = 0xd2511f53ull * x[0], q = 0xcd9e8d57ull * x[2];
      x[0] = uint32_t(q >> 32) ^ x[1] ^ key[0], x[2] = uint32_t(p >> 32) ^ x[3] ^ key[1];
      x[1] = uint32_t(q), x[3] = uint32_t(p);
      key[0] += 0x9e3779b9u, key[1] += 0xbb67ae85u;
    }
    return x[position & 3];
  };
  // The vectors of Random123, as far as a position holds their counters.
  for (int word = 0; word < 4; ++word) {
    constexpr uint32_t zeros[] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
    EXPECT_EQ(reference(uint64_t(word), 0, 0), zeros[word]);
  }
  for (const char *cpu : cpus()) {
    Maker m({DType::I64, DType::I64, DType::I64}, DType::I32);
    m.piece(m.b.call(uniform_row(), DType::I32, {m.b.load(0), m.b.load(1), m.b.load(2)}));
    Bytes positions = samples(DType::I64, count, 1);
    for (size_t at = 7; at < positions.size(); at += 8) positions[at] &= 0x7f;
    check(
        m.scheduled(), {positions, samples(DType::I64, count, 2), samples(DType::I64, count, 3)},
        [&](const std::vector<Number> &v) -> Number {
          const uint32_t word = reference(uint64_t(v[0].integer), uint64_t(v[1].integer), uint64_t(v[2].integer));
          return {wrap(word, DType::I32), 0};
        },
        "noise", cpu);
  }
}

TEST(Llvm, FunctionsAreRefusedOnLesserCpus) {
  for (size_t row = 0; row < builtins().size(); ++row) {
    if (builtins()[row].cpu.empty() || builtins()[row].max_arguments != 1) continue;
    Maker m({DType::F32}, DType::F32);
    m.piece(m.b.call(uint8_t(row), DType::F32, {m.b.load(0)}));
    std::string error;
    EXPECT_EQ(compile_cpu(m.scheduled(), error, "x86-64-v2"), nullptr);
    EXPECT_EQ(error,
              "`" + std::string(builtins()[row].name) + "` needs AVX2 and FMA: `x86-64-v3` is the least CPU for it");
    return;
  }
}

TEST(Llvm, WhereSelectsAndKeepsNaN) {
  Maker m({DType::Bool, DType::F32}, DType::F32);
  const NodeId x = m.b.load(1);
  m.piece(m.b.where(m.b.load(0), x, m.b.binary(BinaryOp::Div, m.b.real(DType::F32, 1), x)));
  check(
      m.scheduled(), {samples(DType::Bool, count, 4), samples(DType::F32, count, 5)},
      [](const std::vector<Number> &v) -> Number {
        return {0, v[0].integer ? v[1].real : double(1 / float(v[1].real))};
      },
      "where");
}

// A product that feeds a sum rounds twice, here as on every other backend.
TEST(Llvm, NothingIsFused) {
  for (DType d : {DType::F32, DType::F64}) {
    Maker m({d, d}, d);
    const NodeId x = m.b.load(0), y = m.b.load(1);
    m.piece(m.b.binary(BinaryOp::Add, m.b.binary(BinaryOp::Mul, x, y), x));
    check(
        m.scheduled(), pairs(d, 41),
        [&](const std::vector<Number> &v) -> Number {
          if (d == DType::F64) {
            volatile double p = v[0].real * v[1].real;
            return {0, p + v[0].real};
          }
          volatile float p = float(v[0].real) * float(v[1].real);
          return {0, float(p + float(v[0].real))};
        },
        name("mul add", d));
  }
}

// Halves are worked in f32 and rounded once.
TEST(Llvm, HalvesRoundOnce) {
  for (const char *cpu : cpus()) {
    for (DType half : {DType::F16, DType::BF16}) {
      Maker m({half, half}, half);
      const NodeId x = m.b.cast(m.b.load(0), DType::F32), y = m.b.cast(m.b.load(1), DType::F32);
      m.piece(m.b.cast(m.b.binary(BinaryOp::Add, m.b.binary(BinaryOp::Mul, x, y), x), half));
      check(
          m.scheduled(), pairs(half, 51),
          [](const std::vector<Number> &v) -> Number {
            volatile float p = float(v[0].real) * float(v[1].real);
            return {0, float(p + float(v[0].real))};
          },
          name("mul add", half), cpu);
    }
  }
}

// Index arithmetic on a device has 64 bits, and 128 where the host says so.
TEST(Llvm, WideIndexes) {
  for (BinaryOp op : {BinaryOp::Add, BinaryOp::Sub, BinaryOp::Mul, BinaryOp::FloorDiv, BinaryOp::Mod})
    for (CompareOp compare : {CompareOp::Lt, CompareOp::Eq}) {
      Maker m({DType::I64, DType::I64}, DType::Bool);
      m.kernel.form.wide = true;
      const NodeId x = m.b.cast(m.b.load(0), DType::Index), y = m.b.cast(m.b.load(1), DType::Index);
      const NodeId product = m.b.binary(BinaryOp::Mul, x, y);
      m.piece(m.b.compare(compare, m.b.binary(op, product, y), x));
      check(
          m.scheduled(), pairs(DType::I64, 61),
          [&](const std::vector<Number> &v) -> Number {
            const __int128 a = v[0].integer * v[1].integer, b = v[1].integer;
            if (op == BinaryOp::Mul)
              return {ordered(compare, __int128((unsigned __int128)a * (unsigned __int128)b), v[0].integer), 0};
            return {ordered(compare, integers(op, a, b, DType::Index), v[0].integer), 0};
          },
          std::string("wide ") + spelling(op));
    }
}

} // namespace
} // namespace elsewise::test
