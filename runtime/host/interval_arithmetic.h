// SPDX-License-Identifier: Apache-2.0
// Operations on intervals: each gives an interval that holds every result. They know nodes' operations and no kernel.
#pragma once
#include "runtime/host/interval.h"

namespace elsewise::interval {

Value anything(DType);
/// One value.
Value point(const Constant &);
bool is_point(DType, const Value &);
Value cast(const Value &, DType from, DType to);
Value unary(UnaryOp, DType, const Value &);
Value binary(BinaryOp, DType, const Value &, const Value &);
Value compare(CompareOp, DType operands, const Value &, const Value &);
Value call(uint8_t row, DType operands, const Value &, const Value &);
/// Either of the two.
Value either(DType, const Value &, const Value &);

} // namespace elsewise::interval
