// SPDX-License-Identifier: Apache-2.0
// Whether reads at indices stay within their tensors, so that emitted code tests no index. It proves over integers
// alone: what may wrap, and every float, is unknown to it.
#pragma once
#include "compiler/passes/passes.h"

namespace elsewise {

/// The kernel with each Reading settled: which indices are proved from the conditions that lead to the read, at which
/// premises, and which the host has to work out at a call. What is settled stays as it is. Reads that are neither
/// proved nor checked are what unproved() lists, and such a kernel must not run.
Kernel bounds(const Kernel &, const PassOptions &);

/// An index that nothing shows to be within its axis.
struct Unproved {
  NodeId node; // of the read
  uint32_t axis;
  bool below, above; // it may be less than 0; it may be the length or more
};
/// Of a kernel that bounds() has settled.
std::vector<Unproved> unproved(const Kernel &);

/// True if the node, whose operands are settled, has the same bits on the host and on every device.
bool same_everywhere(const Kernel &, NodeId);

} // namespace elsewise
