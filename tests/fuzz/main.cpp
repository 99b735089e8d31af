// SPDX-License-Identifier: Apache-2.0
// `ew_tests fuzz`: random programs, the oracle against every backend that can run here, with counts of what occurred. A
// fixed seed gives the same programs everywhere.
#include "tests/fuzz/call.h"
#include "tests/fuzz/device_backend.h"
#include "tests/fuzz/differential.h"
#include "tests/fuzz/guarded.h"
#include "tests/fuzz/ir_text.h"
#include "tests/fuzz/shim_backend.h"
#include "tests/fuzz/shrink.h"
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string_view>

namespace elsewise::fuzz {
namespace {

struct Options {
  uint64_t seed = 1;
  int programs = 4000; // through the CPU's compiler
  int shim = 1000;     // of them as CUDA C, run on the CPU
  int nvrtc = 300;     // of them through NVRTC for sm_90
  int archs = 30;      // of them for every architecture
  int device = 0;      // of them on a GPU, which must then be there
  int report = 0;      // programs between two lines that say how far it is; 0: none
  int ir = 1000;       // of the programs as IR text, read again after every pass
  int far = 1;         // of a hundred programs, those over many positions
  int texts = 0;       // print that many texts instead, each ended by a zero byte, those too that the compiler refuses
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

Ran on_cpu(const Case &c, std::vector<uint8_t> &out) {
  out = c.out_buffer;
  CallOf of(c, out, api::Device{});
  const Guarded memory(c);
  memory.move(of);
  auto spec = api::compile(c.program.text, "<spec>");
  if (!spec) return {spec.fault, spec.message};
  auto plan = api::plan(spec.value, of.call);
  if (!plan) return {plan.fault, plan.message};
  auto done = api::run(*plan.value, of.call);
  out = memory.out();
  if (const std::string what = memory.written(); !what.empty()) return {api::Fault::Internal, what};
  return {done.fault, done.message};
}

// Empty if a run gave what the oracle says. `conservative`: an overflow that interval arithmetic could not rule out, an
// index out of bounds likewise, or a zero divisor that only a tensor keeps from every position.
std::string judge(const Case &c, const Ran &got, const std::vector<uint8_t> &out, int &conservative) {
  const api::Fault want = fault(c.outcome);
  if (got.fault != api::Fault::None && out != c.out_buffer)
    return "a fault after something was written: " + got.message;
  if (got.fault == want && got.fault != api::Fault::None) return {};
  const bool on_intervals = got.fault == api::Fault::Overflow ||
                            (c.reads && (got.fault == api::Fault::Index || got.fault == api::Fault::ZeroDivision));
  if (on_intervals && want == api::Fault::None) return ++conservative, std::string{};
  const auto whole = [](api::Fault f) { return f == api::Fault::Overflow || f == api::Fault::ZeroDivision; };
  if ((c.reads || (whole(got.fault) && whole(want))) && got.fault != api::Fault::None && want != api::Fault::None)
    return {}; // of several, any is told
  if (got.fault == api::Fault::ZeroDivision && want == api::Fault::None && c.data_decides)
    return ++conservative, std::string{};
  if (got.fault != want) return got.fault == api::Fault::None ? "no fault where the oracle has one" : got.message;
  return difference(c, out);
}

// The case with the shortest text that fails on the same backend.
std::string shortest(const Case &c, const std::function<Ran(const Case &, std::vector<uint8_t> &)> &backend) {
  std::map<std::string, int> refused;
  int conservative = 0;
  std::optional<Case> last;
  const std::string text = shrink(
      c.program.text,
      [&](const std::string &shorter) {
        Program p = c.program;
        p.text = shorter;
        std::optional<Case> candidate = prepare(std::move(p), refused);
        std::vector<uint8_t> out;
        if (candidate) running("shorter", 0, describe(*candidate));
        if (!candidate || judge(*candidate, backend(*candidate, out), out, conservative).empty()) return false;
        last = std::move(candidate);
        return true;
      },
      2000);
  return last && last->program.text != c.program.text ? "shrunk to " + describe(*last) : "";
}

void print(const char *title, const std::map<std::string, int> &counts) {
  std::printf("%s:", title);
  for (const auto &[name, times] : counts) std::printf(" %s %d;", name.c_str(), times);
  std::printf("\n");
}

int fuzz(const Options &o) {
  int ran = 0, failed = 0, conservative = 0, faults = 0, read = 0, kernels = 0;
  std::map<std::string, int> refused;
  Seen seen;
  ShimBackend shim(o.shim, o.nvrtc, o.archs);
  const auto start = std::chrono::steady_clock::now();
  std::string why;
  const auto device = o.device ? DeviceBackend::open(why) : nullptr;
  if (o.device && !device) std::printf("MISMATCH: no GPU: %s\n", why.c_str()), ++failed;
  int on_device = 0;
  auto complain = [&](const char *where, const std::string &problem, const Case &c, auto backend) {
    if (++failed > 20) return;
    std::printf("MISMATCH %s: %s\n%s%s\n", where, problem.c_str(), describe(c).c_str(), shortest(c, backend).c_str());
    std::fflush(stdout);
  };
  uint64_t seed = o.seed;
  for (; ran < o.programs; ++seed) {
    std::optional<Case> c = prepare(generate(seed, o.far), refused);
    if (!c) continue;
    ++ran;
    note(*c, seen);
    faults += c->outcome != Outcome::Value;
    std::vector<uint8_t> out;
    running("on the CPU", ran, describe(*c));
    const std::string problem = judge(*c, on_cpu(*c, out), out, conservative);
    if (!problem.empty()) complain("on the CPU", problem, *c, on_cpu);
    if (device && on_device < o.device) {
      ++on_device;
      auto there = [&](const Case &other, std::vector<uint8_t> &o) { return device->run(other, o); };
      int ignored = 0;
      const Ran got = there(*c, out);
      const bool bits = !c->inexact || got.fault != api::Fault::None; // else there is nothing to compare bit by bit
      const std::string wrong = bits ? judge(*c, got, out, ignored) : "";
      if (!wrong.empty()) complain("on the GPU", wrong, *c, there);
    }
    if (read < o.ir) {
      ++read;
      const std::string wrong = ir_text(*c, kernels);
      if (!wrong.empty() && ++failed <= 20)
        std::printf("MISMATCH as IR text: %s\n%s\n", wrong.c_str(), describe(*c).c_str());
    }
    if (problem.empty()) shim.add(std::move(*c), seen);
    if (o.report && ran % o.report == 0) {
      std::printf("%d programs, %d on the GPU, %d as CUDA C, %d mismatches; next seed %llu\n", ran, on_device,
                  shim.ran(), failed + shim.failed(), static_cast<unsigned long long>(seed + 1));
      std::fflush(stdout);
    }
  }
  shim.finish();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  print("operators", seen.operators), print("builtins", seen.builtins), print("dtypes", seen.dtypes);
  print("IR nodes", seen.nodes), print("passes that changed something", seen.passes), print("layouts", seen.layouts);
  print("refused by the compiler, drawn again", refused);
  std::printf("%d programs (%d with a fault that was due, %d faults that could not be ruled out), %d as CUDA C, %d "
              "through NVRTC, %d of them for every architecture, %d on a GPU, %d as IR text (%d kernels); seeds %llu "
              "to %llu; %.0f s\n",
              ran, faults, conservative, shim.ran(), shim.compiled(), shim.everywhere(), on_device, read, kernels,
              static_cast<unsigned long long>(o.seed), static_cast<unsigned long long>(seed - 1), seconds);
  if (conservative * 50 > ran) std::printf("MISMATCH: too many faults that could not be ruled out\n"), ++failed;
  failed += shim.failed();
  const std::vector<std::string> missing = unseen(seen);
  for (const std::string &name : missing) std::printf("MISMATCH: `%s` never occurred\n", name.c_str());
  failed += int(missing.size());
  std::printf("%d passed, %d failed, %d skipped\n", ran + on_device + read + shim.ran() + shim.compiled() - failed,
              failed, shim.skipped());
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
        number(arg, "--nvrtc", o.nvrtc) || number(arg, "--archs", o.archs) || number(arg, "--device", o.device) ||
        number(arg, "--report", o.report) || number(arg, "--ir", o.ir) || number(arg, "--far", o.far) ||
        number(arg, "--texts", o.texts))
      continue;
    std::fprintf(stderr, "usage: ew_tests fuzz [--seed=1] [--programs=4000] [--shim=1000] [--nvrtc=300] [--archs=30] "
                         "[--device=0] [--report=0] [--ir=1000] [--far=1] | --texts=10 [--seed=1]\n");
    return 2;
  }
  for (int k = 0; k < o.texts; ++k) {
    const std::string text = elsewise::fuzz::generate(o.seed + uint64_t(k), o.far).text;
    std::fwrite(text.c_str(), 1, text.size() + 1, stdout);
  }
  elsewise::fuzz::catch_traps();
  return o.texts ? 0 : elsewise::fuzz::fuzz(o);
}
