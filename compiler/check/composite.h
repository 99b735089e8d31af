// SPDX-License-Identifier: Apache-2.0
// The body of a composite builtin as syntax, for those who expand it. Parameters are the names a, b, c, …; it types
// nothing.
#pragma once
#include "compiler/names/names.h"
#include "grammar/builtins.h"

namespace elsewise {

struct Composite {
  Ast ast;
  Names names;
  ExprId body = no_expr;
  /// Which parameter a Name is.
  uint32_t parameter(ExprId e) const { return uint32_t(ast.name(e)[0] - 'a'); }
};

/// Of a row with a body.
Composite composite(const Builtin &);
/// Of another text about the row, such as its body for one backend.
Composite composite(const Builtin &, std::string_view text);

} // namespace elsewise
