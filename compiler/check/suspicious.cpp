// SPDX-License-Identifier: Apache-2.0
// Comparisons with NaN, and positions compared with fractions of one or with the length of everything. What no position
// can reach is the coverage proof's business.
#include "compiler/check/suspicious.h"
#include "compiler/names/habits.h"
#include "grammar/builtins.h"
#include <cmath>

namespace elsewise {
namespace {

class Suspicions {
public:
  Suspicions(const Source &source, const Ast &ast, const Names &names, Sink &sink)
      : source_(source), ast_(ast), names_(names), sink_(sink) {}

  void run() {
    below_.reserve(ast_.exprs.size());
    for (ExprId e = 0; e < ast_.exprs.size(); ++e) {
      look(e);
      if (ast_[e].kind != ExprKind::Binary || !is_comparison(ast_[e].op)) continue;
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
        d.fixits = {{at, text(at) + "*" + std::string(name_of(Rule::Length)) + "(" + ast_.name(position) + ")",
                     "a fraction of the axis"}};
      return;
    }
  }

  /// What stands at or below an expression, each at its first place. Operands come before users, so one pass finds all.
  struct Below {
    bool flat = false;                        // the flat position
    ExprId position = no_expr, all = no_expr; // that of an axis; the number of all elements
  };
  void look(ExprId e) {
    Below &b = below_.emplace_back();
    if (ast_[e].kind == ExprKind::Name) {
      const Resolved &r = names_.of[e];
      const bool flat = r.index == flat_axis;
      b.flat = r.binding == Binding::Position && flat;
      if (r.binding == Binding::Position && !flat) b.position = e;
      if (r.binding == Binding::Length && flat) b.all = e;
    }
    if (ast_[e].kind == ExprKind::Read) return; // its element is a value of its own
    for (uint32_t k = 0; k < ast_[e].count; ++k) {
      const Below &o = below_[ast_.child(e, k)];
      b.flat |= o.flat;
      if (b.position == no_expr) b.position = o.position;
      if (b.all == no_expr) b.all = o.all;
    }
  }

  /// `t < n/4` under `[ch, t]`: the length of `t` was meant.
  void length(ExprId e) {
    if (ast_.header.axes.size() < 2 && ast_.header.dots < 0) return;
    const auto &[flat, position, all] = below_[e];
    if (flat || position == no_expr || all == no_expr) return;
    const std::string axis = ast_.name(position);
    sink_.report(Code::LengthOfAll, ast_[all].at, {text(ast_[all].at), axis}).fixits = {
        {ast_[all].at, std::string(name_of(Rule::Length)) + "(" + axis + ")", "the length of the axis"}};
  }

  const Source &source_;
  const Ast &ast_;
  const Names &names_;
  Sink &sink_;
  std::vector<Below> below_; // by expression
};

} // namespace

void warn_suspicious(const Source &source, const Ast &ast, const Names &names, Sink &sink) {
  Suspicions(source, ast, names, sink).run();
}

} // namespace elsewise
