// SPDX-License-Identifier: Apache-2.0
// Runs Kernel::host from front to back. It decides no fault: poison is carried until someone needs the value.
#include "runtime/host/evaluate.h"
#include "compiler/ir/arithmetic.h"
#include "grammar/builtins.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/APInt.h"
#include "llvm/ADT/DenseMap.h"
#include <algorithm>

namespace elsewise {
namespace {

using llvm::APInt;
constexpr unsigned wide_bits = 4096, most_bits = 2000;
constexpr __int128 greatest128 = (__int128)(~(unsigned __int128)0 >> 1);

APInt widened(__int128 v) {
  const auto u = (unsigned __int128)v;
  return APInt(128, {uint64_t(u), uint64_t(u >> 64)}).sext(wide_bits);
}
__int128 narrowed(const APInt &v) {
  return (__int128)((unsigned __int128)v.extractBitsAsZExtValue(64, 64) << 64 | v.extractBitsAsZExtValue(64, 0));
}

/// `base ** n`, if it has few enough bits.
std::optional<APInt> power(APInt base, APInt n) {
  if (n.isNegative() || (base.getSignificantBits() > 2 && n.ugt(most_bits))) return std::nullopt;
  APInt r(wide_bits, 1);
  for (; !n.isZero(); n.lshrInPlace(1)) {
    if (n[0]) r *= base;
    if (r.getSignificantBits() > most_bits) return std::nullopt;
    if (n.ugt(1)) base *= base;
    if (base.getSignificantBits() > most_bits) return std::nullopt;
  }
  return r;
}

/// Arithmetic on indexes beyond 128 bits; nullopt where even this has too few.
std::optional<APInt> beyond(const Inst &i, llvm::ArrayRef<APInt> v) {
  if (i.op == Op::Unary) return UnaryOp(i.sub) == UnaryOp::Neg ? -v[0] : ~v[0];
  if (i.op == Op::Call) {
    const Meaning meaning = builtins()[i.sub].meaning;
    if (meaning == Meaning::Least) return v[0].slt(v[1]) ? v[0] : v[1];
    if (meaning == Meaning::Greatest) return v[0].sgt(v[1]) ? v[0] : v[1];
    if (meaning == Meaning::Magnitude) return v[0].abs();
    return std::nullopt;
  }
  switch (BinaryOp(i.sub)) {
  case BinaryOp::Add:
    return v[0] + v[1];
  case BinaryOp::Sub:
    return v[0] - v[1];
  case BinaryOp::Mul:
    return v[0] * v[1];
  case BinaryOp::FloorDiv:
  case BinaryOp::Mod: {
    if (v[1].isZero()) return std::nullopt;
    const APInt q = llvm::APIntOps::RoundingSDiv(v[0], v[1], APInt::Rounding::DOWN);
    return BinaryOp(i.sub) == BinaryOp::FloorDiv ? q : v[0] - q * v[1];
  }
  case BinaryOp::Pow:
    return power(v[0], v[1]);
  case BinaryOp::Shl:
    if (v[1].isNegative()) return APInt(wide_bits, 0);
    if (v[1].ugt(most_bits)) return std::nullopt;
    return v[0].shl(v[1]);
  case BinaryOp::Shr:
    return v[0].ashr(v[1].isNegative() || v[1].ugt(wide_bits) ? APInt(wide_bits, wide_bits - 1) : v[1]);
  case BinaryOp::BitAnd:
    return v[0] & v[1];
  case BinaryOp::BitOr:
    return v[0] | v[1];
  case BinaryOp::BitXor:
    return v[0] ^ v[1];
  case BinaryOp::Div:
    break; // of floats only
  }
  return std::nullopt;
}

} // namespace

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
  // The length of a row is no launch argument of its own, but what looks for faults reads it.
  for (NodeId n = 0; n < k.insts.size(); ++n)
    if (k[n].op == Op::Len && k[n].a == no_axis) nodes_.push_back({n, k[n].type, 0, {}});
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

/// A node that 128 bits are too few for, or of which they hold an operand no more.
static HostFault::What work_wide(NodeId n, const Inst &i, DType from, std::span<const NodeId> operands,
                                 const Constant *operand, llvm::DenseMap<NodeId, APInt> &far, Constant &result) {
  if (from != DType::Index) return HostFault::Overflow;
  llvm::SmallVector<APInt, 3> v;
  for (size_t o = 0; o < operands.size(); ++o) {
    const auto known = far.find(operands[o]);
    v.push_back(known == far.end() ? widened(operand[o].integer) : known->second);
  }
  if (i.op == Op::Compare) {
    result.integer = ordered(CompareOp(i.sub), v[0].slt(v[1]) ? -1 : int(v[0] != v[1]), 0);
    return HostFault::None;
  }
  if (i.op == Op::Cast) {
    if (i.type == DType::Bool) result.integer = 1;
    else if (i.type == DType::F64) {
      llvm::APFloat nearest(llvm::APFloat::IEEEdouble());
      nearest.convertFromAPInt(v[0], true, llvm::APFloat::rmNearestTiesToEven);
      result.real = nearest.convertToDouble();
    } else if (is_float(i.type)) return HostFault::Overflow;
    else result.integer = wrap(i.type, narrowed(v[0]));
    return HostFault::None;
  }
  if (i.type != DType::Index) return HostFault::Overflow;
  const bool divides =
      i.op == Op::Binary && (BinaryOp(i.sub) == BinaryOp::FloorDiv || BinaryOp(i.sub) == BinaryOp::Mod);
  if (divides && v[1].isZero()) return HostFault::ZeroDivision;
  const std::optional<APInt> r = beyond(i, v);
  if (!r || r->getSignificantBits() > most_bits) return HostFault::Overflow;
  if (r->getSignificantBits() <= 128) {
    result.integer = narrowed(*r);
    return HostFault::None;
  }
  result.integer = r->isNegative() ? -greatest128 - 1 : greatest128;
  far.insert({n, *r});
  return HostFault::Far;
}

void HostProgram::run(std::span<const HostValue> params, const HostDomain &domain, std::vector<HostValue> &values,
                      std::vector<uint8_t> &poisoned) const {
  const Kernel &k = kernel_;
  values.resize(k.insts.size());
  poisoned.assign(k.insts.size(), HostFault::None);
  llvm::DenseMap<NodeId, APInt> far;  // what 128 bits do not hold; nearly always empty
  llvm::DenseMap<NodeId, bool> ended; // what is made of a float that ended at the ends of an index; likewise
  for (const Node &node : nodes_) {
    const NodeId n = node.id;
    const Inst &i = k[n];
    auto take = [&](NodeId o) {
      values[n] = values[o], poisoned[n] = poisoned[o];
      if (poisoned[o] == HostFault::Far) far.insert({n, APInt(far.find(o)->second)});
      if (ended.contains(o)) ended.insert({n, true});
    };
    switch (i.op) {
    case Op::Const:
      values[n] = host_value(i.type, k.constants[i.a]);
      continue;
    case Op::Len:
      values[n].integer = length(domain, i.a);
      continue;
    case Op::Origin:
      values[n].integer = i.a == flat_axis ? domain.origin : i.a == list_axis ? domain.in_list : domain.origins[i.a];
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
    bool from_far = false, from_end = false;
    for (uint8_t o = 0; o < node.count; ++o) {
      operand[o] = constant_of(k[node.operands[o]].type, values[node.operands[o]]);
      const uint8_t bad = poisoned[node.operands[o]];
      from_far |= bad == HostFault::Far, from_end |= ended.contains(node.operands[o]);
      if (!poisoned[n] && bad != HostFault::Far) poisoned[n] = bad;
    }
    if (poisoned[n]) { // what was here belongs to another call, and a condition that held there would read at its index
      values[n] = {};
      continue;
    }
    switch (from_far ? Trouble::Overflow : apply(i, node.from, std::span(operand, node.count), result)) {
    case Trouble::None:
      break;
    case Trouble::Overflow:
      poisoned[n] = from_end ? HostFault::Overflow
                             : work_wide(n, i, node.from, std::span(node.operands, node.count), operand, far, result);
      break;
    case Trouble::ZeroDivision:
      poisoned[n] = HostFault::ZeroDivision;
      break;
    }
    values[n] = host_value(i.type, result);
    const bool ends = i.op == Op::Cast && is_float(node.from) && (result.integer >> 126) != (result.integer >> 127);
    if (i.type == DType::Index && (ends || from_end)) ended.insert({n, true});
  }
}

} // namespace elsewise
