// SPDX-License-Identifier: Apache-2.0
// Builder, exact arithmetic, verifier and launch slots on kernels made by hand. What lowering makes of specs stands in
// lower_test.cpp.
#include "compiler/ir/abi.h"
#include "compiler/ir/arithmetic.h"
#include "compiler/ir/rows.h"
#include "compiler/names/names.h"
#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <map>
#include <random>
#include <set>

namespace elsewise {
namespace {

Kernel empty(DType in = DType::F32, DType out = DType::F32) {
  Kernel k;
  k.arguments = {{"x", {ArgKind::Tensor, in}}, {"m", {ArgKind::Int}}, {"g", {ArgKind::Float}}};
  k.outputs = {out};
  return k;
}

TEST(Builder, ANodeAtALaterStageIsAnother) { // as a text may place it; the host cannot use it
  Kernel k;
  Builder b(k);
  const NodeId n = b.len(flat_axis), two = b.integer(DType::Index, 2),
               placed = b.call(least_row(), DType::Index, {n, two});
  k.insts[placed].stage = Stage::Element;
  const NodeId own = Builder(k).call(least_row(), DType::Index, {n, two});
  EXPECT_NE(own, placed);
  EXPECT_EQ(k[own].stage, Stage::Host);
}

TEST(Builder, EqualNodesAreOne) {
  Kernel k = empty();
  Builder b(k);
  const NodeId i = b.pos(flat_axis), n = b.len(flat_axis), m = b.param(1, DType::Index);
  EXPECT_EQ(b.binary(BinaryOp::Add, i, n), b.binary(BinaryOp::Add, n, i));
  EXPECT_NE(b.binary(BinaryOp::Sub, i, n), b.binary(BinaryOp::Sub, n, i));
  EXPECT_EQ(b.call(0, DType::Index, {i, n}), b.call(0, DType::Index, {i, n}));
  EXPECT_NE(b.call(0, DType::Index, {i, n}), b.call(0, DType::Index, {i, m}));
  EXPECT_EQ(k.operands.size(), 4u) << "the list of a call that was there already is not kept";
  EXPECT_NE(b.integer(DType::I8, 1), b.integer(DType::I16, 1));
  EXPECT_NE(b.real(DType::F32, 0.0), b.real(DType::F32, -0.0));
  EXPECT_EQ(b.real(DType::F32, NAN), b.real(DType::F32, -NAN));
  EXPECT_NE(b.compare(CompareOp::Lt, i, n, Exactness::Exact), b.compare(CompareOp::Lt, i, n, Exactness::Data));
  Builder again(k); // knows what stands there already
  EXPECT_EQ(again.binary(BinaryOp::Add, i, n), b.binary(BinaryOp::Add, i, n));
}

TEST(Builder, Stages) {
  Kernel k = empty();
  Builder b(k);
  auto stage = [&](NodeId n) { return k[n].stage; };
  const NodeId n = b.len(flat_axis), m = b.param(1, DType::Index), g = b.param(2, DType::F64), i = b.pos(flat_axis);
  EXPECT_EQ(stage(b.binary(BinaryOp::Mul, n, m)), Stage::Host);
  EXPECT_EQ(stage(b.binary(BinaryOp::Mul, i, m)), Stage::Element);
  const NodeId f = b.cast(g, DType::F32), h = b.cast(m, DType::F32);
  EXPECT_EQ(stage(f), Stage::Host);
  EXPECT_EQ(stage(b.cast(b.cast(g, DType::F16), DType::F32)), Stage::Host);
  EXPECT_EQ(stage(b.binary(BinaryOp::Mul, f, h)), Stage::Element) << "data arithmetic is the device's";
  EXPECT_EQ(stage(b.compare(CompareOp::Lt, f, h)), Stage::Element);
  EXPECT_EQ(stage(b.compare(CompareOp::Lt, n, m)), Stage::Host);
}

TEST(Builder, CastsThatWidenAreLeftOut) {
  Kernel k = empty(DType::F16);
  Builder b(k);
  const NodeId x = b.load(0), f = b.cast(x, DType::F32);
  EXPECT_EQ(b.cast(f, DType::F16), x);
  EXPECT_EQ(k[b.cast(x, DType::I32)].a, f) << "a half meets integers through F32";
  const NodeId i = b.param(1, DType::Index), small = b.cast(i, DType::I8);
  EXPECT_EQ(k[b.cast(b.cast(small, DType::I64), DType::F32)].a, small);
  EXPECT_NE(k[b.cast(b.cast(i, DType::F32), DType::F64)].a, i) << "F32 does not hold every index";
  const NodeId wide = b.cast(b.cast(i, DType::I32), DType::F64);
  EXPECT_EQ(k[b.cast(wide, DType::I16)].a, wide) << "from a float it saturates, from an integer it would wrap";
  EXPECT_EQ(k[k[b.cast(i, DType::BF16)].a].type, DType::F32) << "an integer reaches a half through F32";
}

TEST(Builder, LogicOfConstants) {
  Kernel k = empty();
  Builder b(k);
  const NodeId yes = b.integer(DType::Bool, 1), no = b.integer(DType::Bool, 0);
  const NodeId c = b.compare(CompareOp::Lt, b.pos(flat_axis), b.len(flat_axis));
  EXPECT_EQ(b.logic(LogicOp::And, yes, c), c);
  EXPECT_EQ(b.logic(LogicOp::And, c, no), no);
  EXPECT_EQ(b.logic(LogicOp::Or, c, yes), yes);
  EXPECT_EQ(b.logic(LogicOp::Or, no, c), c);
  EXPECT_EQ(b.logic(LogicOp::Not, b.logic(LogicOp::Not, c)), c);
  EXPECT_EQ(b.where(no, yes, c), c);
}

// --- arithmetic ---

Constant work(BinaryOp op, DType d, Constant a, Constant b, Trouble *trouble = nullptr) {
  Constant out, pair[] = {a, b};
  const Trouble t = apply({.op = Op::Binary, .sub = uint8_t(op), .type = d}, d, pair, out);
  if (trouble) *trouble = t;
  return out;
}
__int128 whole(BinaryOp op, DType d, __int128 a, __int128 b) { return work(op, d, {a, 0}, {b, 0}).integer; }

TEST(Arithmetic, IntegersAreTotal) {
  EXPECT_EQ(whole(BinaryOp::Add, DType::I8, 127, 1), -128);
  EXPECT_EQ(whole(BinaryOp::Sub, DType::U8, 0, 1), 255);
  EXPECT_EQ(whole(BinaryOp::FloorDiv, DType::I32, -7, 2), -4);
  EXPECT_EQ(whole(BinaryOp::Mod, DType::I32, -7, 2), 1);
  EXPECT_EQ(whole(BinaryOp::Mod, DType::I32, 7, -2), -1);
  EXPECT_EQ(whole(BinaryOp::FloorDiv, DType::I8, -128, -1), -128);
  EXPECT_EQ(whole(BinaryOp::FloorDiv, DType::I16, 5, 0), 0);
  EXPECT_EQ(whole(BinaryOp::Mod, DType::I16, 5, 0), 0);
  EXPECT_EQ(whole(BinaryOp::Shl, DType::I8, 1, 7), -128);
  EXPECT_EQ(whole(BinaryOp::Shl, DType::I8, 1, 8), 0);
  EXPECT_EQ(whole(BinaryOp::Shr, DType::I8, -5, 100), -1);
  EXPECT_EQ(whole(BinaryOp::Shr, DType::I8, -5, -1), -1);
  EXPECT_EQ(whole(BinaryOp::Shl, DType::I8, 5, -1), 0);
  EXPECT_EQ(whole(BinaryOp::Pow, DType::U8, 3, 5), 243);
  EXPECT_EQ(whole(BinaryOp::Pow, DType::U8, 3, 6), 729 % 256);
  EXPECT_EQ(whole(BinaryOp::Pow, DType::I32, -1, -3), -1);
  EXPECT_EQ(whole(BinaryOp::Pow, DType::I32, 2, -1), 0);
  EXPECT_EQ(whole(BinaryOp::Pow, DType::I32, 0, -1), 0);
  EXPECT_EQ(whole(BinaryOp::Pow, DType::I64, 7, __int128(1) << 62), 1) << "7**(2**62) wraps to 1 in 64 bits";
}

TEST(Arithmetic, IndexesAreExactOrPoison) {
  const __int128 big = __int128(1) << 126;
  Trouble t;
  EXPECT_TRUE(whole(BinaryOp::Add, DType::Index, big, big - 1) == big + (big - 1));
  work(BinaryOp::Add, DType::Index, {big, 0}, {big, 0}, &t);
  EXPECT_EQ(t, Trouble::Overflow);
  work(BinaryOp::Mul, DType::Index, {big, 0}, {2, 0}, &t);
  EXPECT_EQ(t, Trouble::Overflow);
  work(BinaryOp::Pow, DType::Index, {10, 0}, {39, 0}, &t);
  EXPECT_EQ(t, Trouble::Overflow);
  EXPECT_TRUE(whole(BinaryOp::Pow, DType::Index, 2, 126) == big);
  EXPECT_EQ(whole(BinaryOp::Pow, DType::Index, -1, big - 1), -1);
  EXPECT_EQ(whole(BinaryOp::Pow, DType::Index, 0, 0), 1);
  work(BinaryOp::FloorDiv, DType::Index, {3, 0}, {0, 0}, &t);
  EXPECT_EQ(t, Trouble::ZeroDivision);
  work(BinaryOp::Shl, DType::Index, {1, 0}, {127, 0}, &t);
  EXPECT_EQ(t, Trouble::Overflow);
  EXPECT_EQ(whole(BinaryOp::Shl, DType::Index, 0, 500), 0);
}

TEST(Arithmetic, Casts) {
  auto from = [](double v, DType to) { return convert({0, v}, DType::F64, to).integer; };
  EXPECT_EQ(from(-1.9, DType::I32), -1);
  EXPECT_EQ(from(300, DType::U8), 255);
  EXPECT_EQ(from(-1, DType::U8), 0);
  EXPECT_EQ(from(NAN, DType::I64), 0);
  EXPECT_EQ(from(1e300, DType::I64), INT64_MAX);
  EXPECT_EQ(from(0x1p63, DType::I64), INT64_MAX);
  EXPECT_EQ(from(-0x1p63, DType::I64), INT64_MIN);
  EXPECT_EQ(from(0.5, DType::Bool), 1);
  EXPECT_EQ(from(NAN, DType::Bool), 1);
  EXPECT_TRUE(from(0x1p100, DType::Index) == __int128(1) << 100);
  EXPECT_TRUE(from(INFINITY, DType::Index) > __int128(1) << 126);
  EXPECT_TRUE(from(-INFINITY, DType::Index) < -(__int128(1) << 126));
  EXPECT_EQ(convert({300, 0}, DType::I64, DType::I8).integer, 44);
  EXPECT_EQ(convert({-1, 0}, DType::I8, DType::U8).integer, 255);
  EXPECT_EQ(convert({(__int128(1) << 60) + 1, 0}, DType::Index, DType::F32).real, 0x1p60);
}

// Against the compiler's own conversions for F32, and against the list of all halves for F16 and BF16.
TEST(Arithmetic, RoundsToNearestEven) {
  std::vector<double> halves[2];
  for (uint32_t bits = 0; bits < 0x7c00; ++bits)
    halves[0].push_back((bits >> 10 ? std::ldexp(1024 + (bits & 1023), int(bits >> 10) - 25) : std::ldexp(bits, -24)));
  for (uint32_t bits = 0; bits < 0x7f80; ++bits)
    halves[1].push_back((bits >> 7 ? std::ldexp(128 + (bits & 127), int(bits >> 7) - 134) : std::ldexp(bits, -133)));
  std::mt19937_64 random(7);
  for (int round = 0; round < 20000; ++round) {
    const int which = round & 1;
    const DType d = which ? DType::BF16 : DType::F16;
    const std::vector<double> &list = halves[which];
    double v;
    if (round % 3) { // between two neighbours: at the middle, or beside it
      const size_t at = random() % (list.size() - 1);
      v = (list[at] + list[at + 1]) / 2;
      if (round % 3 == 2) v = std::nextafter(v, round % 2 ? 0 : INFINITY);
    } else {
      v = std::ldexp(double(random() >> 11), int(random() % 60) - 80);
    }
    const auto up = std::lower_bound(list.begin(), list.end(), v);
    double want = INFINITY;
    if (up == list.begin()) want = *up;
    else {
      const double above = up == list.end() ? list.back() + (list.back() - list[list.size() - 2]) : *up,
                   below = *(up - 1);
      const bool even = (up - 1 - list.begin()) % 2 == 0; // of the one below
      want = v - below < above - v || (v - below == above - v && even) ? below : above;
      if (up == list.end() && want == above) want = INFINITY;
    }
    ASSERT_EQ(round_to(d, v), want) << spelling(d) << " " << v;
    ASSERT_EQ(round_to(d, -v), -want);
  }
  EXPECT_EQ(round_to(DType::F32, 0.1), double(0.1f));
  EXPECT_TRUE(std::signbit(round_to(DType::F16, -0.0)));
  EXPECT_EQ(round_to(DType::F16, 65520), INFINITY);
  EXPECT_EQ(round_to(DType::F16, 65519), 65504);
}

// --- verifier ---

TEST(Verify, AnOriginNeedsAWindow) {
  Kernel k = empty();
  Builder b(k);
  k.pieces = {{{}, no_node, {b.cast(b.origin(flat_axis), DType::F32)}, 0, {}, "", 1, 1}};
  EXPECT_NE(verify(k).find("is where a window begins, and there is none"), std::string::npos);
  k.form.window = true;
  EXPECT_EQ(verify(k), "");
}

struct Seed {
  Kernel k = empty();
  Builder b{k};
  NodeId i = b.pos(flat_axis), n = b.len(flat_axis), x = b.load(0);
  NodeId guard = b.compare(CompareOp::Lt, i, b.binary(BinaryOp::FloorDiv, n, b.integer(DType::Index, 4)));
  NodeId value = b.binary(BinaryOp::Mul, x, b.real(DType::F32, 0.5));
  Seed() { k.pieces = {{{}, guard, {value}, 0, {}, "", 1, 1}, {{}, no_node, {x}, 0, {}, "", 1, 14}}; }
};

TEST(Verify, TakesAGoodKernel) { EXPECT_EQ(verify(Seed().k), ""); }

TEST(Verify, FindsWhatIsWrong) {
  auto broken = [](auto damage) {
    Seed s;
    damage(s);
    return verify(s.k);
  };
  EXPECT_NE(broken([](Seed &s) { s.k.insts[s.value].a = s.value; }).find("does not stand before it"),
            std::string::npos);
  EXPECT_NE(broken([](Seed &s) { s.k.insts[s.value].type = DType::F64; }).find("type of its operands"),
            std::string::npos);
  EXPECT_NE(broken([](Seed &s) { s.k.insts[s.x].type = DType::F16; }).find("dtype of its tensor"), std::string::npos);
  EXPECT_NE(broken([](Seed &s) { s.k.insts[s.value].stage = Stage::Host; }).find("stage before its operands"),
            std::string::npos);
  EXPECT_NE(broken([](Seed &s) { s.k.pieces[0].guard = s.value; }).find("guard that is not a bool"), std::string::npos);
  EXPECT_NE(broken([](Seed &s) { s.k.pieces[0].values = {s.i}; }).find("not of its output's type"), std::string::npos);
  EXPECT_NE(broken([](Seed &s) {
              s.k.pieces[0].boxes = {{{uint8_t(flat_axis), s.i, no_node}}};
            }).find("not an index of the host"),
            std::string::npos);
  EXPECT_NE(
      broken([](Seed &s) { s.k.pieces[0].boxes.assign(5, {{uint8_t(flat_axis), s.n, no_node}}); }).find("more than 4"),
      std::string::npos);
  EXPECT_NE(broken([](Seed &s) { s.k.pieces.clear(); }).find("no pieces"), std::string::npos);
  EXPECT_NE(broken([](Seed &s) { s.k.checks = {{Check::NonZero, s.i}}; }).find("not the host's"), std::string::npos);
  EXPECT_NE(broken([](Seed &s) { s.b.cast(s.x, DType::F16), s.k.insts.back().type = DType::F32; }).find("to itself"),
            std::string::npos);
  EXPECT_NE(broken([](Seed &s) {
              s.k.form.args = {Access::Vector, Access::Absent, Access::Absent}, s.k.form.same_view.resize(3);
              s.k.guards = {{}, {}}, s.k.bodies = {{{s.value}}, {{s.x}}};
            }).find("before its operand"),
            std::string::npos);
}

// --- slots ---

std::string text(const Kernel &k, Backend backend) {
  static constexpr const char *names[] = {
      "Out",     "In",          "Table",    "Uniform",      "Rows",      "Extent",   "End",
      "Begin",   "RowLength",   "RowPitch", "InnerPitch",   "OutStride", "InStride", "OutInner",
      "InInner", "TableStride", "Inverse",  "InverseShift", "Shift",     "Blocks",   "Live"};
  std::string s;
  for (const SlotInfo &i : slots(k, backend))
    s += (s.empty() ? "" : " ") + std::string(names[int(i.kind)]) + std::to_string(i.index) +
         (i.box ? "." + std::to_string(i.box) : "");
  return s;
}

struct Bounded : Seed {
  Bounded() {
    const NodeId quarter = k[guard].b, rest = b.binary(BinaryOp::Sub, n, quarter);
    const uint8_t flat = flat_axis;
    k.pieces = {{{{{flat, no_node, quarter}}}, no_node, {value}, 0, {}, "", 1, 1},
                {{{{flat, rest, no_node}}, {{flat, quarter, rest}}}, no_node, {x}, 0, {}, "", 1, 1},
                {{}, no_node, {x}, 0, {}, "", 1, 1}};
    k.form.args = {Access::Vector, Access::Absent, Access::Absent};
    k.form.same_view.resize(3);
    k.guards.resize(3), k.bodies = {{{x}, {value}}, {{x}}, {{x}}};
    k.host = {n, k[quarter].b, quarter, rest};
  }
};

TEST(Slots, OneRow) {
  Bounded s;
  EXPECT_EQ(verify(s.k), "");
  EXPECT_EQ(text(s.k, Backend::Cpu), "Out0 In0 Extent0 End0 Begin1");
  EXPECT_EQ(text(s.k, Backend::Cuda), "Out0 In0 Extent0 End0 Begin1 Shift0");
  const auto list = slots(s.k, Backend::Cpu);
  const auto &second = s.k.pieces[1].boxes[1][0]; // [quarter, rest): both ends are passed already
  EXPECT_EQ(bound_slot(s.k, list, second.lo, flat_axis), 3u);
  EXPECT_EQ(bound_slot(s.k, list, second.hi, flat_axis), 4u);
  EXPECT_EQ(bound_slot(s.k, list, s.n, flat_axis), ~0u);
}

TEST(Slots, Rows) {
  Bounded s;
  s.k.form.rows = 2, s.k.form.unit_pitch = false, s.k.form.args[0] = Access::Strided, s.k.form.out = Access::Strided;
  EXPECT_EQ(text(s.k, Backend::Cuda), "Out0 In0 Rows0 Extent0 End0 Begin1 RowLength0 RowPitch0 RowPitch1 InnerPitch0 "
                                      "OutStride0 OutStride1 InStride0 InStride0.1 OutInner0 InInner0 Shift0 Blocks0");
  for (Piece &p : s.k.pieces) p.boxes.clear();
  EXPECT_FALSE(uses_flat(s.k));
  EXPECT_EQ(text(s.k, Backend::Cpu),
            "Out0 In0 Rows0 Extent0 RowLength0 OutStride0 OutStride1 InStride0 InStride0.1 OutInner0 InInner0");
}

// The flat form: what lies as `out` does needs no strides, and rows only what asks for them.
TEST(Slots, Flat) {
  Bounded s;
  s.k.form.rows = 2, s.k.form.flat = s.k.form.narrow = true;
  EXPECT_EQ(verify(s.k), "");
  EXPECT_EQ(text(s.k, Backend::Cuda),
            "Out0 In0 Rows0 Extent0 End0 Begin1 RowLength0 RowPitch0 RowPitch1 Inverse0.32 InverseShift0.32 "
            "Inverse1.32 InverseShift1.32 Shift0");
  EXPECT_EQ(text(s.k, Backend::Cpu), "Out0 In0 Rows0 Extent0 End0 Begin1 RowLength0 RowPitch0 RowPitch1 OutStride0 "
                                     "OutStride1 InStride0 InStride0.1");
  for (Piece &p : s.k.pieces) p.boxes.clear();
  s.k.form.narrow = false;
  EXPECT_FALSE(uses_rows(s.k));
  EXPECT_EQ(text(s.k, Backend::Cuda), "Out0 In0 Rows0 Extent0 Inverse0.64 InverseShift0.64 Shift0");
  s.k.form.args[0] = Access::Column;
  EXPECT_EQ(verify(s.k), "");
  EXPECT_EQ(text(s.k, Backend::Cuda), "Out0 In0 Rows0 Extent0 InInner0 Inverse0.64 InverseShift0.64 Shift0");
  s.k.form.args[0] = Access::Broadcast;
  EXPECT_TRUE(uses_rows(s.k));

  s.k.form.rows = 0;
  EXPECT_EQ(verify(s.k), "the form is flat without rows of `out` in vectors");
  s.k.form.rows = 2, s.k.form.vector = 1;
  EXPECT_EQ(verify(s.k), "the form is flat without rows of `out` in vectors");
  s.k.form.flat = false;
  EXPECT_EQ(verify(s.k), "");
  s.k.form.args[0] = Access::Column;
  EXPECT_EQ(verify(s.k), "the form has a column of a row, which only the flat form knows");
}

TEST(Slots, Tiles) {
  Bounded s;
  s.k.form.rows = 1, s.k.form.args[0] = Access::Tiled, s.k.form.tile = 64;
  EXPECT_EQ(verify(s.k), "");
  EXPECT_EQ(text(s.k, Backend::Cuda),
            "Out0 In0 Rows0 Extent0 End0 Begin1 RowPitch0 OutStride0 InStride0 InInner0 Shift0 Blocks0");
  EXPECT_EQ(tile_width(s.k.form), 32);
  EXPECT_EQ(tile_bytes(s.k.form, 4), 32 * 65 * 4);
  s.k.form.vector = 1;
  EXPECT_EQ(tile_bytes(s.k.form, 4), 32 * 65 * 4);
  auto why = [&](auto &&change) {
    Bounded broken = s;
    change(broken.k.form);
    return verify(broken.k);
  };
  EXPECT_NE(why([](Form &f) { f.tile = 0; }).find("has none"), std::string::npos);
  EXPECT_NE(why([](Form &f) { f.tile = 48; }).find("other than 32"), std::string::npos);
  EXPECT_NE(why([](Form &f) { f.rows = 0; }).find("no rows"), std::string::npos);
  EXPECT_NE(why([](Form &f) { f.vector = 4, f.flat = true; }).find("flat ones"), std::string::npos);
  EXPECT_NE(why([](Form &f) { f.out = Access::Strided; }).find("strided output"), std::string::npos);
  EXPECT_NE(why([](Form &f) { f.vector = 16, f.tile = 128; }).find("shared memory"), std::string::npos);
}

// Threads of a warp read from as many banks as they are: 8 places V apart in 4 rows, or 32 places of one row.
TEST(Slots, TilesMeetNoBankTwice) {
  for (const int size : {1, 2, 4, 8})
    for (int v = 1; v * size <= 16; v *= 2)
      for (const int tile : {32, 64, 128}) {
        Form f;
        f.vector = uint8_t(v), f.tile = uint8_t(tile);
        const int threads = tile_threads(f), pitch = tile_pitch(f, size);
        // Eight bytes a thread are read by half a warp at a time. Threads of one word share it.
        for (int begin = 0; begin < 32; begin += size == 8 ? 16 : 32) {
          std::map<int, std::set<int>> words; // by bank
          for (int t = begin; t < begin + (size == 8 ? 16 : 32); ++t)
            for (int b = 0; b < size; b += 4) {
              const int word = ((t % threads * v) * pitch + t / threads) * size / 4 + b / 4;
              words[word % 32].insert(word);
            }
          for (const auto &[bank, in] : words) EXPECT_EQ(in.size(), 1u) << size << " bytes, " << v << " a thread";
        }
      }
}

TEST(Slots, InPlace) {
  Bounded s;
  s.k.form.same_view[0] = true;
  EXPECT_FALSE(is_identity(s.k, 0));
  EXPECT_TRUE(is_identity(s.k, 2));
  EXPECT_TRUE(has_live(s.k));
  EXPECT_EQ(text(s.k, Backend::Cuda), "Out0 Extent0 End0 Begin1 Shift0 Live0");
  EXPECT_EQ(text(s.k, Backend::Cpu), "Out0 Extent0 End0 Begin1");
  s.k.pieces[0].guard = s.guard;
  EXPECT_FALSE(has_live(s.k)) << "a residual guard decides by element";
}

} // namespace
} // namespace elsewise
