// SPDX-License-Identifier: Apache-2.0
// Each pass on its own idea, and ranges against the guard they came from at every position. Random programs run in
// lower_random_test.cpp.
#include "compiler/passes/form.h"
#include "runtime/host/faults.h"
#include "tests/unit/interpret.h"
#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>

namespace elsewise::test {
namespace {

/// "[, %2) [%3, ) when %5" of each piece, as the pass left it.
std::string pieces(const Kernel &k) {
  std::string s;
  for (const Piece &p : k.pieces) {
    if (!s.empty()) s += "; ";
    std::string own;
    for (const auto &box : p.boxes) {
      auto bound = [&](NodeId n) {
        return n == no_node           ? std::string()
               : k[n].op == Op::Const ? std::to_string((long long)k.constants[k[n].a].integer)
                                      : "%" + std::to_string(n);
      };
      own += std::string(own.empty() ? "" : " ") + "[" + bound(box[0].lo) + ", " + bound(box[0].hi) + ")";
    }
    if (p.guard != no_node) own += own.empty() ? "when" : " when";
    s += own.empty() ? "all" : own;
  }
  return s;
}
std::string ranges(const std::string &guard,
                   const std::vector<std::string> &arguments = {"x: f32", "m: int", "k: int", "g: float", "f: bool"}) {
  return pieces(after("ranges", guard + ": 1; else 0", arguments));
}

TEST(Passes, Names) {
  const std::vector<std::string_view> want{"fold",   "bounds", "clips", "axes", "ranges",
                                           "window", "dead",   "lift",  "form", "schedule"};
  EXPECT_EQ(pass_names(), want);
}

Form of_a_window() {
  Form form;
  form.args = {Access::Vector}, form.window = true;
  return form;
}

TEST(Window, OnlyItsFormHasAnOrigin) {
  const Kernel whole = scheduled("i < n/4: x; else x*i", {"x: f32"}),
               part = scheduled("i < n/4: x; else x*i", {"x: f32"}, of_a_window());
  auto origins = [](const Kernel &k) {
    return std::count_if(k.insts.begin(), k.insts.end(), [](const Inst &i) { return i.op == Op::Origin; });
  };
  EXPECT_EQ(origins(whole), 0);
  EXPECT_EQ(origins(part), 1);
  EXPECT_EQ(scheduled("x*2", {"x: f32"}, of_a_window()).insts.size(), scheduled("x*2", {"x: f32"}).insts.size());
}

// Bounds and positions of every window of a short domain, as those of the whole.
TEST(Window, ComputesWhatTheWholeDoes) {
  for (const std::string guard : {"i < m", "i >= n - n//4 or i == 2", "i % 3 == 1 and i > 1", "i < where(f, m, 1)",
                                  "i < int(g*n)", "f", "2*i + m < n"}) {
    const std::string spec = guard + ": i*10; else n - i";
    const std::vector<std::string> arguments{"x: f32", "m: int", "f: bool", "g: float"};
    const Kernel whole = scheduled(spec, arguments), part = scheduled(spec, arguments, of_a_window());
    for (const int64_t n : {1, 5, 9})
      for (const __int128 m : {__int128(3), -(__int128(1) << 126) * 2, (((__int128(1) << 126) - 1) * 2) + 1})
        for (int64_t at = 0; at < n; ++at)
          for (int64_t extent = 1; at + extent <= n; ++extent) {
            std::vector<HostValue> values;
            for (const Argument &a : whole.arguments) {
              HostValue v{.integer = a.name == "m" ? m : 1};
              if (a.name == "g") v.real = 0.5;
              values.push_back(v);
            }
            if (m != 3 && guard.find("2*i") != guard.npos) continue; // it is added to, beyond 128 bits
            const HostCall a = host_call(whole, values, n);
            HostDomain domain(n);
            domain.extent = domain.span = extent, domain.origin = at;
            HostCall b;
            HostProgram(part).run(values, domain, b.values, b.poisoned);
            const CallChecks checks(part);
            b.check = checks.run(b.values, b.poisoned, checks.looks(domain), domain);
            ASSERT_EQ(int(b.check.fault.what), 0) << guard << ": " << b.check.fault.message;
            for (int64_t i = 0; i < extent; ++i)
              ASSERT_EQ(interpret(part, b, i, extent, nullptr).integer, interpret(whole, a, at + i, n, nullptr).integer)
                  << guard << " at " << at << " + " << i << " of " << n << "\n"
                  << print(part);
          }
  }
}

TEST(Fold, WorksConstantsExactly) {
  auto text = [](const std::string &spec, const std::vector<std::string> &arguments) {
    return nodes(after("fold", spec, arguments));
  };
  EXPECT_NE(text("x * (0.1 + 0.2)", {"x: f32"}).find("const 0.3 : f32"), std::string::npos);
  EXPECT_NE(text("x * (0.1 + 0.2)", {"x: f64"}).find("const 0.30000000000000004 : f64"), std::string::npos);
  EXPECT_EQ(text("x * 1", {"x: f16"}), "kernel (x: f16) -> f16\n  %0 = load x : f16 element\n  piece 1:1 -> %0\n")
      << "moves as bits";
  EXPECT_NE(text("x + 0", {"x: f32"}).find("add"), std::string::npos) << "-0 + 0 is +0";
  EXPECT_NE(text("x ** 2", {"x: f32"}).find("mul %0, %0"), std::string::npos);
  EXPECT_NE(text("where(2**70 // 2**60 > i, 1, 0)", {}).find("floordiv"), std::string::npos)
      << "what leaves 64 bits stays to be found";
  EXPECT_EQ(text("i * 0 < 1: 1; else 0", {}).find("const true"), std::string::npos) << "only constants are known";
}

TEST(Ranges, OneAxis) {
  EXPECT_EQ(ranges("i < 3"), "[, 3); all");
  EXPECT_EQ(ranges("i <= 3"), "[, 4); all");
  EXPECT_EQ(ranges("3 < i"), "[4, ); all");
  EXPECT_EQ(ranges("i == 3"), "[3, 4); all");
  EXPECT_EQ(ranges("i != 3"), "[, 3) [4, ); all");
  EXPECT_EQ(ranges("3 <= i < 9"), "[3, 9); all");
  EXPECT_EQ(ranges("not (3 <= i < 9)"), "[, 3) [9, ); all");
  EXPECT_EQ(ranges("2*i < 9"), "[, 5); all");
  EXPECT_EQ(ranges("2*i == m"), "[%6, %8); all");
  EXPECT_EQ(ranges("3*i + 1 > 9 - i"), "[3, ); all");
  EXPECT_EQ(ranges("i < 3 or i > 7 or i == 5 or i == 6"), "[, 3) [8, ) [5, 6) [6, 7); all");
  EXPECT_EQ(ranges("i < 3 or i > 9 or i == 5 or i == 6 or i == 7"), "when; all") << "at most 4 boxes";
  EXPECT_EQ(ranges("i >= 0"), "all");
  EXPECT_EQ(ranges("i < n"), "all");
  EXPECT_EQ(ranges("i % 2 == 0"), "when; all");
  EXPECT_EQ(ranges("x > 0 and i < 5"), "[, 5) when; all");
  EXPECT_EQ(ranges("(x > 0 and i < 5) or i > 7"), "[, 5) [8, ) when; all") << "boxes say where the test can hold";
  EXPECT_EQ(ranges("x > 0 or i < 5"), "when; all");
  EXPECT_EQ(ranges("i < 5 and i < 3 and i < 7"), "[, 3); all");
}

TEST(Ranges, HostConditionsEmptyABox) {
  const Kernel k = after("schedule", "m > 3 and i < 5: 1; else 0", {"m: int"});
  for (const int m : {3, 4})
    for (int i = 0; i < 8; ++i)
      EXPECT_EQ(interpret(k, host_call(k, {{.integer = m}}, 8), i, 8, nullptr).integer, m > 3 && i < 5);
}

/// Guards with parameters at every position and many values, against the same guard made a value, which no range can
/// touch.
TEST(Ranges, SayWhatTheGuardSays) {
  const char *guards[] = {"i < m",
                          "n-1-i < m",
                          "m*2 <= i",
                          "i < m or i >= n-k",
                          "i < g*n",
                          "i <= g*n",
                          "g*n > i",
                          "i == g*n",
                          "i != g*n",
                          "not (i < g*n)",
                          "not (m < i and f)",
                          "f and i < m or not f and i >= k",
                          "m < k and i < 3",
                          "i != m and i != k",
                          "i + m == k",
                          "-i > m - 9",
                          "2*i + m < 3*k",
                          "m <= i <= k",
                          "i < m // k",
                          "not (i == m or i == k)",
                          "i - m < i",
                          "n - 2*i >= m",
                          "i % 3 == 0 and i < m",
                          "i*i < m and i >= k",
                          "f",
                          "not f",
                          "i < where(f, m, k)",
                          "min(i, m) < k",
                          "(i << 2) < m",
                          "i < int(g*n)",
                          "i/3 < m - n/4"};
  const std::vector<std::string> arguments{"m: int", "k: int", "g: float", "f: bool"};
  for (const std::string guard : guards) {
    const Kernel ranged = scheduled(guard + ": 1; else 0", arguments),
                 value = scheduled("where((" + guard + ") == true, 1, 0)", arguments);
    Form form = value.form;
    form.wide = true;
    const Kernel wide = scheduled("where((" + guard + ") == true, 1, 0)", arguments, form);
    ASSERT_EQ(ranged.arguments.size(), value.arguments.size());
    for (const int64_t n : {1, 2, 7, 12})
      for (const int m : {-3, 0, 1, 5, 12, 40})
        for (const int k : {-1, 1, 4, 11})
          for (const double g : {-0.5, 0.0, 0.3, 0.5, 1.0, 1e30, double(NAN), double(INFINITY)})
            for (const bool f : {false, true}) {
              std::vector<HostValue> values;
              for (const Argument &a : ranged.arguments) {
                HostValue v{.integer = a.name == "m" ? m : a.name == "k" ? k : f};
                if (a.name == "g") v.real = g;
                values.push_back(v);
              }
              const HostCall a = host_call(ranged, values, n), narrow = host_call(value, values, n);
              const Kernel &plain = narrow.check.wide ? wide : value; // an infinite bound, as a uniform
              const HostCall b = narrow.check.wide ? host_call(wide, values, n) : narrow;
              if (a.check.fault.what != HostFault::None) continue; // n // m
              for (int64_t i = 0; i < n; ++i)
                ASSERT_EQ(interpret(ranged, a, i, n, nullptr).integer, interpret(plain, b, i, n, nullptr).integer)
                    << guard << " at i " << i << " n " << n << " m " << m << " k " << k << " g " << g << " f " << f
                    << "\n"
                    << print(ranged);
            }
  }
}

TEST(Ranges, FloatBoundsAreExactFarOut) {
  const Kernel k = scheduled("i < g*n: 1; else 0", {"g: float"});
  ASSERT_EQ(k.pieces[0].guard, no_node) << "a range";
  const int64_t n = int64_t(1) << 40;
  HostValue g{};
  g.real = 0.3;
  const HostCall call = host_call(k, {g}, n);
  const int64_t edge = int64_t(std::ceil(0.3 * double(n)));
  EXPECT_EQ(interpret(k, call, edge - 1, n, nullptr).integer, 1);
  EXPECT_EQ(interpret(k, call, edge, n, nullptr).integer, 0);
  g.real = NAN;
  EXPECT_EQ(interpret(k, host_call(k, {g}, n), 0, n, nullptr).integer, 0);
}

TEST(Dead, DropsWhatCannotHold) {
  auto left = [](const std::string &spec) { return pieces(after("dead", spec, {"x: f32"})); };
  EXPECT_EQ(left("i < 0: x; i < 5 and i > 7: x*2; i < 3: x*3; else x"), "[, 3); all");
  EXPECT_EQ(left("i < 3: x; i >= 0: x*2; else x*3"), "[, 3); all");
  EXPECT_EQ(left("i < 3 and false: x; else x*2"), "all");
  const Kernel k = after("dead", "i < 0: n // m; else x + m", {"x: i8", "m: int"});
  for (const Check &c : k.checks) EXPECT_EQ(c.piece, 0u);
  EXPECT_EQ(k.checks.size(), 1u) << "checks go with their pieces";
}

TEST(Form, Contiguous) {
  auto vector = [](const std::string &spec, const std::vector<std::string> &arguments) {
    return int(after("form", spec, arguments).form.vector);
  };
  EXPECT_EQ(vector("x*2", {"x: f32"}), 4);
  EXPECT_EQ(vector("x*2", {"x: f16"}), 8);
  EXPECT_EQ(vector("f32(x)", {"x: i8"}), 4);
  EXPECT_EQ(vector("i8(x)", {"x: f64"}), 4);
  EXPECT_EQ(vector("x", {"x: u8"}), 16);
  const Form f = after("form", "x + z + m", {"x: f32", "z: f32[]", "m: int"}).form;
  EXPECT_EQ(f.args[0], Access::Vector);
  EXPECT_EQ(f.args[1], Access::Broadcast);
  EXPECT_EQ(f.args[2], Access::Absent);
  EXPECT_EQ(after("form", "i < 0: y; else x", {"x: f32", "y: f32"}).form.args[0], Access::Absent)
      << "y is not loaded any more";
}

TEST(Schedule, PutsNodesUnderWhatProtectsThem) {
  EXPECT_EQ(nodes(scheduled("where(x > 0, x*2, x*y + sqrt(y))", {"x: f32", "y: f32"})),
            R"(kernel (x: f32, y: f32) -> f32
  %0 = load x : f32 element
  %1 = const 0 : f32 host
  %2 = gt %0, %1 : bool element
  %3 = const 2 : f32 host
  %4 = mul %0, %3 : f32 element
  %5 = load y : f32 element
  %6 = mul %0, %5 : f32 element
  %7 = call sqrt %5 : f32 element
  %8 = add %6, %7 : f32 element
  %9 = where %2, %4, %8 : f32 element
  piece 1:1 -> %9
  form rows(0) vector 4 out vector x vector y vector
  host
  uniforms
  body 1:1 { %0 %2 %4 under %9 %5 under %9 %6 under %9 %7 under %9 %8 under %9 %9 }
)");
}

TEST(Schedule, HalvesReachTheDeviceAsF32) {
  const Kernel k = scheduled("i < 3: x; else g", {"x: f16", "g: float"});
  ASSERT_EQ(k.uniforms.size(), 1u);
  EXPECT_EQ(k[k.uniforms[0]].type, DType::F32);
  HostValue g{};
  g.real = 0.1;
  const HostCall call = host_call(k, {{}, g}, 5);
  EXPECT_EQ(interpret(k, call, 4, 5, nullptr).real, round_to(DType::F16, 0.1));
}

TEST(Schedule, WideUniformsTravelInWords) {
  Form wide;
  const std::string spec = "i*i < m: 1; else 0";
  wide = scheduled(spec, {"m: int"}).form;
  wide.wide = true;
  const Kernel narrow = scheduled(spec, {"m: int"}), k = scheduled(spec, {"m: int"}, wide);
  const int64_t n = int64_t(1) << 40;
  for (const __int128 m :
       {(__int128)1 << 70, -((__int128)1 << 100), (__int128)5, ((__int128)3 << 64) - 1, (__int128)-1}) {
    EXPECT_TRUE(host_call(narrow, {{.integer = m}}, n).check.wide);
    const HostCall call = host_call(k, {{.integer = m}}, n);
    EXPECT_EQ(call.check.fault.what, HostFault::None);
    for (const int64_t i :
         {int64_t(0), int64_t(2), int64_t(3), int64_t(1) << 33, int64_t(1) << 35, int64_t(7437299939), n - 1})
      EXPECT_EQ(interpret(k, call, i, n, nullptr).integer, (__int128)i * i < m) << i;
  }
}

TEST(Verifier, ComplaintsReachTheCaller) {
  Kernel k = lowered("x*2", {"x: f32"});
  k.pieces[0].values = {no_node};
  std::string error;
  run_passes(k, {.form = {}, .has_form = false, .verify_each = true, .observe = {}}, &error);
  EXPECT_NE(error.find("after lowering: piece 0"), std::string::npos) << error;
}

} // namespace
} // namespace elsewise::test
