// SPDX-License-Identifier: Apache-2.0
// Expands calls and operators into nodes of one type. It converts no operand and decides no type.
#include "compiler/lower/expand.h"
#include "compiler/check/composite.h"

namespace elsewise {
namespace {

/// Walks the body of one composite.
struct Body {
  Kernel &k;
  Builder &b;
  const Composite &row;
  DType type;
  const std::vector<NodeId> &arguments;

  NodeId value(ExprId e) {
    const Expr &x = row.ast[e];
    switch (x.kind) {
    case ExprKind::Literal: {
      const Literal &l = row.ast.literal(e);
      if (l.kind == LiteralKind::Bool) return b.integer(DType::Bool, l.integer);
      if (!is_float(type)) return b.integer(type, l.kind == LiteralKind::Int ? l.integer : (__int128)l.real);
      return b.real(type, l.kind == LiteralKind::Int ? double(l.integer) : type == DType::F32 ? float(l.real) : l.real);
    }
    case ExprKind::Name:
      return arguments[row.parameter(e)];
    case ExprKind::Unary:
      return operate(b, x.op, type, value(row.ast.child(e, 0)), no_node);
    case ExprKind::Binary: {
      const NodeId left = value(row.ast.child(e, 0));
      return operate(b, x.op, type, left, value(row.ast.child(e, 1)));
    }
    case ExprKind::Call: {
      std::vector<NodeId> list;
      for (uint32_t n = 0; n < x.count; ++n) list.push_back(value(row.ast.child(e, n)));
      return expand_call(k, b, row.names.of[e].index, type, list);
    }
    case ExprKind::Error:
      break;
    }
    return no_node;
  }
};

} // namespace

NodeId operate(Builder &b, Operator op, DType type, NodeId x, NodeId y) {
  const bool truth = type == DType::Bool; // + is or, * is and
  switch (op) {
  case Operator::Or:
    return b.logic(LogicOp::Or, x, y);
  case Operator::And:
    return b.logic(LogicOp::And, x, y);
  case Operator::Not:
    return b.logic(LogicOp::Not, x);
  case Operator::Lt:
    return b.compare(CompareOp::Lt, x, y, false);
  case Operator::Le:
    return b.compare(CompareOp::Le, x, y, false);
  case Operator::Gt:
    return b.compare(CompareOp::Gt, x, y, false);
  case Operator::Ge:
    return b.compare(CompareOp::Ge, x, y, false);
  case Operator::Eq:
    return b.compare(CompareOp::Eq, x, y, false);
  case Operator::Ne:
    return b.compare(CompareOp::Ne, x, y, false);
  case Operator::BitOr:
    return truth ? b.logic(LogicOp::Or, x, y) : b.binary(BinaryOp::BitOr, x, y);
  case Operator::BitXor:
    return truth ? b.compare(CompareOp::Ne, x, y) : b.binary(BinaryOp::BitXor, x, y);
  case Operator::BitAnd:
    return truth ? b.logic(LogicOp::And, x, y) : b.binary(BinaryOp::BitAnd, x, y);
  case Operator::Shl:
    return b.binary(BinaryOp::Shl, x, y);
  case Operator::Shr:
    return b.binary(BinaryOp::Shr, x, y);
  case Operator::Add:
    return truth ? b.logic(LogicOp::Or, x, y) : b.binary(BinaryOp::Add, x, y);
  case Operator::Sub:
    return b.binary(BinaryOp::Sub, x, y);
  case Operator::Mul:
    return truth ? b.logic(LogicOp::And, x, y) : b.binary(BinaryOp::Mul, x, y);
  case Operator::Div:
    return b.binary(is_float(type) ? BinaryOp::Div : BinaryOp::FloorDiv, x, y); // of indexes only a quotient is left
  case Operator::FloorDiv:
    return b.binary(BinaryOp::FloorDiv, x, y);
  case Operator::Mod:
    return b.binary(BinaryOp::Mod, x, y);
  case Operator::Pow:
    return b.binary(BinaryOp::Pow, x, y);
  case Operator::Neg:
    return b.unary(UnaryOp::Neg, x);
  case Operator::Plus:
    return x;
  case Operator::BitNot:
    return truth ? b.logic(LogicOp::Not, x) : b.unary(UnaryOp::BitNot, x);
  }
  return no_node;
}

NodeId expand_call(Kernel &k, Builder &b, uint32_t row, DType type, const std::vector<NodeId> &operands) {
  const Builtin &r = builtins()[row];
  if (!r.body.empty()) {
    const Composite c = composite(r);
    return Body{k, b, c, type, operands}.value(c.body);
  }
  switch (r.rule) {
  case Rule::Select:
    return b.where(operands[0], operands[1], operands[2]);
  case Rule::Predicate: // of integers false, but an index may still leave 64 bits on the way
    return is_float(type) ? b.call(uint8_t(row), DType::Bool, operands)
                          : b.compare(CompareOp::Ne, operands[0], operands[0], false);
  case Rule::Rounding:
    if (!is_float(type)) return operands[0];
    break;
  default:
    break;
  }
  if (r.max_arguments != 255) return b.call(uint8_t(row), type, operands);
  NodeId value = operands[0];
  for (size_t n = 1; n < operands.size(); ++n) value = b.call(uint8_t(row), type, {value, operands[n]});
  return value;
}

} // namespace elsewise
