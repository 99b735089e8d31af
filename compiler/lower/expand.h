// SPDX-License-Identifier: Apache-2.0
// Composite builtins as primitives: a row's body, which is DSL text, with operands for its parameters. A builtin is
// known by its row, never by its name.
#pragma once
#include "compiler/ir/ir.h"
#include "compiler/parse/ast.h"
#include "grammar/builtins.h"

namespace elsewise {

/// Which whole numbers a row's body divides by without a fault: those of elements, and of the host where `Everywhere`.
enum class Total : uint8_t { Elements, Everywhere };

/// The row's value, worked in `type`, which every operand already has. A primitive of any number of operands folds from
/// the left, two at a time.
NodeId expand_call(Kernel &, Builder &, uint32_t row, DType type, const std::vector<NodeId> &operands,
                   Total = Total::Elements);

/// The node's operation for an operator of arithmetic on `type`; comparisons and `and or not` included.
NodeId operate(Builder &, Operator, DType type, NodeId a, NodeId b);

/// `a // b` or `a % b` by a whole number of the host that was written with a position, which fell away: by zero it
/// gives 0, as for any position.
NodeId divide_totally(Builder &, Operator, NodeId a, NodeId b);

/// A row of noise at the element's position in the whole domain, in F32; seed and stream are I64.
NodeId noise(Builder &, const Builtin &row, NodeId seed, NodeId stream);

} // namespace elsewise
