// SPDX-License-Identifier: Apache-2.0
// Copying a kernel through a Builder, which is how passes change nodes. It drops what no root needs and any schedule.
#pragma once
#include "compiler/ir/ir.h"
#include <functional>

namespace elsewise {

/// Called for each node just after it was made again in `to`, with its new operands; answers what users get instead of
/// it (often itself).
using Replace = std::function<NodeId(Kernel &to, Builder &, NodeId made)>;

/// `from` with every node that a piece or a check needs made again, in order.
Kernel rewrite(const Kernel &from, const Replace &);
/// `from` without the nodes that no root needs.
Kernel prune(const Kernel &from);

} // namespace elsewise
