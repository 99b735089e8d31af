// SPDX-License-Identifier: Apache-2.0
// The host's evaluator against whole numbers of any size, intervals against every value that occurs, and what refuses a
// call.
#include "compiler/ir/rows.h"
#include "compiler/names/names.h"
#include "runtime/host/interval.h"
#include "tests/unit/interpret.h"
#include <array>
#include <cmath>
#include <gtest/gtest.h>
#include <map>
#include <optional>
#include <random>

namespace elsewise::test {
namespace {

/// A whole number of any size, as Python has it: sign and magnitude in base 2^32. Slow and plain; it shares nothing
/// with the evaluator.
class Big {
public:
  Big(long long v = 0) : negative_(v < 0) {
    for (unsigned long long u = v < 0 ? 0 - (unsigned long long)v : (unsigned long long)v; u; u >>= 32)
      digits_.push_back(uint32_t(u));
  }
  friend Big operator-(Big a) { return a.negative_ = !a.negative_ && !a.digits_.empty(), a; }
  friend Big operator+(const Big &a, const Big &b) {
    if (a.negative_ == b.negative_) return make(a.negative_, sum(a.digits_, b.digits_));
    const bool larger = !less(a.digits_, b.digits_);
    return larger ? make(a.negative_, difference(a.digits_, b.digits_))
                  : make(b.negative_, difference(b.digits_, a.digits_));
  }
  friend Big operator-(const Big &a, const Big &b) { return a + -b; }
  friend Big operator*(const Big &a, const Big &b) {
    std::vector<uint32_t> r(a.digits_.size() + b.digits_.size());
    for (size_t i = 0; i < a.digits_.size(); ++i) {
      uint64_t carry = 0;
      for (size_t j = 0; j < b.digits_.size() || carry; ++j) {
        const uint64_t t = r[i + j] + carry + (j < b.digits_.size() ? uint64_t(a.digits_[i]) * b.digits_[j] : 0);
        r[i + j] = uint32_t(t), carry = t >> 32;
      }
    }
    return make(a.negative_ != b.negative_, r);
  }
  /// Floor, by subtracting shifted divisors.
  static Big floor_divide(const Big &a, const Big &b) {
    std::vector<uint32_t> quotient(a.digits_.size()), rest;
    for (size_t bit = a.digits_.size() * 32; bit-- > 0;) {
      rest = sum(rest, rest);
      if (a.digits_[bit / 32] >> (bit % 32) & 1) rest = sum(rest, {1});
      if (!less(rest, b.digits_)) rest = difference(rest, b.digits_), quotient[bit / 32] |= 1u << (bit % 32);
    }
    trim(rest);
    Big q = make(a.negative_ != b.negative_, quotient);
    return a.negative_ != b.negative_ && !rest.empty() ? q - Big(1) : q;
  }
  bool operator<(const Big &b) const { return (*this - b).negative_; }
  bool operator==(const Big &b) const { return negative_ == b.negative_ && digits_ == b.digits_; }
  bool zero() const { return digits_.empty(); }
  /// nullopt outside 128 bits.
  std::optional<__int128> value() const {
    if (digits_.size() > 4) return std::nullopt;
    unsigned __int128 u = 0;
    for (size_t d = digits_.size(); d-- > 0;) u = u << 32 | digits_[d];
    const unsigned __int128 half = (unsigned __int128)1 << 127;
    if (negative_ ? u > half : u >= half) return std::nullopt;
    return negative_ ? (__int128)(0 - u) : (__int128)u;
  }

private:
  using Digits = std::vector<uint32_t>;
  static void trim(Digits &d) {
    while (!d.empty() && !d.back()) d.pop_back();
  }
  static Big make(bool negative, Digits d) {
    Big b;
    trim(d);
    b.digits_ = d, b.negative_ = negative && !d.empty();
    return b;
  }
  static bool less(Digits a, Digits b) {
    trim(a), trim(b);
    if (a.size() != b.size()) return a.size() < b.size();
    return std::lexicographical_compare(a.rbegin(), a.rend(), b.rbegin(), b.rend());
  }
  static Digits sum(const Digits &a, const Digits &b) {
    Digits r;
    uint64_t carry = 0;
    for (size_t i = 0; i < a.size() || i < b.size() || carry; ++i) {
      carry += uint64_t(i < a.size() ? a[i] : 0) + (i < b.size() ? b[i] : 0);
      r.push_back(uint32_t(carry)), carry >>= 32;
    }
    return r;
  }
  static Digits difference(const Digits &a, const Digits &b) { // a >= b
    Digits r;
    int64_t borrow = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      int64_t t = int64_t(a[i]) - (i < b.size() ? b[i] : 0) - borrow;
      borrow = t < 0;
      r.push_back(uint32_t(t + (borrow << 32)));
    }
    trim(r);
    return r;
  }
  bool negative_ = false;
  Digits digits_;
};

/// A random expression over n and three parameters, with what it is worth; nullopt: it divides by zero on the way.
struct Random {
  std::mt19937_64 bits;
  Kernel k;
  Builder b{k};
  std::vector<long long> parameters;
  long long count;
  explicit Random(uint64_t seed) : bits(seed) {
    for (int p = 0; p < 3; ++p) {
      k.arguments.push_back({std::string(1, char('k' + p)), {ArgKind::Int}});
      parameters.push_back((long long)bits() >> (bits() % 64));
    }
    count = (long long)(bits() >> 1 >> (bits() % 63));
  }
  std::pair<NodeId, std::optional<Big>> expression(int depth) {
    if (depth == 0 || bits() % 6 == 0) {
      switch (bits() % 3) {
      case 0:
        return {b.len(flat_axis), Big(count)};
      case 1: {
        const size_t p = bits() % 3;
        return {b.param(uint32_t(p), DType::Index), Big(parameters[p])};
      }
      default: {
        const long long v = (long long)bits() >> (bits() % 64);
        return {b.integer(DType::Index, v), Big(v)};
      }
      }
    }
    if (bits() % 8 == 0) { // of a leaf: 192 bits, which no sum or product of the few around it takes too far
      const auto [base, value] = expression(0);
      const int times = int(bits() % 4);
      Big power(1);
      for (int t = 0; t < times; ++t) power = power * *value;
      return {b.binary(BinaryOp::Pow, base, b.integer(DType::Index, times)), power};
    }
    const auto [x, a] = expression(depth - 1);
    const auto [y, c] = expression(depth - 1);
    auto result = [&](NodeId n, auto work) -> std::pair<NodeId, std::optional<Big>> {
      if (!a || !c) return {n, std::nullopt};
      return {n, work(*a, *c)};
    };
    switch (bits() % 7) {
    case 0:
      return result(b.binary(BinaryOp::Add, x, y), [](const Big &a, const Big &c) { return a + c; });
    case 1:
      return result(b.binary(BinaryOp::Sub, x, y), [](const Big &a, const Big &c) { return a - c; });
    case 2:
      return result(b.binary(BinaryOp::Mul, x, y), [](const Big &a, const Big &c) { return a * c; });
    case 3:
      if (a && c && c->zero()) return {b.binary(BinaryOp::FloorDiv, x, y), std::nullopt};
      return result(b.binary(BinaryOp::FloorDiv, x, y), Big::floor_divide);
    case 4:
      if (a && c && c->zero()) return {b.binary(BinaryOp::Mod, x, y), std::nullopt};
      return result(b.binary(BinaryOp::Mod, x, y),
                    [](const Big &a, const Big &c) { return a - Big::floor_divide(a, c) * c; });
    case 5: {
      const NodeId n = b.unary(UnaryOp::Neg, x);
      if (!a) return {n, std::nullopt};
      return {n, -*a};
    }
    default: { // the arm that is not taken may be poisoned
      const NodeId less = b.compare(CompareOp::Lt, x, y), n = b.where(less, x, y);
      if (!a || !c) return {n, std::nullopt};
      return {n, *a < *c ? a : c};
    }
    }
  }
};

TEST(HostProgram, WholeNumbersAreExactFarOrPoisoned) {
  int exact = 0, far = 0, poisoned = 0;
  for (uint64_t seed = 0; seed < 4000; ++seed) {
    Random r(seed);
    const auto [node, want] = r.expression(4);
    for (NodeId n = 0; n < r.k.insts.size(); ++n) r.k.host.push_back(n);
    std::vector<HostValue> parameters, values(r.k.insts.size(), {.integer = 77}); // as another call left them
    for (const long long p : r.parameters) parameters.push_back({.integer = p});
    std::vector<uint8_t> poison;
    HostProgram(r.k).run(parameters, r.count, values, poison);
    const bool holds = want && want->value(); // 128 bits do
    ASSERT_EQ(int(poison[node]), !want   ? HostFault::ZeroDivision
                                 : holds ? HostFault::None
                                         : HostFault::Far)
        << seed << "\n"
        << print(r.k);
    if (holds) {
      ASSERT_TRUE(values[node].integer == *want->value()) << seed;
    } else if (want) {
      ASSERT_EQ(values[node].integer < 0, *want < Big(0)) << seed; // the end of 128 bits on its side
    } else {
      ASSERT_EQ((long long)values[node].integer, 0) << seed << ": nothing may be read by what another call left";
    }
    ++(holds ? exact : want ? far : poisoned);
  }
  EXPECT_GT(exact, 1000);
  EXPECT_GT(far, 50);
  EXPECT_GT(poisoned, 100);
}

TEST(HostProgram, ChoicesAreLazy) {
  Kernel k;
  k.arguments = {{"m", {ArgKind::Int}}};
  Builder b(k);
  const NodeId m = b.param(0, DType::Index), zero = b.integer(DType::Index, 0), n = b.len(flat_axis);
  const NodeId quotient = b.binary(BinaryOp::FloorDiv, n, m), some = b.compare(CompareOp::Ne, m, zero);
  const NodeId chosen = b.where(some, quotient, zero),
               both = b.logic(LogicOp::And, some, b.compare(CompareOp::Gt, quotient, zero));
  const NodeId wrong = b.logic(LogicOp::And, b.compare(CompareOp::Gt, quotient, zero), some);
  for (NodeId i = 0; i < k.insts.size(); ++i) k.host.push_back(i);
  std::vector<HostValue> values(k.insts.size());
  std::vector<uint8_t> poison;
  HostProgram(k).run(std::vector<HostValue>{{.integer = 0}}, 10, values, poison);
  EXPECT_EQ(poison[quotient], HostFault::ZeroDivision);
  EXPECT_EQ(poison[chosen], HostFault::None);
  EXPECT_EQ(poison[both], HostFault::None);
  EXPECT_FALSE(values[both].integer);
  EXPECT_EQ(poison[wrong], HostFault::ZeroDivision) << "the left side is looked at first";
}

TEST(HostProgram, BoundsAreClamped) {
  EXPECT_EQ(clamp_bound({.integer = -5}, 10), 0);
  EXPECT_EQ(clamp_bound({.integer = 5}, 10), 5);
  EXPECT_EQ(clamp_bound({.integer = (__int128)1 << 100}, 10), 10);
}

TEST(HostProgram, UniformsInSlots) {
  HostValue f{};
  f.real = 0.5;
  EXPECT_EQ(uniform_slot(DType::F32, f).single, 0.5f);
  EXPECT_EQ(uniform_slot(DType::F64, f).real, 0.5);
  EXPECT_EQ(uniform_slot(DType::I8, {.integer = -1}).integer, -1);
  EXPECT_EQ(uniform_slot(DType::U8, {.integer = 255}).integer, 255);
  EXPECT_EQ(uniform_slot(DType::Bool, {.integer = 1}).byte, 1);
}

/// Every value that an index takes over [first, last] lies in its interval, and at one position the interval is that
/// value.
TEST(Intervals, HoldEveryValue) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 3000; ++round) {
    Kernel k;
    k.arguments = {{"m", {ArgKind::Int}}, {"x", {ArgKind::Tensor, DType::F32}}};
    Builder b(k);
    std::vector<NodeId> pool{b.pos(flat_axis), b.len(flat_axis), b.param(0, DType::Index),
                             b.integer(DType::Index, (int)(random() % 9) - 4), b.integer(DType::Index, 2)};
    auto any = [&] { return pool[random() % pool.size()]; };
    for (int step = 0; step < 6; ++step) {
      const BinaryOp op[] = {BinaryOp::Add,    BinaryOp::Sub,   BinaryOp::Mul,   BinaryOp::FloorDiv,
                             BinaryOp::Mod,    BinaryOp::Pow,   BinaryOp::Shl,   BinaryOp::Shr,
                             BinaryOp::BitAnd, BinaryOp::BitOr, BinaryOp::BitXor};
      auto quotient = [&] { // of what may be 0 by 0, which no comparison may take for a number
        const NodeId over = any(), under = random() % 2 ? over : any();
        return b.binary(BinaryOp::Div, b.cast(over, DType::F64), b.cast(under, DType::F64));
      };
      auto real = [&]() -> NodeId { // the least of a number and no number is none, whatever the number bounds
        const NodeId number = b.cast(any(), DType::F64);
        if (random() % 3 == 0) return number;
        return random() % 2 ? quotient() : b.call(least_row(), DType::F64, {quotient(), number});
      };
      switch (random() % 12) {
      case 5:
        pool.push_back(b.call(magnitude_row(), DType::Index, {any()}));
        break;
      case 6: {
        const int row = find_builtin(std::array{"floor", "ceil", "round", "sqrt"}[random() % 4]);
        pool.push_back(b.cast(b.cast(b.call(uint8_t(row), DType::F64, {quotient()}), DType::I64), DType::Index));
        break;
      }
      case 7: {
        const uint8_t row = random() % 2 ? least_row() : greatest_row();
        pool.push_back(b.cast(b.cast(b.call(row, DType::F64, {quotient(), quotient()}), DType::I64), DType::Index));
        break;
      }
      case 4:
        pool.push_back(b.where(b.compare(CompareOp(random() % 6), real(), real()), any(), any()));
        break;
      case 0:
        pool.push_back(b.unary(UnaryOp(random() % 2), any()));
        break;
      case 1:
        pool.push_back(b.where(b.compare(CompareOp(random() % 6), any(), any()), any(), any()));
        break;
      case 2:
        pool.push_back(
            b.cast(b.binary(BinaryOp(random() % 4), b.cast(any(), DType::F64), b.cast(any(), DType::F64)), DType::I64)),
            pool.back() = b.cast(pool.back(), DType::Index);
        break;
      case 3: {
        const uint8_t row = random() % 2 ? least_row() : greatest_row();
        pool.push_back(b.call(row, DType::Index, {any(), any()}));
        break;
      }
      default:
        pool.push_back(b.binary(op[random() % 11], any(), any()));
      }
    }
    for (NodeId n = 0; n < k.insts.size(); ++n)
      if (k[n].stage == Stage::Host) k.host.push_back(n);
    const int64_t count = 1 + int64_t(random() % 20), first = int64_t(random() % count),
                  last = first + int64_t(random() % (count - first));
    std::vector<HostValue> values(k.insts.size());
    std::vector<uint8_t> poison;
    HostProgram(k).run(std::vector<HostValue>{{.integer = (int)(random() % 40) - 20}, {}}, count, values, poison);
    Intervals intervals(k, values, poison);
    for (const NodeId node : pool) {
      const IndexRange whole = intervals.range(node, Region(first, last));
      for (int64_t p = first; p <= last; ++p) {
        // By hand, with poison standing for "anything".
        std::vector<std::optional<Constant>> at(k.insts.size());
        for (NodeId n = 0; n <= node; ++n) {
          if (k[n].stage == Stage::Host) {
            if (!poison[n]) at[n] = constant_of(k[n].type, values[n]);
          } else if (k[n].op == Op::Pos) at[n] = Constant{p, 0};
          else if (k[n].op == Op::Where) {
            if (at[k[n].a]) at[n] = at[k[n].a]->integer ? at[k[n].b] : at[k[n].c];
          } else {
            std::vector<Constant> list;
            for (const NodeId o : operands(k, n))
              if (at[o]) list.push_back(*at[o]);
            Constant out;
            if (list.size() == operands(k, n).size() &&
                apply(k[n], k[operands(k, n)[0]].type, list, out) != Trouble::Overflow)
              at[n] = out;
          }
        }
        if (!at[node] || whole.overflow) continue;
        ASSERT_TRUE(whole.lo <= at[node]->integer && at[node]->integer <= whole.hi)
            << "%" << node << " at " << p << " in [" << first << ", " << last << "] of " << count << "\n"
            << print(k);
      }
    }
  }
}

