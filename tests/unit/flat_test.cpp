// SPDX-License-Identifier: Apache-2.0
// Calls with short rows as CUDA C on the CPU, against the CPU's own code for the same call. Plans, slots and geometry
// are the run time's own; what is right is not said here.
#include "compiler/emit/emit.h"
#include "runtime/launch_taker.h"
#include "tests/shim/shim.h"
#include "tests/unit/calls.h"
#include <array>
#include <memory>
#include <optional>
#include <random>

namespace elsewise::tests {
namespace {

// One call, drawn from a seed: `x` like the domain, `y` repeated along some axes, `bias` along the last one alone,
// `lens` by row; in place or not, a window or not, `out` and operands anywhere modulo a vector.
template <class T> class Example {
public:
  Example(uint64_t seed, std::string rule) : rule(std::move(rule)), random_(seed) {
    const std::vector<int64_t> domain{1 + pick(3), 2 + pick(5), 2 + pick(pick(2) ? 7 : 39)};
    in_place_ = pick(3) == 0;
    whole_ = domain, offset_.resize(3);
    if (pick(3) == 0)
      for (size_t d = 0; d < 3; ++d) offset_[d] = pick(4), whole_[d] += offset_[d] + pick(4);
    x_ = tensor(domain, in_place_ || pick(2) ? 0 : pick(4));
    std::vector<int64_t> repeated = domain;
    for (int64_t &l : repeated)
      if (pick(2)) l = 1;
    y_ = tensor(repeated, 0), bias_ = tensor({domain[2]}, 0);
    for (int64_t &l : lens_.memory) l = pick(50) - 5;
    out = expected = in_place_ ? x_ : tensor(domain, 0);
  }

  void run() {
    call(api::DeviceKind::Cpu, *expected);
    const api::LaunchTaker taker = [&](const Kernel &k, const Geometry &g, std::span<void *const> arguments) {
      text = emit_cuda(k), form = k.form, geometry_ = g;
      const std::vector<SlotInfo> infos = elsewise::slots(k, Backend::Cuda);
      for (size_t s = 0; s < infos.size(); ++s)
        std::memcpy(slots_.emplace_back().data(), arguments[s],
                    infos[s].kind == SlotKind::Live ? sizeof(LiveRanges) : sizeof(Slot));
    };
    const api::TakeLaunches taking(taker);
    call(api::DeviceKind::Cuda, *out);
  }
  void launch(const test::ShimBatch &batch, size_t index) {
    std::vector<const void *> pointers;
    for (const auto &s : slots_) pointers.push_back(s.data());
    batch.launch(index, geometry_, pointers.data());
  }

  std::string rule, text;
  Form form;
  std::optional<Array<T>> out, expected;

private:
  int pick(int n) { return int(random_() % uint64_t(n)); }
  Array<T> tensor(const std::vector<int64_t> &shape, int64_t gap) { // between rows
    std::vector<int64_t> stride(shape.size());
    int64_t step = 1;
    for (size_t d = shape.size(); d-- > 0;) stride[d] = step, step *= shape[d] + (d + 1 == shape.size() ? gap : 0);
    std::vector<T> memory(size_t(step + 8));
    for (T &e : memory) e = T(pick(100) - 30);
    return Array<T>(memory, shape, stride, pick(5));
  }
  void call(api::DeviceKind kind, Array<T> &to) {
    const auto spec = compile(rule);
    std::vector<api::Arg> args = arguments(
        *spec, {{"x", (in_place_ ? to : *x_).arg()}, {"y", y_->arg()}, {"bias", bias_->arg()}, {"lens", lens_.arg()}});
    for (api::Arg &a : args) a.device = {kind, 0};
    api::Arg target = to.arg();
    target.device = {kind, 0};
    api::Call call;
    call.args = args, call.out = &target;
    if (whole_ != x_->shape) call.has_window = true, call.whole = whole_, call.offset = offset_;
    auto plan = api::plan(spec, call);
    ASSERT_TRUE(plan) << plan.message;
    auto done = api::run(*plan.value, call);
    ASSERT_TRUE(done) << done.message;
  }

  std::mt19937_64 random_;
  bool in_place_ = false;
  std::vector<int64_t> whole_, offset_;
  std::optional<Array<T>> x_, y_, bias_;
  Array<int64_t> lens_{{64}};
  Geometry geometry_;
  std::vector<std::array<uint8_t, sizeof(LiveRanges)>> slots_;
};

template <class T> void compare(const std::vector<std::string> &rules) {
  std::vector<std::unique_ptr<Example<T>>> examples;
  std::vector<std::string> texts;
  size_t columns = 0, identities = 0, windows = 0;
  for (uint64_t seed = 0; seed < 90; ++seed) {
    auto e = std::make_unique<Example<T>>(seed, rules[seed % rules.size()]);
    e->run();
    if (e->text.empty()) continue; // in place, with nothing to do
    if (!e->form.flat) continue;   // of one row, or longer ones
    columns += size_t(std::count(e->form.args.begin(), e->form.args.end(), Access::Column));
    identities += std::count(e->form.same_view.begin(), e->form.same_view.end(), true) != 0;
    windows += e->form.window;
    texts.push_back(e->text);
    examples.push_back(std::move(e));
  }
  EXPECT_GT(examples.size(), 45u);
  EXPECT_GT(columns, 5u);
  EXPECT_GT(identities, 5u);
  EXPECT_GT(windows, 5u);
  std::string error;
  const auto batch = test::ShimBatch::build(texts, error);
  ASSERT_TRUE(batch) << error.substr(0, 3000);
  for (size_t k = 0; k < examples.size(); ++k) {
    examples[k]->launch(*batch, k);
    ASSERT_EQ(examples[k]->out->memory, examples[k]->expected->memory) << examples[k]->rule << "\n" << texts[k];
  }
}

TEST(Flat, RowsOfFloats) {
  compare<float>({"[.., r, t]; t < len(t)/4: x*0.5; t >= len(t)-len(t)/4: x*2; else x",
                  "[b, h, t]; t < lens[h]: x + bias; b == 1: y; else x", "[.., r, t]; t <= r: x; else y",
                  "[.., r, t]; x > y: t; r == 2: x; else x*i", "i < 2*n/3: x + bias; else y",
                  "[b, .., t]; t < b + 3: x*lens[t]; else where(x > 4, x, y)"});
}

TEST(Flat, RowsOfBytes) {
  compare<int8_t>({"[.., r, t]; t < len(t)/4: x>>1; t >= len(t)-len(t)/4: x<<1; else x",
                   "[b, h, t]; t < lens[h]: x + bias; b == 1: y; else x", "[.., r, t]; t <= r: x; else y",
                   "i % 3 == 0: bias; i < n/2: y; else x"});
}

// What a layout class is: rows up to a length, a shorter one where whole vectors of a piece touch less memory.
TEST(Flat, IsTheFormOfShortRows) {
  auto flat = [](const std::string &rule, int64_t length, bool in_place = false) {
    Array<float> x({3, length}), bias({length}), out({3, length});
    Form form;
    const api::LaunchTaker taker = [&](const Kernel &k, const Geometry &, std::span<void *const>) { form = k.form; };
    const api::TakeLaunches taking(taker);
    const auto spec = compile(rule);
    std::vector<api::Arg> args = arguments(*spec, {{"x", x.arg()}, {"bias", bias.arg()}});
    for (api::Arg &a : args) a.device = {api::DeviceKind::Cuda, 0};
    api::Arg to = (in_place ? x : out).arg();
    to.device = {api::DeviceKind::Cuda, 0};
    api::Call call;
    call.args = args, call.out = &to;
    auto plan = api::plan(spec, call);
    EXPECT_TRUE(plan && api::run(*plan.value, call));
    EXPECT_TRUE(form.flat || form.rows == 1);
    return form.flat;
  };
  const std::string all = "[r, t]; t < len(t)/4: x*0.5; else x+1", some = "[r, t]; t < len(t)/4: 0; else x+1",
                    moved = "[r, t]; t < len(t)/4: x*0.5; else x";
  constexpr int64_t shorter = longest_flat_row_of_skipping;
  auto longest = [&](const std::string &rule, bool in_place) {
    EXPECT_TRUE(flat(rule, shorter, in_place));
    const bool beyond = flat(rule, shorter + 1, in_place);
    EXPECT_EQ(flat(rule, longest_flat_row, in_place), beyond);
    EXPECT_FALSE(flat(rule, longest_flat_row + 1, in_place));
    return beyond ? longest_flat_row : shorter;
  };
  EXPECT_EQ(longest(all, false), longest_flat_row);
  EXPECT_EQ(longest(all, true), longest_flat_row);
  EXPECT_EQ(longest(some, false), shorter);
  EXPECT_EQ(longest(some, true), shorter);
  EXPECT_EQ(longest(moved, false), longest_flat_row);
  EXPECT_EQ(longest(moved, true), shorter);
  EXPECT_TRUE(flat("x + bias", longest_flat_row));
}

} // namespace
} // namespace elsewise::tests
