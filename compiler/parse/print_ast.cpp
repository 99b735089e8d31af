// SPDX-License-Identifier: Apache-2.0
// The syntax tree as text, for people and tests. Nothing reads it back.
#include "compiler/parse/parser.h"

namespace elsewise {
namespace {

struct Printer {
  const Source &source;
  const Ast &ast;
  std::string text = {};

  // As deep as the parser lets a tree be, and as long: most_levels, most_operations.
  void print(ExprId id) {
    const Expr &e = ast[id];
    switch (e.kind) {
    case ExprKind::Error:
      text += "<error>";
      return;
    case ExprKind::Literal:
      text += source.slice(e.at);
      return;
    case ExprKind::Name:
      text += ast.name(id);
      return;
    case ExprKind::Unary:
    case ExprKind::Binary:
      text += std::string("(") + spelling(e.op);
      break;
    case ExprKind::Call:
      text += "(" + ast.name(id);
      break;
    }
    for (uint32_t k = 0; k < e.count; ++k) {
      text += " ";
      print(ast.child(id, k));
    }
    text += ")";
  }
};

} // namespace

std::string print_ast(const Source &source, const Ast &ast) {
  Printer p{source, ast};
  for (const SpecPiece &piece : ast.pieces) {
    const LineColumn at = source.position(piece.where.begin);
    p.text += std::to_string(at.line) + ":" + std::to_string(at.column) + " ";
    if (piece.is_else) p.text += "else ";
    if (piece.guard != no_expr) {
      p.print(piece.guard);
      p.text += " ";
    }
    p.text += "=> ";
    p.print(piece.value);
    p.text += "\n";
  }
  return p.text;
}

} // namespace elsewise
