// SPDX-License-Identifier: Apache-2.0
// Conditions as `and` and `or` of rows, refuted case by case. It knows nothing of syntax; whoever builds the rows
// answers for what atoms mean.
#pragma once
#include "compiler/prove/linear.h"
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace elsewise::prove {

using FormulaId = uint32_t;

/// What is assumed to hold: rows, and alternatives not yet decided. `contradictory`: it was refuted.
struct State {
  std::vector<Row> rows;
  std::vector<FormulaId> open;
  std::vector<bool> known; // atoms whose facts are among the rows
  bool contradictory = false;
};

/// One way to hold that was not refuted: the tags of its rows, those that others imply left out.
using Leaf = std::vector<uint32_t>;

class Prover {
public:
  /// Equal keys are one atom. `is_new` (if given) says that its facts are still to be stated.
  Atom atom(const std::string &key, bool *is_new = nullptr);
  /// What always holds of an atom, used wherever the atom occurs.
  void fact(Atom, FormulaId);

  FormulaId truth(bool);
  FormulaId row(Linear at_most_zero, uint32_t tag = ~0u);
  FormulaId all(std::vector<FormulaId>);
  FormulaId any(std::vector<FormulaId>);
  /// Rows have even tags; what stands for the negation of one has the odd tag behind it.
  FormulaId negated(FormulaId);

  /// Adds what holds too. Alternatives of which one is left are decided.
  void assume(State &, FormulaId);
  /// True only if `f` cannot hold as well.
  bool refutes(const State &, FormulaId f);
  /// True only if the state cannot hold at all; else the ways in which it might, at most `most_leaves` of them.
  bool refutes(const State &, std::vector<Leaf> *leaves = nullptr);

  /// Whether a search was cut short: what was not refuted then may be refutable, and no leaf says where.
  bool gave_up() const { return cut_short_ || spent(); }

  static constexpr unsigned most_disjuncts = 64;
  static constexpr size_t most_leaves = 8;

private:
  enum class Shape : uint8_t { True, False, Row, All, Any };
  struct Formula {
    Shape shape;
    prove::Row row = {};
    std::vector<FormulaId> parts = {};
  };
  FormulaId add(Formula);
  FormulaId combined(Shape, std::vector<FormulaId>);
  FormulaId negate(FormulaId);
  bool visit(std::unordered_set<FormulaId> &seen, FormulaId);
  void add_row(State &, const Row &);
  void settle(State &);
  bool spent() const { return budget_ == 0; }
  bool refuted(const std::vector<Row> &);
  bool contradicts(const State &, FormulaId);
  bool implied(const State &, FormulaId);
  bool solve(State, unsigned &disjuncts, std::vector<Leaf> *leaves);
  Leaf leaf(const State &);

  std::vector<Formula> formulas_;
  std::vector<std::vector<FormulaId>> facts_; // by atom
  std::unordered_map<FormulaId, FormulaId> negations_;
  std::unordered_map<std::string, Atom> atoms_;
  bool cut_short_ = false;
  uint64_t budget_ =
      2'000'000; // pairs of rows, and formulas looked at: a spec may be hostile, and then nothing more is proved
};

} // namespace elsewise::prove
