// SPDX-License-Identifier: Apache-2.0
// One copying loop for all passes. It decides nothing about what replaces a node.
#include "compiler/passes/rewrite.h"

namespace elsewise {
namespace {

template <class F> void each_root(Kernel &k, F visit) {
  for (Piece &p : k.pieces) {
    for (auto &box : p.boxes)
      for (Range &r : box) visit(r.lo), visit(r.hi);
    visit(p.guard);
    for (NodeId &v : p.values) visit(v);
  }
  for (Check &c : k.checks) visit(c.node);
}

NodeId make(const Kernel &from, NodeId n, const std::vector<NodeId> &now, Builder &b) {
  const Inst &i = from[n];
  b.at(from.span(n));
  switch (i.op) {
  case Op::Const:
    return b.constant(i.type, from.constants[i.a]);
  case Op::Param:
    return b.param(i.a, i.type);
  case Op::Len:
    return b.len(i.a);
  case Op::Pos:
    return b.pos(i.a);
  case Op::Origin:
    return b.origin(i.a);
  case Op::Entry:
    return b.entry(i.a);
  case Op::ArgLen:
    return b.arg_len(i.a, int32_t(i.b));
  case Op::Load:
    return b.load(i.a);
  case Op::Unary:
    return b.unary(UnaryOp(i.sub), now[i.a]);
  case Op::Binary:
    return b.binary(BinaryOp(i.sub), now[i.a], now[i.b]);
  case Op::Compare:
    return b.compare(CompareOp(i.sub), now[i.a], now[i.b], Exactness(i.c));
  case Op::Logic:
    return b.logic(LogicOp(i.sub), now[i.a], LogicOp(i.sub) == LogicOp::Not ? no_node : now[i.b]);
  case Op::Where:
    return b.where(now[i.a], now[i.b], now[i.c]);
  case Op::Cast:
    return b.cast(now[i.a], i.type);
  case Op::Call: {
    std::vector<NodeId> list = operands(from, n);
    for (NodeId &o : list) o = now[o];
    return b.call(i.sub, i.type, std::move(list));
  }
  case Op::Read: {
    std::vector<NodeId> list = operands(from, n);
    for (NodeId &o : list) o = now[o];
    const NodeId condition = i.sub ? list[0] : no_node;
    if (i.sub) list.erase(list.begin());
    return b.read(from.reads[i.c], condition, std::move(list));
  }
  }
  return no_node;
}

} // namespace

Kernel rewrite(const Kernel &from, const Replace &replace) {
  Kernel to;
  to.arguments = from.arguments, to.outputs = from.outputs, to.pieces = from.pieces, to.checks = from.checks;
  to.source = from.source, to.form = from.form, to.axes = from.axes, to.tables = from.tables;

  std::vector<bool> needed(from.insts.size());
  each_root(to, [&](NodeId &n) {
    if (n != no_node) needed[n] = true;
  });
  for (NodeId n = NodeId(from.insts.size()); n-- > 0;)
    if (needed[n])
      for (const NodeId o : operands(from, n)) needed[o] = true;

  std::vector<NodeId> now(from.insts.size(), no_node);
  Builder b(to);
  for (NodeId n = 0; n < from.insts.size(); ++n)
    if (needed[n]) now[n] = replace(to, b, make(from, n, now, b));
  each_root(to, [&](NodeId &n) {
    if (n != no_node) n = now[n];
  });
  return to;
}

Kernel prune(const Kernel &from) {
  return rewrite(from, [](Kernel &, Builder &, NodeId made) { return made; });
}

} // namespace elsewise
