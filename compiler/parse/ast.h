// SPDX-License-Identifier: Apache-2.0
// The syntax tree: value structs in vectors, referred to by index. It says what was written and knows no types.
#pragma once
#include "compiler/source/source.h"
#include <string>
#include <vector>

namespace elsewise {

enum class Operator : uint8_t {
#define OPERATOR(Name, spelling, alternative, precedence, arity) Name,
#include "grammar/operators.def"
};
const char *spelling(Operator);
inline bool is_comparison(Operator o) { return o >= Operator::Lt && o <= Operator::Ne; }
/// A comparison with its operands exchanged: `a < b` is `b > a`; any other operator as it is.
Operator mirrored(Operator);
inline bool is_logic(Operator o) { return o <= Operator::Not; }

enum class ExprKind : uint8_t {
  Literal, // payload: index into Ast::literals
  Name,    // payload: index into Ast::names
  Unary,   // op; one operand
  Binary,  // op (arithmetic, bits, comparison, and/or); two operands. `a <= i < b` is And of two comparisons that share
           // the operand `i`
  Call,    // payload: index into Ast::names (the function's name); operands are the arguments
  Read,    // `s[e0, .., e1]`. payload: index into Ast::names (what is read); operands are the indices, `dots` of them
           // before `..`
  Error,   // something that did not parse; a diagnostic was reported, later phases stay silent about it
};

using ExprId = uint32_t;
inline constexpr ExprId no_expr = ~0u;
inline constexpr uint32_t no_let = ~0u;

/// How an expression is written in one place: itself, or as the name of a let.
struct Written {
  Span at;               // with its parentheses
  uint32_t let = no_let; // an index into Ast::lets
};

struct Expr {
  ExprKind kind;
  Operator op = Operator::Or;
  bool parenthesised = false;
  Span where;                    // the whole expression, its parentheses excluded
  Span at;                       // the operator, or the name, or the literal: where a caret goes
  uint32_t first = 0, count = 0; // operands: Ast::children[first, first + count)
  uint32_t payload = 0;
  int8_t dots = -1; // Read: how many indices stand before `..`; -1: there is none
};

enum class LiteralKind : uint8_t { Int, Float, Bool, Lowest, Highest }; // the last two: of the stored dtype
inline bool is_extreme(LiteralKind k) { return k == LiteralKind::Lowest || k == LiteralKind::Highest; }
struct Literal {
  LiteralKind kind;
  __int128 integer = 0; // Int, Bool (0 or 1)
  double real = 0;      // Float; inf, nan and pi are float literals
};

/// `guard: value`; `else value` and a bare value have no guard.
struct SpecPiece {
  ExprId guard = no_expr;
  ExprId value = no_expr;
  Written guard_written, value_written;
  bool is_else = false;
  Span where; // from the guard (or `else`, or the value) to the value's end
};

/// `[b, .., t]`: names for the axes of the domain, `..` for those left unnamed.
struct Header {
  bool present = false;
  Span where;
  std::vector<std::string> axes; // in order, `..` left out
  std::vector<Span> at;          // where each name stands, parallel to `axes`
  int dots = -1;                 // how many names stand before `..`; -1: there is none, and the rank is axes.size()
};

/// `let name = value`. A use of the name is the value's own ExprId as an operand, so a tree with lets is a graph and a
/// walker must remember what it has seen.
struct Let {
  std::string name;
  Span at; // the name, where it is defined
  ExprId value = no_expr;
  Span where; // the whole definition
  Written value_written;
};

struct Ast {
  Header header;
  std::vector<Let> lets;
  std::vector<Expr> exprs; // operands before users
  std::vector<ExprId> children;
  std::vector<Written> written; // parallel to children: how each operand is written
  std::vector<Literal> literals;
  std::vector<std::string> names; // distinct, in order of first use
  std::vector<SpecPiece> pieces;

  const Expr &operator[](ExprId id) const { return exprs[id]; }
  ExprId child(ExprId id, uint32_t k) const { return children[exprs[id].first + k]; }
  const Written &written_at(ExprId id, uint32_t k) const { return written[exprs[id].first + k]; }
  /// The text of an expression in one place, without its parentheses, or the name that stands for it.
  Span bare(ExprId e, const Written &w) const { return w.let == no_let ? exprs[e].where : w.at; }
  Span bare(ExprId parent, uint32_t k) const { return bare(child(parent, k), written_at(parent, k)); }
  const std::string &name(ExprId id) const { return names[exprs[id].payload]; }
  const Literal &literal(ExprId id) const { return literals[exprs[id].payload]; }
};

} // namespace elsewise