// --- calls ---

CallCheck call(const std::string &spec, const std::vector<std::string> &arguments, std::vector<HostValue> parameters,
               int64_t n) {
  return host_call(scheduled(spec, arguments), parameters, n).check;
}

TEST(Calls, OverflowOnlyWhereSomePositionReachesIt) {
  const int64_t n = int64_t(1) << 40;
  EXPECT_EQ(call("x * (i*i)", {"x: f32"}, {{}}, n).fault.what, HostFault::Overflow);
  EXPECT_EQ(call("x * (i*i)", {"x: f32"}, {{}}, int64_t(1) << 31).fault.what, HostFault::None);
  EXPECT_EQ(call("i < 100: x * (i*i); else x", {"x: f32"}, {{}}, n).fault.what, HostFault::None);
  EXPECT_EQ(call("i < 0*n: x * (i*i*n*n); else x", {"x: f32"}, {{}}, n).fault.what, HostFault::None)
      << "the piece has no position";
  EXPECT_EQ(call("x * where(i < 100, i*i, 1)", {"x: f32"}, {{}}, n).fault.what, HostFault::None) << "nor has the arm";
  EXPECT_EQ(call("i < n - 100: x; else x * (i*i)", {"x: f32"}, {{}}, n).fault.what, HostFault::Overflow);
  EXPECT_EQ(call("i*i < n: x; else 0", {"x: f32"}, {{}}, n).fault.what, HostFault::None) << "comparisons are exact";
  EXPECT_TRUE(call("i*i < n: x; else 0", {"x: f32"}, {{}}, n).wide);
  EXPECT_FALSE(call("i*i < n: x; else 0", {"x: f32"}, {{}}, 1000).wide);
  EXPECT_EQ(call("x < i*i*i: x; else 0", {"x: i64"}, {{}}, n).fault.what, HostFault::Overflow)
      << "a tensor has entered";
}

