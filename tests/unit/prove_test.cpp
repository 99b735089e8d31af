// SPDX-License-Identifier: Apache-2.0
// Refutation by rows, and by cases. The rows are written out as a person would, without any syntax.
#include "compiler/prove/prover.h"
#include <gtest/gtest.h>

using namespace elsewise::prove;

namespace {

enum : Atom { i, n, q, length };

/// `constant >= sum`: a bound on a sum of terms.
Row row(int64_t constant, std::initializer_list<std::pair<Atom, int64_t>> sum) {
  Linear l = Linear::of(-constant);
  for (const auto &[atom, coefficient] : sum) l = l.plus(Linear::of_atom(atom), coefficient);
  return {l};
}

bool refuted_with(std::vector<Row> rows, std::vector<Row> more) {
  rows.insert(rows.end(), more.begin(), more.end());
  return refuted(rows);
}

/// 0 <= i <= n-1 and q = n//4.
std::vector<Row> facts() {
  return {row(0, {{i, -1}}), row(-1, {{i, 1}, {n, -1}}), row(0, {{n, -1}, {q, 4}}), row(3, {{n, 1}, {q, -4}})};
}
const Row first = row(-1, {{i, 1}, {q, -1}});          // i < n/4
const Row second = row(0, {{i, -1}, {n, 1}, {q, -1}}); // i >= n-n/4

TEST(Rows, NegationsAreExactOverIntegers) {
  EXPECT_EQ(negation(first).sum, row(0, {{i, -1}, {q, 1}}).sum);
  EXPECT_EQ(negation(second).sum, row(-1, {{i, 1}, {n, -1}, {q, 1}}).sum);
  EXPECT_EQ(negation(negation(first)).sum, first.sum);
}

TEST(Rows, TheSeedWithoutElseIsNotCovered) { EXPECT_FALSE(refuted_with(facts(), {negation(first), negation(second)})); }
TEST(Rows, TheSeedsPiecesAreReached) {
  EXPECT_FALSE(refuted_with(facts(), {negation(first), second}));
  EXPECT_FALSE(refuted_with(facts(), {negation(first), negation(second)}));
}
TEST(Rows, TheSeedsOuterPiecesAreDisjoint) { EXPECT_TRUE(refuted_with(facts(), {first, second})); }
TEST(Rows, BelowAndNotBelowIsCovered) {
  EXPECT_TRUE(refuted_with(facts(), {negation(first), first}));
  EXPECT_TRUE(refuted_with(facts(), {row(0, {{i, -1}, {q, 1}}), row(-1, {{i, 1}, {q, -1}})}));
}
TEST(Rows, ThePreviousElementIsInBoundsBehindTheFirst) {
  const Row guard = row(-1, {{i, -1}});                                    // i > 0
  EXPECT_TRUE(refuted_with(facts(), {guard, row(0, {{i, 1}})}));           // i-1 < 0
  EXPECT_TRUE(refuted_with(facts(), {guard, row(-1, {{i, -1}, {n, 1}})})); // i-1 >= n
  EXPECT_FALSE(refuted_with(facts(), {row(0, {{i, 1}})}));                 // without the guard
}
TEST(Rows, AReadByRowNeedsItsLength) {
  const std::vector<Row> columns = {row(0, {{i, -1}}), row(-1, {{i, 1}, {n, -1}})}; // 0 <= b <= B-1
  const Row beyond = row(0, {{i, -1}, {length, 1}});                                // b >= len
  EXPECT_FALSE(refuted_with(columns, {beyond}));
  EXPECT_TRUE(refuted_with(columns, {beyond, row(0, {{n, 1}, {length, -1}})})); // len >= B
}

TEST(Rows, WithoutVariables) {
  EXPECT_TRUE(refuted({row(-1, {})})); // 0 <= -1
  EXPECT_FALSE(refuted({row(0, {})}));
  EXPECT_FALSE(refuted({}));
}
TEST(Rows, IntegersAreTightened) { // 2i = 2n+1
  EXPECT_TRUE(refuted({row(1, {{i, 2}, {n, -2}}), row(-1, {{i, -2}, {n, 2}})}));
  EXPECT_EQ(tightened(row(3, {{i, 2}})).sum, row(1, {{i, 1}}).sum);
  EXPECT_EQ(tightened(row(-3, {{i, 2}})).sum, row(-2, {{i, 1}}).sum);
}
TEST(Rows, OverflowProvesNothing) {
  const Linear huge = Linear::of_atom(i).times(INT64_MAX).plus(Linear::of_atom(i).times(INT64_MAX));
  EXPECT_FALSE(huge.exact);
  EXPECT_FALSE(Linear::of(INT64_MAX).plus(Linear::of(1)).exact);
  EXPECT_FALSE(Linear::of_wide((__int128)1 << 70).exact);
  EXPECT_FALSE(refuted({Row{huge}, row(-1, {{i, 1}})}));
}

TEST(Cases, AlternativesAreAllTried) {
  Prover p;
  const Atom a = p.atom("a");
  const auto is = [&](int64_t value) {
    const Linear d = Linear::of_atom(a).plus(Linear::of(-value));
    return p.all({p.row(d), p.row(d.times(-1))});
  };
  State s;
  p.assume(s, p.any({is(3), is(5), is(8)}));
  EXPECT_FALSE(p.refutes(s));
  EXPECT_TRUE(p.refutes(s, is(4)));
  EXPECT_FALSE(p.refutes(s, is(5)));
  p.assume(s, p.negated(is(5)));
  p.assume(s, p.negated(is(3)));
  EXPECT_TRUE(p.refutes(s, p.negated(is(8)))); // one is left
}

TEST(Cases, FactsComeWithTheirAtom) {
  Prover p;
  bool is_new = false;
  const Atom m = p.atom("m", &is_new), a = p.atom("a"), b = p.atom("b");
  EXPECT_TRUE(is_new);
  const auto difference = [&](Atom x, Atom y) { return Linear::of_atom(x).plus(Linear::of_atom(y), -1); };
  p.fact(m, p.all({p.row(difference(m, a)), p.row(difference(m, b)),
                   p.any({p.row(difference(a, m)), p.row(difference(b, m))})}));
  State s; // m = min(a, b), a >= 4, b >= 6
  p.assume(s, p.row(Linear::of(4).plus(Linear::of_atom(a), -1)));
  p.assume(s, p.row(Linear::of(6).plus(Linear::of_atom(b), -1)));
  EXPECT_TRUE(p.refutes(s, p.row(Linear::of_atom(m).plus(Linear::of(-3)))));
  EXPECT_FALSE(p.refutes(s, p.row(Linear::of_atom(m).plus(Linear::of(-4)))));
  p.atom("m", &is_new);
  EXPECT_FALSE(is_new);
}

TEST(Cases, LeavesSayWhatIsLeft) {
  Prover p;
  const Atom a = p.atom("a");
  const FormulaId low = p.row(Linear::of_atom(a), 2), high = p.row(Linear::of(9).plus(Linear::of_atom(a), -1), 4);
  State s;
  p.assume(s, p.any({low, high}));
  std::vector<Leaf> leaves;
  EXPECT_FALSE(p.refutes(s, &leaves));
  EXPECT_EQ(leaves, (std::vector<Leaf>{{2}, {4}}));
  State other;
  p.assume(other, p.negated(low)); // the negation of a row has the odd tag behind it
  leaves.clear();
  EXPECT_FALSE(p.refutes(other, &leaves));
  EXPECT_EQ(leaves, (std::vector<Leaf>{{3}}));
}

/// Whether it is refuted that `atoms` numbers, each 0 or 2, have the sum 1: 2^atoms cases, and no row says it of all.
bool odd_sum_refuted(int atoms) {
  Prover p;
  State s;
  Linear sum = Linear::of(-1);
  for (int k = 0; k < atoms; ++k) {
    const Linear l = Linear::of_atom(p.atom("a" + std::to_string(k))), two = l.plus(Linear::of(-2));
    sum = sum.plus(l);
    p.assume(s, p.any({p.all({p.row(l), p.row(l.times(-1))}), p.all({p.row(two), p.row(two.times(-1))})}));
  }
  return p.refutes(s, p.all({p.row(sum), p.row(sum.times(-1))}));
}

TEST(Cases, TooManyDisjunctsProveNothing) {
  EXPECT_TRUE(odd_sum_refuted(5));
  EXPECT_FALSE(odd_sum_refuted(12));
}

} // namespace
