// SPDX-License-Identifier: Apache-2.0
// What each expression is worked in, in each use, and what the result is. Messages as people see them are
// tests/lit/check's business.
#include "tests/unit/typed.h"
#include <gtest/gtest.h>

using namespace elsewise;
using elsewise::test::check;
using elsewise::test::Checked;

namespace {

const char *kind(const ExprType &t) {
  constexpr const char *names[] = {"unknown", "index", "weak", "bool", "data"};
  return names[int(t.type.kind)];
}
/// "kind dtype, worked in compute".
std::string show(const ExprType &t) {
  return std::string(kind(t)) + " " + spelling(t.type.dtype) + ", worked in " + spelling(t.compute);
}
std::string result(const std::string &text, const std::string &kinds = "") {
  const Checked c = check(text, kinds);
  if (c.failed) return c.codes();
  return c.typed.complete ? spelling(c.typed.result) : "unknown";
}

TEST(Specialise, TheSeed) {
  const Checked c = check("i<n/4: x*0.5; i>=n-n/4: x*2; else x", "x:f32");
  ASSERT_FALSE(c.failed);
  EXPECT_TRUE(c.typed.complete);
  EXPECT_EQ(c.typed.result, DType::F32);
  EXPECT_EQ(c.reachable(), "111");
  EXPECT_EQ(show(c.at("i<n/4")), "bool bool, worked in index");
  EXPECT_EQ(c.at("i<n/4").operands, Use::Compare);
  EXPECT_EQ(show(c.at("n/4", Use::Compare)), "index index, worked in index");
  EXPECT_TRUE(c.at("n/4", Use::Compare).quotient);
  EXPECT_EQ(c.at("n/4", Use::Compare).type.stage, Stage::Host);
  EXPECT_EQ(c.at("i", Use::Compare).type.stage, Stage::Element);
  EXPECT_EQ(c.at("i", Use::Compare).type.category, Category::Dim);
  EXPECT_EQ(show(c.at("x*0.5")), "data f32, worked in f32");
  EXPECT_EQ(show(c.at("0.5")), "weak f32, worked in f64");
  EXPECT_EQ(c.at("0.5").type.category, Category::Scalar);
}

TEST(Specialise, HalvesAreWorkedInF32) {
  const Checked c = check("x > rate: x*rate; else x", "x:f16 rate:float");
  EXPECT_EQ(show(c.at("x*rate")), "data f16, worked in f32");
  EXPECT_EQ(show(c.at("x > rate")), "bool bool, worked in f32");
  EXPECT_EQ(c.at("x > rate").nominal, DType::F16);
  EXPECT_EQ(c.at("x > rate").operands, Use::Value);
  EXPECT_EQ(c.typed.result, DType::F16);
}

TEST(Specialise, IndicesAreWorkedIn64Bits) {
  const Checked c = check("s[clip(q + 300, 0, len(s)-1)] * q", "s:f16[1] q:u8");
  ASSERT_FALSE(c.failed) << c.rendered();
  EXPECT_EQ(show(c.at("q + 300", Use::Index)), "data i64, worked in i64");
  EXPECT_EQ(c.at("q + 300", Use::Index).operands, Use::Index);
  EXPECT_EQ(show(c.at("s[clip(q + 300, 0, len(s)-1)]")), "data f16, worked in f32");
  EXPECT_EQ(result("s[clip(q + 300, 0, len(s)-1)] + 0*(q + 300)", "s:f32[1] q:u8"), "does-not-fit");
  EXPECT_EQ(result("s[int(q + 300)]", "s:f32[1] q:u8"), "does-not-fit"); // a conversion ends what an index is worked in
  EXPECT_EQ(result("s[where(q + 300 > 0, q, 0)]", "s:f32[1] q:u8"), "does-not-fit");
  EXPECT_EQ(result("s[t[q + 300]]", "s:f32[1] t:u8[1] q:u8"), "f32");
  EXPECT_EQ(show(check("s[popcount(q)]", "s:f32[1] q:i8").at("popcount(q)", Use::Index)), "data i64, worked in i8");
}

TEST(Specialise, DivisionBetweenBracketsIsWhole) {
  for (const char *rule : {"s[i/128]", "s[i/m]", "s[clip(m/2 - i/3, 0, n/2)]", "s[n/2/2]", "s[i/4 % 3 * 2]",
                           "s[where(i > 3, i/2, n/4)]", "let h = i/2; s[h]", "s[t[i/2]]"})
    EXPECT_EQ(result(rule, "s:f32[1] t:i32[1] m:int"), "f32") << rule;
  EXPECT_EQ(result("let h = i/2; s[h] + h", "s:f32[1]"), "index-division");
  EXPECT_EQ(result("s[i/2] + i/2", "s:f32[1]"), "index-division");
  EXPECT_EQ(result("s[(i/2)**2]", "s:f32[1]"), "index-division");
  EXPECT_EQ(result("s[int(float(i/2))]", "s:f32[1]"), "index-division");
  EXPECT_EQ(result("s[q/2]", "s:f32[1] q:i32"), "index-not-whole");
}

TEST(Specialise, ReadsHaveTheTypeOfTheTensor) {
  EXPECT_EQ(result("s[0]*q", "s:f16[1] q:f32"), "f32");
  EXPECT_EQ(result("s[0] + i", "s:u8[1]"), "i64");
  EXPECT_EQ(result("s[0]: x; else 0", "s:bool[1] x:f32"), "f32");
  EXPECT_EQ(result("s[0]: x; else 0", "s:i32[1] x:f32"), "guard-not-bool");
  EXPECT_EQ(result("x + s[0]", "s:f64[1] x:f32"), "f64");
  EXPECT_EQ(check("x + s[0]", "s:f64[1] x:f32").typed.working, DType::F64);
  EXPECT_EQ(result("x + s[0]", "x:f32"), "unknown");
  EXPECT_EQ(result("x + s[0, 1]", "s:f32[1] x:f32"), "index-count");
  EXPECT_EQ(result("x + s[0]", "s:f32[] x:f32"), "indexed-parameter");
}

TEST(Specialise, ReadsInGuards) { // equal by their text, and whole numbers where the tensor is
  EXPECT_EQ(result("t[i] < 3: 1; t[i] >= 3: 2", "t:i32[1]"), "i64");
  EXPECT_EQ(result("t[i] < 3: 1; t[n-1-i] >= 3: 2", "t:i32[1]"), "not-covered");
  EXPECT_EQ(result("t[i] < 3: 1; t[i] >= 3: 2", "t:f32[1]"), "not-covered"); // NaN
  EXPECT_EQ(check("t[0] < 256: 1; else 2", "t:u8[1]").reachable(), "10");
  EXPECT_EQ(check("t[0]: 1; not t[0]: 2; else 3", "t:bool[1]").reachable(), "110");
  EXPECT_EQ(check("t[i] < 3: 1; u[i] >= 3: 2; else 3", "t:u8[1] u:u8[1]").reachable(), "111");
}

TEST(Specialise, AFloatWithoutATensorHasTwoTypes) {
  const Checked c = check("i < rate*n: rate*n*i; else x", "x:f16 rate:float");
  EXPECT_EQ(show(c.at("i < rate*n")), "bool bool, worked in f64");
  EXPECT_EQ(show(c.at("rate*n", Use::Value)), "weak f32, worked in f64"); // on the host always doubles
  EXPECT_EQ(show(c.at("rate*n*i")), "weak f32, worked in f32");
  const Checked d = check("i < float(i)*0.5: 1; else x", "x:f32");
  EXPECT_EQ(show(d.at("float(i)*0.5", Use::Compare)), "weak f64, worked in f64");
}

TEST(Specialise, TheWorkingFloat) {
  EXPECT_EQ(result("0.5*i"), "f32");
  EXPECT_EQ(result("x > 0: 0.5; else 0.25", "x:f64"), "f64");
  EXPECT_EQ(result("x > 0: 0.5; else 0.25", "x:f64[]"), "f32"); // a 0-d tensor does not widen
  EXPECT_EQ(result("float(i)", "out:f64"), "f64");
  EXPECT_EQ(check("x*float(i)", "x:f32 out:f64").at("float(i)").type.dtype, DType::F64);
  EXPECT_EQ(result("i < 3: f64(i) > 1; else false"), "bool");
  EXPECT_EQ(check("i < 3: f64(i); else float(i)").at("float(i)").type.dtype, DType::F64);
}

TEST(Specialise, ResultsArePromotedAsTorchDoes) {
  EXPECT_EQ(result("x*2", "x:u8"), "u8");
  EXPECT_EQ(result("x*0.5", "x:u8"), "f32");
  EXPECT_EQ(result("x*i", "x:u8"), "i64");
  EXPECT_EQ(result("x*n", "x:u8"), "u8");
  EXPECT_EQ(result("x*i", "x:bf16"), "bf16");
  EXPECT_EQ(result("x*(i/float(n))", "x:bf16"), "bf16");
  EXPECT_EQ(result("x+y", "x:f16 y:bf16"), "f32");
  EXPECT_EQ(result("x+y", "x:f16 y:f64[]"), "f16");
  EXPECT_EQ(result("x+y", "x:i32 y:f16[]"), "f16");
  EXPECT_EQ(result("x+y", "x:u8 y:i8"), "i16");
  EXPECT_EQ(result("x/2", "x:i32"), "f32");
  EXPECT_EQ(result("x//2", "x:i32"), "i32");
  EXPECT_EQ(result("sqrt(x)", "x:i64"), "f32");
  EXPECT_EQ(result("i < 3: x; else y", "x:i8 y:f16"), "f16");
  EXPECT_EQ(result("i < 3: 0; else x", "x:f16"), "f16");
  EXPECT_EQ(result("i < 3: i; else x", "x:i32"), "i64");
  EXPECT_EQ(result("i"), "i64");
  EXPECT_EQ(result("i < 3: 0.5; else i"), "f32");
  EXPECT_EQ(result("i < 3"), "bool");
  EXPECT_EQ(result("i < 0: x; else y", "x:f32 y:i8"), "i8"); // what is never reached does not promote
}

TEST(Specialise, Bools) {
  EXPECT_EQ(result("m + m", "m:bool"), "bool");
  EXPECT_EQ(result("m * m", "m:bool"), "bool");
  EXPECT_EQ(result("m / m", "m:bool"), "f32");
  EXPECT_EQ(result("m * 2", "m:bool"), "i64");
  EXPECT_EQ(result("m * 0.5", "m:bool"), "f32");
  EXPECT_EQ(result("m * x", "m:bool x:f16"), "f16");
  EXPECT_EQ(result("f * x", "f:flag x:u8"), "u8");
  EXPECT_EQ(result("(i < 3) * 0.5 * x", "x:bf16"), "bf16"); // no tensor has entered
  EXPECT_EQ(result("m & m | m ^ ~m", "m:bool"), "bool");
  EXPECT_EQ(result("m // m", "m:bool"), "bool-arithmetic");
  EXPECT_EQ(result("m << m", "m:bool"), "bool-arithmetic");
  EXPECT_EQ(result("1 - m", "m:bool"), "bool-minus");
  EXPECT_EQ(result("-(i < 3)"), "bool-minus");
  EXPECT_EQ(result("min(m, m)", "m:bool"), "bool-number");
}

TEST(Specialise, Casts) {
  EXPECT_EQ(result("f16(i)"), "f16");
  EXPECT_EQ(result("f32(i)*x", "x:bf16"), "f32"); // a dtype that was named is never weak
  EXPECT_EQ(result("float(x)", "x:i8"), "f32");
  EXPECT_EQ(result("float(x)", "x:f16"), "f16");
  EXPECT_EQ(result("float(i)*x", "x:f16"), "f16");
  EXPECT_EQ(result("int(x)", "x:f16"), "i64");
  EXPECT_EQ(result("int(0.5*i)*x", "x:u8"), "i64");
  EXPECT_EQ(result("int(rate)*x", "x:u8 rate:float"), "u8");
  EXPECT_EQ(check("f32(n)*x", "x:f16").at("f32(n)").type.stage, Stage::Host);
  EXPECT_EQ(check("f32(n)*f32(n)").at("f32(n)*f32(n)").type.stage, Stage::Element);
  EXPECT_EQ(check("f32(z)*x", "x:f16 z:f64[]").at("f32(z)").type.category, Category::ZeroDim);
  EXPECT_EQ(result("f32(z)*x", "x:f16 z:f64[]"), "f16");
}

TEST(Specialise, WholeNumbersAreComparedExactly) {
  EXPECT_EQ(show(check("x < 300: 1; else 0", "x:u8").at("x < 300")), "bool bool, worked in index");
  EXPECT_EQ(show(check("x < i: 1; else 0", "x:i32").at("x < i")), "bool bool, worked in index");
  EXPECT_EQ(show(check("x < i: 1; else 0", "x:f32").at("x < i")), "bool bool, worked in f32");
  EXPECT_EQ(show(check("x < y: 1; else 0", "x:u8 y:i8").at("x < y")), "bool bool, worked in i16");
  EXPECT_EQ(show(check("m < 1: 1; else 0", "m:bool").at("m < 1")), "bool bool, worked in index");
  EXPECT_EQ(show(check("k < 0.5: 1; else 0", "k:int").at("k < 0.5")), "bool bool, worked in f64");
}

TEST(Specialise, IndexQuotients) {
  for (const char *good :
       {"i < n/4", "i >= n-n/4", "n/4 <= i < n/2", "i/2 == n/4", "-(n/4) < i - n", "(n+3)/4 > i", "i < n*3/4"})
    EXPECT_EQ(result(std::string(good) + ": 1; else 0"), "i64") << good;
  for (const char *bad : {"n/4", "i < 2*(n/4)", "i < n/k", "i < k/4", "i < (n+k)/4", "i < 4/2", "i < n/4 + 0.5",
                          "float(n/4) < i", "i < int(n/4)", "x < n/4", "i < n/4/2", "i < (n/4)//2", "min(n/4, i) < 3",
                          "where(i < 3, n/4, 2) < i", "n/4 < rate", "i < n/(-4)", "not (n/4 == 0.5)"})
    EXPECT_EQ(result(std::string("(") + bad + ") == true: 1; else 0", "k:int rate:float x:f32"), "index-division")
        << bad;
  EXPECT_EQ(result("i < n/0: 1; else 0"), "zero-divisor");
  EXPECT_EQ(check("i/n").mended(0), "float(i)/n");
  EXPECT_EQ(check("i/n").mended(1), "i//n");
  EXPECT_EQ(check("x * ((i + 1) / n)", "x:f32").mended(0), "x * (float(i + 1) / n)");
  for (int fixit : {0, 1}) EXPECT_FALSE(check(check("x*((i+1)/n)", "x:f32").mended(fixit), "x:f32").failed);
}

TEST(Specialise, WhatIsNotKnownWaits) {
  const std::string text = "i < m/4: x; else 0";
  EXPECT_EQ(result(text), "unknown");
  EXPECT_EQ(result(text, "x:f32 m:int"), "index-division");
  EXPECT_EQ(result(text, "x:f32 m:float"), "f32");
  EXPECT_EQ(result(text, "x:f32 m:i32"), "f32");
  EXPECT_FALSE(check("i < n/4 + m: x; else 0").failed);
  EXPECT_EQ(result("i < n/4 + m: x; else 0", "x:f32 m:int"), "f32");
  EXPECT_EQ(result("i < n/4 + m: x; else 0", "x:f32 m:float"), "index-division");
  EXPECT_EQ(check("i < n/4*m: x; else 0").codes(), "index-division"); // wrong whatever m is
  EXPECT_EQ(check("i < i/n + m: x; else 0").codes(), "index-division");
  EXPECT_FALSE(check("x: 1; else 0").failed);
  EXPECT_EQ(check("x: 1; else 0", "x:f32").codes(), "guard-not-bool");
  EXPECT_EQ(check("x - (i < 3)").codes(), "bool-minus");
}

TEST(Specialise, LiteralsMustFitTheData) {
  EXPECT_EQ(result("x + 255", "x:u8"), "u8");
  EXPECT_EQ(result("x + 256", "x:u8"), "does-not-fit");
  EXPECT_EQ(result("x + (200+100)", "x:u8"), "does-not-fit");
  EXPECT_EQ(result("x - 1", "x:u8"), "u8");
  EXPECT_EQ(result("x + -1", "x:u8"), "does-not-fit");
  EXPECT_EQ(result("where(i < 3, 128, x)", "x:i8"), "does-not-fit");
  EXPECT_EQ(result("clip(x, -128, 128)", "x:i8"), "does-not-fit");
  EXPECT_EQ(result("i < 3: 300; else x", "x:u8"), "does-not-fit");
  EXPECT_EQ(result("i < 3: 300; else x", "x:u8 out:f32"), "does-not-fit");
  EXPECT_EQ(result("x < 300: x; else 0", "x:u8"), "u8"); // compares exactly
  EXPECT_EQ(result("x + 300", "x:f16"), "f16");
  EXPECT_EQ(result("9223372036854775808"), "does-not-fit");
  EXPECT_EQ(check("x + 300", "x:u8").mended(), "x + i16(300)");
  EXPECT_EQ(result(check("x + 300", "x:u8").mended(), "x:u8"), "i16");
}

TEST(Specialise, OperatorsOnWhatTheyAreNotFor) {
  EXPECT_EQ(result("x ^ 2", "x:f32"), "float-bits");
  EXPECT_EQ(check("x ^ 2", "x:f32").mended(), "x ** 2");
  EXPECT_EQ(result("x & 1", "x:f16"), "float-bits");
  EXPECT_EQ(result("x << 1", "x:f16"), "float-bits");
  EXPECT_EQ(result("i << 0.5"), "float-bits");
  EXPECT_EQ(result("~x", "x:f64"), "float-bits");
  EXPECT_EQ(result("i ** -1"), "negative-exponent");
  EXPECT_EQ(result("x ** -1", "x:i32"), "negative-exponent");
  EXPECT_EQ(result("x ** -1", "x:f32"), "f32");
  EXPECT_EQ(result(check("x ** -1", "x:i32").mended(), "x:i32"), "f32");
  EXPECT_EQ(result("i // 0"), "zero-divisor");
  EXPECT_EQ(result("i % (2-2)"), "zero-divisor");
  EXPECT_EQ(result("x // 0", "x:i32"), "i32"); // total on data
  EXPECT_EQ(result("i: 1; else 0"), "guard-not-bool");
  EXPECT_EQ(result("where(i, 1, 2)"), "operand-not-bool");
  EXPECT_EQ(result("i < 3 and x: 1; else 0", "x:f32"), "operand-not-bool");
  EXPECT_EQ(result(check("i < 3 and x: 1; else 0", "x:f32").mended(), "x:f32"), "i64");
  EXPECT_EQ(result("not x", "x:f32"), "operand-not-bool");
}

TEST(Specialise, SeveralErrorsAtOnceAndNoneTwice) {
  EXPECT_EQ(check("i < 3: i/n; i < 5: -(i < 2); x: 2; else i // 0", "x:f32").codes(),
            "index-division bool-minus guard-not-bool zero-divisor");
  EXPECT_EQ(check("((i/n + 1) * 2) % 7").codes(), "index-division");
  EXPECT_EQ(check("0 <= i/n < 3: 1; else 0").codes(), "index-division");
}

TEST(Specialise, Stores) {
  EXPECT_EQ(result("x*0.5", "x:f32 out:i32"), "cannot-store");
  EXPECT_EQ(result("x", "x:i32 out:bool"), "cannot-store");
  EXPECT_EQ(result("x", "x:i32 out:u8"), "u8");
  EXPECT_EQ(result("x", "x:f64 out:f16"), "f16");
  EXPECT_EQ(result("x > 0", "x:f64 out:f16"), "f16");
  EXPECT_EQ(check("i < 3: 0; else x*0.5", "x:f32 out:i32").mended(), "i < 3: 0; else i32(x*0.5)");
  EXPECT_EQ(check("x*0.5", "x:f32 out:f64").typed.promoted, DType::F32);
}

TEST(Specialise, UnsignedDtypesThatStandAlone) {
  EXPECT_EQ(result("x*3", "x:u16"), "u16");
  EXPECT_EQ(result("x+y", "x:u32 y:f16"), "f16");
  EXPECT_EQ(result("x/2", "x:u64"), "f32");
  EXPECT_EQ(result("x+y", "x:u16 y:i32[]"), "u16"); // a point has no say
  EXPECT_EQ(result("x+y", "x:i8 y:u64[]"), "i8");
  EXPECT_EQ(result("i < 3: x; i < 5: y; else z", "x:u16 y:i32 z:f16"), "f16"); // a float settles it
  for (const char *spec : {"x+y", "x<y", "max(x, y)", "where(x > 3, x, y)", "i < 3: x; else y", "ramp(x, y, 3)"})
    EXPECT_EQ(result(spec, "x:u16 y:i64"), "no-common-dtype") << spec;
  EXPECT_EQ(result("x+i", "x:u64"), "no-common-dtype");
  EXPECT_EQ(result("x < i: x; else 7", "x:u64"), "u64"); // compared exactly
  EXPECT_EQ(check("x+y", "x:u16 y:i8").mended(), "i32(x)+y");
  EXPECT_EQ(check("x+y", "x:u32 y:i8").mended(), "i64(x)+y");
  EXPECT_EQ(check("x+y", "x:u8 y:u32").mended(), "u32(x)+y");
  EXPECT_EQ(check("x+y", "x:u64 y:i8").mended(1), "x+u64(y)");
}

TEST(Specialise, Extremes) {
  EXPECT_EQ(result("i < 3: lowest; else x", "x:f16"), "f16");
  EXPECT_EQ(result("where(x > 0, highest, where(x < 0, lowest, y))", "x:i8 y:i16"), "i16");
  EXPECT_EQ(result("where(i < 3, 0.5, lowest)"), "f32");
  EXPECT_EQ(result("i < 3: lowest; else highest", "out:u16"), "u16");
  EXPECT_EQ(result("i < 3: lowest; else highest"), "extreme-alone");
  EXPECT_EQ(check("min(x, highest)", "x:i8").mended(), "min(x, 127)");
  EXPECT_EQ(check("x + lowest", "x:f32").mended(), "x + -inf");
}

} // namespace
