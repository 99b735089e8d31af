// SPDX-License-Identifier: Apache-2.0
// i < U is i < ceil(U), i <= U is i <= floor(U), and so on, with a cast to Index that saturates. It rounds no integer
// to a double.
#include "compiler/lower/exact.h"
#include "compiler/ir/rows.h"

namespace elsewise {

NodeId compare_exactly(const Kernel &k, Builder &b, CompareOp op, NodeId index, NodeId real) {
  constexpr __int128 exact = (__int128)1 << 53;
  if (k[index].op == Op::Const) // a literal that a double holds: compare as doubles
    if (const __int128 v = k.constants[k[index].a].integer; v >= -exact && v <= exact)
      return b.compare(op, b.real(DType::F64, double(v)), real);

  auto whole = [&](uint8_t row) { return b.call(row, DType::F64, {real}); };
  auto limit = [&](uint8_t row) { return b.cast(whole(row), DType::Index); };
  auto number = [&](NodeId comparison) {
    return b.logic(LogicOp::And, b.compare(CompareOp::Eq, real, real), comparison);
  };
  switch (op) {
  case CompareOp::Lt:
  case CompareOp::Ge:
    return number(b.compare(op, index, limit(ceil_row())));
  case CompareOp::Le:
  case CompareOp::Gt:
    return number(b.compare(op, index, limit(floor_row())));
  case CompareOp::Eq:
  case CompareOp::Ne: {
    const NodeId fraction = b.compare(op, real, whole(floor_row())); // a NaN differs from itself
    return b.logic(op == CompareOp::Eq ? LogicOp::And : LogicOp::Or, fraction,
                   b.compare(op, index, limit(floor_row())));
  }
  }
  return no_node;
}

NodeId compare_u64(const Kernel &k, Builder &b, CompareOp op, NodeId data, NodeId index) {
  constexpr __int128 greatest = ((__int128)1 << 64) - 1;
  const bool host = k[index].stage == Stage::Host;
  const bool above_all = op == CompareOp::Gt || op == CompareOp::Ge || op == CompareOp::Ne; // of an index below 0
  const bool below_all = op == CompareOp::Lt || op == CompareOp::Le || op == CompareOp::Ne; // of one beyond
  if (k[index].op == Op::Const) {
    const __int128 v = k.constants[k[index].a].integer;
    if (v < 0 || v > greatest) // the truth, but of an element still
      return b.compare((v < 0 ? above_all : below_all) ? CompareOp::Eq : CompareOp::Ne, data, data, Exactness::Data);
    return b.compare(op, data, b.integer(DType::U64, v), Exactness::Data);
  }
  NodeId result = b.compare(op, data, b.cast(index, DType::U64), Exactness::Data);
  const auto settle = [&](NodeId outside, bool truth) {
    result =
        truth ? b.logic(LogicOp::Or, outside, result) : b.logic(LogicOp::And, b.logic(LogicOp::Not, outside), result);
  };
  if (host) settle(b.compare(CompareOp::Gt, index, b.integer(DType::Index, greatest), Exactness::Exact), below_all);
  settle(b.compare(CompareOp::Lt, index, b.integer(DType::Index, 0), host ? Exactness::Exact : Exactness::Data),
         above_all);
  return result;
}

} // namespace elsewise
