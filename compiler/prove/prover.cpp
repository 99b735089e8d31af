// SPDX-License-Identifier: Apache-2.0
// The search behind Prover: conjunctions become rows, alternatives are decided where one is left and split otherwise.
// It stops, unproved, when its budget is spent.
#include "compiler/prove/prover.h"
#include <algorithm>

namespace elsewise::prove {

Atom Prover::atom(const std::string &key, bool *is_new) {
  const auto [entry, inserted] = atoms_.try_emplace(key, Atom(facts_.size()));
  if (inserted) facts_.emplace_back();
  if (is_new) *is_new = inserted;
  return entry->second;
}

void Prover::fact(Atom a, FormulaId f) { facts_[a].push_back(f); }

FormulaId Prover::add(Formula f) {
  formulas_.push_back(std::move(f));
  return FormulaId(formulas_.size() - 1);
}

FormulaId Prover::truth(bool holds) { return add({holds ? Shape::True : Shape::False}); }

FormulaId Prover::row(Linear sum, uint32_t tag) {
  // Nothing is known of what left 64 bits, nor of its negation: a condition of its own, as 0 or 1.
  if (!sum.exact) sum = Linear::of(1).plus(Linear::of_atom(atom("row " + std::to_string(formulas_.size()))), -1);
  return add({Shape::Row, {std::move(sum), tag}});
}

FormulaId Prover::all(std::vector<FormulaId> parts) { return combined(Shape::All, std::move(parts)); }
FormulaId Prover::any(std::vector<FormulaId> parts) { return combined(Shape::Any, std::move(parts)); }

/// Equal parts are one: what stands in a let may meet itself.
FormulaId Prover::combined(Shape shape, std::vector<FormulaId> parts) {
  std::vector<FormulaId> distinct;
  for (FormulaId part : parts)
    if (std::find(distinct.begin(), distinct.end(), part) == distinct.end()) distinct.push_back(part);
  return distinct.size() == 1 ? distinct[0] : add({shape, {}, std::move(distinct)});
}

/// Formulas are shared, and so are their negations: a chain of `^` stays as long as its text.
FormulaId Prover::negated(FormulaId f) {
  if (const auto known = negations_.find(f); known != negations_.end()) return known->second;
  const FormulaId opposite = negate(f);
  negations_[f] = opposite;
  negations_.try_emplace(opposite, f);
  return opposite;
}

FormulaId Prover::negate(FormulaId f) {
  const Formula copy = formulas_[f];
  switch (copy.shape) {
  case Shape::True:
    return truth(false);
  case Shape::False:
    return truth(true);
  case Shape::Row:
    return row(negation(copy.row).sum, copy.row.tag == ~0u ? ~0u : copy.row.tag ^ 1);
  default:
    break;
  }
  std::vector<FormulaId> parts;
  for (FormulaId part : copy.parts) parts.push_back(negated(part));
  return copy.shape == Shape::All ? any(parts) : all(parts);
}

/// Pays for a look at one formula.
bool Prover::visit(std::unordered_set<FormulaId> &seen, FormulaId f) {
  if (spent() || !seen.insert(f).second) return false;
  --budget_;
  return true;
}

/// Rows with the same terms are one: the tightest.
void Prover::add_row(State &s, const Row &given) {
  const Row row = tightened(given);
  for (Row &other : s.rows)
    if (other.sum.terms == row.sum.terms) {
      if (row.sum.constant > other.sum.constant) other = row;
      return;
    }
  s.rows.push_back(row);
}

bool Prover::refuted(const std::vector<Row> &rows) {
  cut_short_ |= rows.size() > most_rows;
  const uint64_t cost = 20 + rows.size() * rows.size(); // elimination meets rows in pairs
  if (cost > budget_) budget_ = 0;
  if (spent()) return false;
  budget_ -= cost;
  return prove::refuted(rows);
}

/// `f` and everything that follows at once: parts of `all`, facts of new atoms. Alternatives wait in `open`.
void Prover::assume(State &s, FormulaId first) {
  std::vector<FormulaId> todo = {first};
  std::unordered_set<FormulaId> seen;
  while (!todo.empty() && !s.contradictory) {
    const FormulaId f = todo.back();
    todo.pop_back();
    if (!visit(seen, f)) continue;
    const Formula &formula = formulas_[f];
    switch (formula.shape) {
    case Shape::True:
      break;
    case Shape::False:
      s.contradictory = true;
      break;
    case Shape::All:
      todo.insert(todo.end(), formula.parts.rbegin(), formula.parts.rend());
      break;
    case Shape::Any:
      s.open.push_back(f);
      break;
    case Shape::Row:
      add_row(s, formula.row);
      for (const auto &[atom, coefficient] : formula.row.sum.terms) {
        if (s.known.size() <= atom) s.known.resize(atom + 1);
        if (s.known[atom]) continue;
        s.known[atom] = true;
        todo.insert(todo.end(), facts_[atom].begin(), facts_[atom].end());
      }
    }
  }
  if (!s.contradictory) settle(s);
}

/// Drops alternatives that cannot hold, and `any`s that hold anyway, until nothing changes.
void Prover::settle(State &s) {
  if (refuted(s.rows)) {
    s.contradictory = true;
    return;
  }
  for (size_t k = 0; k < s.open.size() && k < most_disjuncts && !spent();) {
    const FormulaId f = s.open[k];
    std::vector<FormulaId> left;
    bool holds = false;
    for (FormulaId part : formulas_[f].parts) {
      if (contradicts(s, part)) continue;
      left.push_back(part);
      holds |= implied(s, part);
    }
    if (!holds && left.size() > 1) {
      if (left.size() < formulas_[f].parts.size()) s.open[k] = any(left);
      ++k;
      continue;
    }
    s.open.erase(s.open.begin() + ptrdiff_t(k));
    if (holds) continue;
    assume(s, left.empty() ? truth(false) : left[0]); // settles again
    return;
  }
}

/// Looks at the rows of `f` alone, not at alternatives inside it.
bool Prover::contradicts(const State &s, FormulaId f) {
  if (spent()) return false;
  std::vector<Row> rows = s.rows;
  std::vector<bool> known = s.known;
  std::vector<FormulaId> todo = {f};
  std::unordered_set<FormulaId> seen;
  while (!todo.empty()) {
    const FormulaId next = todo.back();
    todo.pop_back();
    if (!visit(seen, next)) continue;
    const Formula &formula = formulas_[next];
    if (formula.shape == Shape::False) return true;
    if (formula.shape == Shape::All) todo.insert(todo.end(), formula.parts.begin(), formula.parts.end());
    if (formula.shape != Shape::Row) continue;
    rows.push_back(formula.row);
    for (const auto &[atom, coefficient] : formula.row.sum.terms) {
      if (known.size() <= atom) known.resize(atom + 1);
      if (known[atom]) continue;
      known[atom] = true;
      todo.insert(todo.end(), facts_[atom].begin(), facts_[atom].end());
    }
  }
  return refuted(rows);
}

bool Prover::implied(const State &s, FormulaId f) {
  const Formula &formula = formulas_[f];
  if (formula.shape == Shape::True) return true;
  if (formula.shape != Shape::Row || spent()) return false;
  for (const auto &[atom, coefficient] : formula.row.sum.terms)
    if (s.known.size() <= atom || !s.known[atom]) return false; // nothing is known of it yet
  std::vector<Row> rows = s.rows;
  rows.push_back(negation(formula.row));
  return refuted(rows);
}

bool Prover::refutes(const State &s, FormulaId f) {
  State copy = s;
  assume(copy, f);
  return refutes(copy);
}

bool Prover::refutes(const State &s, std::vector<Leaf> *leaves) {
  unsigned disjuncts = 1;
  return solve(s, disjuncts, leaves);
}

bool Prover::solve(State s, unsigned &disjuncts, std::vector<Leaf> *leaves) {
  if (s.contradictory) return true;
  if (s.open.empty()) {
    if (leaves && leaves->size() < most_leaves) leaves->push_back(leaf(s));
    return false;
  }
  const std::vector<FormulaId> parts = formulas_[s.open.front()].parts;
  s.open.erase(s.open.begin());
  disjuncts += unsigned(parts.size()) - 1;
  cut_short_ |= disjuncts > most_disjuncts;
  if (disjuncts > most_disjuncts || spent()) return false;
  bool all = true;
  for (FormulaId part : parts) {
    State branch = s;
    assume(branch, part);
    all &= solve(std::move(branch), disjuncts, leaves);
    if (!all && !leaves) return false;
  }
  return all;
}

Leaf Prover::leaf(const State &s) {
  std::vector<Row> rows = s.rows;
  for (size_t k = rows.size(); k-- > 0;) { // what others imply says nothing
    if (rows[k].tag == ~0u) continue;
    std::vector<Row> others = rows;
    others[k] = negation(others[k]);
    if (refuted(others)) rows.erase(rows.begin() + ptrdiff_t(k));
  }
  Leaf tags;
  for (const Row &row : rows)
    if (row.tag != ~0u) tags.push_back(row.tag);
  std::sort(tags.begin(), tags.end());
  return tags;
}

} // namespace elsewise::prove
