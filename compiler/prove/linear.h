// SPDX-License-Identifier: Apache-2.0
// Sums of integer atoms, and the question whether rows of them can all hold. "Refuted" is a proof; anything else means
// nothing.
#pragma once
#include <cstdint>
#include <llvm/ADT/ArrayRef.h>
#include <llvm/ADT/SmallVector.h>
#include <utility>

namespace elsewise::prove {

/// An integer that is not known: a position, a length, a quotient, a condition as 0 or 1.
using Atom = uint32_t;

/// constant + sum of coefficient * atom. What leaves 64 bits makes it not `exact`, and then it must not be used.
struct Linear {
  int64_t constant = 0;
  llvm::SmallVector<std::pair<Atom, int64_t>, 4> terms; // by atom, no zero coefficients
  bool exact = true;

  static Linear of(int64_t constant) { return {.constant = constant}; }
  static Linear of_atom(Atom a) { return {.terms = {{a, 1}}}; }
  static Linear of_wide(__int128 constant);
  bool is_constant() const { return terms.empty(); }
  /// *this + factor * other
  Linear plus(const Linear &other, int64_t factor = 1) const;
  Linear times(int64_t factor) const { return Linear{}.plus(*this, factor); }
  bool operator==(const Linear &) const = default;
};

/// sum <= 0. `tag` says where a row came from; it plays no part in proofs.
struct Row {
  Linear sum;
  uint32_t tag = ~0u;
};

/// Over integers, not (sum <= 0) is 1 - sum <= 0.
Row negation(const Row &);
/// Divided by the greatest common divisor of its coefficients, its constant rounded: 2i <= 2k+1 becomes i <= k.
Row tightened(Row);
/// More rows than these are not looked at: Fourier-Motzkin elimination gives up at 500.
inline constexpr size_t most_rows = 400;
/// True only if no integers make every row hold.
bool refuted(llvm::ArrayRef<Row>);

} // namespace elsewise::prove
