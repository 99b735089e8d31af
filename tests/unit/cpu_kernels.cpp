// SPDX-License-Identifier: Apache-2.0
// The schedule and the slots of hand-made kernels, as plainly as can be. It evaluates no host node.
#include "tests/unit/cpu_kernels.h"
#include <algorithm>
#include <functional>

namespace elsewise::test {

const Kernel &Maker::scheduled() {
  Kernel &k = kernel;
  k.guards.assign(k.pieces.size(), {});
  k.bodies.assign(k.pieces.size(), {});
  std::function<void(NodeId, std::vector<Step> &)> place = [&](NodeId n, std::vector<Step> &steps) {
    const Inst &i = k[n];
    if (i.op == Op::Const) return;
    if (i.stage == Stage::Host) {
      if (std::find(k.uniforms.begin(), k.uniforms.end(), n) == k.uniforms.end()) k.uniforms.push_back(n);
      return;
    }
    if (std::any_of(steps.begin(), steps.end(), [&](const Step &s) { return s.node == n; })) return;
    for (NodeId o : operands(k, n)) place(o, steps);
    steps.push_back({n});
  };
  for (size_t p = 0; p < k.pieces.size(); ++p) {
    if (k.pieces[p].guard != no_node) place(k.pieces[p].guard, k.guards[p]);
    for (NodeId v : k.pieces[p].values) place(v, k.bodies[p]);
  }
  return k;
}

std::vector<Slot> fill(const Kernel &k, const Operands &run) {
  std::vector<Slot> result;
  for (const SlotInfo &s : slots(k, Backend::Cpu)) {
    Slot v{};
    switch (s.kind) {
    case SlotKind::Out:
      v.pointer = run.out;
      break;
    case SlotKind::In:
      v.pointer = const_cast<void *>(run.in[s.index]);
      break;
    case SlotKind::Table:
      v.pointer = const_cast<void *>(run.in[s.index]);
      break;
    case SlotKind::TableStride:
      v.integer = run.table_strides[s.index][s.box];
      break;
    case SlotKind::Uniform:
      v = run.uniforms.at(k.uniforms[s.index]);
      break;
    case SlotKind::Rows:
      v.integer = run.rows;
      break;
    case SlotKind::Extent:
      v.integer = run.extent;
      break;
    case SlotKind::End:
    case SlotKind::Begin:
      v.integer = run.bounds.at(bound_node(k, s));
      break;
    case SlotKind::RowLength:
      v.integer = run.row_lengths[s.index];
      break;
    case SlotKind::RowPitch:
      v.integer = run.row_pitches[s.index];
      break;
    case SlotKind::InnerPitch:
      v.integer = run.inner_pitch;
      break;
    case SlotKind::OutStride:
      v.integer = run.out_strides[s.index];
      break;
    case SlotKind::InStride:
      v.integer = run.in_strides[s.index][s.box];
      break;
    case SlotKind::OutInner:
      v.integer = run.out_inner;
      break;
    case SlotKind::InInner:
      v.integer = run.in_inner[s.index];
      break;
    case SlotKind::Inverse:
    case SlotKind::InverseShift:
    case SlotKind::Shift:
    case SlotKind::Blocks:
    case SlotKind::Live:
    case SlotKind::Segments:
      break;
    }
    result.push_back(v);
  }
  return result;
}

} // namespace elsewise::test
