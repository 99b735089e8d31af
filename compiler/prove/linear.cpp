// SPDX-License-Identifier: Apache-2.0
// Linear arithmetic with overflow noticed, on top of LLVM's ConstraintSystem. It adds what that leaves out: rows
// without variables, and integer tightening.
#include "compiler/prove/linear.h"
#include <llvm/ADT/DenseMap.h>
#include <llvm/Analysis/ConstraintSystem.h>
#include <numeric>
#include <vector>

namespace elsewise::prove {
namespace {

/// Two rows of one sum with opposite signs that leave nothing between them. Elimination of other atoms may give up
/// before it comes to them.
bool opposed(const Row &a, const Row &b) {
  if (a.sum.terms.size() != b.sum.terms.size() || __int128(a.sum.constant) + b.sum.constant <= 0) return false;
  for (size_t k = 0; k < a.sum.terms.size(); ++k) {
    const auto &[atom, coefficient] = a.sum.terms[k];
    if (atom != b.sum.terms[k].first || __int128(coefficient) + b.sum.terms[k].second != 0) return false;
  }
  return true;
}

} // namespace

Linear Linear::of_wide(__int128 constant) {
  Linear r = of(int64_t(constant));
  r.exact = constant == r.constant;
  return r;
}

Linear Linear::plus(const Linear &other, int64_t factor) const {
  Linear r;
  r.exact = exact && other.exact;
  const auto scaled = [&](int64_t a, int64_t b) { // a + factor * b
    int64_t product = 0, sum = 0;
    r.exact &= !__builtin_mul_overflow(factor, b, &product) && !__builtin_add_overflow(a, product, &sum);
    return sum;
  };
  r.constant = scaled(constant, other.constant);
  for (auto a = terms.begin(), b = other.terms.begin(); a != terms.end() || b != other.terms.end();) {
    const bool left = b == other.terms.end() || (a != terms.end() && a->first <= b->first);
    const bool right = a == terms.end() || (b != other.terms.end() && b->first <= a->first);
    const Atom atom = left ? a->first : b->first;
    const int64_t coefficient = scaled(left ? a->second : 0, right ? b->second : 0);
    if (coefficient) r.terms.push_back({atom, coefficient});
    a += left, b += right;
  }
  return r;
}

Row negation(const Row &row) { return {Linear::of(1).plus(row.sum, -1), row.tag}; }

Row tightened(Row row) {
  if (!row.sum.exact) return row;
  uint64_t divisor = 0;
  for (const auto &[atom, coefficient] : row.sum.terms)
    divisor = std::gcd(divisor, coefficient < 0 ? -uint64_t(coefficient) : uint64_t(coefficient));
  if (divisor < 2 || divisor > uint64_t(INT64_MAX)) return row;
  const int64_t d = int64_t(divisor);
  for (auto &[atom, coefficient] : row.sum.terms) coefficient /= d;
  const int64_t c = row.sum.constant; // sum of terms <= -c, so the constant is rounded up
  row.sum.constant = c / d + (c % d > 0);
  return row;
}

bool refuted(llvm::ArrayRef<Row> rows) {
  if (rows.size() > most_rows) return false;
  llvm::DenseMap<Atom, unsigned> columns;
  for (const Row &row : rows)
    if (row.sum.exact)
      for (const auto &[atom, coefficient] : row.sum.terms) columns.try_emplace(atom, columns.size() + 1);
  llvm::ConstraintSystem system;
  llvm::SmallVector<int64_t, 16> line;
  std::vector<Row> tightest;
  for (const Row &row : rows) {
    if (!row.sum.exact || row.sum.constant == INT64_MIN) continue; // a row less proves less, never something wrong
    if (row.sum.is_constant()) {                                   // addVariableRow would drop it
      if (row.sum.constant > 0) return true;
      continue;
    }
    tightest.push_back(tightened(row));
    for (size_t k = 0; k + 1 < tightest.size(); ++k)
      if (opposed(tightest[k], tightest.back())) return true;
  }
  bool any = false;
  for (const Row &tight : tightest) {
    line.assign(columns.size() + 1, 0);
    line[0] = -tight.sum.constant;
    for (const auto &[atom, coefficient] : tight.sum.terms) line[columns[atom]] = coefficient;
    any |= system.addVariableRow(line);
  }
  return any && !system.mayHaveSolution();
}

} // namespace elsewise::prove
