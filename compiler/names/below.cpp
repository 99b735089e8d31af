// SPDX-License-Identifier: Apache-2.0
// What an expression is a call of, and what stands at and below it. It looks at no types, and expects names to be
// resolved.
#include "compiler/names/names.h"
#include "grammar/builtins.h"

namespace elsewise {

const Builtin *called(const Ast &ast, const Names &names, ExprId e) {
  const bool row = ast[e].kind == ExprKind::Call && names.of[e].binding == Binding::Builtin;
  return row ? &builtins()[names.of[e].index] : nullptr;
}

bool calls(const Ast &ast, const Names &names, ExprId e, Rule rule) {
  const Builtin *const row = called(ast, names, e);
  return row && row->rule == rule;
}

// Operands stand before what uses them, so one walk from front to back sees all.

std::vector<bool> holding_reads(const Ast &ast, const Names &names) {
  std::vector<bool> holds(ast.exprs.size());
  for (ExprId e = 0; e < ast.exprs.size(); ++e) {
    holds[e] = ast[e].kind == ExprKind::Read;
    for (uint32_t k = 0; k < values(ast, names, e); ++k) holds[e] = holds[e] || holds[ast.child(e, k)];
  }
  return holds;
}

std::vector<bool> holding_extremes(const Ast &ast, const Names &names) {
  std::vector<bool> holds(ast.exprs.size());
  for (ExprId e = 0; e < ast.exprs.size(); ++e)
    if (ast[e].kind == ExprKind::Literal) holds[e] = is_extreme(ast.literal(e).kind);
    else if (calls(ast, names, e, Rule::Select)) holds[e] = holds[ast.child(e, 1)] || holds[ast.child(e, 2)];
  return holds;
}

} // namespace elsewise
