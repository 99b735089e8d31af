// SPDX-License-Identifier: Apache-2.0
// The two questions asked of guards, and what a person is told when an answer is no. The proofs themselves are
// compiler/prove's.
#include "compiler/check/coverage.h"
#include "compiler/check/guards.h"
#include "compiler/parse/precedence.h"
#include "compiler/types/text.h"
#include "grammar/builtins.h"
#include <algorithm>
#include <set>

namespace elsewise {

using prove::FormulaId;
using prove::Leaf;
using prove::Prover;
using prove::State;

namespace {

Operator opposite(Operator op) {
  switch (op) {
  case Operator::Lt:
    return Operator::Ge;
  case Operator::Le:
    return Operator::Gt;
  case Operator::Gt:
    return Operator::Le;
  case Operator::Ge:
    return Operator::Lt;
  case Operator::Eq:
    return Operator::Ne;
  default:
    return Operator::Eq;
  }
}

/// `a`, `b` and `c`
std::string listed(const std::vector<std::string> &parts) {
  std::string text;
  for (size_t k = 0; k < parts.size(); ++k)
    text += (k == 0 ? "" : k + 1 == parts.size() ? " and " : ", ") + ("`" + parts[k] + "`");
  return text;
}

class Coverage {
public:
  Coverage(const Source &source, const Ast &ast, const Names &names, const Kinds &kinds, Typed &typed, Sink &sink)
      : source_(source), ast_(ast), names_(names), kinds_(kinds), typed_(typed), sink_(sink) {}

  void run() {
    typed_.reachable.assign(ast_.pieces.size(), true);
    if (sink_.failed() || ast_.pieces.empty()) return;
    find_unreachable();
    if (ast_.pieces.back().guard != no_expr) prove_covered();
  }

private:
  std::string text(Span s) const { return std::string(source_.slice(s)); }

  /// The guards' formulas, all made before any proof, since each may add facts about atoms of the others.
  std::vector<FormulaId> formulas(Guards &guards, Prover &prover) const {
    std::vector<FormulaId> made;
    for (const SpecPiece &piece : ast_.pieces)
      made.push_back(piece.guard == no_expr ? prover.truth(true) : guards.condition(piece.guard));
    return made;
  }

  void find_unreachable() {
    Prover prover;
    Guards guards(ast_, names_, kinds_, typed_, prover, {});
    const std::vector<FormulaId> conditions = formulas(guards, prover);
    State before; // what holds where no earlier piece was taken
    for (size_t p = 0; p < ast_.pieces.size(); ++p) {
      if (prover.refutes(before, conditions[p])) {
        typed_.reachable[p] = false;
        warn(prover, conditions, p);
        continue;
      }
      if (ast_.pieces[p].guard != no_expr) prover.assume(before, prover.negated(conditions[p]));
    }
  }

  void warn(Prover &prover, const std::vector<FormulaId> &conditions, size_t p) {
    const Span where = ast_.pieces[p].where;
    std::vector<size_t> needed;
    for (size_t k = 0; k < p; ++k)
      if (typed_.reachable[k]) needed.push_back(k);
    const auto enough = [&](const std::vector<size_t> &pieces) {
      State s;
      for (size_t k : pieces) prover.assume(s, prover.negated(conditions[k]));
      return prover.refutes(s, conditions[p]);
    };
    if (enough({})) {
      sink_.report(Code::UnreachablePiece, where, {text(where), "its guard never holds"});
      return;
    }
    const size_t most_named = 16;
    for (size_t k : needed)
      if (needed.size() <= most_named && enough({k})) {
        needed = {k};
        break;
      }
    for (size_t k = 0; needed.size() > 1 && needed.size() <= most_named && k < needed.size();) {
      std::vector<size_t> fewer;
      for (size_t other = 0; other < needed.size(); ++other)
        if (other != k) fewer.push_back(needed[other]);
      if (enough(fewer)) needed.swap(fewer);
      else ++k;
    }
    std::string earlier = "the pieces before it take";
    if (needed.size() <= 3) {
      std::vector<std::string> names;
      for (size_t k : needed) names.push_back(text(ast_.bare(ast_.pieces[k].guard, ast_.pieces[k].guard_written)));
      earlier = listed(names) + (needed.size() == 1 ? " takes" : " take");
    }
    const bool all = ast_.pieces[p].guard == no_expr;
    sink_.report(Code::UnreachablePiece, where,
                 {text(where), earlier + (all ? " every position" : " all of its positions")});
  }

