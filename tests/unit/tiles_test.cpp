// SPDX-License-Identifier: Apache-2.0
// Transposed operands: plans that have tiles, their launches run as C++ behind the shim, and the CPU's bytes. It knows
// no result by itself.
#include "compiler/emit/emit.h"
#include "runtime/cuda/nvrtc.h"
#include "runtime/launch_taker.h"
#include "tests/shim/shim.h"
#include "tests/unit/calls.h"
#include <numeric>
#include <random>
#include <set>

namespace elsewise::tests {
namespace {

constexpr api::Device cuda{api::DeviceKind::Cuda, 0};

/// Bytes, and one view of them.
struct Tensor {
  DType dtype;
  std::vector<int64_t> shape, stride;
  std::vector<uint8_t> memory;
  int64_t offset = 0; // elements; `memory` begins at a boundary of 16 bytes, as `new` gives it

  api::Arg arg() {
    return {.kind = ArgKind::Tensor,
            .dtype = dtype,
            .rank = int32_t(shape.size()),
            .shape = shape.data(),
            .stride = stride.data(),
            .data = memory.data() + offset * bytes(dtype)};
  }
};

struct Taken {
  std::string text;
  Geometry geometry;
  std::vector<std::vector<uint8_t>> slots;
  Form form;
  std::vector<std::string> options;
};

class Tiles {
public:
  explicit Tiles(unsigned seed) : random(seed) {}

  int64_t below(int64_t n) { return int64_t(random() % uint64_t(n)); }

  // Axes in the order of `memory`, the fastest first; sometimes a longer pitch, a place off the boundary, an axis that
  // repeats or runs backwards.
  Tensor tensor(DType dtype, std::vector<int64_t> shape, const std::vector<size_t> &memory, bool plain) {
    Tensor t{dtype, shape, std::vector<int64_t>(shape.size()), {}, 0};
    int64_t pitch = 1, least = 0;
    for (const size_t d : memory) {
      t.stride[d] = !plain && below(10) == 0 ? 0 : pitch;
      if (t.stride[d] == 0) continue;
      if (!plain && below(12) == 0) t.stride[d] = -pitch, least += (shape[d] - 1) * pitch;
      pitch *= shape[d];
      if (below(3) == 0) pitch += below(2) ? 16 : 1 + below(3);
    }
    t.offset = least + (below(3) == 0 ? below(16) : 0);
    t.memory.resize(size_t((pitch + t.offset + 16) * bytes(dtype)));
    for (size_t e = 0; e + size_t(bytes(dtype)) <= t.memory.size(); e += size_t(bytes(dtype))) {
      const int v = int(random() % 200) - 100;
      uint8_t *at = t.memory.data() + e;
      if (dtype == DType::F64) set(at, double(v) / 4);
      else if (dtype == DType::F32) set(at, float(v) / 4);
      else if (dtype == DType::F16) set(at, uint16_t(0x3c00 + v * 4 + (v & 1 ? 0x8000 : 0)));
      else if (dtype == DType::I64) set(at, int64_t(v));
      else if (dtype == DType::I16) set(at, int16_t(v * 97));
      else *at = dtype == DType::Bool ? uint8_t(v & 1) : uint8_t(v);
    }
    return t;
  }

  std::vector<size_t> order(size_t rank) {
    std::vector<size_t> axes(rank);
    std::iota(axes.rbegin(), axes.rend(), size_t(0));
    if (below(4)) std::shuffle(axes.begin(), axes.end(), random);
    return axes;
  }

