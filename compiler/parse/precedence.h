// SPDX-License-Identifier: Apache-2.0
// The columns of the operator table, for whoever reads or prints expressions. The table itself is
// grammar/operators.def.
#pragma once
#include "compiler/parse/ast.h"
#include <optional>

namespace elsewise {

int precedence(Operator); // higher binds tighter
int arity(Operator);
/// The operator with the spelling of `op` and that many operands: Sub and 1 give Neg.
std::optional<Operator> with_arity(Operator op, int operands);

} // namespace elsewise
