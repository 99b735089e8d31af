// SPDX-License-Identifier: Apache-2.0
// What is proved of guards, what people are told, and that no proof is wrong: random guards are tried at every position
// of small domains.
#include "tests/fuzz/generate.h"
#include "tests/fuzz/oracle.h"
#include "tests/unit/typed.h"
#include <cmath>
#include <gtest/gtest.h>

using namespace elsewise;
using elsewise::test::check;
using elsewise::test::Checked;

namespace {

/// "covered", or what the message says is left.
std::string left(const std::string &text, const std::string &kinds = "") {
  const Checked c = check(text, kinds);
  for (const Diagnostic &d : c.diagnostics)
    if (d.code == Code::NotCovered) return d.message;
  return c.failed ? c.codes() : "covered";
}
/// The warnings, without the piece they name first.
std::string unreachable(const std::string &text, const std::string &kinds = "") {
  std::string all;
  for (const Diagnostic &d : check(text, kinds).diagnostics)
    if (d.code == Code::UnreachablePiece) all += (all.empty() ? "" : "; ") + d.message;
  return all.empty() ? "none" : all;
}
std::string assumed(const std::string &text, const std::string &kinds = "") {
  const Checked c = check(text, kinds);
  std::string all = c.failed ? "failed" : "";
  for (const Assumption &a : c.typed.assumed) {
    all += (all.empty() ? "" : " ") + c.names.arguments[a.argument] +
           (a.what == Assumption::IsNumber ? " is a number" : " is not NaN");
    if (a.expr != no_expr) all += " in " + std::string(c.source.slice(c.ast[a.expr].where));
  }
  return all;
}

TEST(Coverage, SaysWhichPositionsAreLeft) {
  EXPECT_EQ(left("i<n/4: x*0.5; i>=n-n/4: x*2", "x:f32"), "no piece covers `i in [n/4, n-n/4)`");
  EXPECT_EQ(left("i<n/4: x*0.5; i>=n-n/4: x*2"), "no piece covers `i in [n/4, n-n/4)`");
  EXPECT_EQ(left("i < 3: x", "x:f32"), "no piece covers `i in [3, n)`");
  EXPECT_EQ(left("i > n-3: x", "x:f32"), "no piece covers `i in [0, n-2)`");
  EXPECT_EQ(left("i > n-1-k: x", "x:f32 k:int"), "no piece covers `i in [0, n-1-k+1)`");
  EXPECT_EQ(left("3 <= i: x", "x:f32"), "no piece covers `i in [0, 3)`");
  EXPECT_EQ(left("a <= i < b: x", "x:f32 a:int b:int"), "no piece covers `i in [0, a)` and `i in [b, n)`");
  EXPECT_EQ(left("a <= i <= b: x"), "no piece covers `i in [0, a)` and `i in [b+1, n)`");
  EXPECT_EQ(left("i < a+i%2: x"), "no piece covers `i >= a+i%2`");
  EXPECT_EQ(left("i == 3: x", "x:f32"), "no piece covers `i in [0, 3)` and `i in [4, n)`");
  EXPECT_EQ(left("i != 3: x", "x:f32"), "no piece covers `i == 3`");
  EXPECT_EQ(left("i < rate*n: x", "x:f32 rate:float"), "no piece covers `i in [rate*n, n)`");
  EXPECT_EQ(left("2*i < n: x", "x:f32"), "no piece covers `2*i >= n`");
  EXPECT_EQ(left("i < a: x; i < b: 2", "x:f32 a:int b:int"), "no piece covers `i >= a and i >= b`");
  EXPECT_EQ(left("i < 3 and k > 2: x", "x:f32 k:int"), "no piece covers `i in [3, n)` and `k <= 2`");
  EXPECT_EQ(left("x > 0: x", "x:i32"), "no piece covers `x <= 0`");
  EXPECT_EQ(left("m: x", "x:i32 m:bool"), "no piece covers `not m`");
  EXPECT_EQ(left("isnan(x): 0", "x:f32"), "no piece covers `not isnan(x)`");
}

TEST(Coverage, GivesUpOnWhatIsTooMuch) {
  std::string many;
  for (int k = 0; k < 300; ++k)
    many += std::to_string(10 * k) + " <= i < " + std::to_string(10 * k + 5) + ": " + std::to_string(k) + "; ";
  many += "i < 5: 1; i >= 5: 2";
  EXPECT_EQ(left(many), "coverage-unknown");
  EXPECT_EQ(check(many).mended(), many + "; else 0");
  EXPECT_FALSE(check(many + "; else 0").failed);
}

TEST(Coverage, WhatIsAndIsNotNeedsNoKindOfItsParts) {
  for (const std::string sum : {"abs(i)+abs(i-1)+abs(i-2)+abs(i-3)", "(i%2)+(i%3)+(i%5)+(i%7)+(i%11)"}) {
    EXPECT_EQ(left(sum + " < 5: 1; " + sum + " >= 5: 2"), "covered") << sum;
    EXPECT_EQ(left(sum + " < 5: 1; " + sum + " > 5: 2").find("no piece covers `" + sum.substr(0, 5)), 0u) << sum;
  }
}

TEST(Coverage, KindsDecideAtTheCall) {
  EXPECT_EQ(left("x == true: 1; x == false: 2"), "covered");
  EXPECT_EQ(left("x == true: 1; x == false: 2", "x:bool"), "covered");
  EXPECT_EQ(left("x != (i < 3): 1; x == (i < 3): 2"), "covered");
  EXPECT_EQ(left("x == true: 1"), "no piece covers `not x`");
  EXPECT_EQ(left("x == true: 1", "x:bool"), "no piece covers `not x`");
  EXPECT_EQ(left("x >= 0: 1"), "covered"); // of some kinds
  EXPECT_EQ(left("x >= 0: 1", "x:u8"), "covered");
  EXPECT_EQ(left("x >= 0: 1", "x:u64"), "covered");
  EXPECT_EQ(left("x >= 0: 1", "x:i8"), "no piece covers `x < 0`");
  EXPECT_EQ(left("x >= 0: 1", "x:f32"), "no piece covers `x < 0`");
  EXPECT_EQ(left("x > 0: 1"), "no piece covers `x <= 0`");
}

TEST(Coverage, OffersElse) {
  EXPECT_EQ(check("i < 3: x", "x:f32").mended(), "i < 3: x; else x");
  EXPECT_EQ(check("i < 3: 1 # head").mended(), "i < 3: 1; else 0 # head");
  EXPECT_EQ(check("i < 3: (x+1)\n", "x:f32").mended(), "i < 3: (x+1); else x\n");
  for (const char *text : {"i < 3: x", "i < 3: (x+1)\n", "i<n/4: x*0.5; i>=n-n/4: x*2"})
    EXPECT_FALSE(check(check(text, "x:f32").mended(), "x:f32").failed);
}

TEST(Coverage, Proves) {
  for (const char *text : {
           "i < n/4: 1; i >= n/4: 2",
           "i < n/4: 1; n/4 <= i < n-n/4: 2; i >= n-n/4: 3",
           "i < n//2: 1; 2*i >= n-1: 2",
           "i % 2 == 0: 1; i % 2 == 1: 2",
           "i % 3 == 0: 1; i % 3 == 1: 2; i % 3 == 2: 3",
           "i >= 0: 1",
           "i < n: 1",
           "i == 0: 1; i > 0: 2",
           "i != 3: 1; i == 3: 2",
           "i < min(k, n): 1; i >= k: 2",
           "i < max(k, 5): 1; i >= 5: 2",
           "abs(i-3) < 2: 1; i <= 1: 2; i >= 5: 3",
           "clip(i, 2, 5) == i: 1; i < 2: 2; i > 5: 3",
           "i < where(k > 0, 3, 5): 1; i >= 3: 2",
           "not (i < k): 1; i < k: 2",
           "i < k or i > 3: 1; i >= k and i <= 3: 2",
           "i < n >> 1: 1; i >= n // 2: 2",
           "i*k < n: 1; k*i >= n: 2",
           "i < int(rate): 1; i >= int(rate): 2",
           "float(i)/n < 0.5: 1; float(i)/n >= 0.5: 2",
           "f: 1; not f: 2",
           "f == (i < 3): 1; f ^ (i < 3): 2",
           "i < 2.5: 1; i > 2: 2",
       })
    EXPECT_EQ(left(text, "k:int rate:float f:flag"), "covered") << text;
  for (const char *text : {
           "i < n/4: 1; i > n/4: 2",
           "i % 3 == 0: 1; i % 3 == 1: 2",
           "i > 0: 1",
           "i < n-1: 1",
           "i < min(k, n): 1; i > k: 2",
           "abs(i-3) < 2: 1; i <= 1: 2; i > 5: 3",
           "i < where(k > 0, 3, 5): 1; i >= 4: 2",
           "i*k < n: 1; k*i > n: 2",
           "f: 1; i < 3: 2",
           "i < 2.5: 1; i > 3: 2",
           "rate < 0.5: 1; rate > 0.5: 2",
       })
    EXPECT_NE(left(text, "k:int rate:float f:flag"), "covered") << text;
}

TEST(Coverage, NotANumber) {
  EXPECT_EQ(left("x > 0: x; x <= 0: 0", "x:f32"), "no piece covers NaN in `x`");
  EXPECT_EQ(check("x > 0: x; x <= 0: 0", "x:f32").diagnostics[0].note, "every comparison with NaN but `!=` is false");
  EXPECT_EQ(left("x > 0: x; x <= 0: 0", "x:i32"), "covered");
  EXPECT_EQ(left("x > 0: x; x <= 0: 0; isnan(x): 1", "x:f32"), "covered");
  EXPECT_EQ(left("x > 0: x; not (x > 0): 0", "x:f32"), "covered");
  EXPECT_EQ(left("x != 0: x; x == 0: 0", "x:f32"), "covered");
  EXPECT_EQ(left("x < y: x; x >= y: y", "x:f32 y:f32"), "no piece covers NaN in `x` and `y`");
  EXPECT_EQ(left("x < y: x; x >= y: y; x != x or isnan(y): 0", "x:f32 y:f32"), "covered");
  EXPECT_EQ(left("x < 0.5: 1; x < 1.5: 2; x >= 1: 3; isnan(x): 4", "x:f16"), "covered");
  EXPECT_EQ(left("x < 2049: 1; x > 2048.5: 2; isnan(x): 4", "x:f16"),
            "no piece covers `x >= 2049 and x <= 2048.5 and not isnan(x)`"); // both are 2048 to a half
}

TEST(Coverage, RecordsWhatItAssumed) {
  EXPECT_EQ(assumed("i < edge: x; i >= edge: 0"), "edge is a number");
  EXPECT_EQ(assumed("i < edge: x; i >= edge: 0", "x:f32 edge:float"), "edge is not NaN in edge");
  EXPECT_EQ(assumed("i < edge: x; i >= edge: 0", "x:f32 edge:int"), "");
  EXPECT_EQ(assumed("i < edge: x; i >= edge: 0", "x:f32 edge:i64"), "");
  EXPECT_EQ(left("i < edge: x; i >= edge: 0", "x:f32 edge:f32"), "no piece covers NaN in `edge`");
  EXPECT_EQ(assumed("i < rate*n: x; i >= rate*n: 0", "x:f32 rate:float"),
            "rate is not NaN in rate*n");                            // which inf*0 would be
  EXPECT_EQ(assumed("i < edge: x; else 0", "x:f32 edge:float"), ""); // `else` needs nothing
  EXPECT_EQ(assumed("i < edge: x; not (i < edge): 0", "x:f32 edge:float"), "");
  EXPECT_EQ(assumed("i < 3.5: x; i >= 3.5: 0", "x:f32"), "");
  EXPECT_EQ(assumed("float(n)*0.5 > i: x; i >= float(n)*0.5: 0", "x:f32"), ""); // no NaN can come of it
}

TEST(Coverage, NamesWhatTakesAPiecesPositions) {
  EXPECT_EQ(unreachable("i<10: x; i<5: 1; else 0", "x:f32"),
            "`i<5: 1` is never reached, `i<10` takes all of its positions");
  EXPECT_EQ(unreachable("i<n/2: x; i>=n/2: 1; else 0", "x:f32"),
            "`else 0` is never reached, `i<n/2` and `i>=n/2` take every position");
  EXPECT_EQ(unreachable("i<0: x; else 0", "x:f32"), "`i<0: x` is never reached, its guard never holds");
  EXPECT_EQ(unreachable("i<3: 1; i<9: 2; i<20: 3; 2<=i<7: 4; else 0"),
            "`2<=i<7: 4` is never reached, `i<9` takes all of its positions");
  EXPECT_EQ(unreachable("i<3: 1; 3<=i<9: 2; i>20: 3; 2<=i<7: 4; else 0"),
            "`2<=i<7: 4` is never reached, `i<3` and `3<=i<9` take all of its positions");
  EXPECT_EQ(unreachable("x < 2: 1; x < 1: 2; else 0", "x:f32"),
            "`x < 1: 2` is never reached, `x < 2` takes all of its positions");
  EXPECT_EQ(unreachable("i < k: 1; i < k-1: 2; else 0", "k:int"),
            "`i < k-1: 2` is never reached, `i < k` takes all of its positions");
  EXPECT_EQ(unreachable("i < rate: 1; i < rate: 2; else 0", "rate:float"),
            "`i < rate: 2` is never reached, `i < rate` takes all of its positions");
}

TEST(Coverage, NothingIsAssumedOfWhatIsReached) {
  EXPECT_EQ(unreachable("i < rate: 1; i >= rate: 2; else 0", "rate:float"), "none"); // a NaN comes to `else`
  EXPECT_EQ(unreachable("i < m: 1; i >= m: 2; else 0"), "none");
  EXPECT_EQ(unreachable("i < m: 1; i >= m: 2; else 0", "m:int"),
            "`else 0` is never reached, `i < m` and `i >= m` take every position");
  EXPECT_EQ(unreachable("x > 0: 1; x <= 0: 2; else 0", "x:f32"), "none");
  EXPECT_EQ(unreachable("z/x > z: 1; else 0", "x:f32 z:bf16"), "none");
  EXPECT_EQ(unreachable("float(n) > 11: 1; else 0"), "none");
}

TEST(Coverage, ManyPiecesTakeLittleTime) {
  std::string chain, equal, either;
  for (int k = 0; k < 1500; ++k) chain += "i < " + std::to_string(k * 3 + 1) + ": " + std::to_string(k) + "; ";
  for (int k = 0; k < 300; ++k) equal += "i == " + std::to_string(k) + ": " + std::to_string(k) + "; ";
  for (int k = 0; k < 200; ++k) either += "i == k" + std::to_string(k) + " or x < " + std::to_string(k) + ".5: x; ";
  EXPECT_EQ(unreachable(chain + "else 0"), "none");
  EXPECT_EQ(unreachable(equal + "else 0"), "none");
  EXPECT_EQ(left(equal + "i >= 300: 1"), "covered");
  EXPECT_FALSE(check(either + "else x").failed);
}

/// Random guards in small numbers, so that positions, lengths and parameters often meet.
class Writer {
public:
  explicit Writer(fuzz::Random &random) : random_(random) {}
  std::string spec() {
    std::string text;
    const int pieces = 2 + int(random_.below(3));
    for (int p = 0; p < pieces; ++p) text += (p ? "; " : "") + guard(2) + ": " + std::to_string(p);
    return text;
  }

private:
  std::string guard(int depth) {
    if (depth && random_.chance(30))
      return "(" + guard(depth - 1) + (random_.chance(50) ? " and " : " or ") + guard(depth - 1) + ")";
    if (depth && random_.chance(10)) return "not (" + guard(depth - 1) + ")";
    if (random_.chance(5)) return "f";
    static const std::vector<std::string> comparisons = {"<", "<=", ">", ">=", "<", ">=", "==", "!="};
    return term() + " " + random_.pick(comparisons) + " " + term();
  }
  std::string term() {
    static const std::vector<std::string> terms = {"i",
                                                   "i",
                                                   "i",
                                                   "i",
                                                   "n",
                                                   "k",
                                                   "0",
                                                   "1",
                                                   "2",
                                                   "3",
                                                   "n/2",
                                                   "n-n/4",
                                                   "n//3",
                                                   "2*i",
                                                   "i%2",
                                                   "i%3",
                                                   "n-i",
                                                   "i+1",
                                                   "n-1-i",
                                                   "(-i)//2",
                                                   "min(i, k)",
                                                   "max(i, 2)",
                                                   "abs(i-2)",
                                                   "clip(i, 1, k)",
                                                   "where(i < k, 1, i)",
                                                   "k*i",
                                                   "i*k",
                                                   "(i<<1)",
                                                   "(n>>1)",
                                                   "i*i",
                                                   "r",
                                                   "r*n",
                                                   "1.5",
                                                   "2.5",
                                                   "float(i)",
                                                   "float(i)*0.5",
                                                   "int(r)",
                                                   "-k"};
    return random_.pick(terms);
  }
  fuzz::Random &random_;
};

TEST(Coverage, NoProofIsWrong) {
  int covered = 0, refused = 0, unreachable_pieces = 0, needed_a_number = 0;
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    fuzz::Random random(seed);
    const std::string text = Writer(random).spec();
    const Checked c = check(text, "k:int r:float f:flag");
    if (c.failed && c.codes().find("not-covered") == std::string::npos) continue; // an index quotient out of place, say
    ++(c.failed ? refused : covered);
    const bool number = !c.typed.assumed.empty();
    needed_a_number += number;
    // The piece that each position really takes, by the oracle, with what was proved left out of account.
    Typed typed = c.typed;
    for (int64_t n : {1, 2, 3, 5, 8}) {
      for (int64_t k : {-1, 0, 1, 2, 4})
        for (double r : {-0.5, 0.0, 1.0, 2.25, HUGE_VAL, std::nan("")}) {
          if (std::isnan(r) && number) continue;
          std::vector<fuzz::Operand> operands;
          for (const std::string &name : c.names.arguments) {
            fuzz::Operand o;
            o.type.kind = name == "k" ? ArgKind::Int : name == "r" ? ArgKind::Float : ArgKind::Bool;
            o.integer = name == "k" ? k : (n + k) % 2, o.real = r;
            operands.push_back(o);
          }
          fuzz::Oracle oracle(c.ast, c.names, typed, operands, {n});
          for (int64_t i = 0; i < n; ++i) {
            uint8_t bytes[8];
            if (oracle.element(i, bytes) != fuzz::Outcome::Value) continue;
            const uint32_t taken = oracle.piece();
            if (taken == c.ast.pieces.size())
              ASSERT_TRUE(c.failed) << text << " leaves i=" << i << " n=" << n << " k=" << k << " r=" << r;
            else
              ASSERT_TRUE(typed.reachable[taken])
                  << text << " reaches piece " << taken << " at i=" << i << " n=" << n << " k=" << k << " r=" << r;
          }
        }
    }
    for (const bool reached : typed.reachable) unreachable_pieces += !reached;
  }
  // The generator is worth its time only if all of these occur.
  EXPECT_GT(covered, 100);
  EXPECT_GT(refused, 1000);
  EXPECT_GT(unreachable_pieces, 200);
  EXPECT_GT(needed_a_number, 5);
}

} // namespace
