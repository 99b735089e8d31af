// SPDX-License-Identifier: Apache-2.0
// Grid, block shape and live block ranges of a launch. Nothing here looks at element data or talks to a device.
#include "runtime/cuda/geometry.h"
#include <algorithm>
#include <vector>

namespace elsewise {

static int64_t ceil_div(int64_t a, int64_t b) { return a / b + (a % b != 0); }

Geometry geometry(const Kernel &kernel, const Form &form, int64_t rows, int64_t extent, uintptr_t out_address,
                  std::span<const int64_t> out_row_strides) {
  Geometry g;
  const int64_t v = form.vector;
  g.shift = int64_t(out_address / bytes(kernel.outputs[0]) % v);
  if (rows <= 0 || extent <= 0) return g;
  if (form.rows == 0 || form.flat) {
    g.grid = unsigned(ceil_div(rows * extent + g.shift, block_threads * v));
    return g;
  }
  const bool same_start =
      out_row_strides.size() == form.rows &&
      std::all_of(out_row_strides.begin(), out_row_strides.end(), [&](int64_t s) { return s % v == 0; });
  const int64_t vectors = ceil_div(extent + (same_start ? g.shift : v - 1), v);
  // The block shape that starts the fewest threads, counting both idle ends of rows and idle rows; ties to the widest,
  // whose accesses are the longest.
  int64_t least = -1;
  for (int64_t x = block_threads; x >= 8; x /= 2) {
    const int64_t y = block_threads / x, blocks = ceil_div(vectors, x), grid = blocks * ceil_div(rows, y);
    if (least >= 0 && grid >= least) continue;
    least = grid;
    g.block_x = unsigned(x), g.block_y = unsigned(y), g.blocks = unsigned(blocks), g.grid = unsigned(grid);
  }
  return g;
}

LiveRanges live_ranges(const Kernel &kernel, std::span<const BoxBounds> boxes, int64_t extent, int64_t shift,
                       unsigned &grid) {
  std::vector<int64_t> cuts{0, extent};
  for (const BoxBounds &box : boxes)
    for (int64_t end : {box.begin, box.end})
      if (end > 0 && end < extent) cuts.push_back(end);
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());

  // Between two cuts one piece holds everywhere, and there are no residual guards: the first piece that covers the
  // segment gives its value.
  auto identity = [&](int64_t begin, int64_t end) {
    size_t next = 0;
    for (uint32_t p = 0; p < kernel.pieces.size(); ++p) {
      bool covers = kernel.pieces[p].boxes.empty();
      for (size_t b = 0; b < kernel.pieces[p].boxes.size(); ++b, ++next)
        if (next < boxes.size()) covers |= boxes[next].begin <= begin && end <= boxes[next].end;
      if (covers) return is_identity(kernel, p);
    }
    return false;
  };
  struct Blocks {
    int64_t begin, end;
  };
  std::vector<Blocks> live;
  const int64_t width = int64_t(block_threads) * kernel.form.vector;
  for (size_t s = 0; s + 1 < cuts.size(); ++s) {
    if (cuts[s] >= cuts[s + 1] || identity(cuts[s], cuts[s + 1])) continue;
    const Blocks b{(cuts[s] + shift) / width, ceil_div(cuts[s + 1] + shift, width)};
    if (!live.empty() && b.begin <= live.back().end) live.back().end = std::max(live.back().end, b.end);
    else live.push_back(b);
  }
  while (live.size() > 4) {
    size_t nearest = 1;
    for (size_t r = 2; r < live.size(); ++r)
      if (live[r].begin - live[r - 1].end < live[nearest].begin - live[nearest - 1].end) nearest = r;
    live[nearest - 1].end = live[nearest].end;
    live.erase(live.begin() + nearest);
  }
  LiveRanges ranges{{0, 0, 0, 0}, {~0u, ~0u, ~0u, ~0u}};
  grid = 0;
  for (size_t r = 0; r < live.size(); ++r) {
    ranges.first[r] = live[r].begin, ranges.begin[r] = grid;
    grid += unsigned(live[r].end - live[r].begin);
  }
  return ranges;
}

} // namespace elsewise
