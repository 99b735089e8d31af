// SPDX-License-Identifier: Apache-2.0
// Runs Kernel::host from front to back. It decides no fault: poison is carried until someone needs the value.
#include "runtime/host/evaluate.h"
#include "compiler/ir/arithmetic.h"
#include <algorithm>

namespace elsewise {

Constant constant_of(DType d, HostValue v) { return is_float(d) ? Constant{0, v.real} : Constant{v.integer, 0}; }
HostValue host_value(DType d, const Constant &c) {
  HostValue v{};
  if (is_float(d)) v.real = c.real;
  else v.integer = c.integer;
  return v;
}

int64_t clamp_bound(HostValue v, int64_t n) { return int64_t(std::clamp<__int128>(v.integer, 0, n)); }

Slot uniform_slot(DType d, HostValue v) {
  Slot s{};
  if (d == DType::F32) s.single = float(v.real);
  else if (d == DType::F64) s.real = v.real;
  else if (d == DType::Bool) s.byte = v.integer != 0;
  else s.integer = int64_t(v.integer);
  return s;
}

HostProgram::HostProgram(const Kernel &k) : kernel_(k) {
  for (const NodeId n : k.host) {
    const std::vector<NodeId> list = operands(k, n);
    Node node{n, list.empty() ? k[n].type : k[list[0]].type, uint8_t(list.size()), {}};
    std::copy_n(list.begin(), std::min<size_t>(list.size(), 3), node.operands);
    nodes_.push_back(node);
  }
}

static int64_t length(const HostDomain &domain, uint32_t axis) {
  if (axis == flat_axis) return domain.count;
  return axis == no_axis ? domain.extent : domain.axes[axis];
}

void HostProgram::run(std::span<const HostValue> params, const HostDomain &domain, std::vector<HostValue> &values,
                      std::vector<uint8_t> &poisoned) const {
  const Kernel &k = kernel_;
  values.resize(k.insts.size());
  poisoned.assign(k.insts.size(), HostFault::None);
  for (const Node &node : nodes_) {
    const NodeId n = node.id;
    const Inst &i = k[n];
    auto take = [&](NodeId o) { values[n] = values[o], poisoned[n] = poisoned[o]; };
    switch (i.op) {
    case Op::Const:
      values[n] = host_value(i.type, k.constants[i.a]);
      continue;
    case Op::Len:
      values[n].integer = length(domain, i.a);
      continue;
    case Op::Origin:
      values[n].integer = i.a == flat_axis ? domain.origin : domain.origins[i.a];
      continue;
    case Op::ArgLen: {
      const std::span<const int64_t> shape = domain.shapes[i.a];
      values[n].integer = shape[size_t(from_left(int32_t(i.b), shape.size()))];
      continue;
    }
    case Op::Param:
      values[n] = params[i.a];
      if (i.type == DType::Bool) values[n].integer = params[i.a].integer != 0;
      continue;
    case Op::Where:
      if (poisoned[i.a]) take(i.a);
      else take(values[i.a].integer ? i.b : i.c);
      continue;
    case Op::Logic:
      if (LogicOp(i.sub) == LogicOp::Not) break;
      take(i.a);
      if (!poisoned[i.a] && (values[i.a].integer != 0) == (LogicOp(i.sub) == LogicOp::And)) take(i.b);
      continue;
    default:
      break;
    }
    Constant operand[3], result;
    for (uint8_t o = 0; o < node.count; ++o) {
      operand[o] = constant_of(k[node.operands[o]].type, values[node.operands[o]]);
      if (!poisoned[n]) poisoned[n] = poisoned[node.operands[o]];
    }
    if (poisoned[n]) continue;
    switch (apply(i, node.from, std::span(operand, node.count), result)) {
    case Trouble::None:
      break;
    case Trouble::Overflow:
      poisoned[n] = HostFault::Overflow;
      break;
    case Trouble::ZeroDivision:
      poisoned[n] = HostFault::ZeroDivision;
      break;
    }
    values[n] = host_value(i.type, result);
  }
}

} // namespace elsewise
