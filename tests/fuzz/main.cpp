// SPDX-License-Identifier: Apache-2.0
// `ew_tests fuzz`: random programs, the oracle against every backend that can run here, with counts of what occurred. A
// fixed seed gives the same programs everywhere.
#include "tests/fuzz/call.h"
#include "tests/fuzz/differential.h"
#include "tests/fuzz/shim_backend.h"
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace elsewise::fuzz {
namespace {

struct Options {
  uint64_t seed = 1;
  int programs = 4000; // through the CPU's compiler
  int shim = 1000;     // of them as CUDA C, run on the CPU
  int nvrtc = 300;     // of them through NVRTC for sm_90
  int archs = 30;      // of them for every architecture
};

bool number(std::string_view arg, std::string_view name, auto &value) {
  if (arg.substr(0, name.size()) != name || arg.size() <= name.size() || arg[name.size()] != '=') return false;
  value = std::strtoull(arg.data() + name.size() + 1, nullptr, 10);
  return true;
}

api::Fault fault(Outcome o) {
  return o == Outcome::Overflow       ? api::Fault::Overflow
         : o == Outcome::ZeroDivision ? api::Fault::ZeroDivision
         : o == Outcome::OutOfBounds  ? api::Fault::Index
                                      : api::Fault::None;
}

// The program through the facade on the CPU. Empty if it gave what the oracle says. An overflow that interval
// arithmetic could not rule out is `conservative`, and an index out of bounds where data decides what is reached.
std::string on_cpu(const Case &c, int &conservative) {
  std::vector<uint8_t> out = c.out_buffer;
  CallOf of(c, out, api::Device{});
  auto spec = api::compile(c.program.text, "<spec>");
  if (!spec) return "the facade refused it: " + spec.message;
  auto plan = api::plan(spec.value, of.call);
  api::Fault got = plan.fault;
  std::string message = plan.message;
  if (plan) {
    auto done = api::run(*plan.value, of.call);
    got = done.fault, message = done.message;
  }
  const api::Fault want = fault(c.outcome);
  if (got != api::Fault::None && out != c.out_buffer) return "a fault after something was written: " + message;
  if (got == want && got != api::Fault::None) return {};
  const bool on_intervals =
      got == api::Fault::Overflow || (c.reads && (got == api::Fault::Index || got == api::Fault::ZeroDivision));
  if (on_intervals && want == api::Fault::None) return ++conservative, std::string{};
  if (c.reads && got != api::Fault::None && want != api::Fault::None) return {}; // of several, any is told
  if (got != want) return got == api::Fault::None ? "no fault where the oracle has one" : "fault: " + message;
  return difference(c, out);
}

void print(const char *title, const std::map<std::string, int> &counts) {
  std::printf("%s:", title);
  for (const auto &[name, times] : counts) std::printf(" %s %d;", name.c_str(), times);
  std::printf("\n");
}

int fuzz(const Options &o) {
  int ran = 0, failed = 0, conservative = 0, faults = 0;
  std::map<std::string, int> refused;
  Seen seen;
  ShimBackend shim(o.shim, o.nvrtc, o.archs);
  const auto start = std::chrono::steady_clock::now();
  for (uint64_t seed = o.seed; ran < o.programs; ++seed) {
    std::optional<Case> c = prepare(seed, refused);
    if (!c) continue;
    ++ran;
    note(*c, seen);
    faults += c->outcome != Outcome::Value;
    const std::string problem = on_cpu(*c, conservative);
    if (!problem.empty() && ++failed <= 20)
      std::printf("MISMATCH on the CPU: %s\n%s\n", problem.c_str(), describe(*c).c_str());
    if (problem.empty()) shim.add(std::move(*c), seen);
  }
  shim.finish();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  print("operators", seen.operators), print("builtins", seen.builtins), print("dtypes", seen.dtypes);
  print("IR nodes", seen.nodes), print("passes that changed something", seen.passes), print("layouts", seen.layouts);
  print("refused by the compiler, drawn again", refused);
  std::printf("%d programs (%d with a fault that was due, %d faults told on interval grounds), %d as CUDA C, %d "
              "through NVRTC, %d of them for every architecture; %.0f s\n",
              ran, faults, conservative, shim.ran(), shim.compiled(), shim.everywhere(), seconds);
  if (conservative * 50 > ran) std::printf("MISMATCH: too many faults told on interval grounds\n"), ++failed;
  failed += shim.failed();
  const std::vector<std::string> missing = unseen(seen);
  for (const std::string &name : missing) std::printf("MISMATCH: `%s` never occurred\n", name.c_str());
  failed += int(missing.size());
  std::printf("%d passed, %d failed, %d skipped\n", ran + shim.ran() + shim.compiled() - failed, failed,
              shim.skipped());
  return failed ? 1 : 0;
}

} // namespace
} // namespace elsewise::fuzz

extern "C" int ew_fuzz_main(int argc, char **argv) {
  elsewise::fuzz::Options o;
  for (int k = 1; k < argc; ++k) {
    using elsewise::fuzz::number;
    const std::string_view arg = argv[k];
    if (number(arg, "--seed", o.seed) || number(arg, "--programs", o.programs) || number(arg, "--shim", o.shim) ||
        number(arg, "--nvrtc", o.nvrtc) || number(arg, "--archs", o.archs))
      continue;
    std::fprintf(stderr,
                 "usage: ew_tests fuzz [--seed=1] [--programs=4000] [--shim=1000] [--nvrtc=300] [--archs=30]\n");
    return 2;
  }
  return elsewise::fuzz::fuzz(o);
}
