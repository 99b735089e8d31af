// SPDX-License-Identifier: Apache-2.0
// Folding one node at a time. It assumes nothing about values that are not constants.
#include "compiler/passes/fold.h"
#include "compiler/ir/arithmetic.h"
#include "compiler/ir/rows.h"
#include "compiler/passes/rewrite.h"

namespace elsewise {
namespace {

// True if `n` is the constant `v` of its type.
bool is(const Kernel &k, NodeId n, int v) {
  if (k[n].op != Op::Const || k[n].type == DType::Bool) return false;
  const Constant &c = k.constants[k[n].a];
  return is_float(k[n].type) ? c.real == v && !(v == 0 && __builtin_signbit(c.real)) : c.integer == v;
}

// The exponents for which torch has exact forms take them here, so that backends agree; a function of the power
// promises no bits.
NodeId power(Kernel &k, Builder &b, NodeId n, const Inst &i) {
  if (is(k, i.b, 1)) return i.a;
  if (is(k, i.b, 2)) return b.binary(BinaryOp::Mul, i.a, i.a);
  if (!is_float(i.type)) return n;
  // What may be a fault is one all the same: only an element is dropped.
  if (is(k, i.b, 0) && k[i.a].op == Op::Load) return b.real(i.type, 1);
  if (is(k, i.b, 3)) return b.binary(BinaryOp::Mul, folded(k, b, b.binary(BinaryOp::Mul, i.a, i.a)), i.a);
  if (is(k, i.b, -1)) return b.binary(BinaryOp::Div, b.real(i.type, 1), i.a);
  if (k[i.b].op == Op::Const && k.constants[k[i.b].a].real == 0.5) return b.call(square_root_row(), i.type, {i.a});
  return n;
}

// A whole number that is only passed on may lie beyond 64 bits; an operation on it is where that is a fault.
bool may_leave(const Kernel &k, NodeId n) {
  const Inst &i = k[n];
  if (i.type != DType::Index) return false;
  if (i.op == Op::Const) return !fits(DType::I64, k.constants[i.a].integer);
  return i.op == Op::Param || i.op == Op::Where || i.op == Op::Cast;
}

// Exact for every value of the other operand: -0 + 0 is +0, so a float keeps its + 0.
NodeId identity(Kernel &k, Builder &b, NodeId n) {
  const Inst i = k[n];
  switch (BinaryOp(i.sub)) {
  case BinaryOp::Add:
    if (is_float(i.type)) break;
    if (is(k, i.a, 0)) return i.b;
    if (is(k, i.b, 0)) return i.a;
    break;
  case BinaryOp::Sub:
    if (is(k, i.b, 0)) return i.a;
    break;
  case BinaryOp::Mul:
    if (is(k, i.a, 1)) return i.b;
    if (is(k, i.b, 1)) return i.a;
    break;
  case BinaryOp::FloorDiv:
    if (!is_float(i.type) && is(k, i.b, 1)) return i.a;
    break;
  case BinaryOp::Div:
    if (is(k, i.b, 1)) return i.a;
    break;
  case BinaryOp::Pow:
    return power(k, b, n, i);
  default:
    break;
  }
  return n;
}

} // namespace

NodeId folded_bound(Kernel &k, Builder &b, NodeId made) {
  const Inst i = k[made];
  if (i.op == Op::Read) return made;
  std::vector<Constant> values;
  bool constant = true;
  for (const NodeId o : operands(k, made)) {
    constant &= k[o].op == Op::Const;
    if (constant) values.push_back(k.constants[k[o].a]);
  }
  if (values.empty() || !constant) return i.op == Op::Binary ? identity(k, b, made) : made;
  if (i.op == Op::Binary &&
      BinaryOp(i.sub) == BinaryOp::Pow) // the exact forms of constants too are the same everywhere
    if (const NodeId form = power(k, b, made, i); form != made) return folded_bound(k, b, form);
  // At a known position too, noise is left to the backends, which share its arithmetic.
  if (i.op == Op::Call && builtins()[i.sub].rule == Rule::Noise) return made;
  Constant value;
  if (apply(i, k[operands(k, made)[0]].type, values, value) != Trouble::None) return made;
  if (i.type == DType::Index && !fits(DType::I64, value.integer)) return made;
  return b.constant(i.type, value);
}

NodeId folded(Kernel &k, Builder &b, NodeId made) {
  const NodeId left = folded_bound(k, b, made);
  return left != made && k[made].op == Op::Binary && may_leave(k, left) ? made : left;
}

Kernel fold(const Kernel &from, const PassOptions &) { return prune(rewrite(from, folded)); }

} // namespace elsewise
