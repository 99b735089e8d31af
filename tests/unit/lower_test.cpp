// SPDX-License-Identifier: Apache-2.0
// Specs as IR, before any pass: conversions, exact comparisons, checks. What passes make of it stands in
// passes_test.cpp.
#include "tests/unit/interpret.h"
#include <cmath>
#include <gtest/gtest.h>

namespace elsewise::test {
namespace {

TEST(Lower, TheSeedRule) {
  EXPECT_EQ(nodes(lowered("i<n/4: x*0.5; i>=n-n/4: x*2; else x", {"x: f32"})), R"(kernel (x: f32) -> f32
  %0 = pos flat : index element
  %1 = len flat : index host
  %2 = const 4 : index host
  %3 = floordiv %1, %2 : index host
  %4 = lt %0, %3 : bool element
  %5 = load x : f32 element
  %6 = const 0.5 : f64 host
  %7 = cast %6 : f32 host
  %8 = mul %5, %7 : f32 element
  %9 = sub %1, %3 : index host
  %10 = ge %0, %9 : bool element
  %11 = const 2 : index host
  %12 = cast %11 : f32 host
  %13 = mul %5, %12 : f32 element
  piece 1:1 when %4 -> %8
  piece 1:15 when %10 -> %13
  piece 1:30 -> %5
)");
}

TEST(Lower, ParametersAndABuiltin) {
  EXPECT_EQ(nodes(lowered("i<128: x*a; i>=n-m: min(x, c); else x*b",
                          {"x: f32", "a: float", "m: int", "b: float", "c: float"})),
            R"(kernel (x: f32, a: float, m: int, c: float, b: float) -> f32
  %0 = pos flat : index element
  %1 = const 128 : index host
  %2 = lt %0, %1 : bool element
  %3 = load x : f32 element
  %4 = param a : f64 host
  %5 = cast %4 : f32 host
  %6 = mul %3, %5 : f32 element
  %7 = len flat : index host
  %8 = param m : index host
  %9 = sub %7, %8 : index host
  %10 = ge %0, %9 : bool element
  %11 = param c : f64 host
  %12 = cast %11 : f32 host
  %13 = call min %3, %12 : f32 element
  %14 = param b : f64 host
  %15 = cast %14 : f32 host
  %16 = mul %3, %15 : f32 element
  piece 1:1 when %2 -> %6
  piece 1:13 when %10 -> %13
  piece 1:32 -> %16
)");
}

TEST(Lower, HalvesAreWorkedInF32AndMoveAsBits) {
  EXPECT_EQ(nodes(lowered("x > 0.1: x*2; else x", {"x: f16"})), R"(kernel (x: f16) -> f16
  %0 = load x : f16 element
  %1 = const 0.1 : f64 host
  %2 = cast %1 : f16 host
  %3 = cast %0 : f32 element
  %4 = cast %2 : f32 host
  %5 = gt %3, %4 : bool element
  %6 = const 2 : index host
  %7 = cast %6 : f32 host
  %8 = mul %3, %7 : f32 element
  %9 = cast %8 : f16 element
  piece 1:1 when %5 -> %9
  piece 1:15 -> %0
)") << "the literal is rounded to half first";
}

TEST(Lower, CompositesAreExpanded) {
  const std::string text = nodes(lowered("clip(x, 0, g)", {"x: f32", "g: float"}));
  EXPECT_NE(text.find("call max %0, %2 : f32 element"), std::string::npos) << text;
  EXPECT_NE(text.find("call min %5, %4 : f32 element"), std::string::npos) << text;
  const std::string three = nodes(lowered("max(x, 1, 2)", {"x: i32"}));
  EXPECT_NE(three.find("%5 = call max %0, %2"), std::string::npos) << three;
  EXPECT_NE(three.find("%6 = call max %5, %4"), std::string::npos) << "from the left, two at a time\n" << three;
}

/// The comparison of `i` with a float parameter, at a few sizes, is exact: it is evaluated as the host would.
TEST(Lower, IndexAgainstAFloatIsExact) {
  const struct {
    const char *op;
    bool (*truth)(long double, long double);
  } cases[] = {{"<", [](long double a, long double b) { return a < b; }},
               {"<=", [](long double a, long double b) { return a <= b; }},
               {">", [](long double a, long double b) { return a > b; }},
               {">=", [](long double a, long double b) { return a >= b; }},
               {"==", [](long double a, long double b) { return a == b; }},
               {"!=", [](long double a, long double b) { return a != b; }}};
  const double floats[] = {0,          -0.0,   0.5,  -0.5,  1,        2,         2.5, 0x1p53,
                           0x1p53 + 2, 0x1p63, 1e30, -1e30, INFINITY, -INFINITY, NAN};
  const __int128 wholes[] = {0, 1, 2, 3, -1, ((__int128)1 << 53) + 1, INT64_MAX, INT64_MIN};
  for (const auto &c : cases)
    for (const bool flipped : {false, true}) {
      const std::string spec =
          flipped ? std::string("g ") + c.op + " m: 1; else 0" : std::string("m ") + c.op + " g: 1; else 0";
      const Kernel k = scheduled(spec, {"m: int", "g: float"});
      const bool m_first = k.arguments[0].name == "m";
      for (const double g : floats)
        for (const __int128 m : wholes) {
          std::vector<HostValue> values(2);
          values[m_first ? 0 : 1].integer = m, values[m_first ? 1 : 0].real = g;
          const HostCall call = host_call(k, values, 1);
          const bool got = interpret(k, call, 0, 1, nullptr).integer;
          ASSERT_EQ(got, flipped ? c.truth(g, (long double)m) : c.truth((long double)m, g))
              << spec << " m " << (double)m << " g " << g;
        }
    }
}

TEST(Lower, Checks) {
  auto checks = [](const std::string &spec, const std::vector<std::string> &arguments) {
    std::string lines;
    const std::string text = nodes(lowered(spec, arguments));
    for (size_t at = 0; (at = text.find("  check ", at)) != std::string::npos; ++at)
      lines += text.substr(at + 8, text.find('\n', at) - at - 8) + "; ";
    return lines;
  };
  EXPECT_EQ(checks("x + m", {"x: i8", "m: int"}), "fits i8 %1 piece 0; ");
  EXPECT_EQ(checks("x + 100", {"x: i8"}), "") << "a literal that fits is settled";
  EXPECT_EQ(checks("x * m", {"x: f32", "m: int"}), "");
  EXPECT_EQ(checks("x < m: x; else x", {"x: i8", "m: int"}), "") << "comparisons are exact";
  EXPECT_EQ(checks("i < 3: x; else i // m", {"x: i64", "m: int"}), "nonzero %4 piece 1; ");
  EXPECT_EQ(checks("x // m", {"x: i32", "m: int"}), "fits i32 %1 piece 0; ") << "data divided by zero is 0";
  EXPECT_EQ(checks("i < 3: x; else m", {"x: i16", "m: int"}), "fits i16 %4 piece 1; ");
  EXPECT_EQ(checks("i8(m) + x", {"x: i8", "m: int"}), "") << "an explicit cast wraps";
  EXPECT_EQ(checks("wrap(i, m)", {"m: int"}), "nonzero %1 piece 0; ");
  EXPECT_EQ(checks("where(bit(i, m), 1, 0)", {"m: int"}), "") << "bit 0 is one";
  // Not reached where the host's condition says so: the check looks at a harmless number then.
  const Kernel k = scheduled("where(m != 0, i // m, 7)", {"m: int"});
  EXPECT_EQ(host_call(k, {{.integer = 0}}, 5).check.fault.what, HostFault::None);
  EXPECT_EQ(interpret(k, host_call(k, {{.integer = 0}}, 5), 3, 5, nullptr).integer, 7);
  EXPECT_EQ(host_call(scheduled("i // m", {"m: int"}), {{.integer = 0}}, 5).check.fault.what, HostFault::ZeroDivision);
}

TEST(Lower, UnsignedDataBesideAUniform) { // what is beyond u64 is settled by the uniform, exactly; the rest is of data
  const std::string text = nodes(lowered("x < m*m: 1; else 0", {"x: u64", "m: int"}));
  EXPECT_NE(text.find("= lt %0, %3 : bool element"), std::string::npos) << text;
  EXPECT_NE(text.find("= gt %2, %5 : bool host"), std::string::npos) << text;
}

TEST(Lower, BoolArithmetic) {
  const std::string text = nodes(lowered("(x + y) & (x * y) ^ x", {"x: bools", "y: bools"}));
  EXPECT_NE(text.find("= or %0, %1"), std::string::npos) << text;
  EXPECT_NE(text.find("= and %0, %1"), std::string::npos) << text;
  EXPECT_NE(text.find("= ne"), std::string::npos) << text;
}

TEST(Lower, AReadCarriesWhatLeadsToIt) {
  EXPECT_EQ(nodes(lowered("i > 0 and s[i-1] > 0: where(x > 0, s[i/2], 0); else x", {"x: f32", "s: f32[1]"})),
            R"(kernel (s: f32[1], x: f32) -> f32
  %0 = pos flat : index element
  %1 = const 0 : index host
  %2 = gt %0, %1 : bool element
  %3 = const 1 : index host
  %4 = sub %0, %3 : index element
  %5 = read s when %2, %4 : f32 element
  %6 = cast %1 : f32 host
  %7 = gt %5, %6 : bool element
  %8 = and %2, %7 : bool element
  %9 = load x : f32 element
  %10 = gt %9, %6 : bool element
  %11 = const 2 : index host
  %12 = floordiv %0, %11 : index element
  %13 = read s when %10, %12 : f32 element
  %14 = where %10, %13, %6 : f32 element
  piece 1:1 when %8 -> %14
  piece 1:48 -> %9
)");
}

TEST(Lower, ManyPathsToAReadEndSomewhere) { // each let is used under a condition and under its opposite
  std::string spec = "let w0 = s[0]*x\n";
  for (int k = 1; k < 60; ++k) {
    const std::string before = "w" + std::to_string(k - 1), at = std::to_string(k);
    spec += "let w" + at + " = where(x > " + at + ", " + before + " + 1, " + before + " * 2)\n";
  }
  EXPECT_LT(lowered(spec + "w59", {"x: f32", "s: f32[1]"}).insts.size(), size_t(1) << 19);
}

TEST(Lower, OwnAxesOfARead) {
  EXPECT_EQ(nodes(lowered("[b, .., d]; x[b, .., clip(q + d, 0, len(x, -1)-1)]", {"x: f16[3]", "q: u8", "rank: 3"})),
            R"(kernel (x: f16[3], q: u8) over [b: 0, d: -1, axis1: 1] -> f16
  %0 = pos b : index element
  %1 = pos axis1 : index element
  %2 = load q : u8 element
  %3 = cast %2 : i64 element
  %4 = pos d : index element
  %5 = cast %4 : i64 element
  %6 = add %3, %5 : i64 element
  %7 = const 0 : index host
  %8 = cast %7 : i64 host
  %9 = arglen x -1 : index host
  %10 = const 1 : index host
  %11 = sub %9, %10 : index host
  %12 = cast %11 : i64 host
  %13 = call max %6, %8 : i64 element
  %14 = call min %13, %12 : i64 element
  %15 = cast %14 : index element
  %16 = read x own(1) %0, %1, %15 : f16 element
  piece 1:13 -> %16
  check fits i64 %11 piece 0
)");
}

TEST(Lower, PieceTextIsOneLine) {
  const Kernel k = lowered("i < 3: x *   # a comment\n  2\nelse x", {"x: f32"});
  EXPECT_EQ(k.pieces[0].text, "i < 3: x * 2");
  EXPECT_EQ(k.pieces[1].line, 3u);
}

} // namespace
} // namespace elsewise::test
