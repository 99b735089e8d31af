// SPDX-License-Identifier: Apache-2.0
// Rules through the facade, from text to elements on the CPU, and every refusal of a call. What operations compute is
// tested elsewhere.
#include "tests/unit/calls.h"

namespace elsewise::tests {
namespace {

const char *const seed = "i<n/4: x*0.5; i>=n-n/4: x*2; else x";

float seed_value(int64_t i, int64_t n, float x) { return i < n / 4 ? x * 0.5f : i >= n - n / 4 ? x * 2.0f : x; }

template <class T> std::vector<float> seed_values(const std::vector<T> &x) {
  std::vector<float> y;
  for (size_t i = 0; i < x.size(); ++i) y.push_back(seed_value(int64_t(i), int64_t(x.size()), float(x[i])));
  return y;
}

std::string refused(std::string_view text, const std::map<std::string, api::Arg> &given, api::Arg out, api::Fault fault,
                    api::Call call = {}) {
  const auto result = run(compile(text), given, out, call);
  EXPECT_EQ(result.fault, fault) << result.message;
  return result.message;
}
testing::AssertionResult says(const std::string &message, const std::string &part) {
  if (message.find(part) != std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << message;
}

TEST(Facade, TheSeedRuleAtManyLengths) {
  const auto spec = compile(seed);
  for (int64_t n = 0; n < 200; ++n) {
    Array<float> x({n}), y({n});
    const auto result = run(spec, {{"x", x.arg()}}, y.arg());
    ASSERT_TRUE(result) << result.message;
    ASSERT_EQ(y.elements(), seed_values(x.elements())) << n;
  }
}

TEST(Facade, WindowsOfTheSeedRule) {
  const auto spec = compile(seed);
  for (const int64_t n : {7, 100, 1000}) {
    Array<float> x({n});
    const auto whole = seed_values(x.elements());
    for (int64_t at = 0; at < n; at += 1 + n / 9)
      for (const int64_t extent : {int64_t(1), (n - at) / 2, n - at}) {
        Array<float> part(x.memory, {extent}, {1}, at), y({extent});
        api::Call call{.has_window = true, .whole = x.shape, .offset = {&at, 1}};
        const auto result = run(spec, {{"x", part.arg()}}, y.arg(), call);
        ASSERT_TRUE(result) << result.message;
        ASSERT_EQ(y.elements(), std::vector<float>(whole.begin() + at, whole.begin() + at + extent)) << at;
      }
  }
}

TEST(Facade, AWindowsOffsetIsLookedAtByEveryRun) {
  const auto spec = compile("x*i");
  Array<float> x({4}), y({4});
  const std::vector<int64_t> whole{10};
  for (const std::vector<int64_t> &offset : {std::vector<int64_t>{7}, {-1}, {1, 2}, {INT64_MAX}}) {
    const std::string message = refused("x*i", {{"x", x.arg()}}, y.arg(), api::Fault::Value,
                                        {.has_window = true, .whole = whole, .offset = offset});
    EXPECT_TRUE(says(message, offset.size() == 2 ? "needs one entry for each of the 1 axes of `domain`"
                              : offset[0] == -1  ? "a window begins at 0 or after it"
                                                 : "the window leaves its domain on axis 0"));
  }
  // A plan that was made for one place serves another, and no place beyond the domain.
  auto args = arguments(*spec, {{"x", x.arg()}});
  api::Arg out = y.arg();
  std::vector<int64_t> offset{2};
  api::Call call{.args = args, .out = &out, .has_window = true, .whole = whole, .offset = offset};
  const auto plan = api::plan(spec, call);
  ASSERT_TRUE(plan);
  offset[0] = 6;
  ASSERT_TRUE(api::matches(*plan.value, call) && api::run(*plan.value, call));
  EXPECT_EQ(y.elements(), std::vector<float>({0, 7, 16, 27}));
  offset[0] = 7;
  EXPECT_EQ(api::run(*plan.value, call).fault, api::Fault::Value);
}

TEST(Facade, AllowsWhatFunctionsState) {
  auto of = [](std::string_view text) { return api::allowance(*compile(text)); };
  EXPECT_EQ(of("x*2 + sqrt(x)").ulp, 0);
  const auto one = of("i < 3: tanh(x); else x");
  EXPECT_GT(one.ulp, 0);
  EXPECT_EQ(one.functions, std::vector<std::string>{"tanh"});
  EXPECT_EQ(of("i < 3: tanh(x); else tanh(x)*2").ulp, one.ulp) << "of the piece that goes through most";
  EXPECT_EQ(of("tanh(x) + tanh(tanh(x))").ulp, 3 * one.ulp);
  EXPECT_TRUE(of("tanh(x) > 0: 1; else x").functions.empty()) << "a guard chooses, and gives no value";
}

TEST(Facade, InPlace) {
  const auto spec = compile(seed);
  Array<float> x({1000});
  const auto expected = seed_values(x.elements());
  ASSERT_TRUE(run(spec, {{"x", x.arg()}}, x.arg()));
  EXPECT_EQ(x.elements(), expected);
}

TEST(Facade, PositionsAreLogicalWhateverTheStrides) {
  const auto spec = compile(seed);
  std::vector<float> memory(400);
  std::iota(memory.begin(), memory.end(), 0.0f);
  struct View {
    std::vector<int64_t> shape, stride;
    int64_t offset;
  };
  for (const View &v : {View{{8, 9}, {1, 8}, 0}, View{{8, 9}, {20, 2}, 3}, View{{72}, {-1}, 71},
                        View{{4, 3, 5}, {5, 20, 1}, 0}, View{{4, 3, 5}, {0, 5, 1}, 0}, View{{6, 1, 7}, {7, 99, 1}, 2},
                        View{{2, 3, 4, 5}, {60, 1, 15, 3}, 0}, View{{}, {}, 5}}) {
    Array<float> x(memory, v.shape, v.stride, v.offset);
    const auto args = arguments(*spec, {{"x", x.arg()}});
    auto plan = api::plan(spec, {.args = args});
    ASSERT_TRUE(plan) << plan.message;
    const api::Output planned = api::output(*plan.value);
    Array<float> y(std::vector<float>(120, -1.0f), {planned.shape.begin(), planned.shape.end()},
                   {planned.stride.begin(), planned.stride.end()});
    EXPECT_EQ(y.shape, v.shape);
    api::Arg out = y.arg();
    auto ran = api::run(*plan.value, {.args = args, .out = &out});
    ASSERT_TRUE(ran) << ran.message;
    EXPECT_EQ(y.elements(), seed_values(x.elements()));
    Array<float> backwards(std::vector<float>(200, -1.0f), v.shape, {planned.stride.begin(), planned.stride.end()},
                           150);
    for (int64_t &s : backwards.stride) s = -s;
    ASSERT_TRUE(run(spec, {{"x", x.arg()}}, backwards.arg()));
    EXPECT_EQ(backwards.elements(), y.elements());
  }
}

TEST(Facade, OutputStridesFollowTheInput) {
  const auto spec = compile(seed);
  Array<float> x(std::vector<float>(24), {4, 6}, {1, 4});
  const auto args = arguments(*spec, {{"x", x.arg()}});
  const auto plan = api::plan(spec, {.args = args});
  const api::Output out = api::output(*plan.value);
  EXPECT_EQ(std::vector(out.stride.begin(), out.stride.end()), (std::vector<int64_t>{1, 4}));
}

TEST(Facade, BroadcastsAndParameters) {
  const auto spec = compile("i < k: x*y + a; else y");
  Array<float> x({3, 1}), y({4}), out({3, 4});
  for (double a : {0.5, 100.0})
    for (int k : {0, 5, 12, 99}) {
      const auto result = run(spec, {{"x", x.arg()}, {"y", y.arg()}, {"a", number(a)}, {"k", number(k)}}, out.arg());
      ASSERT_TRUE(result) << result.message;
      for (int64_t i = 0; i < 12; ++i)
        EXPECT_EQ(out.memory[size_t(i)], i < k ? float(i / 4) * float(i % 4) + float(a) : float(i % 4));
    }
}

TEST(Facade, GeneratesWithoutTensors) {
  const auto spec = compile("i < k: 1.5; else 0");
  Array<float> out({5});
  const std::vector<int64_t> domain{5};
  api::Call call{.has_domain = true, .domain = domain};
  ASSERT_TRUE(run(spec, {{"k", number(2)}}, out.arg(), call));
  EXPECT_EQ(out.elements(), (std::vector<float>{1.5, 1.5, 0, 0, 0}));
  Array<float> strided(std::vector<float>(20), {2, 5}, {10, 2});
  ASSERT_TRUE(run(spec, {{"k", number(7)}}, strided.arg()));
  EXPECT_EQ(strided.elements(), (std::vector<float>{1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 0, 0, 0}));
}

TEST(Facade, ConvertsToTheDtypeOfOut) {
  Array<float> x({4});
  Array<double> y({4});
  ASSERT_TRUE(run(compile("x/3"), {{"x", x.arg()}}, y.arg()));
  EXPECT_EQ(y.memory[1], double(1.0f / 3.0f));
  Array<int32_t> whole({4});
  EXPECT_TRUE(says(refused("x/3", {{"x", x.arg()}}, whole.arg(), api::Fault::Type), "i32"));
}

TEST(Facade, SpecErrorsComeTogether) {
  const auto result = api::compile("i<n/4: x*; i>: x; else sqr(x)", "rule.ew");
  EXPECT_EQ(result.fault, api::Fault::Spec);
  ASSERT_GE(result.diagnostics.size(), 2u);
  EXPECT_TRUE(says(result.message, "rule.ew:1:"));
  EXPECT_EQ(result.diagnostics[0].line, 1u);
}

TEST(Facade, MissingArgumentsAreNamed) {
  Array<float> x({4}), y({4});
  EXPECT_TRUE(
      says(refused("x*gain", {{"x", x.arg()}}, y.arg(), api::Fault::Type), "missing argument `gain`; given: `x`"));
  EXPECT_TRUE(says(refused("i < N: x; else 0", {{"x", x.arg()}}, y.arg(), api::Fault::Type), "did you mean `n`"));
}

TEST(Facade, ShapesThatDoNotFit) {
  Array<float> x({3, 4}), y({3, 5}), out({3, 4});
  const std::string message = refused("x+y", {{"x", x.arg()}, {"y", y.arg()}}, out.arg(), api::Fault::Value);
  EXPECT_TRUE(says(message, "`x` has shape (3, 4) and `y` (3, 5): lengths 4 and 5 on axis -1 do not broadcast"));
  Array<float> flat({12});
  EXPECT_TRUE(says(refused("x*2", {{"x", x.arg()}}, flat.arg(), api::Fault::Value),
                   "`out` has shape (12,), but `x` has (3, 4)"));
  const std::vector<int64_t> domain{4, 4};
  EXPECT_TRUE(
      says(refused("x*2", {{"x", x.arg()}}, out.arg(), api::Fault::Value, {.has_domain = true, .domain = domain}),
           "does not broadcast to"));
  const auto spec = compile("i*2");
  EXPECT_TRUE(says(api::plan(spec, {}).message, "give `shape=`"));
}

TEST(Facade, OverlapsAreRefused) {
  std::vector<float> memory(100);
  Array<float> x({50});
  auto view = [&](std::vector<int64_t> shape, std::vector<int64_t> stride, int64_t offset) {
    Array<float> a({}, std::move(shape), std::move(stride));
    api::Arg arg = a.arg();
    static std::vector<Array<float>> kept;
    kept.reserve(64), kept.push_back(std::move(a));
    arg.shape = kept.back().shape.data(), arg.stride = kept.back().stride.data(), arg.data = memory.data() + offset;
    return arg;
  };
  const auto before = memory;
  EXPECT_TRUE(
      says(refused("x*2", {{"x", view({10}, {1}, 0)}}, view({10}, {1}, 1), api::Fault::Value), "`out` overlaps `x`"));
  EXPECT_TRUE(says(
      refused("x*2+y", {{"x", view({10}, {1}, 0)}, {"y", view({10}, {1}, 5)}}, view({10}, {1}, 0), api::Fault::Value),
      "pass `y.clone()`"));
  EXPECT_TRUE(
      says(refused("x*2", {{"x", view({5, 5}, {1, 5}, 0)}}, view({5, 5}, {5, 1}, 0), api::Fault::Value), "overlaps"));
  EXPECT_TRUE(says(refused("x*2", {{"x", x.arg()}}, view({50}, {0}, 0), api::Fault::Value), "more than once"));
  EXPECT_EQ(memory, before);
  const auto spec = compile("x+1");
  EXPECT_TRUE(run(spec, {{"x", view({10}, {2}, 0)}}, view({10}, {2}, 1))); // interleaved, disjoint
  EXPECT_TRUE(run(spec, {{"x", view({9}, {2}, 0)}}, view({9}, {2}, 0)));   // the identical view
  for (int i = 0; i < 20; ++i) EXPECT_EQ(memory[size_t(i)], i % 2 ? 1 : i < 18 ? 1 : 0) << i;
}

TEST(Facade, ValuesThatDoNotWork) {
  Array<int32_t> x({4}), y({4});
  EXPECT_EQ(run(compile("x + k"), {{"x", x.arg()}, {"k", number(__int128(1) << 40)}}, y.arg()).fault,
            api::Fault::Overflow);
  EXPECT_EQ(run(compile("i < n//k: x; else 0"), {{"x", x.arg()}, {"k", number(0)}}, y.arg()).fault,
            api::Fault::ZeroDivision);
  EXPECT_EQ(y.memory, Array<int32_t>({4}).memory); // nothing was written
  Array<int32_t> none({0});
  EXPECT_TRUE(
      run(compile("i < n//k: x; else 0"), {{"x", none.arg()}, {"k", number(0)}}, none.arg())); // no position reaches it
  Array<int64_t> wide({4});
  const auto result = run(compile("i*k"), {{"k", number(__int128(1) << 62)}}, wide.arg());
  EXPECT_EQ(result.fault, api::Fault::Overflow) << result.message;
  ASSERT_TRUE(run(compile("i*k*k < n: 1; else 0"), {{"k", number(__int128(1) << 40)}},
                  wide.arg())); // a comparison may pass 64 bits
  EXPECT_EQ(wide.memory, (std::vector<int64_t>{1, 0, 0, 0}));
}

TEST(Facade, EqualTextIsOneSpec) {
  const auto a = compile("x * 3 + 1"), b = compile("x * 3 + 1"), c = compile("x * 3 + 2");
  EXPECT_EQ(a, b);
  EXPECT_NE(a, c);
  EXPECT_EQ(api::text(*a), "x * 3 + 1");
}

TEST(Facade, EmitsEveryTextStage) {
  const auto spec = compile(seed);
  for (auto [stage, part] : {std::pair{api::Stage::Tokens, "name i"},
                             {api::Stage::Ast, "(< i (/ n 4))"},
                             {api::Stage::Ir, "floordiv"},
                             {api::Stage::Cuda, "__global__"},
                             {api::Stage::Llvm, "define"},
                             {api::Stage::Asm, "elsewise"},
                             {api::Stage::Torch, "def rule"}}) {
    const auto text = api::emit(*spec, {.stage = stage});
    EXPECT_TRUE(text) << text.message;
    EXPECT_TRUE(says(text.value, part));
  }
  EXPECT_EQ(api::emit(*compile("i < edge: x; else 0"), {}).fault, api::Fault::Type);
  EXPECT_TRUE(says(api::emit(*spec, {.stage = api::Stage::Ir, .print_after = "nothing"}).message, "the passes are"));
  EXPECT_TRUE(says(api::emit(*spec, {.in_place = true}).value, "piece 3 is the element itself"));
}

} // namespace
} // namespace elsewise::tests