TEST(Calls, FaultsNameTheirPlace) {
  const std::string spec = "i < 9: x; else x * (i**7 - 1)";
  const CallCheck c = call(spec, {"x: f32"}, {{}}, int64_t(1) << 40);
  ASSERT_EQ(c.fault.what, HostFault::Overflow);
  EXPECT_EQ(spec.substr(c.fault.where.begin, c.fault.where.end - c.fault.where.begin), "i**7");
  const std::string two = "i >= n - 9: x * (i*i); else x * (i**7 - 1)";
  const CallCheck first = call(two, {"x: f32"}, {{}}, int64_t(1) << 40);
  ASSERT_EQ(first.fault.what, HostFault::Overflow);
  EXPECT_EQ(two.substr(first.fault.where.begin, first.fault.where.end - first.fault.where.begin), "i*i");
  const CallCheck z = call("x * float(i // (m - 2))", {"x: f32", "m: int"}, {{}, {.integer = 2}}, 5);
  EXPECT_EQ(z.fault.what, HostFault::ZeroDivision);
}

TEST(Calls, ParametersMustFit) {
  EXPECT_EQ(call("x + m", {"x: i8", "m: int"}, {{}, {.integer = 127}}, 5).fault.what, HostFault::None);
  const CallCheck c = call("x + m", {"x: i8", "m: int"}, {{}, {.integer = 128}}, 5);
  EXPECT_EQ(c.fault.what, HostFault::Overflow);
  EXPECT_EQ(c.fault.message, "128 does not fit i8");
  EXPECT_EQ(call("x + m", {"x: i8", "m: int"}, {{}, {.integer = 128}}, 0).fault.what, HostFault::None) << "no position";
  EXPECT_EQ(call("i < 5: x; else x + m", {"x: i8", "m: int"}, {{}, {.integer = 128}}, 5).fault.what, HostFault::None);
  EXPECT_TRUE(call("x < m: x; else 0", {"x: i64", "m: int"}, {{}, {.integer = (__int128)1 << 70}}, 5).wide)
      << "compares exactly";
}

