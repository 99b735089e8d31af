// SPDX-License-Identifier: Apache-2.0
// Kernels of many pieces, whose table of segments the host cuts: the emitted text run over random bounds. The right
// values come from the bounds alone, position by position.
#include "compiler/emit/emit.h"
#include "tests/shim/shim.h"
#include "tests/unit/interpret.h"
#include <algorithm>
#include <functional>
#include <gtest/gtest.h>
#include <random>

namespace elsewise::test {
namespace {

constexpr int64_t guard_value = -77; // around and between what a kernel may write

// A rule `lo0 <= i < hi0: …; …; else …` of one dtype over rows of one length, and what each piece stores.
struct Rule {
  const char *name;
  bool rows, in_place;
  Access in, out;
  std::vector<std::string> values; // one a piece, the last of `else`
  float (*value)(size_t piece, float x, int64_t t, int64_t r);

  std::string spec() const {
    std::string s = rows ? "[r, t]; " : "";
    const std::string at = rows ? "t" : "i";
    for (size_t p = 0; p + 1 < values.size(); ++p)
      s += "lo" + std::to_string(p) + " <= " + at + " < hi" + std::to_string(p) + ": " + values[p] + "; ";
    return s + "else " + values.back();
  }
  Kernel kernel(bool narrow) const {
    std::vector<std::string> arguments{"x: f32"};
    for (size_t p = 0; p + 1 < values.size(); ++p)
      for (const char *end : {"lo", "hi"}) arguments.push_back(end + std::to_string(p) + ": int");
    Form form;
    const Kernel low = lowered(spec(), arguments);
    form.args.assign(low.arguments.size(), Access::Absent), form.same_view.assign(low.arguments.size(), false);
    for (size_t a = 0; a < low.arguments.size(); ++a)
      if (low.arguments[a].name == "x") form.args[a] = in_place ? out : in, form.same_view[a] = in_place;
    form.out = out;
    form.vector = out == Access::Strided ? 1 : 4;
    form.narrow = narrow;
    if (rows) form.rows = 1, form.inner_axis = 1, form.row_axes = {0};
    return scheduled(spec(), arguments, form);
  }
};

float times(size_t p, float x, int64_t, int64_t) { return x * float(p + 1); }
float or_same(size_t p, float x, int64_t, int64_t) { return p % 3 == 1 ? x : x * float(p + 1); }
float mixed(size_t p, float x, int64_t t, int64_t) {
  switch (p % 5) {
  case 0:
    return x;
  case 1:
    return float(p);
  case 2:
    return x + float(p);
  case 3:
    return x - float(t);
  default:
    return x * float(p);
  }
}
float with_row(size_t p, float x, int64_t, int64_t r) { return (x + float(r)) * float(p + 1); }

std::vector<std::string> values(size_t pieces, const std::function<std::string(size_t)> &of) {
  std::vector<std::string> list;
  for (size_t p = 0; p < pieces; ++p) list.push_back(of(p));
  return list;
}

std::vector<Rule> rules() {
  auto times_text = [](size_t p) { return "x*" + std::to_string(p + 1); };
  auto same_text = [&](size_t p) { return p % 3 == 1 ? std::string("x") : times_text(p); };
  auto mixed_text = [](bool rows) {
    return [rows](size_t p) {
      const std::string n = std::to_string(p);
      const std::string all[] = {"x", n, "x + " + n, rows ? "x - t" : "x - i", "x*" + n};
      return all[p % 5];
    };
  };
  auto row_text = [](size_t p) { return "(x + r)*" + std::to_string(p + 1); };
  // No two pieces of a shape: more bodies than are chosen by lane.
  auto apart_text = [](size_t p) {
    std::string s = "x";
    for (size_t k = 0; k <= p; ++k) s = "(" + s + " + 1)";
    return s;
  };
  const auto apart = [](size_t p, float x, int64_t, int64_t) {
    for (size_t k = 0; k <= p; ++k) x += 1;
    return x;
  };
  const Access v = Access::Vector, s = Access::Scalar, w = Access::Strided;
  return {
      {"one body", false, false, v, v, values(14, times_text), times},
      {"unaligned", false, false, s, v, values(10, times_text), times},
      {"in place", false, true, v, v, values(20, same_text), or_same},
      {"several bodies", false, false, v, v, values(60, mixed_text(false)), mixed},
      {"bodies of their own", false, false, v, v, values(12, apart_text), apart},
      {"strided", false, false, w, w, values(60, mixed_text(false)), mixed},
      {"rows", true, false, v, v, values(14, times_text), times},
      {"rows in place", true, true, v, v, values(20, same_text), or_same},
      {"a row's position", true, false, s, v, values(12, row_text), with_row},
      {"rows, several bodies", true, false, v, v, values(60, mixed_text(true)), mixed},
      {"rows, strided", true, false, w, w, values(12, times_text), times},
      {"many", false, false, v, v, values(130, times_text), times},
  };
}

TEST(CudaSegments, RandomBounds) {
  const std::vector<Rule> list = rules();
  std::vector<Kernel> kernels;
  std::vector<std::string> texts;
  for (size_t of = 0; of < 2 * list.size(); ++of) {
    const Rule &rule = list[of / 2];
    kernels.push_back(rule.kernel(of % 2));
    ASSERT_NE(kernels.back().form.segments, 0) << rule.name;
    EXPECT_EQ(kernels.back().tables.empty(), std::string(rule.name) == "bodies of their own") << rule.name;
    texts.push_back(emit_cuda(kernels.back()));
  }
  std::string error;
  const auto batch = ShimBatch::build(texts, error);
  ASSERT_TRUE(batch) << error;
  std::mt19937 random(11);
  std::vector<float> from, to;
  for (int round = 0; round < 1200; ++round) {
    const size_t which = size_t(round) % kernels.size();
    const Rule &rule = list[which / 2];
    const Kernel &k = kernels[which];
    static constexpr int64_t lengths[] = {1, 3, 4, 7, 64, 1000, 1023, 1024, 1025, 2049, 5000};
    const int64_t extent = random() % 4 ? lengths[random() % std::size(lengths)] : 1 + random() % 3000;
    const int64_t rows = rule.rows ? 1 + random() % 9 : 1, gap = rule.rows ? random() % 6 : 0;
    const int64_t inner = rule.out == Access::Strided ? 2 : 1, pitch = (extent + gap) * inner;
    const int64_t place = random() % 5, in_place_of = rule.in == Access::Vector ? place : random() % 5;

    const size_t guarded = rule.values.size() - 1;
    std::vector<int64_t> lo(guarded), hi(guarded);
    const bool tiles = random() % 2; // each begins where the one before it ends
    for (size_t p = 0; p < guarded; ++p) {
      auto anywhere = [&] {
        return int64_t(random() % (extent + 20)) - 10;
      }; // before the row, behind it, the wrong way
      const int64_t step = 1 + random() % (2 * extent / int64_t(guarded) + 2);
      lo[p] = tiles ? (p ? hi[p - 1] : -2) : anywhere();
      hi[p] = tiles ? lo[p] + (random() % 5 ? step : 0) : random() % 3 ? lo[p] + step : anywhere();
    }

    from.assign(size_t(rows * pitch + 64), 0), to.assign(size_t(rows * pitch + 64), float(guard_value));
    for (size_t e = 0; e < from.size(); ++e) from[e] = float(int(e % 501) - 250);
    auto aligned = [](std::vector<float> &v, int64_t at) {
      return v.data() + (0 - reinterpret_cast<uintptr_t>(v.data())) % 16 / 4 + at;
    };
    float *x = aligned(from, in_place_of), *out = rule.in_place ? x : aligned(to, place);
    std::vector<float> expected = rule.in_place ? from : to;
    float *want = expected.data() + (out - (rule.in_place ? from : to).data());
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t t = 0; t < extent; ++t) {
        size_t p = 0;
        while (p < guarded && !(lo[p] <= t && t < hi[p])) ++p;
        want[r * pitch + t * inner] = rule.value(p, x[r * pitch + t * inner], t, r);
      }

    const Alike layout{out, x, rows, extent, pitch, inner};
    const CudaCall call = cuda_call(k, [&](const SlotInfo &s) {
      if (s.kind != SlotKind::Begin && s.kind != SlotKind::End) return layout.slot(s);
      const Inst &param = k[bound_node(k, s)];
      EXPECT_EQ(param.op, Op::Param);
      const std::string &name = k.arguments[param.a].name;
      const int64_t at = (name[0] == 'l' ? lo : hi)[std::stoul(name.substr(2))];
      return Slot{.integer = std::clamp<int64_t>(at, 0, extent)};
    });
    batch->launch(which, call.geometry, call.pointers().data());
    const std::vector<float> &got = rule.in_place ? from : to;
    for (size_t e = 0; e < got.size(); ++e)
      ASSERT_EQ(got[e], expected[e]) << rule.name << " round " << round << " element "
                                     << int64_t(e) - (out - got.data()) << " extent " << extent << "\n"
                                     << texts[which];
  }
}

// The cut itself, against a look at every position.
TEST(CudaSegments, CutsAreTheFirstMatch) {
  std::mt19937 random(3);
  for (int round = 0; round < 2000; ++round) {
    Kernel k;
    const size_t pieces = 1 + random() % 12;
    const int64_t extent = random() % 60;
    std::vector<BoxBounds> boxes;
    std::vector<std::vector<BoxBounds>> of(pieces);
    for (size_t p = 0; p < pieces; ++p) {
      Piece piece;
      for (size_t b = 0, count = p + 1 < pieces ? random() % 8 ? 1 + random() % 3 : 0 : 0; b < count; ++b) {
        piece.boxes.push_back({Range{uint8_t(flat_axis)}});
        boxes.push_back({int64_t(random() % (extent + 1)), int64_t(random() % (extent + 1))});
        of[p].push_back(boxes.back());
      }
      k.pieces.push_back(piece);
    }
    std::vector<Segment> segments;
    cut(k, boxes, extent, segments);
    ASSERT_EQ(segments.empty(), extent == 0);
    size_t s = 0;
    for (int64_t i = 0; i < extent; ++i) {
      uint32_t p = 0;
      auto in = [&](const BoxBounds &b) { return b.begin <= i && i < b.end; };
      while (!of[p].empty() && std::none_of(of[p].begin(), of[p].end(), in)) ++p;
      if (s + 1 < segments.size() && segments[s + 1].begin == i) {
        ++s;
        ASSERT_NE(segments[s].piece, segments[s - 1].piece) << "neighbours of one piece are one segment";
      }
      ASSERT_EQ(segments[s].piece, p) << "round " << round << " position " << i;
    }
    ASSERT_EQ(s + (extent > 0), segments.size());
  }
}

std::string ladder(size_t pieces, const std::string &value) {
  std::string s;
  for (size_t p = 0; p + 1 < pieces; ++p)
    s += "i < " + std::to_string((p + 1) * 1000) + ": " + value + std::to_string(p) + "; ";
  return s + "else " + value + std::to_string(pieces - 1);
}

TEST(CudaSegments, WhichKernelsHaveATable) {
  EXPECT_EQ(scheduled(ladder(8, "x + "), {"x: f32"}).form.segments, 0) << "a mask is as good";
  EXPECT_EQ(scheduled(ladder(9, "x + "), {"x: f32"}).form.segments, 10) << "8 cuts, the first segment, one unused";
  EXPECT_NE(scheduled(ladder(256, "x + "), {"x: f32"}).form.segments, 0);
  EXPECT_EQ(scheduled(ladder(2000, "x + "), {"x: f32"}).form.segments, 0) << "too long for a launch's parameters";
  const std::string data = "x > 0: 1; " + ladder(10, "x + ");
  EXPECT_EQ(scheduled(data, {"x: f32"}).form.segments, 0) << "an element decides";
  std::string rows = "[r, t]; t < r: 0; ";
  for (int p = 1; p < 10; ++p) rows += "t < " + std::to_string(p) + ": x*" + std::to_string(p) + "; ";
  EXPECT_EQ(scheduled(rows + "else x", {"x: f32"}).form.segments, 0) << "each row has its own bounds";
  // More parameters are allowed from CUDA 12.1 on.
  std::string error;
  const Kernel k = run_passes(lowered(ladder(2000, "x + "), {"x: f32"}), {.parameter_bytes = 32764}, &error);
  EXPECT_EQ(k.form.segments, 2001);
  EXPECT_LE(segment_layout(k).size, 32764u);
}

} // namespace
} // namespace elsewise::test
