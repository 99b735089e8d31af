// SPDX-License-Identifier: Apache-2.0
// Grid, block shape, segments and live block ranges of a launch. Nothing here looks at element data or talks to a
// device.
#include "runtime/cuda/geometry.h"
#include <algorithm>
#include <cstring>
#include <functional>

namespace elsewise {

static int64_t ceil_div(int64_t a, int64_t b) { return a / b + (a % b != 0); }

Geometry geometry(const Kernel &kernel, const Form &form, int64_t rows, int64_t extent, uintptr_t out_address,
                  std::span<const int64_t> out_row_strides, std::span<const int64_t> row_lengths) {
  Geometry g;
  const int64_t v = form.vector;
  g.shift = vector_phase(out_address, bytes(kernel.outputs[0]), v);
  if (rows <= 0 || extent <= 0) return g;
  if (form.rows == 0 || form.flat) {
    g.grid = unsigned(ceil_div(rows * extent + g.shift, block_threads * v));
    return g;
  }
  if (form.tile) { // rows of one block are those of one step along the other axes; each starts at the same place
    const int64_t length = form.rows == 1 ? rows : row_lengths[0];
    g.block_x = unsigned(tile_threads(form)), g.block_y = block_threads / g.block_x;
    g.blocks = unsigned(ceil_div(extent + g.shift, tile_width(form)));
    g.grid = unsigned(int64_t(g.blocks) * ceil_div(length, form.tile) * (rows / length));
    return g;
  }
  const bool same_start =
      out_row_strides.size() == form.rows &&
      std::all_of(out_row_strides.begin(), out_row_strides.end(), [&](int64_t s) { return s % v == 0; });
  const int64_t vectors = ceil_div(extent + (same_start ? g.shift : v - 1), v);
  // The block shape that starts the fewest threads, counting both idle ends of rows and idle rows. A wider one, whose
  // accesses are longer, is left only for one that spares more than a thirty-second of them.
  int64_t least = -1;
  for (int64_t x = block_threads; x >= 8; x /= 2) {
    const int64_t y = block_threads / x, blocks = ceil_div(vectors, x), grid = blocks * ceil_div(rows, y);
    if (least >= 0 && grid >= least - least / 32) continue;
    least = grid;
    g.block_x = unsigned(x), g.block_y = unsigned(y), g.blocks = unsigned(blocks), g.grid = unsigned(grid);
  }
  return g;
}

void cut(const Kernel &kernel, std::span<const BoxBounds> boxes, int64_t extent, std::vector<Segment> &segments) {
  segments.clear();
  if (extent <= 0) return;
  struct End {
    int64_t at;
    uint32_t piece;
    bool opens;
  };
  std::vector<End> ends;
  std::vector<uint32_t> open(kernel.pieces.size()); // boxes of the piece that hold
  std::vector<uint32_t> candidates;                 // a heap of the pieces that were opened, the first one on top
  size_t next = 0;
  for (uint32_t p = 0; p < kernel.pieces.size(); ++p) {
    if (kernel.pieces[p].boxes.empty()) ends.push_back({0, p, true});
    for (size_t b = 0; b < kernel.pieces[p].boxes.size(); ++b, ++next) {
      const int64_t begin = std::max<int64_t>(boxes[next].begin, 0), end = std::min(boxes[next].end, extent);
      if (begin >= end) continue;
      ends.push_back({begin, p, true});
      if (end < extent) ends.push_back({end, p, false});
    }
  }
  std::sort(ends.begin(), ends.end(), [](const End &a, const End &b) { return a.at < b.at; });
  constexpr std::greater<uint32_t> later;
  for (size_t e = 0; e < ends.size();) {
    const int64_t at = ends[e].at;
    for (; e < ends.size() && ends[e].at == at; ++e) {
      open[ends[e].piece] += ends[e].opens ? 1 : -1;
      if (!ends[e].opens) continue;
      candidates.push_back(ends[e].piece);
      std::push_heap(candidates.begin(), candidates.end(), later);
    }
    while (!candidates.empty() && !open[candidates.front()]) {
      std::pop_heap(candidates.begin(), candidates.end(), later);
      candidates.pop_back();
    }
    // Every position has a piece: coverage is proved. The first one stands in for none, which nobody reads then.
    const uint32_t piece = candidates.empty() ? 0 : candidates.front();
    if (segments.empty() || segments.back().piece != piece) segments.push_back({at, piece});
  }
}

LiveRanges live_ranges(const Kernel &kernel, std::span<const Segment> segments, int64_t extent, int64_t shift,
                       unsigned &grid) {
  struct Blocks {
    int64_t begin, end;
  };
  std::vector<Blocks> live;
  const int64_t width = int64_t(block_threads) * kernel.form.vector;
  for (size_t s = 0; s < segments.size(); ++s) {
    if (is_identity(kernel, segments[s].piece)) continue;
    const int64_t end = s + 1 < segments.size() ? segments[s + 1].begin : extent;
    const Blocks b{(segments[s].begin + shift) / width, ceil_div(end + shift, width)};
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

void segment_table(const Kernel &kernel, std::span<const Segment> segments, std::vector<uint8_t> &table) {
  const SegmentLayout layout = segment_layout(kernel);
  const std::vector<uint32_t> body = bodies(kernel);
  table.assign(layout.size, 0);
  auto put = [&](size_t at, size_t size, uint64_t value) { std::memcpy(table.data() + at, &value, size); };
  const int64_t never = layout.begin_bytes == 4 ? INT32_MAX : INT64_MAX;
  size_t s = 0;
  uint32_t before = ~0u;
  for (const Segment &segment : segments) {
    const uint32_t same = body[segment.piece], entry = layout.entries ? kernel.pieces[segment.piece].entry : 0;
    if (before != ~0u && body[before] == same && (!layout.entries || kernel.pieces[before].entry == entry)) continue;
    before = segment.piece;
    put(s * layout.begin_bytes, layout.begin_bytes, uint64_t(segment.begin));
    put(layout.piece_at + s * layout.piece_bytes, layout.piece_bytes, same + 1);
    if (layout.entries) put(layout.entry_at + s * 2, 2, entry);
    ++s;
  }
  for (; s < layout.count; ++s) put(s * layout.begin_bytes, layout.begin_bytes, uint64_t(never));
}

} // namespace elsewise
