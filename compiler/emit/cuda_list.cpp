// SPDX-License-Identifier: Apache-2.0
// The launch over a list of tensors: what each has, passed by value, and how a block finds its own. From there on the
// text is that of one tensor in one row.
#include "compiler/emit/cuda_kernel.h"

namespace elsewise::cuda {

void KernelPrinter::print_list_tools(Lines &out) const {
  const std::string capacity = num(int64_t(item_layout(k_).capacity));
  out.add(0, "struct Items {", "a list of tensors: from block begin[k] on it is the turn of item k");
  out.add(2, "int count;");
  out.add(2, "unsigned begin[" + capacity + "];");
  out.add(2, "struct alignas(8) {");
  for (const Parameter &p : parameters())
    out.add(4, "alignas(8) " + replace(p.type, "__restrict__ ", "") + p.name + ";");
  out.add(4, "i64 block;", "its first block, less that of the grid");
  out.add(2, "} of[" + capacity + "];");
  out.add(0, "};");
  if (nothing_) return;
  out.add(0, "__device__ int item_of(const Items &items, unsigned block) {");
  out.add(2, "int from = 0;");
  out.add(2, "for (int to = items.count; to - from > 1;) {", "it is one of [from, to)");
  out.add(4, "const int middle = (from + to) / 2;");
  out.add(4, "if (items.begin[middle] <= block) from = middle;");
  out.add(4, "else to = middle;");
  out.add(2, "}");
  out.add(2, "return from;");
  out.add(0, "}");
}

// The arguments of the block's tensor, by the names that they have where there is one tensor alone.
void KernelPrinter::print_item(Lines &out) const {
  out.add(2, "const auto &item = items.of[item_of(items, blockIdx.x)];", "the tensor whose turn it is");
  for (const Parameter &p : parameters()) {
    const bool pointer = p.type.find('*') != std::string::npos; // moved to the block's first position later
    out.add(2, (pointer ? "" : "const ") + p.type + p.name + " = item." + p.name + ";");
  }
}

} // namespace elsewise::cuda
