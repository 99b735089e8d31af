// SPDX-License-Identifier: Apache-2.0
// Interval arithmetic over what every call has in common. It never leaves a value out, and gives up early.
#include "compiler/emit/cuda_index.h"
#include "compiler/ir/rows.h"
#include <algorithm>

namespace elsewise::cuda {

std::optional<__int128> known_integer(const Kernel &k, NodeId n) {
  if (k[n].op != Op::Const || is_float(k[n].type)) return std::nullopt;
  return k.constants[k[n].a].integer;
}

std::optional<int> power_of_two(__int128 v) {
  for (int k = 0; k < 62; ++k)
    if (v == __int128(1) << k) return k;
  return std::nullopt;
}

namespace {

__int128 floor_quotient(__int128 a, __int128 b) { return a / b - (a % b != 0 && a < 0); } // b > 0

std::optional<Reach> binary(const Kernel &k, const Inst &i, const std::optional<Reach> &a,
                            const std::optional<Reach> &b) {
  const std::optional<__int128> by = known_integer(k, i.b);
  switch (BinaryOp(i.sub)) {
  case BinaryOp::Mod: // needs to know nothing of its left side
    if (by && *by > 0) return Reach{0, *by - 1};
    return std::nullopt;
  case BinaryOp::BitAnd:
    if (by && *by >= 0) return Reach{0, *by};
    return std::nullopt;
  default:
    break;
  }
  if (!a || !b) return std::nullopt;
  switch (BinaryOp(i.sub)) {
  case BinaryOp::Add:
    return Reach{a->lo + b->lo, a->hi + b->hi};
  case BinaryOp::Sub:
    return Reach{a->lo - b->hi, a->hi - b->lo};
  case BinaryOp::Mul: {
    const auto [lo, hi] = std::minmax({a->lo * b->lo, a->lo * b->hi, a->hi * b->lo, a->hi * b->hi});
    return Reach{lo, hi};
  }
  case BinaryOp::FloorDiv:
    if (by && *by > 0) return Reach{floor_quotient(a->lo, *by), floor_quotient(a->hi, *by)};
    return std::nullopt;
  case BinaryOp::Shr:
    if (by && *by >= 0 && *by < 62) return Reach{a->lo >> int(*by), a->hi >> int(*by)};
    return std::nullopt;
  default:
    return std::nullopt;
  }
}

std::optional<Reach> reach(const Kernel &k, const Inst &i, const Reaches &known) {
  constexpr __int128 all = __int128(1) << 60;
  auto longest = [&](uint32_t axis) { return short_position(k.form, axis) ? __int128(1) << 30 : all; };
  switch (i.op) {
  case Op::Const:
    return Reach{k.constants[i.a].integer, k.constants[i.a].integer};
  case Op::Pos:
    return Reach{0, longest(i.a) - 1};
  case Op::Len: // of a window's domain there may be more
    return Reach{0, k.form.window ? all : longest(i.a)};
  case Op::Origin:
  case Op::ArgLen:
    return Reach{0, all};
  case Op::Unary:
    if (UnaryOp(i.sub) == UnaryOp::Neg && known[i.a]) return Reach{-known[i.a]->hi, -known[i.a]->lo};
    return std::nullopt;
  case Op::Binary:
    return binary(k, i, known[i.a], known[i.b]);
  case Op::Where:
    if (!known[i.b] || !known[i.c]) return std::nullopt;
    return Reach{std::min(known[i.b]->lo, known[i.c]->lo), std::max(known[i.b]->hi, known[i.c]->hi)};
  case Op::Call: {
    const bool least = i.sub == least_row(), greatest = i.sub == greatest_row();
    std::optional<Reach> r;
    for (const NodeId o : operands(k, i)) {
      if ((!least && !greatest) || !known[o]) return std::nullopt;
      if (!r) r = known[o];
      else if (least) r = Reach{std::min(r->lo, known[o]->lo), std::min(r->hi, known[o]->hi)};
      else r = Reach{std::max(r->lo, known[o]->lo), std::max(r->hi, known[o]->hi)};
    }
    return r;
  }
  case Op::Cast: {
    const DType from = k[i.a].type;
    if (from == DType::Bool) return Reach{0, 1};
    if (const Inst &held = k[i.a]; from == DType::I64 && held.op == Op::Cast && k[held.a].type == DType::Index)
      return known[held.a]; // 64 bits hold what is known
    if (!is_integer(from) || from == DType::Index || bytes(from) > 4) return std::nullopt;
    const bool negative = dclass(from) == DClass::Int;
    const int bits = 8 * bytes(from) - negative;
    return Reach{negative ? -(__int128(1) << bits) : 0, (__int128(1) << bits) - 1};
  }
  default:
    return std::nullopt;
  }
}

} // namespace

Reaches reaches(const Kernel &k) {
  Reaches all(k.insts.size());
  for (NodeId n = 0; n < k.insts.size(); ++n) {
    if (k[n].type != DType::Index) continue;
    all[n] = reach(k, k[n], all);
    if (all[n] && !all[n]->within(63)) all[n].reset();
  }
  return all;
}

} // namespace elsewise::cuda
