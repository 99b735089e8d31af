// SPDX-License-Identifier: Apache-2.0
// A walk down a recipe: a node and what it is made of. It changes nothing and knows no operation.
#pragma once
#include "compiler/ir/ir.h"
#include "llvm/ADT/SmallSet.h"
#include "llvm/ADT/SmallVector.h"
#include <type_traits>

namespace elsewise {

/// `look(n)` for `root` and every node below it, once each, a node before its operands and these in their order. A
/// `look` that returns false is not led below that node.
template <class Look> void walk(const Kernel &k, NodeId root, Look look) {
  llvm::SmallVector<NodeId, 16> open{root};
  llvm::SmallSet<NodeId, 16> seen;
  while (!open.empty()) {
    const NodeId n = open.pop_back_val();
    if (!seen.insert(n).second) continue;
    if constexpr (std::is_void_v<decltype(look(n))>) look(n);
    else if (!look(n)) continue;
    const std::vector<NodeId> below = operands(k, n);
    open.append(below.rbegin(), below.rend());
  }
}

} // namespace elsewise
