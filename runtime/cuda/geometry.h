// SPDX-License-Identifier: Apache-2.0
// How a launch of an emitted CUDA kernel is cut into blocks and threads: pure host arithmetic that the launcher and the
// CPU shim share. It calls no driver.
#pragma once
#include "compiler/ir/abi.h"
#include <bit>
#include <span>
#include <vector>

namespace elsewise {

/// blockDim is (block_x, block_y, 1), gridDim (grid, 1, 1); a grid of 0 means that there is nothing to launch.
struct Geometry {
  unsigned grid = 0, block_x = block_threads, block_y = 1;
  int64_t shift = 0;   // SlotKind::Shift: positions between the last 16-byte boundary (V positions) before the first
                       // element of `out` and that element
  unsigned blocks = 1; // SlotKind::Blocks: blocks along the inner axis
};

/// Elements between the last boundary of `vector` elements (a power of two) of a dtype and an address.
inline int64_t vector_phase(uintptr_t address, int bytes, int64_t vector) {
  return int64_t(address >> std::countr_zero(unsigned(bytes))) & (vector - 1);
}

/// `out_row_strides`: out's strides along the row axes, in elements (row form only). They tell whether every row starts
/// at the same place in its vector; without them the worst is assumed, which costs blocks but is always right.
/// `row_lengths`: of the row axes, or of all but the slowest (Form::tile with more than one of them only).
Geometry geometry(const Kernel &, const Form &, int64_t rows, int64_t extent, uintptr_t out_address,
                  std::span<const int64_t> out_row_strides = {}, std::span<const int64_t> row_lengths = {});

/// One box of a piece with its ends clamped to [0, n]; an open end is 0 or n.
struct BoxBounds {
  int64_t begin, end;
};

/// Positions from `begin` up to the next segment's: which piece decides there.
struct Segment {
  int64_t begin;
  uint32_t piece;
};

/// [0, extent) between the ends of boxes: by each position the first piece with a box that holds there, neighbours with
/// the same piece as one. `boxes`: every box of every piece, in order; a piece without boxes has none and covers every
/// position. Right where no residual guard takes part.
void cut(const Kernel &, std::span<const BoxBounds> boxes, int64_t extent, std::vector<Segment> &);

/// For kernels with has_live(): the blocks that hold a position whose value is not the element itself, at most four
/// ranges (the smallest gaps are closed), and their number in `grid` (0: nothing to launch).
LiveRanges live_ranges(const Kernel &, std::span<const Segment>, int64_t extent, int64_t shift, unsigned &grid);

/// For kernels with Form::segments: the bytes of their table.
void segment_table(const Kernel &, std::span<const Segment>, std::vector<uint8_t> &);

} // namespace elsewise
