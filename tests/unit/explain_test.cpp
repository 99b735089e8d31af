// SPDX-License-Identifier: Apache-2.0
// What explain() says of calls on a GPU that is not there, and of kernels whose bounds only rows know. Results of calls
// are nobody's business here.
#include "runtime/explain/words.h"
#include "runtime/launch_taker.h"
#include "tests/unit/calls.h"
#include <tuple>

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
  const int64_t shape[] = {64, 2000}, padded[] = {2001, 1}, stride[] = {2000, 1}, turned[] = {1, 64},
                gaps[] = {4000, 2};
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
  EXPECT_EQ(transposed.operands[1].access, "through tiles in shared memory");
  EXPECT_EQ(transposed.operands[1].why + transposed.operands[1].cure, "");
  EXPECT_EQ(transposed.form.substr(0, 34), "rows over 1 axis, in tiles of 64 r") << transposed.form;
  const Explained gapped = explained("x + y", {{{"x", good}, {"y", view(gaps, 1 << 24)}}});
  EXPECT_EQ(gapped.operands[1].access, "strided");
  EXPECT_EQ(gapped.operands[1].why, "2 elements apart along the inner axis");
  EXPECT_NE(gapped.operands[1].cure.find("y.contiguous()"), std::string::npos);
  for (const auto &e : {off, rows, transposed, gapped}) EXPECT_EQ(e.operands.back().access, "vector");
}

// What is said of a launch is what a launch is: each call is looked at, then started.
struct Started {
  Geometry geometry;
  Form form;
  std::vector<std::vector<uint8_t>> arguments;
};
Started started(const std::string &rule, const Given &given) {
  Started seen;
  const api::LaunchTaker taker = [&](const Kernel &k, const Geometry &g, std::span<void *const> parameters) {
    seen.geometry = g, seen.form = k.form;
    const auto list = slots(k, Backend::Cuda);
    for (size_t s = 0; s < list.size(); ++s) {
      const auto *at = static_cast<const uint8_t *>(parameters[s]);
      if (list[s].kind == SlotKind::Segments) seen.arguments.emplace_back(at, at + slot_bytes(k, list[s]));
    }
  };
  const api::TakeLaunches taking{taker};
  EXPECT_TRUE(run(compile(rule), given.args, *given.out));
  return seen;
}

// A tensor on a device that is not there.
struct Tensor {
  std::vector<int64_t> shape, stride;
  uintptr_t address = 1 << 20;
  DType dtype = DType::F32;
  api::Arg arg() const {
    return on_gpu({.kind = ArgKind::Tensor,
                   .dtype = dtype,
                   .rank = int32_t(shape.size()),
                   .shape = shape.data(),
                   .stride = stride.data()},
                  address);
  }
};

struct Expected {
  const char *form, *choice;
  int64_t head, tail, segments;
};

void check_launch(const std::string &rule, const Tensor &x, const Tensor &out, const Expected &expected,
                  std::map<std::string, api::Arg> more = {}) {
  SCOPED_TRACE(rule);
  const api::Arg to = out.arg();
  Given given{std::move(more), &to};
  given.args["x"] = x.arg();
  const Explained e = [&] {
    const api::LaunchTaker none = [](const Kernel &, const Geometry &, std::span<void *const>) { ADD_FAILURE(); };
    const api::TakeLaunches taking{none};
    return explained(rule, given);
  }();
  EXPECT_EQ(e.form, expected.form);
  EXPECT_EQ(e.choice, expected.choice);
  EXPECT_EQ(e.head, expected.head);
  EXPECT_EQ(e.tail, expected.tail);
  EXPECT_EQ(e.segments, expected.segments);
  const Started launch = started(rule, given);
  EXPECT_EQ(form_words(launch.form), expected.form);
  EXPECT_EQ(e.vector, launch.form.vector);
  EXPECT_EQ(std::tuple(e.grid, e.block_x, e.block_y),
            std::tuple(launch.geometry.grid, launch.geometry.block_x, launch.geometry.block_y));
  EXPECT_EQ(e.table_bytes, launch.arguments.empty() ? 0 : int64_t(launch.arguments[0].size()));
  int64_t read = 0, written = 0;
  for (const PieceUse &p : e.pieces) read += p.read, written += p.written;
  EXPECT_GE(read, launch.form.flat ? 0 : e.read);
  if (e.at_most) EXPECT_GE(written, e.written);
  else EXPECT_EQ(written, e.written);
}

