// SPDX-License-Identifier: Apache-2.0
// What makes a new plan, a new variant, a compilation, and what does not. Results are looked at only where a wrong plan
// would show.
#include "runtime/spec.h"
#include "tests/unit/calls.h"
#include <thread>

namespace elsewise::tests {
namespace {

api::Counters since(const api::Counters &before) {
  const api::Counters now = api::counters();
  return {.nvrtc = now.nvrtc - before.nvrtc,
          .orc = now.orc - before.orc,
          .variants = now.variants - before.variants,
          .plans = now.plans - before.plans,
          .variant_hits = now.variant_hits - before.variant_hits,
          .plan_hits = now.plan_hits - before.plan_hits,
          .launches = now.launches - before.launches};
}

TEST(Plan, LengthsAndScalarsCompileNothing) {
  const auto spec = compile("i < n/4: x*gain; i < edge: x+1; else x # lengths");
  Array<float> first({100}), y({100});
  ASSERT_TRUE(run(spec, {{"x", first.arg()}, {"gain", number(2.0)}, {"edge", number(50)}}, y.arg()));
  const auto before = api::counters();
  for (int64_t n : {1, 2, 3, 17, 64, 1000, 65536}) {
    Array<float> x({n}), out({n});
    ASSERT_TRUE(run(spec, {{"x", x.arg()}, {"gain", number(double(n))}, {"edge", number(int(n / 2))}}, out.arg()));
    EXPECT_EQ(out.memory[0], n / 4 > 0 ? 0.0f : n / 2 > 0 ? 1.0f : 0.0f);
  }
  EXPECT_EQ(since(before).orc, 0u);
  EXPECT_EQ(since(before).variants, 0u);
  EXPECT_EQ(since(before).plans, 7u);
}

// Blocks outside every box that changes something are not started, so that a box must not grow on its way. The plan is
// a CPU's: the other one asks a driver.
TEST(Plan, BoundsOfACallInPlaceOnADevice) {
  const auto spec = compile("i >= n/2 and i < n-k: x; i < 7: -x; else x*2 # in place");
  Array<float> x({100});
  const api::Arg view = x.arg();
  const auto args = arguments(*spec, {{"x", view}, {"k", number(10)}});
  const api::Call call{.args = args, .out = &view};
  const auto plan = api::plan(spec, call);
  ASSERT_TRUE(plan) << plan.message;
  Form form = plan.value->form;
  form.same_view[1] = true, form.vector = 4; // `x`, after `k`
  api::Launch launch;
  {
    const api::LibraryLock lock;
    auto variant = api::variant_for(*plan.value->spec, *plan.value->typing, form, Machine::Cuda);
    ASSERT_TRUE(variant) << variant.message;
    launch.variant = variant.value;
  }
  ASSERT_TRUE(launch.variant->cut);
  launch.slots.resize(launch.variant->slots.size());
  const auto settled = api::settle(*plan.value, launch, call, {launch.slots.data(), launch.slots.size()}, launch.cut);
  ASSERT_TRUE(settled && settled.value) << settled.message;
  std::vector<std::pair<int64_t, uint32_t>> segments;
  for (const Segment &s : launch.cut.segments) segments.emplace_back(s.begin, s.piece);
  EXPECT_EQ(segments, (std::vector<std::pair<int64_t, uint32_t>>{{0, 1}, {7, 2}, {50, 0}, {90, 2}}));
}

TEST(Plan, ARepeatedCallIsAHit) {
  const auto spec = compile("x * gain # repeated");
  Array<float> x({10}), y({10});
  ASSERT_TRUE(run(spec, {{"x", x.arg()}, {"gain", number(2.0)}}, y.arg()));
  const auto before = api::counters();
  Array<float> other({10}), out({10});
  ASSERT_TRUE(run(spec, {{"x", other.arg()}, {"gain", number(3.0)}}, out.arg()));
  EXPECT_EQ(out.memory[3], 9.0f);
  EXPECT_EQ(since(before).plan_hits, 1u);
  EXPECT_EQ(since(before).plans, 0u);
}

TEST(Plan, StridesOfOneClassShareAVariant) {
  const auto spec = compile("i < n/2: x; else -x # strides");
  std::vector<float> memory(4000);
  std::iota(memory.begin(), memory.end(), 0.0f);
  auto strided = [&](int64_t rows, int64_t columns, int64_t pitch) {
    Array<float> x(memory, {rows, columns}, {pitch, 1}), y({rows, columns});
    ASSERT_TRUE(run(spec, {{"x", x.arg()}}, y.arg()));
    EXPECT_EQ(y.memory.back(), -memory[size_t((rows - 1) * pitch + columns - 1)]);
  };
  strided(4, 5, 7);
  const auto before = api::counters();
  strided(10, 20, 31);
  strided(3, 64, 100);
  strided(2, 3, 1000);
  EXPECT_EQ(since(before).variants, 0u);
  EXPECT_EQ(since(before).orc, 0u);
  EXPECT_EQ(since(before).plans, 3u);
}

TEST(Plan, KindsDtypesAndAliasesAreVariants) {
  const auto spec = compile("x * g # kinds");
  Array<float> x({8}), y({8});
  Array<double> d({8});
  auto variants = [&](auto &&call) {
    const auto before = api::counters();
    call();
    return since(before).variants;
  };
  EXPECT_EQ(variants([&] { ASSERT_TRUE(run(spec, {{"x", x.arg()}, {"g", number(2.0)}}, y.arg())); }), 1u);
  EXPECT_EQ(variants([&] { ASSERT_TRUE(run(spec, {{"x", x.arg()}, {"g", number(2)}}, y.arg())); }), 1u);
  EXPECT_EQ(variants([&] { ASSERT_TRUE(run(spec, {{"x", x.arg()}, {"g", number(2.0)}}, d.arg())); }), 1u);
  EXPECT_EQ(variants([&] { ASSERT_TRUE(run(spec, {{"x", x.arg()}, {"g", number(2.0)}}, x.arg())); }), 1u);
  EXPECT_EQ(variants([&] { ASSERT_TRUE(run(spec, {{"x", x.arg()}, {"g", number(3.0)}}, x.arg())); }), 0u);
}

TEST(Plan, MatchesOnlyWhatItWasMadeFor) {
  const auto spec = compile("x + 1 # matches");
  Array<float> x({4, 6}), y({4, 6}), longer({4, 7}), transposed(std::vector<float>(24), {4, 6}, {1, 4});
  Array<double> d({4, 6});
  const auto args = arguments(*spec, {{"x", x.arg()}});
  const auto plan = api::plan(spec, {.args = args});
  ASSERT_TRUE(plan);
  auto matches = [&](api::Arg arg, std::optional<api::Arg> out = std::nullopt) {
    const auto list = arguments(*spec, {{"x", arg}});
    return api::matches(*plan.value, {.args = list, .out = out ? &*out : nullptr});
  };
  EXPECT_TRUE(matches(x.arg()));
  EXPECT_TRUE(matches(y.arg(), x.arg()));
  EXPECT_FALSE(matches(longer.arg()));
  EXPECT_FALSE(matches(transposed.arg()));
  EXPECT_FALSE(matches(d.arg()));
  EXPECT_FALSE(matches(x.arg(), d.arg()));
  EXPECT_FALSE(matches(x.arg(), transposed.arg()));
  EXPECT_FALSE(matches(number(2.0)));
}

TEST(Plan, AskingForF64IsAnotherTyping) {
  // Alone, a 0-d f64 tensor does not make weak floats f64, but `out` of f64 does: i/3.0 is worked in f32 or in f64.
  const auto spec = compile("s * (i/3.0)");
  const double one = 1;
  api::Arg s{.kind = ArgKind::Tensor, .dtype = DType::F64, .data = const_cast<double *>(&one)};
  const std::vector<int64_t> domain{4};
  const auto args = arguments(*spec, {{"s", s}});
  const auto plan = api::plan(spec, {.args = args, .has_domain = true, .domain = domain});
  ASSERT_TRUE(plan) << plan.message;
  ASSERT_EQ(api::output(*plan.value).dtype, DType::F64);
  Array<double> y({4}), z({4});
  api::Arg out = y.arg();
  const api::Call asking{.args = args, .out = &out, .has_domain = true, .domain = domain};
  EXPECT_FALSE(api::matches(*plan.value, asking));
  ASSERT_TRUE(api::run(*plan.value, asking)); // the plan made without asking works in f32
  EXPECT_EQ(y.memory[1], double(1.0f / 3.0f));
  ASSERT_TRUE(run(spec, {{"s", s}}, z.arg(), {.has_domain = true, .domain = domain}));
  EXPECT_EQ(z.memory[1], 1.0 / 3.0);
}

TEST(Plan, ClearedCachesFillAgain) {
  const auto spec = compile("x - 1 # cleared");
  Array<float> x({4}), y({4});
  ASSERT_TRUE(run(spec, {{"x", x.arg()}}, y.arg()));
  api::clear_cache();
  const auto before = api::counters();
  ASSERT_TRUE(run(spec, {{"x", x.arg()}}, y.arg()));
  EXPECT_EQ(since(before).orc, 1u);
  EXPECT_EQ(since(before).plans, 1u);
  EXPECT_EQ(y.memory[2], 1.0f);
}

TEST(Plan, ThreadsShareOneCompilation) {
  const auto spec = compile("x * 5 + i # threads");
  const auto before = api::counters();
  std::vector<std::thread> threads;
  std::atomic<int> good = 0;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&] {
      for (int64_t n = 1; n < 40; ++n) {
        Array<float> x({n}), y({n});
        good += bool(run(spec, {{"x", x.arg()}}, y.arg())) && y.memory[size_t(n - 1)] == float((n - 1) * 6);
      }
    });
  for (std::thread &t : threads) t.join();
  EXPECT_EQ(good, 8 * 39);
  EXPECT_EQ(since(before).orc, 1u);
  EXPECT_EQ(since(before).plans, 39u);
}

TEST(Plan, SpecsDieWhenNobodyHoldsThem) {
  api::clear_cache();
  std::weak_ptr<const api::Spec> weak;
  {
    const auto spec = compile("x + 77 # dies");
    weak = spec;
    Array<float> x({4}), y({4});
    ASSERT_TRUE(run(spec, {{"x", x.arg()}}, y.arg()));
  }
  EXPECT_FALSE(weak.expired()); // the last ones are kept
  for (int k = 0; k < 70; ++k) compile("x + " + std::to_string(1000 + k));
  EXPECT_TRUE(weak.expired());
}

TEST(Plan, APlanKeepsItsSpec) {
  Array<float> x({4}), y({4});
  api::PlanRef plan;
  std::vector<api::Arg> args{x.arg()};
  {
    const auto spec = compile("x + 78 # kept");
    plan = api::plan(spec, {.args = args}).value;
  }
  api::clear_cache();
  api::Arg out = y.arg();
  ASSERT_TRUE(api::run(*plan, {.args = args, .out = &out}));
  EXPECT_EQ(y.memory[1], 79.0f);
}

} // namespace
} // namespace elsewise::tests
