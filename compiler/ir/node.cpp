// SPDX-License-Identifier: Apache-2.0
// What every reader of the IR asks of a node: the spelling of its operation and its operands. It changes nothing.
#include "compiler/ir/ir.h"

namespace elsewise {

const char *spelling(Op op) {
  static constexpr const char *names[] = {"const",   "param", "len",   "pos",  "arglen", "load", "unary",  "binary",
                                          "compare", "logic", "where", "cast", "call",   "read", "origin", "entry"};
  return names[int(op)];
}
const char *spelling(UnaryOp op) {
  static constexpr const char *names[] = {"neg", "bitnot"};
  return names[int(op)];
}
const char *spelling(BinaryOp op) {
  static constexpr const char *names[] = {"add", "sub", "mul", "div",    "floordiv", "mod",
                                          "pow", "shl", "shr", "bitand", "bitor",    "bitxor"};
  return names[int(op)];
}
const char *spelling(CompareOp op) {
  static constexpr const char *names[] = {"lt", "le", "gt", "ge", "eq", "ne"};
  return names[int(op)];
}
const char *spelling(LogicOp op) {
  static constexpr const char *names[] = {"and", "or", "not"};
  return names[int(op)];
}

const char *spelling(Exactness e) {
  static constexpr const char *names[] = {"data", "exact", "value"};
  return names[int(e)];
}

bool is_form_word(std::string_view s) {
  const bool row_axis = s.size() > 1 && s[0] == 'r' && s.find_first_not_of("0123456789", 1) == s.npos;
  return row_axis || s == "inner" || s == "pitched" || s == "wide" || s == "narrow" || s == "window" || s == "many" ||
         s == "flat" || s == "tile" || s == "segments";
}

CompareOp mirrored(CompareOp op) {
  constexpr CompareOp to[] = {CompareOp::Gt, CompareOp::Ge, CompareOp::Lt, CompareOp::Le, CompareOp::Eq, CompareOp::Ne};
  return to[int(op)];
}

std::vector<NodeId> operands(const Kernel &k, const Inst &i) {
  switch (i.op) {
  case Op::Const:
  case Op::Param:
  case Op::Len:
  case Op::Pos:
  case Op::ArgLen:
  case Op::Origin:
  case Op::Load:
  case Op::Entry:
    return {};
  case Op::Unary:
  case Op::Cast:
    return {i.a};
  case Op::Binary:
  case Op::Compare:
    return {i.a, i.b};
  case Op::Logic:
    return LogicOp(i.sub) == LogicOp::Not ? std::vector{i.a} : std::vector{i.a, i.b};
  case Op::Where:
    return {i.a, i.b, i.c};
  case Op::Call:
  case Op::Read:
    return {k.operands.begin() + i.a, k.operands.begin() + i.a + i.b};
  }
  return {};
}

std::vector<NodeId> operands(const Kernel &k, NodeId n) { return operands(k, k[n]); }

} // namespace elsewise
