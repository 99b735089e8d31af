// SPDX-License-Identifier: Apache-2.0
// Expands calls and operators into nodes of one type. It converts no operand and decides no type.
#include "compiler/lower/expand.h"
#include "compiler/check/composite.h"
#include "compiler/ir/rows.h"
#include "compiler/lower/exact.h"

namespace elsewise {
namespace {

/// Walks the body of one composite.
struct Body {
  Kernel &k;
  Builder &b;
  const Composite &row;
  DType type;
  const std::vector<NodeId> &arguments;
  Total total;

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
      const NodeId left = value(row.ast.child(e, 0)), right = value(row.ast.child(e, 1));
      const bool divides = x.op == Operator::FloorDiv || x.op == Operator::Mod;
      if (divides && total == Total::Everywhere && type == DType::Index && k[right].stage == Stage::Host)
        return divide_totally(b, x.op, left, right);
      return operate(b, x.op, type, left, right);
    }
    case ExprKind::Call: {
      std::vector<NodeId> list;
      for (uint32_t n = 0; n < x.count; ++n) list.push_back(value(row.ast.child(e, n)));
      return expand_call(k, b, row.names.of[e].index, type, list, total);
    }
    case ExprKind::Read: // no body of the table has one
    case ExprKind::Error:
      break;
    }
    return no_node;
  }
};

/// `a op b` of operands that stand in one type, or of which one is an exact integer and the other a double.
NodeId compare(Kernel &k, Builder &b, CompareOp op, NodeId x, NodeId y) {
  const DType left = k[x].type, right = k[y].type;
  if (left == DType::Index && right == DType::F64) return compare_exactly(k, b, op, x, y);
  if (left == DType::F64 && right == DType::Index) return compare_exactly(k, b, mirrored(op), y, x);
  return b.compare(op, x, y, left == DType::Index ? Exactness::Exact : Exactness::Data);
}

/// `x - y` of a ramp, in which it is chosen only where it is not below 0: of i64 data it then has 64 bits and no sign.
/// What a ramp from 0 measures against is passed on as it is.
NodeId difference(Kernel &k, Builder &b, DType type, NodeId x, NodeId y) {
  if (k[x].type == DType::Index && k[y].type == DType::Index && k[y].op == Op::Const && !k.constants[k[y].a].integer)
    return b.cast(x, type);
  const DType common = k[x].type == k[y].type ? k[x].type : DType::F64;
  const NodeId exact = b.binary(BinaryOp::Sub, b.cast(x, common), b.cast(y, common));
  return b.cast(common == DType::I64 ? b.cast(exact, DType::U64) : exact, type);
}

/// 1 if e >= b, else 0 if e <= a, else (e-a)/(b-a), of which only the quotient is rounded in the type of the result.
NodeId ratio(Kernel &k, Builder &b, DType type, const std::vector<NodeId> &v) {
  const NodeId quotient =
      b.binary(BinaryOp::Div, difference(k, b, type, v[0], v[1]), difference(k, b, type, v[2], v[1]));
  const NodeId rising = b.where(compare(k, b, CompareOp::Le, v[0], v[1]), b.real(type, 0), quotient);
  return b.where(compare(k, b, CompareOp::Ge, v[0], v[2]), b.real(type, 1), rising);
}

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
    return b.compare(CompareOp::Lt, x, y, Exactness::Value);
  case Operator::Le:
    return b.compare(CompareOp::Le, x, y, Exactness::Value);
  case Operator::Gt:
    return b.compare(CompareOp::Gt, x, y, Exactness::Value);
  case Operator::Ge:
    return b.compare(CompareOp::Ge, x, y, Exactness::Value);
  case Operator::Eq:
    return b.compare(CompareOp::Eq, x, y, Exactness::Value);
  case Operator::Ne:
    return b.compare(CompareOp::Ne, x, y, Exactness::Value);
  case Operator::BitOr:
    return truth ? b.logic(LogicOp::Or, x, y) : b.binary(BinaryOp::BitOr, x, y);
  case Operator::BitXor:
    return truth ? b.compare(CompareOp::Ne, x, y, Exactness::Value) : b.binary(BinaryOp::BitXor, x, y);
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

NodeId divide_totally(Builder &b, Operator op, NodeId x, NodeId y) {
  const NodeId zero = b.integer(DType::Index, 0);
  return b.where(b.compare(CompareOp::Ne, y, zero), operate(b, op, DType::Index, x, y), zero);
}

NodeId expand_call(Kernel &k, Builder &b, uint32_t row, DType type, const std::vector<NodeId> &operands, Total total) {
  const Builtin &r = builtins()[row];
  if (!r.body.empty()) {
    const Composite c = composite(r);
    std::vector<NodeId> list = operands;
    if (r.max_arguments != 255) return Body{k, b, c, type, list, total}.value(c.body);
    NodeId value = operands[0];
    for (size_t n = 1; n < operands.size(); ++n) {
      list = {value, operands[n]};
      value = Body{k, b, c, type, list, total}.value(c.body);
    }
    return value;
  }
  switch (r.rule) {
  case Rule::Ratio:
    return ratio(k, b, type, operands);
  case Rule::Select:
    return b.where(operands[0], operands[1], operands[2]);
  case Rule::Predicate: { // of integers what it is of 0, but an index may still leave 64 bits on the way
    if (is_float(type)) return b.call(uint8_t(row), DType::Bool, operands);
    const double zero = 0;
    return b.compare(r.real(&zero) != 0 ? CompareOp::Eq : CompareOp::Ne, operands[0], operands[0], Exactness::Value);
  }
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

NodeId noise(Builder &b, const Builtin &row, NodeId seed, NodeId stream) {
  const NodeId word = b.call(uniform_row(), DType::I32, {b.cast(b.pos(flat_axis), DType::I64), seed, stream});
  if (row.meaning == Meaning::Normal) return b.call(normal_row(), DType::F32, {word});
  const NodeId shifted = b.binary(BinaryOp::Shr, word, b.integer(DType::I32, 8));
  const NodeId top = b.cast(b.binary(BinaryOp::BitAnd, shifted, b.integer(DType::I32, 0xffffff)), DType::F32);
  return b.binary(BinaryOp::Mul, top, b.real(DType::F32, 0x1p-24));
}

} // namespace elsewise
