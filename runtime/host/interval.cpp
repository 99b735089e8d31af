// SPDX-License-Identifier: Apache-2.0
// Walks a piece over a run of positions, lazily, and notes which index arithmetic leaves 64 bits. How operations act on
// intervals stands in interval_arithmetic.cpp.
#include "runtime/host/interval.h"
#include "compiler/ir/arithmetic.h"
#include "compiler/ir/walk.h"
#include "compiler/passes/bounds.h"
#include "grammar/builtins.h"
#include "runtime/host/interval_arithmetic.h"
#include <cmath>
#include <limits>

namespace elsewise {
namespace {

bool is_arithmetic(Op op) { return op == Op::Unary || op == Op::Binary || op == Op::Call; }
} // namespace

Intervals::Intervals(const Kernel &k, std::span<const HostValue> values, std::span<const uint8_t> poisoned,
                     std::span<const Look> looks, std::span<const std::span<const int64_t>> shapes)
    : k_(k), values_(values), poisoned_(poisoned), looks_(looks), shapes_(shapes) {
  for (int e = 0; e < 2; ++e) memo_[e].resize(k.insts.size()), known_[e].resize(k.insts.size());
  if (looks.empty()) return;
  holds_read_.resize(k.insts.size());
  for (NodeId n = 0; n < k.insts.size(); ++n) {
    holds_read_[n] = k[n].op == Op::Read;
    for (const NodeId o : operands(k, n)) holds_read_[n] = holds_read_[n] || holds_read_[o];
  }
}

Intervals::Found Intervals::piece(uint32_t piece, const Region &region) {
  ++round_, region_ = &region, found_ = {};
  const Piece &p = k_.pieces[piece];
  if (p.guard != no_node && evaluate(p.guard, false).hi == 0) return found_;
  for (const NodeId v : p.values) evaluate(v, false);
  return found_;
}

Intervals::Truth Intervals::guard(uint32_t piece, const Region &region) {
  ++round_, region_ = &region, found_ = {};
  const Value v = evaluate(k_.pieces[piece].guard, false);
  if (v.lo != v.hi || found_.fault != HostFault::None) return Truth::Varies;
  return v.lo ? Truth::Always : Truth::Never;
}

Intervals::Found Intervals::bound(NodeId n, const Region &region) {
  ++round_, region_ = &region, found_ = {};
  visit_bound(n);
  return found_;
}

Intervals::Found Intervals::value(NodeId n, const Region &region) {
  ++round_, region_ = &region, found_ = {};
  evaluate(n, false);
  return found_;
}

void Intervals::visit_bound(
    NodeId n) { // as the ranges pass makes them: least and greatest of ends, emptied by conditions
  const Inst &i = k_[n];
  if (i.op == Op::Call) {
    for (const NodeId o : operands(k_, n)) visit_bound(o);
  } else if (i.op == Op::Where) {
    const Value condition = evaluate(i.a, false);
    if (k_[i.a].stage == Stage::Host && poisoned_[i.a]) return;
    if (condition.hi) visit_bound(i.b);
    if (!condition.lo) visit_bound(i.c);
  } else if (i.op == Op::Binary && (k_[i.a].op == Op::Const || k_[i.b].op == Op::Const || k_[i.b].op == Op::Origin)) {
    visit_bound(i.a), visit_bound(i.b);
  } else if (i.op == Op::Cast && k_[i.a].op == Op::Cast && k_[i.a].type != DType::F64) {
    evaluate(i.a, false); // a cast that names a dtype: its operand is a value
  } else {
    evaluate(n, true);
  }
}

IndexRange Intervals::range(NodeId n, const Region &region) {
  ++round_, region_ = &region, found_ = {};
  const Value v = evaluate(n, true);
  return {v.lo, v.hi, v.overflow || found_.fault != HostFault::None};
}

bool Intervals::is_far(NodeId n, const Region &region) {
  constexpr __int128 limit = __int128(1) << 62; // the code subtracts positions, and rounds quotients up
  ++round_, region_ = &region, found_ = {};
  bool far = false;
  walk(k_, n, [&](NodeId o) {
    if (far || k_[o].type != DType::Index) return;
    const Value v = evaluate(o, true);
    far = v.overflow || v.lo < -limit || v.hi > limit;
  });
  return far || found_.wide;
}

void Intervals::trouble(HostFault::What what, NodeId n) {
  if (what == HostFault::Far) what = HostFault::Overflow;
  if (found_.fault == HostFault::None) found_.fault = what, found_.node = n;
}

Value Intervals::evaluate(NodeId n, bool exact) {
  if (known_[exact][n] == round_) return memo_[exact][n];
  const Value v = k_[n].stage == Stage::Host ? host(n, exact) : work(n, exact);
  known_[exact][n] = round_;
  return memo_[exact][n] = v;
}

/// Whether an operand is compared as it is, whatever its size.
bool Intervals::compared_exactly(const Inst &compare, NodeId operand) const {
  const auto exactness = Exactness(compare.c);
  return exactness == Exactness::Exact || (exactness == Exactness::Data && k_[operand].stage == Stage::Host);
}

Value Intervals::host(NodeId n, bool exact) {
  const Inst &i = k_[n];
  if (i.op == Op::Const) {
    return interval::point(k_.constants[i.a]);
  }
  if (poisoned_[n] == HostFault::Far && exact) return {values_[n].integer, values_[n].integer};
  if (poisoned_[n]) {
    trouble(HostFault::What(poisoned_[n]), n);
    return interval::anything(i.type);
  }
  const bool word = k_.form.wide && k_.span(n) == Span{}; // of a uniform that travels in several: see schedule.h
  // The same rules as for elements, at the one value there is.
  switch (i.op) {
  case Op::Where:
    evaluate(i.a, exact);
    evaluate(values_[i.a].integer ? i.b : i.c, exact);
    break;
  case Op::Logic:
    evaluate(i.a, exact);
    if (LogicOp(i.sub) != LogicOp::Not && (values_[i.a].integer != 0) == (LogicOp(i.sub) == LogicOp::And))
      evaluate(i.b, exact);
    break;
  case Op::Compare:
    for (const NodeId o : {i.a, i.b}) evaluate(o, exact || compared_exactly(i, o));
    break;
  default:
    for (const NodeId o : operands(k_, n)) evaluate(o, exact || word);
  }
  const Constant c = constant_of(i.type, values_[n]);
  if (!exact && !word && i.type == DType::Index && is_arithmetic(i.op) && !fits(DType::I64, c.integer))
    trouble(HostFault::Overflow, n);
  return interval::point(c);
}

bool Intervals::at_point(NodeId n, std::span<const Value> v, Value &out) const {
  const std::vector<NodeId> list = operands(k_, n);
  Constant known[3], result;
  if (v.size() > 3) return false;
  for (size_t o = 0; o < v.size(); ++o) {
    const DType d = k_[list[o]].type;
    if (!interval::is_point(d, v[o])) return false;
    known[o] = !is_float(d) ? Constant{v[o].lo, 0}
                            : Constant{0, v[o].nan ? std::numeric_limits<double>::quiet_NaN() : v[o].real_lo};
  }
  const Trouble t = apply(k_[n], k_[list[0]].type, std::span(known, v.size()), result);
  out = interval::point(result);
  out.overflow = t == Trouble::Overflow;
  return true;
}

/// The indices are worked out where the read's own condition may hold; of the element itself nothing is known.
Value Intervals::read(NodeId n) {
  const Inst &i = k_[n];
  const Reading &r = k_.reads[i.c];
  const std::vector<NodeId> list = operands(k_, n);
  auto condition = r.tested == Reading::Alone || !i.sub ? no_node : list[0];
  if (r.tested == Reading::Behind) condition = k_[condition].a;
  if (condition != no_node && evaluate(condition, false).hi == 0) return {};
  const Look look = looks_.empty() ? Look{} : looks_[i.c];
  for (uint32_t axis = 0; axis + i.sub < list.size(); ++axis) {
    const Value at = evaluate(list[i.sub + axis], false);
    if (found_.fault != HostFault::None || !((look.axes | look.never) >> axis & 1)) continue;
    const int64_t length = shapes_[r.argument][axis];
    if (!(look.never >> axis & 1) && !at.overflow && at.lo >= 0 && at.hi < length) continue;
    trouble(HostFault::OutOfBounds, n);
    found_.axis = uint8_t(axis), found_.index = at.hi >= length ? at.hi : at.lo;
  }
  return interval::anything(i.type);
}

/// Code may work out an operand that nobody chooses: what it reads has to be in bounds wherever the read's own
/// condition holds.
void Intervals::skip(NodeId operand) {
  if (looks_.empty() || !holds_read_[operand]) return;
  walk(k_, operand, [&](NodeId n) {
    if (k_[n].op == Op::Read) evaluate(n, false);
    return bool(holds_read_[n]);
  });
}

Value Intervals::work(NodeId n, bool exact) {
  const Inst &i = k_[n];
  if (i.op == Op::Pos) {
    const Region::Ends &at = i.a == flat_axis ? region_->flat : region_->axes[i.a];
    return {.lo = at.first, .hi = at.last};
  }
  if (i.op == Op::Load || i.op == Op::Entry) return interval::anything(i.type);
  if (i.op == Op::Read) return read(n);
  // What a device may round otherwise must not say which elements are read.
  if (!looks_.empty() && !same_everywhere(k_, n)) {
    for (const NodeId o : operands(k_, n)) evaluate(o, exact);
    return interval::anything(i.type);
  }

  // What element code reads from a slot must fit its 64 bits, or travel in several.
  auto operand = [&](NodeId o, bool inside) {
    const Value v = evaluate(o, inside);
    if (k_[o].stage == Stage::Host && poisoned_[o] == HostFault::Far) trouble(HostFault::Overflow, o); // has no slot
    if (k_[o].stage == Stage::Host && k_[o].type == DType::Index && !fits(DType::I64, v.lo)) found_.wide = true;
    return v;
  };
  if (i.op == Op::Where || i.op == Op::Logic) {
    const Value first = operand(i.a, exact);
    if (i.op == Op::Where) {
      if (first.lo == first.hi) {
        skip(first.lo ? i.c : i.b);
        return operand(first.lo ? i.b : i.c, exact);
      }
      const Value yes = operand(i.b, exact);
      return interval::either(i.type, yes, operand(i.c, exact));
    }
    if (LogicOp(i.sub) == LogicOp::Not) return {.lo = !first.hi, .hi = !first.lo};
    const int stop = LogicOp(i.sub) == LogicOp::Or;
    if (first.lo == stop && first.hi == stop) {
      skip(i.b);
      return first;
    }
    const Value second = operand(i.b, exact);
    if (stop) return {.lo = first.lo || second.lo, .hi = first.hi || second.hi};
    return {.lo = first.lo && second.lo, .hi = first.hi && second.hi};
  }

  const std::vector<NodeId> list = operands(k_, n);
  const DType from = k_[list[0]].type;
  if (i.op == Op::Call && builtins()[i.sub].rule == Rule::Noise) {
    for (const NodeId o : list) operand(o, exact);
    return i.type == DType::F32 ? Value{.real_lo = -8, .real_hi = 8} : interval::anything(i.type);
  }
  Value v[2], r;
  for (size_t o = 0; o < list.size() && o < 2; ++o)
    v[o] = operand(list[o], exact || (i.op == Op::Compare && compared_exactly(i, list[o])));
  if (i.op == Op::Compare && from == DType::Index)
    for (size_t o = 0; o < 2; ++o)
      if (const Inst &real = k_[list[o]]; real.op == Op::Cast && is_float(k_[real.a].type)) settle(v[o], v[1 - o]);
  if (!at_point(n, std::span(v, std::min<size_t>(list.size(), 2)), r)) {
    switch (i.op) {
    case Op::Unary:
      r = interval::unary(UnaryOp(i.sub), i.type, v[0]);
      break;
    case Op::Binary:
      r = interval::binary(BinaryOp(i.sub), i.type, v[0], v[1]);
      break;
    case Op::Compare:
      r = interval::compare(CompareOp(i.sub), from, v[0], v[1]);
      break;
    case Op::Cast:
      r = interval::cast(v[0], from, i.type);
      break;
    default:
      r = interval::call(i.sub, from, v[0], v[1]);
      break;
    }
  }
  if (i.type == DType::Index && is_arithmetic(i.op)) checked(n, r, exact);
  return r;
}

// A float that becomes an index to be compared saturates: in 64 bits that decides the same, unless the other side may
// be where it ends.
void Intervals::settle(const Value &real, const Value &other) {
  const Value ends = interval::anything(DType::I64);
  if ((real.lo < ends.lo || real.hi > ends.hi) && (other.lo <= ends.lo || other.hi >= ends.hi)) found_.wide = true;
}

// Index arithmetic: 64 bits as a value, 128 inside a comparison.
void Intervals::checked(NodeId n, Value &v, bool exact) {
  if (k_.form.wide && k_.span(n) == Span{}) return; // puts a uniform together: see schedule.h
  const bool fitting = !v.overflow && fits(DType::I64, v.lo) && fits(DType::I64, v.hi);
  if (fitting) return;
  if (exact && !v.overflow) {
    found_.wide = true;
    return;
  }
  trouble(HostFault::Overflow, n);
  v = interval::anything(DType::Index); // reported: what follows need not be
}

} // namespace elsewise
