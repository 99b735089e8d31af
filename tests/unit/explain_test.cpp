// SPDX-License-Identifier: Apache-2.0
// What explain() says of calls on a GPU that is not there, and of kernels whose bounds only rows know. Results of calls
// are nobody's business here.
#include "runtime/explain/words.h"
#include "runtime/launch_taker.h"
#include "tests/unit/calls.h"

namespace elsewise::tests {
namespace {

using api::Explained, api::PieceUse;

struct Given {
  std::map<std::string, api::Arg> args;
  const api::Arg *out = nullptr;
};

Explained explained(const std::string &rule, const Given &given, api::Call call = {}) {
  const auto spec = compile(rule);
  const auto args = arguments(*spec, given.args);
  call.args = args, call.out = given.out;
  auto result = api::explain(spec, call);
  EXPECT_TRUE(result) << result.message;
  return result.value;
}

api::Arg on_gpu(api::Arg arg, uintptr_t address = 1 << 20) {
  arg.device = {api::DeviceKind::Cuda, 0};
  arg.data = reinterpret_cast<void *>(address);
  return arg;
}

// Calls on CUDA plan without a driver; explain() starts none.
class OnGpu : public testing::Test {
protected:
  const api::LaunchTaker taker = [](const Kernel &, const Geometry &, std::span<void *const>) {
    ADD_FAILURE() << "explain() launched";
  };
  const api::TakeLaunches taking{taker};
};
using ExplainOnGpu = OnGpu;

TEST_F(ExplainOnGpu, BlocksThatKeepTheirElementStartNoThread) {
  const int64_t n = 1 << 20, shape[] = {n}, stride[] = {1};
  api::Arg x{.kind = ArgKind::Tensor, .dtype = DType::F32, .rank = 1, .shape = shape, .stride = stride};
  x = on_gpu(x);
  const Explained apart = explained("i<n/4: x*0.5; i>=n-n/4: x*2; else x", {{{"x", x}}});
  EXPECT_EQ(apart.grid, n / 1024);
  EXPECT_EQ(apart.block_x, 256u);
  EXPECT_EQ(apart.not_launched, 0);
  EXPECT_EQ(apart.vectors, "4 positions a thread: stores of 16 bytes, loads of 16");
  EXPECT_EQ(apart.operands[0].access, "vector");
  EXPECT_EQ(apart.read + apart.written, apart.copy);
  const Explained inside = explained("i<n/4: x*0.5; i>=n-n/4: x*2; else x", {{{"x", x}}, &x});
  EXPECT_EQ(inside.grid, n / 2048);
  EXPECT_EQ(inside.untouched, n / 2);
  EXPECT_EQ(inside.not_launched, n / 2);
  EXPECT_EQ(inside.read, n / 2 * 4);
  EXPECT_EQ(inside.written, n / 2 * 4);
  EXPECT_EQ(inside.pieces[2].does, "nothing: the element itself, in place");
  EXPECT_EQ(inside.operands[0].access, "in place, as `out`");
  // Ends within a block: what is left of it is launched, though nothing happens there.
  const Explained odd = explained("i<1000: x*0.5; else x", {{{"x", x}}, &x});
  EXPECT_EQ(odd.grid, 1u);
  EXPECT_EQ(odd.untouched, n - 1000);
  EXPECT_EQ(odd.not_launched, n - 1024);
}

TEST_F(ExplainOnGpu, SlowAccessHasItsReasonAndACure) {
  const int64_t shape[] = {64, 1000}, padded[] = {1001, 1}, stride[] = {1000, 1}, turned[] = {1, 64};
  auto view = [&](const int64_t *strides, uintptr_t address) {
    api::Arg a{.kind = ArgKind::Tensor, .dtype = DType::F32, .rank = 2, .shape = shape, .stride = strides};
    return on_gpu(a, address);
  };
  const api::Arg good = view(stride, 1 << 20);
  const Explained off = explained("x + y", {{{"x", good}, {"y", view(stride, (1 << 24) + 4)}}});
  EXPECT_EQ(off.operands[0].access, "vector");
  EXPECT_EQ(off.operands[1].access, "element by element");
  EXPECT_EQ(off.operands[1].why, "its address is not aligned as that of `out`");
  EXPECT_NE(off.operands[1].cure.find("y.clone()"), std::string::npos);
  const Explained rows = explained("x + y", {{{"x", good}, {"y", view(padded, 1 << 24)}}});
  EXPECT_EQ(rows.operands[1].access, "element by element");
  EXPECT_EQ(rows.operands[1].why, "its rows begin at other places in a vector than those of `out`");
  const Explained transposed = explained("x + y", {{{"x", good}, {"y", view(turned, 1 << 24)}}});
  EXPECT_EQ(transposed.operands[1].access, "strided");
  EXPECT_EQ(transposed.operands[1].why, "64 elements apart along the inner axis");
  EXPECT_NE(transposed.operands[1].cure.find("y.contiguous()"), std::string::npos);
  for (const auto &e : {off, rows, transposed}) EXPECT_EQ(e.operands.back().access, "vector");
}

TEST_F(ExplainOnGpu, WideInputsNarrowTheVector) {
  const int64_t shape[] = {4096}, stride[] = {1};
  api::Arg x{.kind = ArgKind::Tensor, .dtype = DType::F64, .rank = 1, .shape = shape, .stride = stride};
  const Explained e = explained("f16(x)", {{{"x", on_gpu(x)}}});
  EXPECT_EQ(e.vector, 4);
  EXPECT_EQ(e.vectors,
            "4 positions a thread: stores of 8 bytes, loads of 32, the most that a thread loads of one tensor");
}

TEST(Explain, ALookLeavesNothingBehind) {
  const auto spec = compile("i < edge: 0; else x*2 # looked at");
  Array<float> x({100}), y({100});
  const std::vector<float> before_x = x.memory, before_y = y.memory;
  const std::map<std::string, api::Arg> given{{"x", x.arg()}, {"edge", number(3)}};
  const auto args = arguments(*spec, given);
  const api::Arg out = y.arg();
  auto look = [&] {
    auto r = api::explain(spec, {.args = args, .out = &out});
    EXPECT_TRUE(r) << r.message;
    return std::pair(r.value.plan_cached, r.value.compiled);
  };
  auto counts = [] {
    const api::Counters c = api::counters();
    return std::vector{c.nvrtc, c.orc, c.variants, c.plans, c.variant_hits, c.plan_hits, c.launches};
  };
  const auto before = counts();
  EXPECT_EQ(look(), std::pair(false, false));
  EXPECT_EQ(look(), std::pair(false, false));
  EXPECT_EQ(counts(), before);
  EXPECT_EQ(x.memory, before_x);
  EXPECT_EQ(y.memory, before_y);
  ASSERT_TRUE(run(spec, given, y.arg()));
  const auto ran = counts();
  EXPECT_EQ(look(), std::pair(true, true));
  EXPECT_EQ(counts(), ran);
}

TEST(Explain, WhatACallRefusesALookRefuses) {
  const auto spec = compile("s[i + d]");
  Array<float> s({10}), y({10});
  const auto args = arguments(*spec, {{"s", s.arg()}, {"d", number(1)}});
  const api::Arg out = y.arg();
  const auto looked = api::explain(spec, {.args = args, .out = &out});
  EXPECT_EQ(looked.fault, api::Fault::Index);
  const auto ran = run(spec, {{"s", s.arg()}, {"d", number(1)}}, y.arg());
  EXPECT_EQ(looked.message, ran.message);
}

TEST(Explain, NumbersStandForValues) {
  auto numbered = [](const char *rule) {
    const std::string text = api::numbered(*compile(rule));
    compile(text);
    return text;
  };
  EXPECT_EQ(numbered("i < 3: x*(2+1); x > 0: # why\n  -x\nelse x"), "i < 3:  0; x > 0: # why\n   1\nelse  2");
  EXPECT_EQ(numbered("(x + 1)"), " 0");
  EXPECT_EQ(numbered("let w = x*2; i < 3: w; else(w)"), "let w = x*2; i < 3:  0; else 1");
}

std::vector<std::string> wheres(const Explained &e) {
  std::vector<std::string> list;
  for (const PieceUse &p : e.pieces) list.push_back(p.where);
  return list;
}

TEST(Explain, WhereAPieceHoldsInWords) {
  Array<float> x({6, 8}), row({6});
  Array<int64_t> lens({6});
  const auto of = [&](const std::string &rule) {
    const auto spec = compile(rule);
    Given g;
    for (const std::string &name : api::arguments(*spec))
      g.args[name] = name == "lens" ? lens.arg() : name == "y" ? row.arg() : name == "k" ? number(2) : x.arg();
    return wheres(explained(rule, g));
  };
  using Words = std::vector<std::string>;
  EXPECT_EQ(of("i < n/4: 0; i >= n-n/4: 1; else x"), (Words{"i in [0, 12)", "i in [36, 48)", "everywhere else"}));
  EXPECT_EQ(of("-x"), (Words{"everywhere"}));
  EXPECT_EQ(of("[r, c]; c <= r: x; else 0"), (Words{"c in [0, r + 1) of each row", "everywhere else"}));
  EXPECT_EQ(of("[b, t]; t < lens[b]: x; else 0"), (Words{"t in [0, lens[b]) of each row", "everywhere else"}));
  EXPECT_EQ(of("[b, t]; t >= lens[b] - 2*b: x; else 0"),
            (Words{"t in [lens[b] - b * 2, 8) of each row", "everywhere else"}));
  EXPECT_EQ(of("[r, c]; r < k and c > 2: 0; else x"), (Words{"c in [3, 8) of rows where `r < k`", "everywhere else"}));
  EXPECT_EQ(of("[r, c]; y[r] > 2: 0; else x"), (Words{"rows where `y[r] > 2`", "everywhere else"}));
  EXPECT_EQ(of("i < 5 and x > 0 and i % 2 == 0: 0; else x"),
            (Words{"i in [0, 5) where `i < 5 and x > 0 and i % 2 == 0`", "everywhere else"}));
  EXPECT_EQ(of("i < 5 and x > 0: 0; else x"), (Words{"i in [0, 5) where `x > 0`", "everywhere else"}));
  EXPECT_EQ(of("[b, t]; t < lens[b] and x > 0: 0; else x"),
            (Words{"t in [0, lens[b]) of each row where `x > 0`", "everywhere else"}));
  EXPECT_EQ(of("[b, t]; y[b] > 1 and t < 5 and y[t/4] > 0: 0; else x"),
            (Words{"t in [0, 5) of rows where `y[b] > 1` where `y[t/4] > 0`", "everywhere else"}));
  EXPECT_EQ(of("x > 0 and k > 1: 0; 2 < 1: 4; else x"),
            (Words{"i in [0, 48) where `x > 0`", "nowhere", "everywhere else"}));
  EXPECT_EQ(of("i < 0: 1; i < 2 or i > 60: 0; else x"), (Words{"nowhere", "i in [0, 2)", "everywhere else"}));
  EXPECT_EQ(of("[r, c]; r != c: x; else 1"), (Words{"c in [0, r) or c in [r + 1, 8) of each row", "everywhere else"}));
}

TEST(Explain, AnAxisOfTheLoopIsNamedByThoseThatItWalks) {
  Array<float> x({2, 3, 4, 5});
  const Explained e = explained("[b, .., t]; t < 2: 0; else x", {{{"x", x.arg()}}});
  ASSERT_EQ(e.loop.size(), 2u);
  EXPECT_EQ(e.loop[0].axes, std::vector<std::string>{"t"});
  EXPECT_EQ(e.loop[1].axes, (std::vector<std::string>{"b", "axis 1", "axis 2"}));
  EXPECT_EQ(e.loop[1].length, 24);
  const Explained one = explained("x * 2", {{{"x", x.arg()}}});
  EXPECT_EQ(one.loop.size(), 1u);
  EXPECT_EQ(one.loop[0].axes.size(), 4u);
}

TEST(Explain, AFormHasWords) {
  EXPECT_EQ(form_words(Form{}), "one row");
  EXPECT_EQ(form_words(Form{.rows = 1, .narrow = true}), "rows over 1 axis, 32-bit indexes");
  EXPECT_EQ(form_words(Form{.rows = 2, .unit_pitch = false, .wide = true, .window = true}),
            "rows over 2 axes, a window, the inner axis is not the innermost of the domain, 128-bit indexes");
}

} // namespace
} // namespace elsewise::tests
