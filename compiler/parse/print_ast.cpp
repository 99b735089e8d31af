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
    case ExprKind::Read:
      text += "(read " + ast.name(id);
      break;
    }
    for (uint32_t k = 0; k <= e.count; ++k) {
      if (e.dots == int(k)) text += " ..";
      if (k == e.count) break;
      text += " ";
      print(ast.child(id, k), ast.written_at(id, k));
    }
    text += ")";
  }
  /// A let's name where it is used: so what it stands for is printed once.
  void print(ExprId id, const Written &written) {
    if (written.let == no_let) print(id);
    else text += ast.lets[written.let].name;
  }

  void place(Span where) {
    const LineColumn at = source.position(where.begin);
    text += std::to_string(at.line) + ":" + std::to_string(at.column) + " ";
  }
  void header() {
    place(ast.header.where);
    text += "[";
    const char *comma = "";
    for (size_t k = 0; k <= ast.header.axes.size(); ++k) {
      if (ast.header.dots == int(k)) text += std::string(comma) + "..", comma = ", ";
      if (k < ast.header.axes.size()) text += comma + ast.header.axes[k], comma = ", ";
    }
    text += "]\n";
  }
  void let(const Let &l) {
    place(l.where);
    text += "let " + l.name + " = ";
    print(l.value, l.value_written);
    text += "\n";
  }
  void piece(const SpecPiece &p) {
    place(p.where);
    if (p.is_else) text += "else ";
    if (p.guard != no_expr) {
      print(p.guard, p.guard_written);
      text += " ";
    }
    text += "=> ";
    print(p.value, p.value_written);
    text += "\n";
  }
};

} // namespace

std::string print_ast(const Source &source, const Ast &ast) {
  Printer p{source, ast};
  if (ast.header.present) p.header();
  size_t next = 0;
  for (const SpecPiece &piece : ast.pieces) { // as they stand in the text
    for (; next < ast.lets.size() && ast.lets[next].where.begin < piece.where.begin; ++next) p.let(ast.lets[next]);
    p.piece(piece);
  }
  for (; next < ast.lets.size(); ++next) p.let(ast.lets[next]);
  return p.text;
}

} // namespace elsewise