  /// One call of `rule`; what a device was handed, or nothing where the plan has no tiles.
  void add(const std::string &rule, const std::vector<DType> &dtypes, bool in_place) {
    static constexpr int64_t long_axes[] = {16, 17, 31, 32, 33, 40, 64, 65, 100, 129};
    std::vector<int64_t> shape{long_axes[below(10)], long_axes[below(10)]};
    if (rule.find("[r, c]") == std::string::npos)
      while (below(2) && shape.size() < 4) shape.insert(shape.begin() + below(int64_t(shape.size()) + 1), 1 + below(4));
    const size_t rank = shape.size();
    auto made = std::make_unique<Case>();
    Case &c = *made;
    c.rule = rule;
    for (size_t a = 0; a < 3; ++a) c.inputs.push_back(tensor(dtypes[a], shape, order(rank), false));
    c.inputs.push_back(tensor(DType::F32, {300}, {0}, true));
    const auto spec = compile(rule);
    auto given = [&](std::vector<Tensor> &tensors, bool device) {
      std::map<std::string, api::Arg> all;
      for (size_t a = 0; a < tensors.size(); ++a) {
        all["xyzs"[a] + std::string()] = tensors[a].arg();
        if (device) all["xyzs"[a] + std::string()].device = cuda;
      }
      return all;
    };
    {
      api::Call call;
      const auto args = arguments(*spec, given(c.inputs, false));
      call.args = args;
      const auto plan = api::plan(spec, call);
      ASSERT_TRUE(plan) << rule << ": " << plan.message;
      const DType result = api::output(*plan.value).dtype;
      const Tensor &y = c.inputs[1];
      // `out` may be y where each of y's elements is one position's.
      c.in_place = in_place && y.dtype == result && std::count(y.stride.begin(), y.stride.end(), 0) == 0 &&
                   rule.find('y') != std::string::npos;
      c.out = c.in_place ? y : tensor(result, shape, order(rank), true);
    }
    std::vector<Tensor> alone = c.inputs;
    c.want = c.out;
    Tensor &want = c.in_place ? alone[1] : c.want;
    const auto done = tests::run(spec, given(alone, false), want.arg());
    ASSERT_TRUE(done) << rule << ": " << done.message;
    if (c.in_place) c.want.memory = std::move(want.memory);

    Taken &t = c.taken;
    const api::LaunchTaker taker = [&](const Kernel &k, const Geometry &g, std::span<void *const> arguments) {
      t = {emit_cuda(k), g, {}, k.form, cuda_options(k)};
      const std::vector<SlotInfo> infos = slots(k, Backend::Cuda);
      for (size_t s = 0; s < infos.size(); ++s) {
        const auto *from = static_cast<const uint8_t *>(arguments[s]);
        t.slots.emplace_back(from, from + slot_bytes(k, infos[s]));
      }
    };
    const api::TakeLaunches taking(taker);
    api::Arg out = (c.in_place ? c.inputs[1] : c.out).arg();
    out.device = cuda;
    const auto ran = tests::run(spec, given(c.inputs, true), out);
    ASSERT_TRUE(ran) << rule << ": " << ran.message;
    if (t.form.tile) cases.push_back(std::move(made));
  }

  void compare() {
    std::vector<std::string> texts;
    for (const auto &c : cases) texts.push_back(c->taken.text);
    std::string error;
    const auto batch = test::ShimBatch::build(texts, error);
    ASSERT_TRUE(batch) << error;
    for (size_t k = 0; k < cases.size(); ++k) {
      Case &c = *cases[k];
      std::vector<const void *> pointers;
      for (const std::vector<uint8_t> &s : c.taken.slots) pointers.push_back(s.data());
      batch->launch(k, c.taken.geometry, pointers.data());
      // Whole memory: nothing is written beside the view.
      EXPECT_TRUE((c.in_place ? c.inputs[1] : c.out).memory == c.want.memory) << c.rule << "\n" << c.taken.text;
    }
  }

  struct Case {
    std::string rule;
    std::vector<Tensor> inputs;
    Tensor out{DType::F32, {}, {}, {}, 0}, want{DType::F32, {}, {}, {}, 0};
    bool in_place = false;
    Taken taken;
  };
  std::vector<std::unique_ptr<Case>> cases;

private:
  template <class T> static void set(uint8_t *at, T v) { std::memcpy(at, &v, sizeof v); }