TEST(ExplainALaunch, OfEveryForm) {
  const char *const by_vector =
      "a thread compares bounds once; a vector within one piece runs it alone, others go position by position";
  const char *const first = "each position takes the first piece that holds",
                    *const whole = "each position takes the first piece that holds; vectors are read and written whole";
  const std::string seed = "i<n/4: x*0.5; i>=n-n/4: x*2; else x", causal = "[.., r, c]; c <= r: x; else 0";
  std::string many;
  for (int p = 1; p < 16; ++p) many += "i < " + std::to_string(60 * p) + ": x*" + std::to_string(p) + ".5; ";
  many += "else x";

  const Tensor line{{100'003}, {1}}, other{{100'003}, {1}, (1 << 26) + 4};
  check_launch(seed, line, {{100'003}, {1}, 1 << 26}, {"one row, 32-bit indexes", by_vector, 0, 3, 0});
  check_launch(seed, line, other, {"one row, 32-bit indexes", by_vector, 3, 0, 0});
  check_launch(seed, line, line, {"one row, 32-bit indexes", by_vector, 0, 3, 0});
  check_launch("x + 1", line, other, {"one row, 32-bit indexes", "", 3, 0, 0});
  check_launch("x > 0: x; else 0", line, line, {"one row, 32-bit indexes", first, 0, 3, 0});
  check_launch("x > 0 and i < n/2: x; else 0", line, line,
               {"one row, 32-bit indexes",
                "a thread compares bounds once; a vector within one piece runs it alone, others go position by "
                "position, and so where elements are tested",
                0, 3, 0});
  const char *const table =
      "a block searches a table of 16 segments, 120 bytes of launch arguments; 2 bodies for 16 pieces";
  check_launch(many, line, other, {"one row, pieces by segments, 32-bit indexes", table, 3, 0, 16});
  check_launch(many, line, line, {"one row, pieces by segments, 32-bit indexes", table, 0, 3, 16});
  check_launch(many, {{130}, {1}}, {{130}, {1}, 1 << 26},
               {"one row, pieces by segments, 32-bit indexes",
                "a block searches a table of 3 segments, 120 bytes of launch arguments; 2 bodies for 16 pieces", 0, 2,
                3});

  // From 2^30 elements on indexes have 64 bits, in the table too.
  constexpr int64_t huge = (int64_t(1) << 30) + 3;
  const Tensor long_line{{huge}, {1}}, long_other{{huge}, {1}, uintptr_t(1) << 50};
  check_launch(seed, long_line, long_other, {"one row", by_vector, 0, 3, 0});
  check_launch(many, long_line, long_other,
               {"one row, pieces by segments",
                "a block searches a table of 16 segments, 192 bytes of launch arguments; 2 bodies for 16 pieces", 0, 3,
                16});

  const Tensor rows{{64, 2000}, {2000, 1}}, odd{{64, 2001}, {2001, 1}}, row_out{{64, 2000}, {2000, 1}, 1 << 26};
  check_launch(causal, rows, row_out, {"rows over 1 axis, 32-bit indexes", by_vector, 0, 0, 0});
  check_launch(causal, odd, {{64, 2001}, {2001, 1}, 1 << 26},
               {"rows over 1 axis, 32-bit indexes", by_vector, -1, -1, 0});
  check_launch("i < 3: x; else 0", {{64, 2000}, {1, 64}}, {{64, 2000}, {2, 128}, 1 << 26},
               {"rows over 1 axis, the inner axis is not the innermost of the domain, 32-bit indexes", first, 0, 0, 0});
  check_launch(causal, {{8, 64, 63}, {64 * 63, 63, 1}}, {{8, 64, 63}, {64 * 63, 63, 1}, (1 << 26) + 8},
               {"rows over 2 axes, one behind the other, 32-bit indexes", whole, 2, 2, 0});
  const Tensor wide{{1 << 20, 1 << 20}, {1 << 20, 1}}, wide_out{{1 << 20, 1 << 20}, {1 << 20, 1}, uintptr_t(1) << 50};
  check_launch(causal, wide, wide_out, {"rows over 1 axis", by_vector, 0, 0, 0});
}

TEST_F(ExplainOnGpu, RowsOneBehindTheOther) {
  const int64_t shape[] = {64, 100}, stride[] = {100, 1}, padded[] = {104, 1}, column[] = {64, 1}, row[] = {1, 100},
                ones[] = {1, 1};
  auto view = [&](const int64_t *lengths, const int64_t *strides, uintptr_t address) {
    return on_gpu({.kind = ArgKind::Tensor, .dtype = DType::F32, .rank = 2, .shape = lengths, .stride = strides},
                  address);
  };
  const api::Arg x = view(shape, stride, 1 << 20);
  const Explained e = explained("[r, c]; c < 3: 0; else x*u+v+w", {{{"x", x},
                                                                    {"u", view(row, stride, 1 << 21)},
                                                                    {"v", view(column, ones, 1 << 22)},
                                                                    {"w", view(shape, padded, 1 << 23)}}});
  std::vector<std::string> ways;
  for (const auto &o : e.operands) ways.push_back(o.access);
  EXPECT_EQ(ways,
            (std::vector<std::string>{"vector", "the same in every row", "one value a row", "strided", "vector"}));
  EXPECT_EQ(e.operands[3].why, "its rows do not lie one behind the other as those of `out`");
  EXPECT_EQ(e.vectors, "4 positions a thread, across the ends of rows: stores of 16 bytes, loads of 16");
  EXPECT_EQ(e.operands[0].bytes, 64 * 100 * 4); // whole vectors, though 3 positions a row do not ask for it
  // In place nothing can be left alone.
  const Explained inside = explained("[r, c]; c < 3: 0; else x", {{{"x", x}}, &x});
  EXPECT_EQ(inside.untouched, 0);
  EXPECT_EQ(inside.pieces[1].does, "written back with what is beside it");
  EXPECT_EQ((std::pair{inside.read, inside.written}), (std::pair<int64_t, int64_t>{25600, 25600}));
  const int64_t longer[] = {64, 300}, steps[] = {300, 1}; // these in place leave rows in the row form
  const api::Arg y = view(longer, steps, 1 << 20);
  const Explained left = explained("[r, c]; c < 3: 0; else x", {{{"x", y}}, &y});
  EXPECT_EQ(left.form, "rows over 1 axis, 32-bit indexes");
  EXPECT_EQ(left.untouched, 64 * 297);
  EXPECT_EQ(left.pieces[1].does, "nothing: the element itself, in place");
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

TEST(Explain, WhatKeepsReadsInBounds) {
  Array<float> s({10}), x({1280}), none({0});
  Array<int64_t> lens({6});
  auto checks = [](const std::string &rule, const Given &given) { return explained(rule, given).checks; };
  using Words = std::vector<std::string>;
  EXPECT_EQ(checks("s[i//128]*x", {{{"s", s.arg()}, {"x", x.arg()}}}),
            Words{"`s[i//128]` is in bounds: the host worked its indices out"});
  EXPECT_EQ(checks("s[clip(int(x), 0, len(s)-1)]", {{{"s", s.arg()}, {"x", x.arg()}}}),
            Words{"`s[clip(int(x), 0, len(s)-1)]` is in bounds: proved, as `s` is not empty"});
  EXPECT_EQ(checks("i < e: x; i >= e: 0", {{{"x", x.arg()}, {"e", number(2.5)}}}),
            Words{"`e` is not NaN, as which it would leave positions without a piece"});
  EXPECT_EQ(checks("i < n//k: x; else 0", {{{"x", x.arg()}, {"k", number(3)}}}), Words{"`n//k` does not divide by 0"});
  EXPECT_EQ(checks("x + 1", {{{"x", x.arg()}}}), Words{});
  Array<float> y({6, 8});
  EXPECT_EQ(checks("[b, t]; t < lens[b]: x; else 0", {{{"x", y.arg()}, {"lens", lens.arg()}}}).size(), 1u);
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
  EXPECT_EQ(form_words(Form{.narrow = true}), "one row, 32-bit indexes");
  EXPECT_EQ(form_words(Form{.segments = 32, .many = 4096}), "one row, pieces by segments, a list of tensors");
  EXPECT_EQ(form_words(Form{.rows = 2, .narrow = true, .flat = true}),
            "rows over 2 axes, one behind the other, 32-bit indexes");
  EXPECT_EQ(form_words(Form{.rows = 1, .narrow = true}), "rows over 1 axis, 32-bit indexes");
  EXPECT_EQ(form_words(Form{.rows = 2, .unit_pitch = false, .wide = true, .window = true}),
            "rows over 2 axes, a window, the inner axis is not the innermost of the domain, 128-bit indexes");
}

} // namespace
} // namespace elsewise::tests