TEST(Calls, ARampsDifferencesStayIn64Bits) { // of its ends, the lower one from the upper
  const __int128 least = -((__int128)1 << 63);
  EXPECT_EQ(call("ramp(i, m, 100)", {"m: int"}, {{.integer = least + 101}}, 10).fault.what, HostFault::None);
  EXPECT_EQ(call("ramp(i, m, 100)", {"m: int"}, {{.integer = least + 100}}, 10).fault.what, HostFault::Overflow);
}

TEST(Calls, ABoundMustBeANumberWhereTheProofNeededIt) {
  HostValue nan{};
  nan.real = NAN;
  const Kernel k = scheduled("i < g: x; i >= g: x*2", {"x: f32", "g: float"});
  std::vector<HostValue> parameters(2);
  for (size_t a = 0; a < k.arguments.size(); ++a)
    if (k.arguments[a].name == "g") parameters[a] = nan;
  EXPECT_EQ(host_call(k, parameters, 5).check.fault.what, HostFault::NotANumber);
}

TEST(Calls, PoisonedBounds) {
  EXPECT_EQ(call("i < n//m: x; else 0", {"x: f32", "m: int"}, {{.integer = 0}, {.integer = 0}}, 5).fault.what,
            HostFault::ZeroDivision);
  EXPECT_EQ(call("i < 9: x; i < n//m: x*2; else 0", {"x: f32", "m: int"}, {{}, {.integer = 0}}, 5).fault.what,
            HostFault::None)
      << "never asked";
}

