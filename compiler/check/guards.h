// SPDX-License-Identifier: Apache-2.0
// Guards as rows over atoms: positions, lengths, parameters, quotients, elements. What it cannot say in rows is an atom
// of its own; it never says too much.
#pragma once
#include "compiler/check/kinds.h"
#include "compiler/prove/prover.h"
#include <map>
#include <set>

namespace elsewise {

/// What is taken for granted. Reachability takes nothing; coverage takes what a call can check, and records it.
struct Premises {
  bool unknown_is_number = false;    // an argument of unknown kind is one integer, the kind of which most can be proved
  bool unknown_is_unsigned = false;  // and 0 or more, to find out what may hold of some kinds
  bool uniforms_are_numbers = false; // floats of the host stage are not NaN
  bool data_is_number = false;       // only to find out whether NaN is all that is missing
};

/// Where a row of a guard came from: the comparison as it holds if the row does.
struct Origin {
  ExprId expr = no_expr;
  Operator op = Operator::Or; // Lt Le Gt Ge Eq Ne; Or: the expression is a condition by itself
  bool negated = false;
};

class Guards {
public:
  Guards(const Ast &ast, const Names &names, const Kinds &kinds, const Typed &typed, prove::Prover &prover,
         Premises premises)
      : ast_(ast), names_(names), kinds_(kinds), typed_(typed), prover_(prover), premises_(premises) {}

  /// Holds exactly where the condition does.
  prove::FormulaId condition(ExprId);
  Origin origin(uint32_t tag) const;
  /// What the premises were needed for, so far.
  const std::set<uint32_t> &unknown_arguments() const { return unknown_arguments_; }
  const std::map<std::string, ExprId> &numbers() const { return numbers_; }

private:
  /// A float, by what it is called; equal keys are equal values. `self`: before it was rounded for the comparison.
  struct Real {
    std::string key, self;
    bool may_be_nan = false;
    bool constant = false;
    double value = 0;
    ExprId expr = no_expr;
  };
  /// Bounds of a magnitude, and whether it may be NaN.
  struct Magnitude {
    double least = 0, greatest = __builtin_inf();
    bool nan = true;
  };

  prove::FormulaId find(ExprId);
  prove::FormulaId operation(ExprId);
  prove::FormulaId call(ExprId);
  prove::FormulaId comparison(ExprId);
  prove::FormulaId compare_whole(ExprId, Operator, const prove::Linear &, const prove::Linear &);
  prove::FormulaId compare_mixed(ExprId, Operator, const prove::Linear &, const Real &);
  prove::FormulaId compare_cut(ExprId, Operator, const Real &, double constant);
  prove::FormulaId compare_pair(ExprId, Operator, Real, Real);
  prove::FormulaId opaque(ExprId);
  prove::FormulaId choice(prove::FormulaId condition, prove::FormulaId a, prove::FormulaId b);
  prove::FormulaId set(prove::Atom, bool, uint32_t tag = ~0u);
  prove::FormulaId nan(const Real &, uint32_t tag = ~0u);
  prove::FormulaId ordered(const Real &);

  bool is_whole(ExprId);
  bool find_whole(ExprId);
  prove::Linear linear(ExprId, Use);
  prove::Linear find_linear(ExprId, Use);
  prove::Linear whole_unary(ExprId, Use);
  prove::Linear whole_binary(ExprId, Use);
  prove::Linear whole_call(ExprId, Use);
  uint32_t axis(uint32_t given) const;
  prove::Linear position(uint32_t axis);
  prove::Linear length(uint32_t axis);
  prove::Linear argument_length(const Resolved &);
  prove::Linear border(ExprId);
  prove::Linear apply(const struct Builtin &, std::vector<prove::Linear>);
  prove::Linear extreme(std::vector<prove::Linear>, bool greatest);
  prove::Linear floor_div(const prove::Linear &, int64_t);
  prove::Linear named(ExprId, Use);
  prove::Atom bit(const std::string &key, bool *is_new = nullptr);
  void between(prove::Atom, const prove::Linear &least, const prove::Linear &greatest);
  Real real(ExprId, Use, DType nominal);
  Magnitude magnitude(ExprId);
  Magnitude find_magnitude(ExprId);
  Magnitude magnitude_of_call(ExprId);
  std::string key(ExprId, Use);
  std::string structure(ExprId, Use);
  Use operands(ExprId, Use) const;
  uint32_t tag(ExprId, Operator);
  ExprId child(ExprId e, uint32_t k) const { return ast_.child(e, k); }
  const struct Builtin *row(ExprId) const;

  const Ast &ast_;
  const Names &names_;
  const Kinds &kinds_;
  const Typed &typed_;
  prove::Prover &prover_;
  Premises premises_;
  std::map<ExprId, prove::FormulaId> found_;
  std::map<std::pair<ExprId, Use>, std::string> keys_;
  std::map<std::pair<ExprId, Use>, prove::Linear> linears_;
  std::map<std::string, size_t> structures_;
  std::map<ExprId, bool> whole_;
  std::map<ExprId, Magnitude> magnitudes_;
  std::map<std::string, std::map<double, std::pair<prove::Atom, prove::Atom>>>
      cuts_; // by real: constant -> (below, at most)
  std::vector<Origin> origins_;
  std::set<uint32_t> unknown_arguments_;
  std::map<std::string, ExprId> numbers_; // floats taken not to be NaN, by key
};

} // namespace elsewise
