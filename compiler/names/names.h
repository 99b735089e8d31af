// SPDX-License-Identifier: Apache-2.0
// Name resolution: which thing each name of a spec stands for. It decides no types and looks at no arguments.
#pragma once
#include "compiler/diagnostics/diagnostic.h"
#include "compiler/parse/ast.h"
#include "compiler/types/types.h"

namespace elsewise {

struct Builtin;
enum class Rule : uint8_t;

enum class Binding : uint8_t {
  None,
  Position,       // index: axis, an index into Ast::header.axes, or flat_axis
  Length,         // index: likewise; `n`, `len(t)`
  Argument,       // index: into Names::arguments; of a Read too
  ArgumentLength, // index: into Names::arguments; dim: which of its axes, negative from the right. `len(s)`, `len(s,
                  // d)`
  Border,         // `border()`: over every axis of the domain; with operands, over those positions alone
  Builtin,        // index: row of the builtin table, of one that has a value by its operands' values
};

struct Resolved {
  Binding binding = Binding::None;
  uint32_t index = 0;
  int32_t dim = 0;
};

struct Names {
  std::vector<Resolved> of;           // parallel to Ast::exprs; filled for Name, Call and Read
  std::vector<std::string> arguments; // in order of first use
  std::vector<bool> elementwise; // by argument: some expression uses its value, not its length alone. Only those shape
                                 // the domain
  std::vector<bool> indexed;     // by argument: some expression reads it at indices
  bool needs_rank = false; // `border()` or `..` of a read over axes that no header counts: the signature must tell the
                           // domain's rank
};

/// How many axes the domain has: those of a header that names all, else what the signature says (-1: it does not).
inline int domain_rank(const Header &h, const Signature &signature) {
  return !h.present || h.dots >= 0 ? signature.rank : int(h.axes.size());
}

/// Whether each axis that `..` of a read stands for, of an argument of that many axes, has one of the domain's that it
/// is aligned with from the right.
inline bool own_axes_have_places(const Expr &read, int axes, int domain) {
  return axes <= int(read.count) || read.dots >= axes - domain;
}

/// How many operands of `e` are values: those of `len` and `border` are names of axes and arguments, and literals.
inline uint32_t values(const Ast &ast, const Names &names, ExprId e) {
  const bool plain = ast[e].kind != ExprKind::Call || names.of[e].binding == Binding::Builtin;
  return plain ? ast[e].count : 0;
}

/// The row that `e` is a call of; null: it is none. `len` and `border` are bindings of their own.
const Builtin *called(const Ast &, const Names &, ExprId e);
/// Whether `e` is a call of a row of that rule.
bool calls(const Ast &, const Names &, ExprId e, Rule);

/// By expression: a read stands at or below it.
std::vector<bool> holding_reads(const Ast &, const Names &);
/// By expression: `lowest` or `highest` may be its value.
std::vector<bool> holding_extremes(const Ast &, const Names &);

/// Reports unknown functions, wrong argument counts, reserved names (out shape dtype device domain offset stream arch
/// path), and operands of `len` and `border` that are nothing of the kind. Unknown value names are arguments, if a
/// piece comes to use them.
Names resolve(const Ast &, Sink &);

} // namespace elsewise