// --- calls over axes ---

/// A call of a rule that names all axes of its domain, each an axis of the loop. `shapes`, `parameters`: by name.
CallCheck axes_call(const std::string &spec, const std::vector<std::string> &arguments,
                    const std::vector<int64_t> &lengths, const std::map<std::string, std::vector<int64_t>> &shapes,
                    const std::map<std::string, int64_t> &parameters = {}) {
  const Kernel k = scheduled(spec, arguments);
  int64_t count = 1;
  std::vector<int64_t> pitches(lengths.size());
  for (size_t d = lengths.size(); d-- > 0;) pitches[d] = count, count *= lengths[d];
  HostDomain domain(count);
  domain.axes = lengths, domain.extent = lengths.back();
  std::vector<int64_t> rows(lengths.rbegin() + 1, lengths.rend()), row_pitches(pitches.rbegin() + 1, pitches.rend());
  domain.row_lengths = rows, domain.row_pitches = row_pitches;
  std::vector<std::span<const int64_t>> given;
  std::vector<HostValue> values(k.arguments.size());
  for (size_t a = 0; a < k.arguments.size(); ++a) {
    const auto shape = shapes.find(k.arguments[a].name);
    given.push_back(shape == shapes.end() ? std::span<const int64_t>() : std::span<const int64_t>(shape->second));
    if (const auto at = parameters.find(k.arguments[a].name); at != parameters.end()) values[a].integer = at->second;
  }
  domain.shapes = given;
  std::vector<HostValue> worked(k.insts.size());
  std::vector<uint8_t> poisoned;
  HostProgram(k).run(values, domain, worked, poisoned);
  const CallChecks checks(k);
  return checks.run(worked, poisoned, checks.looks(domain), domain);
}

