// SPDX-License-Identifier: Apache-2.0
// Comparisons with NaN, and positions compared with fractions of one or with the length of everything. What no position
// can reach is the coverage proof's business.
#include "compiler/check/suspicious.h"
#include "compiler/names/habits.h"
#include "grammar/builtins.h"
#include <algorithm>
#include <cmath>

namespace elsewise {
namespace {

class Suspicions {
public:
  Suspicions(const Source &source, const Ast &ast, const Names &names, Sink &sink)
      : source_(source), ast_(ast), names_(names), sink_(sink) {}

  void run() {
    for (ExprId e = 0; e < ast_.exprs.size(); ++e)
      if (ast_[e].kind == ExprKind::Binary && is_comparison(ast_[e].op)) {
        nan(e);
        fraction(e);
        length(e);
      }
  }

private:
  std::string text(Span s) const { return std::string(source_.slice(s)); }

  bool real_literal(ExprId e) const {
    return ast_[e].kind == ExprKind::Literal && ast_.literal(e).kind == LiteralKind::Float;
  }

  /// `x == nan`, which never holds.
  void nan(ExprId e) {
    for (uint32_t k = 0; k < 2; ++k) {
      const ExprId literal = ast_.child(e, k);
      if (!real_literal(literal) || !std::isnan(ast_.literal(literal).real)) continue;
      const bool unequal = ast_[e].op == Operator::Ne;
      Diagnostic &d =
          sink_.report(Code::NanComparison, ast_[e].where, {text(ast_[e].where), unequal ? "true" : "false"});
      const Builtin *test = nullptr;
      for (const Builtin &row : builtins())
        if (row.meaning == Meaning::NotANumber) test = &row;
      if (!test || (ast_[e].op != Operator::Eq && !unequal) || real_literal(ast_.child(e, 1 - k))) return;
      const std::string other = text(ast_.written_at(e, 1 - k).at);
      d.fixits = {{ast_[e].where, std::string(unequal ? "not " : "") + std::string(test->name) + "(" + other + ")",
                   "ask whether it is NaN"}};
      return;
    }
  }

  /// `i < 0.25`: the whole numbers below a quarter are 0 alone, and a quarter of the elements was meant.
  void fraction(ExprId e) {
    for (uint32_t k = 0; k < 2; ++k) {
      const ExprId position = ast_.child(e, k), literal = ast_.child(e, 1 - k);
      if (ast_[position].kind != ExprKind::Name || names_.of[position].binding != Binding::Position) continue;
      if (!real_literal(literal)) continue;
      const double value = ast_.literal(literal).real;
      if (!(value > 0 && value < 1)) continue;
      const Span at = ast_.written_at(e, 1 - k).at;
      Diagnostic &d = sink_.report(Code::FractionalBound, ast_[e].where, {text(ast_[e].where)});
      if (names_.of[position].index == flat_axis) d.fixits = {{at, text(at) + "*n", "a fraction of the elements"}};
      else
        d.fixits = {{at, text(at) + "*" + std::string(length_name()) + "(" + ast_.name(position) + ")",
                     "a fraction of the axis"}};
      return;
    }
  }

  /// Every operand below `e`, each once.
  void operands(ExprId e, std::vector<ExprId> &found) const {
    if (std::find(found.begin(), found.end(), e) != found.end()) return;
    found.push_back(e);
    for (uint32_t k = 0; k < ast_[e].count; ++k) operands(ast_.child(e, k), found);
  }

  /// `t < n/4` under `[ch, t]`: the length of `t` was meant.
  void length(ExprId e) {
    if (ast_.header.axes.size() < 2 && ast_.header.dots < 0) return;
    std::vector<ExprId> found;
    operands(e, found);
    ExprId position = no_expr, all = no_expr;
    for (const ExprId f : found) {
      if (ast_[f].kind != ExprKind::Name) continue;
      const Resolved &r = names_.of[f];
      if (r.binding == Binding::Position && r.index == flat_axis) return;
      if (r.binding == Binding::Position && position == no_expr) position = f;
      if (r.binding == Binding::Length && r.index == flat_axis && all == no_expr) all = f;
    }
    if (position == no_expr || all == no_expr) return;
    const std::string axis = ast_.name(position);
    sink_.report(Code::LengthOfAll, ast_[all].at, {text(ast_[all].at), axis}).fixits = {
        {ast_[all].at, std::string(length_name()) + "(" + axis + ")", "the length of the axis"}};
  }

  const Source &source_;
  const Ast &ast_;
  const Names &names_;
  Sink &sink_;
};

} // namespace

void warn_suspicious(const Source &source, const Ast &ast, const Names &names, Sink &sink) {
  Suspicions(source, ast, names, sink).run();
}

} // namespace elsewise