  /// `left`: the positions that are left; `nans`: the floats that were taken not to be NaN.
  bool covered(Premises premises, bool record, std::vector<std::string> *left = nullptr,
               std::vector<std::string> *nans = nullptr) {
    Prover prover;
    Guards guards(ast_, names_, kinds_, typed_, prover, premises);
    const std::vector<FormulaId> conditions = formulas(guards, prover);
    State none;
    for (size_t p = 0; p < ast_.pieces.size(); ++p)
      if (typed_.reachable[p]) prover.assume(none, prover.negated(conditions[p]));
    std::vector<Leaf> leaves;
    const bool proved = prover.refutes(none, left ? &leaves : nullptr);
    gave_up_ = !proved && prover.gave_up();
    if (left)
      for (const Leaf &leaf : leaves) {
        std::string one = describe(guards, leaf);
        if (std::find(left->begin(), left->end(), one) == left->end()) left->push_back(std::move(one));
      }
    // Where a comparison has no side, as of NaN, there is nothing to call it by, and the others say enough.
    if (left && left->size() > 1) left->erase(std::remove(left->begin(), left->end(), ""), left->end());
    if (nans)
      for (const auto &[key, e] : guards.numbers())
        if (std::string one = text(ast_[e].where); std::find(nans->begin(), nans->end(), one) == nans->end())
          nans->push_back(one);
    if (proved && record) {
      for (uint32_t a : guards.unknown_arguments()) typed_.assumed.push_back({Assumption::IsNumber, a});
      for (const auto &[key, e] : guards.numbers())
        if (const uint32_t a = float_parameter(e); a != ~0u) typed_.assumed.push_back({Assumption::NotNaN, a, e});
    }
    return proved;
  }

  /// Whether the kinds of arguments that are not known yet decide: `x >= 0` may be all that u8 data need.
  bool left_to_the_kinds(Premises premises) {
    premises.unknown_is_unsigned = true;
    return !kinds_.complete && covered(premises, false);
  }

  void prove_covered() {
    Premises premises{.unknown_is_number = true};
    if (covered(premises, true)) return;
    premises.uniforms_are_numbers = true;
    std::vector<std::string> left;
    if (covered(premises, true, &left)) return;
    const bool gave_up = gave_up_;
    if (left_to_the_kinds(premises)) return;
    premises.data_is_number = true;
    std::vector<std::string> nans;
    const bool only_nan = covered(premises, false, nullptr, &nans);
    const SpecPiece &last = ast_.pieces.back();
    const bool has_x = std::find(names_.arguments.begin(), names_.arguments.end(), "x") != names_.arguments.end();
    const std::string rest = has_x ? "else x" : "else 0";
    const auto add_rest = [&](Diagnostic &d, const char *label) {
      d.fixits = {{Span{last.where.end, last.where.end}, "; " + rest, label}};
    };
    if (gave_up && !only_nan) {
      Diagnostic &d = sink_.report(Code::CoverageUnknown, last.where);
      add_rest(d, "end the list");
      d.note = "the guards are more than the proof can tell apart; `else` needs none";
      return;
    }
    if (left.size() > 3) left.resize(3), left.push_back("...");
    const bool any = left.empty() || (left.size() == 1 && left[0].empty());
    Diagnostic &d = sink_.report(Code::NotCovered, last.where,
                                 {only_nan ? "NaN in " + listed(nans)
                                  : any    ? "any position"
                                           : listed(left)});
    add_rest(d, has_x ? "leave the rest as it is" : "give the rest a value");
    if (only_nan) d.note = "every comparison with NaN but `!=` is false";
  }

  /// A float parameter in `e`, to name in the message of a call.
  uint32_t float_parameter(ExprId e) const {
    std::set<ExprId> seen;
    return float_parameter(e, seen);
  }
  uint32_t float_parameter(ExprId e, std::set<ExprId> &seen) const {
    if (!seen.insert(e).second) return ~0u;
    if (ast_[e].kind == ExprKind::Name)
      return names_.of[e].binding == Binding::Argument && kinds_[e].kind == Kind::WeakFloat ? names_.of[e].index : ~0u;
    for (uint32_t k = 0; k < values(ast_, names_, e); ++k)
      if (const uint32_t a = float_parameter(ast_.child(e, k), seen); a != ~0u) return a;
    return ~0u;
  }

  bool is_position(ExprId e) const {
    return ast_[e].kind == ExprKind::Name && names_.of[e].binding == Binding::Position;
  }

  /// What is known of one axis where no piece matches: bounds as they are written, without a length that says nothing.
  struct Bounds {
    std::string low, high; // [low, high)
    std::string at_least, at_most;
  };

  /// Positions left over: `i in [n/4, n-n/4)` if bounds of axes say it all, else the conditions that hold there.
  std::string describe(const Guards &guards, const Leaf &leaf) {
    std::vector<std::string> conditions;
    std::vector<std::pair<std::string, Bounds>> axes;
    bool bounds = true;
    for (uint32_t tag : leaf) {
      const Origin o = guards.origin(tag);
      std::string one = condition(o);
      if (std::find(conditions.begin(), conditions.end(), one) == conditions.end())
        conditions.push_back(std::move(one));
      bounds = bounds && add_bound(o, axes);
    }
    if (bounds && !axes.empty()) {
      conditions.clear();
      for (const auto &[axis, b] : axes) conditions.push_back(written(axis, b));
    }
    std::string text;
    for (const std::string &c : conditions) text += (text.empty() ? "" : " and ") + c;
    return text;
  }