TEST(AxesCalls, FaultsAreLookedForAlongTheAxesThatTheyDependOn) {
  const std::string pairs = "[b, h, t, d]; d % 2 == 0: x[b, h, t, d+1]; else x[b, h, t, d-1]";
  const std::vector<int64_t> large{4, 32, 4096, 128}, odd{4, 32, 4096, 127};
  EXPECT_EQ(axes_call(pairs, {"x: f32[4]", "rank: 4"}, large, {{"x", large}}).fault.what, HostFault::None);
  const CallCheck beyond = axes_call(pairs, {"x: f32[4]", "rank: 4"}, odd, {{"x", odd}});
  EXPECT_EQ(beyond.fault.what, HostFault::OutOfBounds) << "the last of an odd number has no partner";
  EXPECT_NE(beyond.fault.message.find("index 127"), std::string::npos) << beyond.fault.message;

  // The condition and the index speak of two axes, others of none.
  const std::string two = "[b, h, t, d]; b*b == 2: s[d]; else 0";
  EXPECT_EQ(axes_call(two, {"s: f32[1]", "rank: 4"}, {4096, 2, 4096, 1 << 20}, {{"s", {7}}}).fault.what,
            HostFault::None);
  EXPECT_EQ(axes_call("[b, h, t, d]; b*b == 9: s[d]; else 0", {"s: f32[1]", "rank: 4"}, {4096, 2, 4096, 1 << 20},
                      {{"s", {7}}})
                .fault.what,
            HostFault::OutOfBounds);
  // An earlier piece takes what has the fault.
  EXPECT_EQ(
      axes_call("[b, t, d]; d % 3 == 2: 0; else s[d + 1]", {"s: f32[1]", "rank: 3"}, {5000, 7000, 300}, {{"s", {300}}})
          .fault.what,
      HostFault::None);
  // A condition inside the value.
  EXPECT_EQ(axes_call("[b, t, d]; where(d % 2 == 0, s[t, d + 1], 0) + b", {"s: f32[2]", "rank: 3"}, {5000, 7000, 300},
                      {{"s", {7000, 300}}})
                .fault.what,
            HostFault::None);
  // The row-major position is made of all axes.
  EXPECT_EQ(axes_call("[b, t]; i % 2 == 1: s[i - 1]; else s[i + 1]", {"s: f32[1]", "rank: 2"}, {5000, 7000},
                      {{"s", {35'000'000}}})
                .fault.what,
            HostFault::None);
}

