// SPDX-License-Identifier: Apache-2.0
// Grids, block shapes and live ranges against what they must cover, position by position. No kernel runs here.
#include "runtime/cuda/geometry.h"
#include "tests/unit/cpu_kernels.h"
#include <gtest/gtest.h>
#include <random>

namespace elsewise::test {
namespace {

Maker seed_rule(bool in_place) {
  Maker m({DType::F32}, DType::F32);
  const NodeId n = m.count(), quarter = m.b.binary(BinaryOp::FloorDiv, n, m.b.integer(DType::Index, 4));
  const NodeId x = m.b.load(0);
  m.piece(m.b.binary(BinaryOp::Mul, x, m.b.real(DType::F32, 0.5)), {m.range(no_node, quarter)});
  m.piece(m.b.binary(BinaryOp::Mul, x, m.b.real(DType::F32, 2)),
          {m.range(m.b.binary(BinaryOp::Sub, n, quarter), no_node)});
  m.piece(x);
  m.kernel.form.same_view[0] = in_place;
  m.scheduled();
  return m;
}

TEST(Geometry, OneRow) {
  const Maker m = seed_rule(false);
  const Kernel &k = m.kernel;
  Geometry g = geometry(k, k.form, 1, 1000000, 0x1000);
  EXPECT_EQ(g.grid, 977u);
  EXPECT_EQ(g.block_x, 256u);
  EXPECT_EQ(g.block_y, 1u);
  EXPECT_EQ(g.shift, 0);
  // One element past a vector: the grid starts one position earlier, and may need one block more.
  g = geometry(k, k.form, 1, 1024, 0x1004);
  EXPECT_EQ(g.shift, 1);
  EXPECT_EQ(g.grid, 2u);
  EXPECT_EQ(geometry(k, k.form, 1, 1024, 0x1000).grid, 1u);
  EXPECT_EQ(geometry(k, k.form, 1, 0, 0x1004).grid, 0u);
  // Beyond 32 bits.
  EXPECT_EQ(geometry(k, k.form, 1, int64_t(1) << 40, 0).grid, 1u << 30);
}

// Every position of every row belongs to exactly one thread's vector, whatever the head of its row is.
TEST(Geometry, RowsAreCovered) {
  const Maker m = seed_rule(false);
  Kernel k = m.kernel;
  k.form.rows = 1;
  for (int v : {1, 2, 4, 16})
    for (int64_t rows : {1, 3, 33, 1000})
      for (int64_t extent : {1, 7, 31, 32, 33, 100, 257, 1023, 1024, 1025, 5000})
        for (int64_t pitch : {extent, extent + 1, (extent + v - 1) / v * v})
          for (uintptr_t address : {0u, 4u, 12u}) {
            k.form.vector = uint8_t(v);
            const int64_t strides[] = {pitch};
            const Geometry g = geometry(k, k.form, rows, extent, address, strides);
            ASSERT_EQ(g.block_x * g.block_y, unsigned(block_threads));
            ASSERT_TRUE(g.block_x >= 8 && (g.block_x & (g.block_x - 1)) == 0);
            ASSERT_EQ(g.grid % g.blocks, 0u);
            ASSERT_GE(int64_t(g.grid / g.blocks) * g.block_y, rows);
            const int64_t worst = pitch % v == 0 ? g.shift : v - 1;
            ASSERT_GE(int64_t(g.blocks) * g.block_x * v, extent + worst);
          }
}

// Every tile of every place on the other axes is a block of its own, and no block is idle.
TEST(Geometry, TilesAreCovered) {
  const Maker m = seed_rule(false);
  Kernel k = m.kernel;
  for (int v : {1, 4, 16})
    for (int tile : {32, 64, 128})
      for (int64_t length : {16, 31, 32, 33, 1000})
        for (int64_t others : {1, 6})
          for (int64_t extent : {16, 31, 32, 33, 127, 128, 129, 5000})
            for (uintptr_t address : {0u, 4u, 12u}) {
              k.form.rows = others == 1 ? 1 : 2, k.form.vector = uint8_t(v), k.form.tile = uint8_t(tile);
              const int64_t strides[] = {extent, extent * length}, lengths[] = {length, others};
              const Geometry g = geometry(k, k.form, length * others, extent, address, strides, lengths);
              ASSERT_EQ(g.block_x * g.block_y, unsigned(block_threads));
              ASSERT_EQ(int(g.block_x) * v, tile_width(k.form));
              ASSERT_EQ(tile % int(g.block_y), 0);
              ASSERT_EQ(g.blocks, unsigned((extent + g.shift + tile_width(k.form) - 1) / tile_width(k.form)));
              ASSERT_EQ(g.grid, g.blocks * unsigned((length + tile - 1) / tile) * unsigned(others));
            }
}

TEST(Geometry, RowsWasteLittle) {
  const Maker m = seed_rule(false);
  Kernel k = m.kernel;
  k.form.rows = 1;
  const int64_t aligned[] = {2048}, odd[] = {2049};
  Geometry g = geometry(k, k.form, 4096, 2048, 0, aligned);
  EXPECT_EQ(g.block_x, 256u);
  EXPECT_EQ(g.blocks, 2u);
  EXPECT_EQ(g.grid, 8192u);
  // 513 vectors: eight threads wide wastes least.
  g = geometry(k, k.form, 4096, 2049, 0, odd);
  EXPECT_EQ(g.block_x, 8u);
  // Four rows cannot fill 32 rows a block.
  g = geometry(k, k.form, 4, 1000, 0, {});
  EXPECT_EQ(g.block_x, 256u);
  EXPECT_EQ(g.grid, 4u);
}

TEST(Geometry, FlatRowsAreOneRun) {
  const Maker m = seed_rule(false);
  Kernel k = m.kernel;
  k.form.rows = 1, k.form.flat = true;
  Geometry g = geometry(k, k.form, 1000, 17, 0x1000);
  EXPECT_EQ(g.grid, 17u); // 17000 positions, 1024 a block
  EXPECT_EQ(g.block_x, 256u);
  EXPECT_EQ(g.block_y, 1u);
  g = geometry(k, k.form, 1024, 3, 0x1004);
  EXPECT_EQ(g.shift, 1);
  EXPECT_EQ(g.grid, 4u);
  EXPECT_EQ(geometry(k, k.form, int64_t(1) << 35, 32, 0).grid, 1u << 30);
}

LiveRanges live_of(const Kernel &k, std::span<const BoxBounds> boxes, int64_t extent, int64_t shift, unsigned &grid) {
  std::vector<Segment> segments;
  cut(k, boxes, extent, segments);
  return live_ranges(k, segments, extent, shift, grid);
}

TEST(LiveRanges, SeedRule) {
  const Maker m = seed_rule(true);
  unsigned grid = 0;
  const BoxBounds boxes[] = {{0, 250000}, {750000, 1000000}};
  const LiveRanges live = live_of(m.kernel, boxes, 1000000, 0, grid);
  EXPECT_EQ(grid, 490u);
  EXPECT_EQ(live.first[0], 0);
  EXPECT_EQ(live.begin[0], 0u);
  EXPECT_EQ(live.first[1], 732);
  EXPECT_EQ(live.begin[1], 245u);
  EXPECT_EQ(live.begin[2], ~0u);
  EXPECT_EQ(live.begin[3], ~0u);
}

TEST(LiveRanges, NothingToDo) {
  const Maker m = seed_rule(true);
  unsigned grid = 9;
  const BoxBounds boxes[] = {{0, 0}, {10, 10}};
  const LiveRanges live = live_of(m.kernel, boxes, 10, 3, grid);
  EXPECT_EQ(grid, 0u);
  EXPECT_EQ(live.begin[0], ~0u);
}

// The block that a thread block of the launch works on, as the emitted live_block computes it.
int64_t live_block(const LiveRanges &live, unsigned block) {
  int64_t first = live.first[0];
  for (int r = 1; r < 4; ++r)
    if (block >= live.begin[r]) first = live.first[r] - live.begin[r];
  return first + block;
}

TEST(LiveRanges, CoverEveryPositionThatChanges) {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    Maker m({DType::F32, DType::F32}, DType::F32);
    m.kernel.form.same_view[0] = true;
    m.kernel.form.vector = 1; // blocks of 256 positions
    const int pieces = 1 + random() % 7;
    const int64_t extent = 1 + random() % 9000, shift = random() % 4;
    std::vector<BoxBounds> boxes;
    std::vector<std::vector<BoxBounds>> of(pieces + 1);
    for (int p = 0; p < pieces; ++p) {
      Piece piece;
      for (int b = 0, count = 1 + random() % 2; b < count; ++b) {
        int64_t lo = random() % (extent + 1), hi = random() % (extent + 1);
        if (random() % 4 && lo > hi) std::swap(lo, hi); // some boxes are empty
        piece.boxes.push_back({{uint8_t(flat_axis), m.b.integer(DType::Index, lo), m.b.integer(DType::Index, hi)}});
        boxes.push_back({lo, hi}), of[p].push_back({lo, hi});
      }
      piece.values = {m.b.load(random() % 2)};
      m.kernel.pieces.push_back(piece);
    }
    Piece rest;
    rest.values = {m.b.load(random() % 2)};
    m.kernel.pieces.push_back(rest);
    of[pieces] = {{0, extent}};
    unsigned grid = 0;
    const LiveRanges live = live_of(m.kernel, boxes, extent, shift, grid);
    const int64_t blocks = (extent + shift + 255) / 256;
    std::vector<int> launched(blocks, 0);
    for (unsigned b = 0; b < grid; ++b) {
      const int64_t at = live_block(live, b);
      ASSERT_TRUE(at >= 0 && at < blocks);
      ++launched[at];
    }
    for (int64_t b = 0; b < blocks; ++b) ASSERT_LE(launched[b], 1);
    int64_t needed = 0;
    std::vector<int> live_blocks(blocks, 0);
    for (int64_t i = 0; i < extent; ++i) {
      int p = 0;
      while (!std::any_of(of[p].begin(), of[p].end(), [&](const BoxBounds &b) { return b.begin <= i && i < b.end; }))
        ++p;
      if (is_identity(m.kernel, uint32_t(p))) continue;
      ASSERT_EQ(launched[(i + shift) / 256], 1) << i;
      needed += !live_blocks[(i + shift) / 256]++;
    }
    // Without gaps to close, no block is launched that has no work.
    int runs = 0;
    for (int64_t b = 0; b < blocks; ++b) runs += live_blocks[b] && (b == 0 || !live_blocks[b - 1]);
    if (runs <= 4) {
      ASSERT_EQ(int64_t(grid), needed);
    }
  }
}

} // namespace
} // namespace elsewise::test