  std::string written(const std::string &axis, const Bounds &b) const {
    if (!b.at_least.empty() && b.at_least == b.at_most) return axis + " == " + b.at_least;
    const std::string length = b.high.empty() ? axis_length(axis) : b.high;
    return axis + " in [" + (b.low.empty() ? "0" : b.low) + ", " + length + ")";
  }

  std::string axis_length(const std::string &axis) const {
    const auto &axes = ast_.header.axes;
    if (std::find(axes.begin(), axes.end(), axis) == axes.end()) return "n";
    return std::string(name_of(Rule::Length)) + "(" + axis + ")";
  }

  std::string condition(const Origin &o) const {
    const Expr &x = ast_[o.expr];
    if (x.kind == ExprKind::Binary && is_comparison(x.op)) {
      Operator op = o.op == Operator::Or ? x.op : o.op;
      if (o.negated) op = opposite(op);
      const Span a = ast_.written_at(o.expr, 0).at, b = ast_.written_at(o.expr, 1).at;
      return text(a) + " " + spelling(op) + " " + text(b);
    }
    const bool binary = x.kind == ExprKind::Binary;
    if (!o.negated) return text(x.where);
    return std::string(spelling(Operator::Not)) + " " + (binary ? "(" + text(x.where) + ")" : text(x.where));
  }

  /// Whether it is no one number for all positions; what is not known may be one.
  bool varies(ExprId e) const {
    std::set<ExprId> seen;
    return varies(e, seen);
  }
  bool varies(ExprId e, std::set<ExprId> &seen) const {
    if (!seen.insert(e).second) return false;
    if (kinds_[e].kind != Kind::Unknown) return kinds_[e].stage != Stage::Host;
    for (uint32_t k = 0; k < values(ast_, names_, e); ++k)
      if (varies(ast_.child(e, k), seen)) return true;
    return false;
  }

  bool add_bound(const Origin &o, std::vector<std::pair<std::string, Bounds>> &axes) const {
    const Expr &x = ast_[o.expr];
    if (o.op == Operator::Or || x.kind != ExprKind::Binary) return false;
    Operator op = o.negated ? opposite(o.op) : o.op;
    ExprId position = ast_.child(o.expr, 0);
    uint32_t other = 1;
    if (!is_position(position)) position = ast_.child(o.expr, 1), other = 0, op = mirrored(op);
    if (!is_position(position)) return false;
    const std::string &axis = ast_.name(position);
    auto at = std::find_if(axes.begin(), axes.end(), [&](const auto &a) { return a.first == axis; });
    if (at == axes.end()) at = axes.insert(axes.end(), {axis, {}});
    Bounds &b = at->second;
    const bool lower = op == Operator::Ge || op == Operator::Gt, next = op == Operator::Gt || op == Operator::Le;
    std::string &bound = lower ? b.low : b.high;
    const ExprId e = ast_.child(o.expr, other);
    if (!bound.empty() || varies(e)) return false;
    if (next && kinds_[e].kind != Kind::Index && kinds_[e].kind != Kind::Unknown) return false;
    const std::string plain = text(ast_.written_at(o.expr, other).at);
    bound = next ? successor(o.expr, other) : plain;
    if (op == Operator::Ge) b.at_least = plain;
    if (op == Operator::Le) b.at_most = plain;
    return true;
  }

  /// `e + 1`, written as a person would: `n` for `n-1`.
  std::string successor(ExprId parent, uint32_t operand) const {
    const ExprId e = ast_.child(parent, operand);
    const Written &w = ast_.written_at(parent, operand);
    if (w.let != no_let) return text(w.at) + "+1";
    const Expr &x = ast_[e];
    if (kinds_[e].constant) return decimal(*kinds_[e].constant + 1);
    if (x.kind == ExprKind::Binary && !x.parenthesised && (x.op == Operator::Sub || x.op == Operator::Add)) {
      const auto step = kinds_[ast_.child(e, 1)].constant;
      const std::string left = text(ast_.written_at(e, 0).at);
      if (step) {
        const __int128 by = x.op == Operator::Add ? *step + 1 : 1 - *step;
        return by == 0 ? left : left + (by > 0 ? "+" : "-") + decimal(by < 0 ? -by : by);
      }
    }
    const std::string whole = text(w.at);
    const bool loose = x.kind == ExprKind::Binary && !x.parenthesised && precedence(x.op) < precedence(Operator::Add);
    return (loose ? "(" + whole + ")" : whole) + "+1";
  }

  const Source &source_;
  const Ast &ast_;
  const Names &names_;
  const Kinds &kinds_;
  Typed &typed_;
  Sink &sink_;
  bool gave_up_ = false; // the last proof of coverage was cut short
};

} // namespace

void check_coverage(const Source &source, const Ast &ast, const Names &names, const Kinds &kinds, Typed &typed,
                    Sink &sink) {
  Coverage(source, ast, names, kinds, typed, sink).run();
}

} // namespace elsewise
