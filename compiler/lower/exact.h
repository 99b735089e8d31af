// SPDX-License-Identifier: Apache-2.0
// Comparison of an exact integer with a double, made of integer comparisons, so that it is right at every size and a
// float bound becomes a range.
#pragma once
#include "compiler/ir/ir.h"

namespace elsewise {

/// `index op real`, where `index` is an Index node and `real` an F64 node. A NaN compares as IEEE says.
NodeId compare_exactly(const Kernel &, Builder &, CompareOp op, NodeId index, NodeId real);

/// `data op index`, exactly, of u64 data and an index, which may be negative or, on the host, greater than any u64.
NodeId compare_u64(const Kernel &, Builder &, CompareOp, NodeId data, NodeId index);

} // namespace elsewise