  std::mt19937 random;
};

const char *const rules[] = {
    "x*2",
    "x",
    "i<n/4: x; i>=n-n/4: y; else z",
    "[.., r, c]; c <= r: x + y; else 0",
    "[r, c]; c < r*2 - 3: y; c == r: x; else z",
    "[.., r, c]; border(r, c) < 3: x; else y",
    "x > 0: y; else x + z",
    "[.., r, c]; c > 0 and r > 1: x; r < len(r)/2 and x > z: y; else z + r",
    "[.., r, c]; x*s[c] + s[r]",
    "i % 3 == 0: x; i < n/2: y",
    "i*2 + x",
    "[.., r, c]; c > 0: x*s[c/16] + z[.., c-1] + z; else x + s[r]",
    "[r, c]; c<1: x+1; c<2: x+2; c<3: x+3; c<5: x+4; c<8: x+5; c<n/200: x+6; c<20: x+7; c<30: x+8; else x+9",
    "[r, c]; c<3: x; c<5: y; c<6: z; c<7: y+1; c<8: x; c<20: x+z; c<21: y; c<n/40: z+2; else x",
};
const DType widths[] = {DType::F32, DType::F64, DType::F16, DType::I8, DType::I64, DType::Bool, DType::U8, DType::I16};

void add_random(Tiles &tiles, int rounds) {
  for (int round = 0; round < rounds; ++round)
    for (const char *rule : rules) {
      std::vector<DType> dtypes(3, widths[tiles.below(8)]);
      if (tiles.below(3) == 0)
        for (DType &d : dtypes) d = widths[tiles.below(8)];
      std::string text = rule;
      if (text.back() == 'y' && text.find("else") == std::string::npos) text += "; else z";
      tiles.add(text, dtypes, tiles.below(3) == 0);
      if (testing::Test::HasFatalFailure()) return;
    }
}

TEST(Tiles, GiveTheBytesOfTheCpu) {
  Tiles tiles(5);
  add_random(tiles, 28);
  if (HasFatalFailure()) return;
  std::set<int> heights, vectors, bytes_seen;
  int in_place = 0, two = 0, axes = 0, beside = 0, segments = 0;
  for (const auto &c : tiles.cases) {
    const Form &f = c->taken.form;
    const auto tiled = std::count(f.args.begin(), f.args.end(), Access::Tiled);
    heights.insert(f.tile), vectors.insert(f.vector), in_place += c->in_place, two += tiled > 1, axes += f.rows > 1;
    segments += f.segments > 0;
    beside += std::count(f.args.begin(), f.args.end(), Access::Vector) != 0;
    for (size_t a = 0; a < 3; ++a) bytes_seen.insert(bytes(c->inputs[a].dtype));
  }
  EXPECT_EQ(heights, (std::set<int>{32, 64, 128}));
  EXPECT_EQ(vectors, (std::set<int>{1, 2, 4, 8, 16}));
  EXPECT_EQ(bytes_seen, (std::set<int>{1, 2, 4, 8}));
  EXPECT_GT(tiles.cases.size(), 60u);
  EXPECT_GT(in_place, 3);
  EXPECT_GT(two, 10);
  EXPECT_GT(axes, 10);
  EXPECT_GT(beside, 10);
  EXPECT_GT(segments, 10);
  tiles.compare();
}

TEST(Tiles, CompileForEveryArchitecture) {
  Tiles tiles(9);
  add_random(tiles, 4);
  if (HasFatalFailure()) return;
  for (size_t k = 0; k < tiles.cases.size(); ++k) {
    const char *archs[] = {"sm_75", "sm_80", "sm_90", "sm_100", "sm_120"};
    const Taken &t = tiles.cases[k]->taken;
    const NvrtcResult r = nvrtc_compile(t.text, archs[k % 5], false, t.options);
    if (r.missing) GTEST_SKIP() << "no NVRTC";
    EXPECT_TRUE(r.error.empty()) << r.error << "\n" << t.text;
  }
}

// A thread that left before the barrier would leave its elements unread; the shim must not pass over that.
TEST(TilesDeathTest, ABarrierIsForAllThreads) {
  const char *text = "extern \"C\" __global__ void __launch_bounds__(256) elsewise(int n) {\n"
                     "  if (threadIdx.x >= n) return;\n"
                     "  __syncthreads();\n"
                     "}\n";
  std::string error;
  const auto batch = test::ShimBatch::build({text}, error);
  ASSERT_TRUE(batch) << error;
  const int64_t all = 256, some = 255;
  Geometry g;
  g.grid = 1;
  const void *slots[] = {&all};
  batch->launch(0, g, slots);
  slots[0] = &some;
  EXPECT_DEATH(batch->launch(0, g, slots), "left before the barrier");
}

} // namespace
} // namespace elsewise::tests
