// SPDX-License-Identifier: Apache-2.0
// Shapes and strides worked out by hand: broadcasting, torch's output strides, axis order, merging, access classes. No
// kernel runs here.
#include "runtime/layout/layout.h"
#include <gtest/gtest.h>
#include <random>

namespace elsewise {
namespace {

std::optional<Dims> broadcast_of(std::vector<Dims> shapes, ShapeConflict *conflict = nullptr) {
  std::vector<DimsRef> refs;
  for (const Dims &s : shapes) refs.push_back(ref(s));
  ShapeConflict unused;
  return broadcast(refs, conflict ? *conflict : unused);
}

TEST(Layout, BroadcastsFromTheRight) {
  EXPECT_EQ(broadcast_of({{3, 4}}), Dims({3, 4}));
  EXPECT_EQ(broadcast_of({{3, 1}, {4}}), Dims({3, 4}));
  EXPECT_EQ(broadcast_of({{4}, {2, 3, 1}}), Dims({2, 3, 4}));
  EXPECT_EQ(broadcast_of({{1}, {0}}), Dims({0}));
  EXPECT_EQ(broadcast_of({{}, {}}), Dims({}));
  ShapeConflict conflict;
  EXPECT_FALSE(broadcast_of({{2, 4}, {4}, {3, 4}}, &conflict));
  EXPECT_EQ(conflict.first, 0u);
  EXPECT_EQ(conflict.second, 2u);
  EXPECT_EQ(conflict.from_right, 2u);
  EXPECT_FALSE(broadcast_of({{0}, {2}}));
}

TEST(Layout, BroadcastsToADomain) {
  size_t axis = 0;
  const Dims domain{2, 3};
  EXPECT_TRUE(broadcasts_to(ref(Dims{3}), ref(domain), axis));
  EXPECT_TRUE(broadcasts_to(ref(Dims{2, 1}), ref(domain), axis));
  EXPECT_TRUE(broadcasts_to(ref(Dims{1, 1, 3}), ref(domain), axis));
  EXPECT_FALSE(broadcasts_to(ref(Dims{3, 3}), ref(domain), axis));
  EXPECT_EQ(axis, 2u);
  EXPECT_FALSE(broadcasts_to(ref(Dims{2, 2, 3}), ref(domain), axis));
  EXPECT_EQ(axis, 3u);
}

TEST(Layout, StridesOverTheDomain) {
  EXPECT_EQ(over_domain(ref(Dims{3}), ref(Dims{2}), ref(Dims{4, 3})), Dims({0, 2}));
  EXPECT_EQ(over_domain(ref(Dims{4, 1}), ref(Dims{1, 7}), ref(Dims{4, 3})), Dims({1, 0}));
  EXPECT_EQ(over_domain(ref(Dims{1}), ref(Dims{7}), ref(Dims{1})),
            Dims({7})); // as torch: a length of 1 that is no repetition keeps its stride
}

TEST(Layout, CountsElements) {
  EXPECT_EQ(element_count(ref(Dims{})), 1);
  EXPECT_EQ(element_count(ref(Dims{int64_t(1) << 40, int64_t(1) << 40, 0})), 0);
  EXPECT_EQ(element_count(ref(Dims{int64_t(1) << 40, int64_t(1) << 40})), std::nullopt);
}

Dims strides_of(Dims domain, std::vector<std::pair<Dims, Dims>> inputs) {
  std::vector<StrideSource> sources;
  for (const auto &[shape, stride] : inputs) sources.push_back({ref(shape), ref(stride)});
  return output_strides(ref(domain), sources);
}

// Each line was compared with what torch 2.13 gives for `a + b` (or `a + 1`).
TEST(Layout, OutputStridesAreTorchs) {
  EXPECT_EQ(strides_of({2, 3}, {{{2, 3}, {3, 1}}}), Dims({3, 1}));
  EXPECT_EQ(strides_of({2, 3}, {{{2, 3}, {1, 2}}}), Dims({1, 2}));             // transposed dense
  EXPECT_EQ(strides_of({2, 3}, {{{2, 3}, {6, 2}}}), Dims({3, 1}));             // x[:, ::2]
  EXPECT_EQ(strides_of({2, 3}, {{{2, 3}, {1, 4}}}), Dims({1, 2}));             // a part of a transposed one
  EXPECT_EQ(strides_of({2, 3, 4}, {{{2, 3, 4}, {1, 8, 2}}}), Dims({1, 8, 2})); // permute(1, 2, 0) of (3, 4, 2)
  EXPECT_EQ(strides_of({2, 3, 4, 5}, {{{2, 3, 4, 5}, {60, 1, 15, 3}}}), Dims({60, 1, 15, 3})); // channels last
  EXPECT_EQ(strides_of({2, 3}, {{{2, 3}, {3, 1}}, {{2, 3}, {1, 2}}}), Dims({3, 1})); // they disagree: the first decides
  EXPECT_EQ(strides_of({2, 3}, {{{2, 3}, {1, 2}}, {{2, 3}, {3, 1}}}), Dims({1, 2}));
  EXPECT_EQ(strides_of({2, 3}, {{{3}, {1}}, {{2, 3}, {1, 2}}}), Dims({1, 2})); // a repeated axis says nothing
  EXPECT_EQ(strides_of({2, 3}, {{{2, 3}, {0, 1}}}), Dims({3, 1}));             // expanded
  EXPECT_EQ(strides_of({0, 3}, {{{0, 3}, {1, 0}}}), Dims({3, 1}));
  EXPECT_EQ(strides_of({2, 0, 3}, {{{2, 0, 3}, {3, 3, 1}}, {{3}, {1}}}), Dims({3, 3, 1})); // nothing, but in order
  EXPECT_EQ(strides_of({}, {{{}, {}}}), Dims({}));
  EXPECT_EQ(strides_of({2, 3}, {}), Dims({3, 1})); // shape=
}

Loop loop_of(Dims domain, Dims out, std::vector<Dims> inputs, bool positions = true) {
  return make_loop(ref(domain), ref(out), inputs, {positions});
}

TEST(Layout, ContiguousIsOneRow) {
  const Loop l = loop_of({4, 5, 6}, {30, 6, 1}, {{30, 6, 1}});
  EXPECT_TRUE(l.lengths.empty());
  EXPECT_EQ(l.extent, 120);
  EXPECT_EQ(l.inner_pitch, 1);
  EXPECT_EQ(l.out.inner, 1);
  EXPECT_EQ(l.inputs[0].inner, 1);
}

TEST(Layout, AWindowStepsThroughItsDomain) {
  auto window = [](Dims shape, Dims whole, bool positions) {
    const Dims stride = contiguous_strides(ref(shape));
    return make_loop(ref(shape), ref(stride), std::vector{stride}, {positions}, ref(whole));
  };
  const Loop plane = window({2, 3}, {5, 7}, true);
  EXPECT_EQ(plane.lengths, Dims({2}));
  EXPECT_EQ(plane.pitches, Dims({7}));
  EXPECT_EQ(flat_span(plane), 10);
  EXPECT_TRUE(window({2, 3}, {5, 7}, false).lengths.empty()) << "no position tells its rows apart";
  EXPECT_TRUE(window({2, 7}, {5, 7}, true).lengths.empty()) << "whole rows are one run";
  const Loop column = window({4, 1}, {5, int64_t(1) << 40}, true);
  EXPECT_EQ(column.inner_pitch, int64_t(1) << 40);
  EXPECT_EQ(flat_span(column), 3 * (int64_t(1) << 40) + 1);
  EXPECT_EQ(flat_span(window({1, 1}, {5, 7}, true)), 1);
  EXPECT_EQ(flat_span(loop_of({4, 3}, {3, 1}, {{6, 1}})), 12);

  const std::vector<Operand> one{{DType::F32, true, false}};
  EXPECT_TRUE(make_form(plane, DType::F32, one, true, Machine::Cuda).narrow);
  const Loop far = window({2, 3}, {5, int64_t(1) << 40}, true);
  EXPECT_FALSE(make_form(far, DType::F32, one, true, Machine::Cuda).narrow) << "flat positions leave 32 bits";
  EXPECT_TRUE(make_form(far, DType::F32, one, false, Machine::Cuda).narrow) << "none is asked for";
}

TEST(Layout, SlicedRowsStayRows) {
  const Loop l = loop_of({4, 3}, {3, 1}, {{6, 1}}); // x[:, :3]
  EXPECT_EQ(l.lengths, Dims({4}));
  EXPECT_EQ(l.extent, 3);
  EXPECT_EQ(l.pitches, Dims({3}));
  EXPECT_EQ(l.out.rows, Dims({3}));
  EXPECT_EQ(l.inputs[0].rows, Dims({6}));
}

TEST(Layout, IteratesInTheOutputsOrder) {
  const Loop l = loop_of({2, 3}, {1, 2}, {{1, 2}}); // both transposed
  EXPECT_EQ(l.lengths, Dims({3}));
  EXPECT_EQ(l.extent, 2);
  EXPECT_EQ(l.inner_pitch, 3); // the logical position steps by a row
  EXPECT_EQ(l.pitches, Dims({1}));
  const Loop without_positions = loop_of({2, 3}, {1, 2}, {{1, 2}}, false);
  EXPECT_TRUE(without_positions.lengths.empty());
  EXPECT_EQ(without_positions.extent, 6);
}

TEST(Layout, MergesWhatAllOperandsWalkAsOne) {
  const Loop l = loop_of({2, 3, 4, 5}, {60, 20, 5, 1}, {{60, 20, 5, 1}, {0, 0, 5, 1}}); // b of shape (4, 5)
  EXPECT_EQ(l.lengths, Dims({6}));
  EXPECT_EQ(l.extent, 20);
  EXPECT_EQ(l.rows, 6);
  EXPECT_EQ(l.inputs[1].rows, Dims({0}));
}

TEST(Layout, LengthOneSaysNothing) {
  const Loop l = loop_of({1, 7, 1}, {99, 1, 99}, {{5, 1, 5}});
  EXPECT_TRUE(l.lengths.empty());
  EXPECT_EQ(l.extent, 7);
  const Loop single = loop_of({1, 1}, {3, 3}, {{0, 0}});
  EXPECT_EQ(single.extent, 1);
  EXPECT_EQ(single.out.inner, 1);
  EXPECT_EQ(single.inputs[0].inner, 1);
}

TEST(Layout, NegativeStridesAreWalkedBackwards) {
  const Loop l = loop_of({6}, {1}, {{-1}});
  EXPECT_EQ(l.inputs[0].inner, -1);
  const Loop rows = loop_of({2, 3}, {3, 1}, {{-3, -1}}); // a whole array reversed: one row still
  EXPECT_TRUE(rows.lengths.empty());
  EXPECT_EQ(rows.inputs[0].inner, -1);
}

Form form_of(const Loop &l, DType out, std::vector<Operand> inputs, Machine machine = Machine::Cuda,
             bool positions = true) {
  return make_form(l, out, inputs, positions, machine);
}

TEST(Layout, VectorWidths) {
  const Loop l = loop_of({64}, {1}, {{1}});
  EXPECT_EQ(form_of(l, DType::F32, {{DType::F32, true}}).vector, 4);
  EXPECT_EQ(form_of(l, DType::U8, {{DType::U8, true}}).vector, 16);
  EXPECT_EQ(form_of(l, DType::F16, {{DType::I8, true}}).vector, 8);
  EXPECT_EQ(form_of(l, DType::I8, {{DType::F64, true}}).vector, 4);
  EXPECT_EQ(form_of(l, DType::F64, {{DType::F32, true}}).vector, 2);
  EXPECT_EQ(form_of(l, DType::U8, {{DType::F64, true, true}}).vector, 16); // a 0-d operand is read once
  EXPECT_EQ(form_of(l, DType::U8, {{DType::F64, true}}, Machine::Cpu).vector, 1);
  EXPECT_EQ(form_of(loop_of({64}, {2}, {{1}}), DType::F32, {{DType::F32, true}}).vector, 1);
  EXPECT_EQ(form_of(loop_of({64}, {1}, {{2}}), DType::U8, {{DType::F64, true}}).vector,
            16); // not contiguous: does not count
}

Form in_rows(const Loop &l, std::vector<Operand> inputs) {
  return make_form(l, DType::F32, inputs, true, Machine::Cuda, {}, {.longest_flat = 0});
}

TEST(Layout, AccessClasses) {
  auto access = [](Dims out, Dims in, Operand operand) {
    return in_rows(loop_of({8, 8}, out, {in}), {operand}).args[0];
  };
  const Operand f32{DType::F32, true};
  EXPECT_EQ(access({8, 1}, {8, 1}, f32), Access::Vector);
  EXPECT_EQ(access({8, 1}, {12, 1}, f32), Access::Vector);
  EXPECT_EQ(access({8, 1}, {9, 1}, f32), Access::Scalar); // rows start elsewhere modulo 4
  EXPECT_EQ(access({8, 1}, {0, 1}, f32), Access::Vector);
  EXPECT_EQ(access({8, 1}, {1, 0}, f32), Access::Broadcast);
  EXPECT_EQ(access({8, 1}, {1, 8}, f32), Access::Strided);
  EXPECT_EQ(access({8, 1}, {8, -1}, f32), Access::Strided);
  EXPECT_EQ(access({8, 1}, {0, 0}, {DType::F32, true, true}), Access::Broadcast);
  EXPECT_EQ(access({8, 1}, {8, 1}, {DType::F32, false}), Access::Absent);
}

// Tiles: for an input that runs along row axis 0, where `out` runs along the inner axis and both are long enough.
TEST(Layout, Tiles) {
  const Operand f32{DType::F32, true}, i8{DType::I8, true}, f64{DType::F64, true};
  const Loop turned = loop_of({64, 40}, {40, 1}, {{1, 64}, {40, 1}}, false);
  Form f = form_of(turned, DType::F32, {f32, f32}, Machine::Cuda, false);
  EXPECT_EQ(f.tile, 64);
  EXPECT_EQ(f.vector, 4);
  EXPECT_EQ(f.args, (std::vector<Access>{Access::Tiled, Access::Vector}));
  EXPECT_EQ(form_of(turned, DType::F32, {f32, f32}, Machine::Cpu, false).tile, 0);
  EXPECT_EQ(form_of(turned, DType::I8, {i8, i8}, Machine::Cuda, false).tile, 128);
  EXPECT_EQ(form_of(turned, DType::I8, {f64, i8}, Machine::Cuda, false).vector, 4) << "32 bytes of the widest input";
  EXPECT_EQ(form_of(turned, DType::F32, {{DType::F32, false}, f32}, Machine::Cuda, false).tile, 0) << "not read";

  auto tile = [&](Dims shape, Dims out, Dims in) { return form_of(loop_of(shape, out, {in}), DType::F32, {f32}).tile; };
  EXPECT_EQ(tile({32, 16}, {16, 1}, {1, 32}), 32) << "short axes have short tiles";
  EXPECT_EQ(tile({15, 64}, {64, 1}, {1, 15}), 0) << "too few rows";
  EXPECT_EQ(tile({64, 15}, {15, 1}, {1, 64}), 0) << "too few positions";
  EXPECT_EQ(tile({64, 40}, {1, 64}, {1, 64}), 0) << "both along the same axis";
  EXPECT_EQ(tile({64, 40}, {80, 2}, {1, 64}), 0) << "a strided output";
  EXPECT_EQ(tile({64, 40}, {40, 1}, {80, 2}), 0) << "every second element of a row";
  EXPECT_EQ(tile({64, 40}, {40, 1}, {-1, 64}), 64) << "backwards is along the rows as well";
  EXPECT_EQ(tile({64, 40}, {40, 1}, {9, 640}), 0) << "neighbours of a row axis that share no 32 bytes";

  // Rows that start at different places in a vector have shorter ones or none, and other inputs follow.
  auto vector = [&](int64_t length, Operand o) {
    return form_of(loop_of({64, length}, {length, 1}, {{1, 64}}), o.dtype, {o}).vector;
  };
  EXPECT_EQ(vector(48, i8), 16);
  EXPECT_EQ(vector(40, i8), 8);
  EXPECT_EQ(vector(36, i8), 4);
  EXPECT_EQ(vector(38, i8), 1);
  EXPECT_EQ(vector(38, f32), 1);
  EXPECT_EQ(vector(38, f64), 2);
  f = form_of(loop_of({64, 41}, {41, 1}, {{1, 64}, {41, 1}}, false), DType::F32, {f32, f32}, Machine::Cuda, false);
  EXPECT_EQ(f.tile, 64);
  EXPECT_EQ(f.vector, 1);
  EXPECT_EQ(f.args, (std::vector<Access>{Access::Tiled, Access::Vector}));

  // Shared memory: shorter tiles, or none.
  auto many = [&](size_t count, DType d) {
    return form_of(loop_of({64, 64}, {64, 1}, std::vector<Dims>(count, Dims({1, 64}))), DType::F64,
                   std::vector<Operand>(count, {d, true}))
        .tile;
  };
  EXPECT_EQ(many(5, DType::F64), 64);
  EXPECT_EQ(many(8, DType::F64), 32);
  EXPECT_EQ(many(12, DType::F64), 0);
}

TEST(Layout, TheTiledAxisIsBroughtToTheFront) {
  const std::vector<Operand> f32{{DType::F32, true}};
  Loop l = loop_of({48, 20, 64}, {20 * 64, 64, 1}, {{1, 48, 20 * 48}}); // [c, b, a] of [a, b, c]
  EXPECT_EQ(form_of(l, DType::F32, f32).tile, 0);
  bring_tiled_axis(l, f32);
  EXPECT_EQ(l.lengths, Dims({48, 20}));
  EXPECT_EQ(l.pitches, Dims({20 * 64, 64}));
  EXPECT_EQ(l.out.rows, Dims({20 * 64, 64}));
  EXPECT_EQ(l.inputs[0].rows, Dims({1, 48}));
  EXPECT_EQ(form_of(l, DType::F32, f32).tile, 64);

  Loop batches = loop_of({3, 40, 64}, {40 * 64, 64, 1}, {{40 * 64, 1, 40}});
  bring_tiled_axis(batches, f32);
  EXPECT_EQ(batches.lengths, Dims({40, 3}));
  EXPECT_EQ(form_of(batches, DType::F32, f32).tile, 64);

  Loop plain = loop_of({20, 30, 40}, {2400, 80, 1}, {{4000, 50, 1}});
  bring_tiled_axis(plain, f32);
  EXPECT_EQ(plain.lengths, Dims({30, 20})) << "nothing to bring";
}

TEST(Layout, Forms) {
  const Loop one = loop_of({8}, {1}, {{1}});
  EXPECT_EQ(form_of(one, DType::F32, {{DType::F32, true}}).rows, 0);
  EXPECT_TRUE(form_of(one, DType::F32, {{DType::F32, true}}).narrow);
  EXPECT_FALSE(form_of(one, DType::F32, {{DType::F32, true}}, Machine::Cpu).narrow);
  const Loop rows = loop_of({8, 8}, {8, 1}, {{9, 1}});
  EXPECT_EQ(form_of(rows, DType::F32, {{DType::F32, true}}).rows, 1);
  EXPECT_TRUE(form_of(rows, DType::F32, {{DType::F32, true}}).narrow);
  EXPECT_FALSE(form_of(rows, DType::F32, {{DType::F32, true}}, Machine::Cpu).narrow);
  const int64_t many = int64_t(1) << 31;
  EXPECT_FALSE(form_of(loop_of({many, 8}, {8, 1}, {{9, 1}}), DType::F32, {{DType::F32, true}}).narrow);
  EXPECT_FALSE(form_of(loop_of({8, 8}, {8, 1}, {{many, 1}}), DType::F32, {{DType::F32, true}}).narrow);
  // One row, of less than 2^30 positions, over less than 2^30 elements of `out` and of what is read.
  const int64_t limit = int64_t(1) << 30;
  auto one_row = [](int64_t extent, int64_t out, int64_t in, bool read = true) {
    const Form f = form_of(loop_of({extent}, {out}, {{in}}), DType::F32, {{DType::F32, read}});
    EXPECT_EQ(f.rows, 0);
    return f.narrow;
  };
  constexpr int64_t ahead = 16; // where the first block begins, at most
  EXPECT_TRUE(one_row(limit - ahead - 1, 1, 1));
  EXPECT_FALSE(one_row(limit - ahead, 1, 1));
  EXPECT_FALSE(one_row(limit, 1, 0));
  const int64_t step = limit / (1024 + ahead);
  EXPECT_TRUE(one_row(1024, step, -step));
  EXPECT_FALSE(one_row(1024, step + 1, 1));
  EXPECT_FALSE(one_row(1024, 1, step + 1));
  EXPECT_FALSE(one_row(1024, 1, -step - 1));
  EXPECT_TRUE(one_row(1024, 1, step + 1, false)) << "nobody reads it";
  EXPECT_FALSE(one_row(8, 1, (int64_t(1) << 27) - 1)) << "15 positions ahead of the row there is nothing near";
  const Loop transposed = loop_of({2, 3}, {1, 2}, {{1, 2}});
  EXPECT_FALSE(form_of(transposed, DType::F32, {{DType::F32, true}}).unit_pitch);
  EXPECT_TRUE(form_of(transposed, DType::F32, {{DType::F32, true}}, Machine::Cuda, false).unit_pitch);
}

TEST(Layout, ShortRowsAreFlat) {
  const Operand f32{DType::F32, true};
  auto form = [&](Dims domain, Dims out, Dims in, Operand operand) {
    return form_of(loop_of(domain, out, {in}), DType::F32, {operand});
  };
  EXPECT_TRUE(form({8, 8}, {8, 1}, {9, 1}, f32).flat);
  EXPECT_FALSE(form({8, 8}, {9, 1}, {8, 1}, f32).flat) << "`out` has gaps";
  EXPECT_FALSE(form({8, 8}, {8, -1}, {9, 1}, f32).flat) << "`out` goes backwards";
  EXPECT_FALSE(form({64}, {1}, {2}, f32).flat) << "one row";
  EXPECT_FALSE(form_of(loop_of({8, 8}, {8, 1}, {{9, 1}}), DType::F32, {f32}, Machine::Cpu).flat);
  const int64_t longest = longest_flat_row;
  EXPECT_TRUE(form({8, longest}, {longest, 1}, {0, 1}, f32).flat);
  EXPECT_FALSE(form({8, longest + 1}, {longest + 1, 1}, {0, 1}, f32).flat);
  EXPECT_TRUE(form({8, 8}, {1, 8}, {1, 9}, f32).flat) << "in the order of the memory of `out`";
  // What of an operand decides code.
  auto access = [&](Dims in, Operand operand) { return form({8, 8}, {8, 1}, in, operand).args[0]; };
  EXPECT_EQ(access({9, 1}, f32), Access::Strided);
  EXPECT_EQ(access({1, 0}, f32), Access::Broadcast);
  EXPECT_EQ(access({0, 1}, f32), Access::Column);
  EXPECT_EQ(access({0, -2}, f32), Access::Column);
  EXPECT_EQ(access({9, 1}, {DType::F32, false}), Access::Absent);
  // Only what is read in whole vectors makes them narrower.
  const Loop two = loop_of({8, 8}, {8, 1}, {{8, 1}, {0, 1}});
  EXPECT_EQ(form_of(two, DType::I8, {{DType::I8, true}, {DType::F64, true}}).vector, 16);
  EXPECT_EQ(form_of(two, DType::I8, {{DType::F64, true}, {DType::I8, true}}).vector, 4);
  EXPECT_EQ(form_of(two, DType::F32, {f32, f32}).args[0], Access::Vector);
  const Loop zero_dim = loop_of({8, 8}, {8, 1}, {{9, 1}, {0, 0}});
  EXPECT_EQ(form_of(zero_dim, DType::F32, {f32, {DType::F32, true, true}}).args[1], Access::Column);
}

TEST(Layout, QuotientsAreProducts) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 20000; ++round) {
    const int bits = round % 2 ? 32 : 64;
    const uint64_t most = uint64_t(1) << (bits - 1); // of divisors; numbers stay below
    uint64_t d = 2 + (random() >> random() % 64) % (most - 1);
    if (round < 64) d = uint64_t(1) << (1 + round % (bits - 1));
    const Inverse i = inverse(int64_t(d), bits);
    if (d > uint64_t(INT64_MAX)) continue;
    for (uint64_t n : {uint64_t(0), d - 1, d, d + 1, most - 1, most - d, most / d * d - 1, random() % most}) {
      if (n >= most) continue;
      const auto product = (unsigned __int128)n * i.multiplier;
      ASSERT_EQ(uint64_t(product >> bits) >> i.shift, n / d) << n << " / " << d << " in " << bits;
    }
    ASSERT_TRUE(bits == 64 || i.multiplier < uint64_t(1) << 32);
  }
  // The ends of what divides 32 bits, and a divisor beyond them, by which every quotient is 0.
  constexpr uint64_t half = uint64_t(1) << 31;
  for (const int bits : {32, 64})
    for (const uint64_t d : {uint64_t(1), uint64_t(2), half - 1, half, 2 * half - 1}) {
      const Inverse i = inverse(int64_t(d), bits);
      for (const uint64_t n : {uint64_t(0), uint64_t(1), uint64_t(2), half / 2, half - 2, half - 1}) {
        const auto product = (unsigned __int128)n * i.multiplier;
        EXPECT_EQ(uint64_t(product >> (bits + i.shift)), n / d) << n << " / " << d << " in " << bits;
      }
      EXPECT_TRUE(bits == 64 || i.multiplier < uint64_t(1) << 32) << d;
    }
}

} // namespace
} // namespace elsewise