TEST(AxesCalls, ARowsReadIsLookedAtWhereTheGuardAsksForIt) {
  const std::string window = "[b, r, c]; c <= r and r - c < w and c < lens[b]: x; else 0";
  const std::vector<std::string> arguments{"x: f32", "lens: i64[1]", "w: int", "rank: 3"};
  auto what = [&](int64_t lens, int64_t w) {
    return axes_call(window, arguments, {3, 256, 256}, {{"lens", {lens}}}, {{"w", w}}).fault.what;
  };
  EXPECT_EQ(what(3, 64), HostFault::None);
  EXPECT_EQ(what(2, 64), HostFault::OutOfBounds);
  EXPECT_EQ(what(2, 0), HostFault::None) << "no position gets as far as the length";
  // What the left side keeps in bounds.
  const std::string before = "[r, c]; c < r and c < lens[r - 1]: x; else 0";
  EXPECT_EQ(axes_call(before, {"x: f32", "lens: i64[1]", "rank: 2"}, {2048, 64}, {{"lens", {2047}}}).fault.what,
            HostFault::None);
  EXPECT_EQ(axes_call(before, {"x: f32", "lens: i64[1]", "rank: 2"}, {2048, 64}, {{"lens", {2046}}}).fault.what,
            HostFault::OutOfBounds);
}

} // namespace
} // namespace elsewise::test
