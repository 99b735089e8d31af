// SPDX-License-Identifier: Apache-2.0
// What the operator table says of an operator. Which spelling was written is the text's business.
#include "compiler/parse/ast.h"
#include "compiler/parse/precedence.h"

namespace elsewise {
namespace {

struct Row {
  const char *spelling;
  int precedence, arity;
};
constexpr Row rows[] = {
#define OPERATOR(Name, spelling, alternative, precedence, arity) {spelling, precedence, arity},
#include "grammar/operators.def"
};

} // namespace

const char *spelling(Operator op) { return rows[size_t(op)].spelling; }
int precedence(Operator op) { return rows[size_t(op)].precedence; }
int arity(Operator op) { return rows[size_t(op)].arity; }

Operator mirrored(Operator op) {
  switch (op) {
  case Operator::Lt:
    return Operator::Gt;
  case Operator::Le:
    return Operator::Ge;
  case Operator::Gt:
    return Operator::Lt;
  case Operator::Ge:
    return Operator::Le;
  default:
    return op;
  }
}

std::optional<Operator> with_arity(Operator op, int operands) {
  for (size_t k = 0; k < std::size(rows); ++k)
    if (rows[k].arity == operands && std::string_view(rows[k].spelling) == rows[size_t(op)].spelling)
      return Operator(k);
  return {};
}

} // namespace elsewise
