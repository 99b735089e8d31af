// SPDX-License-Identifier: Apache-2.0
// The meaning of every operation on known operands, exactly as ir.h states it: folding and the host's evaluator both
// call this. It reads no element data.
#pragma once
#include "compiler/ir/ir.h"
#include <span>

namespace elsewise {

/// Why an operation has no value. Overflow: an index leaves 128 bits. ZeroDivision: an index divided by zero; `out` is
/// then 0, as for a position.
enum class Trouble : uint8_t { None, Overflow, ZeroDivision };

/// `value`, exact in `from`, as `to`: what Op::Cast does.
Constant convert(const Constant &value, DType from, DType to);
/// The least or the greatest finite value of a dtype; of Bool false and true.
Constant extreme(DType, bool high);
/// Rounds an exact double to a float type, to nearest even.
double round_to(DType, double);
/// The low bits of `v` as the integer type has them; Index: unchanged; Bool: v != 0.
__int128 wrap(DType, __int128 v);
/// True if `v` is a value of the integer type; Index: of 64 bits.
bool fits(DType, __int128 v);

/// What the host works as it is meant: indexes, doubles and conditions. A comparison of these is exact, unless it says
/// that it is of data.
inline bool is_host_type(DType d) { return d == DType::Index || d == DType::F64 || d == DType::Bool; }
/// What a comparison has whose text does not say it.
inline Exactness usual_exactness(DType d) {
  return d == DType::Index || d == DType::F64 ? Exactness::Exact : Exactness::Data;
}

/// How two numbers compare.
template <class T> bool ordered(CompareOp op, const T &a, const T &b) {
  switch (op) {
  case CompareOp::Lt:
    return a < b;
  case CompareOp::Le:
    return a <= b;
  case CompareOp::Gt:
    return a > b;
  case CompareOp::Ge:
    return a >= b;
  case CompareOp::Eq:
    return a == b;
  case CompareOp::Ne:
    return a != b;
  }
  return false;
}

/// A node that is not a leaf, from its operands' values in order (all of them: this knows no laziness); `from` is the
/// first operand's type.
Trouble apply(const Inst &, DType from, std::span<const Constant> operands, Constant &out);

__int128 floor_divide(__int128 a, __int128 b); // b != 0, and not the least integer by -1

} // namespace elsewise
