// SPDX-License-Identifier: Apache-2.0
// Makes IR nodes so that equal nodes are one, with the stage that their operands give. It folds only what is exact
// whatever the operands are.
#include "compiler/ir/arithmetic.h"
#include "compiler/ir/walk.h"
#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <limits>

namespace elsewise {

static uint64_t mix(uint64_t h, uint64_t v) {
  h = (h ^ v) * 0x9e3779b97f4a7c15ull;
  return h ^ h >> 29;
}

// Operands stand in Kernel::operands.
static bool has_list(Op op) { return op == Op::Call || op == Op::Read; }

static uint64_t hash(const Kernel &k, const Inst &i) {
  uint64_t h = mix(uint64_t(i.op) << 24 | uint64_t(i.sub) << 16 | uint64_t(i.type) << 8, i.a);
  if (!has_list(i.op)) return mix(mix(h, i.b), i.c);
  h = mix(uint64_t(i.op) << 24 | uint64_t(i.sub) << 16 | uint64_t(i.type) << 8, i.c);
  for (uint32_t n = 0; n < i.b; ++n) h = mix(h, k.operands[i.a + n]);
  return h;
}

static bool same(const Kernel &k, const Inst &a, const Inst &b) {
  if (a.op != b.op || a.sub != b.sub || a.type != b.type || a.stage != b.stage) return false;
  if (!has_list(a.op)) return a == b;
  if (a.b != b.b || a.c != b.c) return false;
  for (uint32_t n = 0; n < a.b; ++n)
    if (k.operands[a.a + n] != k.operands[b.a + n]) return false;
  return true;
}

Stage natural_stage(const Kernel &k, const Inst &i) {
  if (i.op == Op::Const || i.op == Op::Param || i.op == Op::Len || i.op == Op::ArgLen || i.op == Op::Origin)
    return Stage::Host;
  if (i.op == Op::Load || i.op == Op::Entry) return Stage::Element;
  const auto &rows = k.form.row_axes;
  if (i.op == Op::Pos) {
    return std::find(rows.begin(), rows.end(), i.a) == rows.end() ? Stage::Element : Stage::Row;
  }
  Stage latest = Stage::Host;
  bool plain = i.op == Op::Cast || is_host_type(i.type);
  for (NodeId o : operands(k, i)) {
    if (k[o].stage > latest) latest = k[o].stage;
    plain &= i.op == Op::Cast || is_host_type(k[o].type);
  }
  // What no position enters is read in every row, where there are rows.
  if (i.op == Op::Read) return latest != Stage::Host ? latest : rows.empty() ? Stage::Element : Stage::Row;
  return latest == Stage::Host && !plain ? Stage::Element : latest;
}

Builder::Builder(Kernel &k) : kernel_(k) {
  for (NodeId n = 0; n < k.insts.size(); ++n) seen_.emplace(hash(k, k.insts[n]), n);
}

NodeId Builder::find(const Inst &i, uint64_t h) const {
  for (auto [at, end] = seen_.equal_range(h); at != end; ++at)
    if (same(kernel_, kernel_[at->second], i)) return at->second;
  return no_node;
}

NodeId Builder::intern(Inst i) {
  i.stage = natural_stage(kernel_, i);
  const uint64_t h = hash(kernel_, i);
  if (const NodeId n = find(i, h); n != no_node) {
    if (has_list(i.op)) kernel_.operands.resize(i.a); // the list was appended for this look-up only
    return n;
  }
  const NodeId n = NodeId(kernel_.insts.size());
  kernel_.insts.push_back(i);
  kernel_.spans.resize(n);
  const bool arithmetic = i.op == Op::Unary || i.op == Op::Binary || i.op == Op::Call;
  kernel_.spans.push_back((arithmetic && i.type == DType::Index) || i.op == Op::Read ? where_ : Span{});
  seen_.emplace(h, n);
  return n;
}

NodeId Builder::constant(DType type, Constant c) {
  if (is_float(type)) {
    c.integer = 0;
    if (std::isnan(c.real)) c.real = std::numeric_limits<double>::quiet_NaN(); // NaNs are one class
  } else {
    c.real = 0;
  }
  uint32_t at = 0;
  for (; at < kernel_.constants.size(); ++at)
    if (kernel_.constants[at].integer == c.integer &&
        std::bit_cast<uint64_t>(kernel_.constants[at].real) == std::bit_cast<uint64_t>(c.real))
      break;
  if (at == kernel_.constants.size()) kernel_.constants.push_back(c);
  return intern({.op = Op::Const, .type = type, .a = at});
}

NodeId Builder::integer(DType type, __int128 v) { return constant(type, {.integer = v}); }
NodeId Builder::real(DType type, double v) { return constant(type, {.real = v}); }
NodeId Builder::param(uint32_t argument, DType type) { return intern({.op = Op::Param, .type = type, .a = argument}); }
NodeId Builder::len(uint32_t axis) { return intern({.op = Op::Len, .type = DType::Index, .a = axis}); }
NodeId Builder::arg_len(uint32_t argument, int32_t dim) {
  return intern({.op = Op::ArgLen, .type = DType::Index, .a = argument, .b = uint32_t(dim)});
}
NodeId Builder::pos(uint32_t axis) { return intern({.op = Op::Pos, .type = DType::Index, .a = axis}); }
NodeId Builder::entry(uint32_t table) {
  return intern({.op = Op::Entry, .type = kernel_.tables[table].type, .a = table});
}
NodeId Builder::origin(uint32_t axis) { return intern({.op = Op::Origin, .type = DType::Index, .a = axis}); }
NodeId Builder::load(uint32_t argument) {
  return intern({.op = Op::Load, .type = kernel_.arguments[argument].type.dtype, .a = argument});
}

NodeId Builder::unary(UnaryOp op, NodeId a) {
  return intern({.op = Op::Unary, .sub = uint8_t(op), .type = kernel_[a].type, .a = a});
}

NodeId Builder::binary(BinaryOp op, NodeId a, NodeId b) {
  assert(kernel_[a].type == kernel_[b].type);
  const bool commutes = op == BinaryOp::Add || op == BinaryOp::Mul || op == BinaryOp::BitAnd || op == BinaryOp::BitOr ||
                        op == BinaryOp::BitXor;
  if (commutes && a > b) std::swap(a, b); // NaNs are one class, so this holds for floats too
  return intern({.op = Op::Binary, .sub = uint8_t(op), .type = kernel_[a].type, .a = a, .b = b});
}

NodeId Builder::compare(CompareOp op, NodeId a, NodeId b, Exactness exactness) {
  assert(kernel_[a].type == kernel_[b].type);
  if (kernel_[a].type == DType::Bool && kernel_[a].op == Op::Const && kernel_[b].op == Op::Const) { // `true ^ true`
    const __int128 x = kernel_.constants[kernel_[a].a].integer, y = kernel_.constants[kernel_[b].a].integer;
    if (op == CompareOp::Eq || op == CompareOp::Ne) return integer(DType::Bool, (x == y) == (op == CompareOp::Eq));
  }
  const auto worked = [&](NodeId n) { return kernel_[n].stage == Stage::Host && kernel_[n].op != Op::Const; };
  if (exactness == Exactness::Value && !worked(a) && !worked(b))
    exactness = Exactness::Data; // nothing tells them apart
  return intern({.op = Op::Compare, .sub = uint8_t(op), .type = DType::Bool, .a = a, .b = b, .c = uint32_t(exactness)});
}

NodeId Builder::logic(LogicOp op, NodeId a, NodeId b) {
  auto truth = [&](NodeId n) {
    return kernel_[n].op != Op::Const ? -1 : kernel_.constants[kernel_[n].a].integer != 0 ? 1 : 0;
  };
  if (op == LogicOp::Not) {
    if (truth(a) >= 0) return integer(DType::Bool, !truth(a));
    if (kernel_[a].op == Op::Logic && LogicOp(kernel_[a].sub) == LogicOp::Not) return kernel_[a].a;
    return intern({.op = Op::Logic, .sub = uint8_t(op), .type = DType::Bool, .a = a});
  }
  const int stop = op == LogicOp::Or; // the truth of one side that settles the whole
  if (truth(a) >= 0) return truth(a) == stop ? a : b;
  if (truth(b) >= 0) return truth(b) == stop ? b : a;
  if (a == b) return a;
  return intern({.op = Op::Logic, .sub = uint8_t(op), .type = DType::Bool, .a = a, .b = b});
}

// Whether `n` or what it is made of may be refused at a call: a read out of bounds, an index beyond 64 bits, a zero
// divisor.
static bool may_fault(const Kernel &k, NodeId n) {
  bool may = false;
  walk(k, n, [&](NodeId at) {
    const Inst &i = k[at];
    const bool arithmetic = i.op == Op::Unary || i.op == Op::Binary || i.op == Op::Call || i.op == Op::Cast;
    may = may || i.op == Op::Read || (arithmetic && i.type == DType::Index);
    return !may;
  });
  return may;
}

NodeId Builder::where(NodeId condition, NodeId a, NodeId b) {
  assert(kernel_[a].type == kernel_[b].type);
  if (kernel_[condition].op == Op::Const) return kernel_.constants[kernel_[condition].a].integer ? a : b;
  if (a == b && !may_fault(kernel_, condition)) return a;
  return intern({.op = Op::Where, .type = kernel_[a].type, .a = condition, .b = a, .c = b});
}

// Every value of `from` is one of `to`.
static bool widens(DType from, DType to) {
  if (from == DType::Bool) return to != DType::Bool;
  if (to == DType::Bool || from == DType::Index) return false;
  if (is_float(from)) return is_float(to) && !is_half(to) && bytes(from) < bytes(to);
  const bool negative = dclass(from) == DClass::Int;
  const int bits = 8 * bytes(from) - negative;
  switch (to) {
  case DType::Index:
    return from != DType::U64; // of which a device's 64 bits hold half
  case DType::F64:
    return bits <= 53;
  case DType::F32:
    return bits <= 24;
  case DType::F16:
    return bits <= 11;
  case DType::BF16:
    return bits <= 8;
  default:
    return (!negative || dclass(to) == DClass::Int) && bits <= 8 * bytes(to) - (dclass(to) == DClass::Int);
  }
}

NodeId Builder::cast(NodeId a, DType type) {
  const Inst &from = kernel_[a];
  if (from.type == type) return a;
  if (from.op == Op::Cast && widens(kernel_[from.a].type, from.type)) {
    const DType inner = kernel_[from.a].type;
    const bool saturates = is_float(from.type) && is_integer(inner) && is_integer(type); // where an integer would wrap
    if (inner == type || !(is_half(inner) || is_half(type) || saturates)) return cast(from.a, type);
  }
  // Halves meet integers and each other only through F32, the type they are worked in. F64 to half is one rounding.
  if (is_half(from.type) ? type != DType::F32 : is_half(type) && !is_float(from.type)) a = cast(a, DType::F32);
  return intern({.op = Op::Cast, .type = type, .a = a});
}

NodeId Builder::call(uint8_t row, DType type, std::vector<NodeId> list) {
  const uint32_t first = uint32_t(kernel_.operands.size());
  kernel_.operands.insert(kernel_.operands.end(), list.begin(), list.end());
  return intern({.op = Op::Call, .sub = row, .type = type, .a = first, .b = uint32_t(list.size())});
}

NodeId Builder::read(const Reading &reading, NodeId condition, std::vector<NodeId> indices) {
  const DType type = kernel_.arguments[reading.argument].type.dtype;
  if (condition != no_node && kernel_[condition].op == Op::Const) {
    if (!kernel_.constants[kernel_[condition].a].integer) return constant(type, {});
    condition = no_node;
  }
  const auto known = std::find(kernel_.reads.begin(), kernel_.reads.end(), reading);
  const uint32_t at = uint32_t(known - kernel_.reads.begin());
  if (known == kernel_.reads.end()) kernel_.reads.push_back(reading);
  const uint32_t first = uint32_t(kernel_.operands.size());
  if (condition != no_node) kernel_.operands.push_back(condition);
  kernel_.operands.insert(kernel_.operands.end(), indices.begin(), indices.end());
  return intern({.op = Op::Read,
                 .sub = condition != no_node,
                 .type = type,
                 .a = first,
                 .b = uint32_t(kernel_.operands.size()) - first,
                 .c = at});
}

} // namespace elsewise
