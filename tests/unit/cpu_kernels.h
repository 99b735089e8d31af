// SPDX-License-Identifier: Apache-2.0
// Scheduled kernels made by hand for the tests of CPU code, and a runner for them. No pass runs here, so that a pass
// cannot hide what the emitter does.
#pragma once
#include "compiler/ir/abi.h"
#include "compiler/names/names.h"
#include "runtime/cpu/jit.h"
#include <map>
#include <string>
#include <vector>

namespace elsewise::test {

/// A kernel under construction: arguments first, then pieces in order. Every operand is contiguous unless said
/// otherwise.
struct Maker {
  Kernel kernel;
  Builder b{kernel};

  explicit Maker(std::vector<DType> arguments, DType output) {
    for (size_t i = 0; i < arguments.size(); ++i) {
      kernel.arguments.push_back({std::string(1, char('x' + i)), {ArgKind::Tensor, arguments[i]}});
      kernel.form.args.push_back(Access::Vector);
      kernel.form.same_view.push_back(false);
    }
    kernel.outputs = {output};
  }
  NodeId flat() { return b.pos(flat_axis); }
  NodeId count() { return b.len(flat_axis); }
  /// A parameter of a call, read by element code.
  NodeId parameter(DType d) {
    kernel.arguments.push_back({"p" + std::to_string(kernel.arguments.size()), {ArgKind::Float}});
    kernel.form.args.push_back(Access::Absent);
    kernel.form.same_view.push_back(false);
    return b.param(uint32_t(kernel.arguments.size() - 1), d);
  }
  void piece(NodeId value, std::vector<Range> box = {}, NodeId guard = no_node) {
    Piece p;
    if (!box.empty()) p.boxes.push_back(std::move(box));
    p.guard = guard;
    p.values = {value};
    kernel.pieces.push_back(std::move(p));
  }
  Range range(NodeId lo, NodeId hi) { return {uint8_t(flat_axis), lo, hi}; }

  /// Fills what the schedule pass fills.
  const Kernel &scheduled();
};

/// What a kernel is run on: addresses, and a number for every bound, uniform and stride.
struct Operands {
  void *out = nullptr;
  std::vector<const void *> in;
  int64_t rows = 1, extent = 0;
  std::map<NodeId, Slot> uniforms;
  std::map<NodeId, int64_t> bounds;
  std::vector<int64_t> row_lengths, row_pitches, out_strides;
  std::vector<std::vector<int64_t>> in_strides, table_strides;
  int64_t inner_pitch = 1, out_inner = 1;
  std::vector<int64_t> in_inner;
};
std::vector<Slot> fill(const Kernel &, const Operands &);

} // namespace elsewise::test
