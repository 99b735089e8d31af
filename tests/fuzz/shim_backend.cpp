// SPDX-License-Identifier: Apache-2.0
// Batches of emitted CUDA C. Plans, slots and geometry are the run time's own; only the last step, the launch, is taken
// from it.
#include "tests/fuzz/shim_backend.h"
#include "compiler/emit/emit.h"
#include "compiler/ir/ir.h"
#include "compiler/lower/lower.h"
#include "compiler/passes/passes.h"
#include "runtime/cuda/nvrtc.h"
#include "runtime/launch_taker.h"
#include "tests/fuzz/call.h"
#include "tests/fuzz/guarded.h"
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace elsewise::fuzz {
namespace {
constexpr size_t batch = 100;
#if defined(__SANITIZE_ADDRESS__)
constexpr const char *sanitized = "-fsanitize=address"; // its runtime is this program's
#else
constexpr const char *sanitized = "";
#endif
} // namespace

struct ShimBackend::Pending {
  Case c;
  std::unique_ptr<Guarded> memory; // where the launch's pointers lead
  std::string text;
  Geometry geometry;
  bool launched = false;
  std::vector<std::vector<uint8_t>> slots; // every launch argument
};

ShimBackend::ShimBackend(int programs, int nvrtc, int archs) : programs_(programs), nvrtc_(nvrtc), archs_(archs) {}
ShimBackend::~ShimBackend() = default;

void ShimBackend::complain(const std::string &what, const Case &c) {
  if (++failed_ <= 20) std::printf("MISMATCH in CUDA C: %s\n%s\n", what.c_str(), describe(c).c_str());
}

void ShimBackend::add(Case &&given, Seen &seen) {
  if (taken_ >= programs_ || given.outcome != Outcome::Value) return;
  ++taken_;
  auto p = std::make_unique<Pending>();
  p->c = std::move(given);
  Case &c = p->c;
  p->memory = std::make_unique<Guarded>(c);

  const api::LaunchTaker taker = [&](const Kernel &kernel, const Geometry &geometry, std::span<void *const> arguments) {
    p->text = emit_cuda(kernel), p->geometry = geometry, p->launched = true;
    const std::vector<SlotInfo> infos = slots(kernel, Backend::Cuda);
    for (size_t s = 0; s < infos.size(); ++s) {
      p->slots.emplace_back(slot_bytes(kernel, infos[s]));
      std::memcpy(p->slots.back().data(), arguments[s], p->slots.back().size());
    }
    for (const Inst &inst : kernel.insts) seen.nodes[spelling(inst.op)]++;
    if (kernel.form.rows) seen.layouts[kernel.form.flat ? "flat form" : kernel.form.tile ? "tiles" : "rows form"]++;
    if (!kernel.form.unit_pitch) seen.layouts["inner pitch"]++;
    if (kernel.form.window) seen.layouts["window form"]++;
    if (kernel.form.wide) seen.layouts["wide"]++;
    if (kernel.form.segments) seen.layouts[kernel.form.rows ? "segments in rows" : "segments"]++;
    for (Access a : kernel.form.args)
      seen.layouts[a == Access::Vector      ? "vector"
                   : a == Access::Scalar    ? "scalar"
                   : a == Access::Broadcast ? "repeated"
                   : a == Access::Strided   ? "strided"
                   : a == Access::Column    ? "a row for all"
                   : a == Access::Tiled     ? "tiled"
                                            : "absent"]++;
    if (compiled_ < nvrtc_) compile(p->text, kernel, c);
  };
  CallOf call(c, c.out_buffer, api::Device{api::DeviceKind::Cuda, 0});
  p->memory->move(call);
  const api::TakeLaunches taking(taker);
  const api::MoveLimits moved(limits_of(c));
  auto spec = api::compile(c.program.text, "<spec>");
  auto plan = spec ? api::plan(spec.value, call.call) : api::Result<api::PlanRef>{};
  auto counted = [&](api::Fault f) { // refused because it could not be ruled out, and counted on the CPU
    return f == api::Fault::Overflow || (f == api::Fault::ZeroDivision && c.data_decides) ||
           (c.reads && (f == api::Fault::Index || f == api::Fault::ZeroDivision));
  };
  if (spec && counted(plan.fault)) {
    --taken_;
    return;
  }
  if (!plan) return complain("the plan was refused: " + plan.message, c);
  auto done = api::run(*plan.value, call.call);
  if (counted(done.fault)) {
    --taken_;
    return;
  }
  if (!done) return complain("the run was refused: " + done.message, c);

  // What the passes did, seen from outside: a pass changed something if the text of the kernel did.
  Source source(c.program.text, "<spec>");
  std::string before;
  PassOptions options;
  options.form.window = c.window;
  options.form.args.assign(c.arguments.size(), Access::Vector),
      options.form.same_view.assign(c.arguments.size(), false);
  options.observe = [&](std::string_view pass, const Kernel &k) {
    std::string now = print(k);
    seen.passes[std::string(pass)] += now != before;
    before = std::move(now);
  };
  Kernel lowered = lower(source, c.ast, c.names, c.signature, c.typed);
  before = print(lowered);
  run_passes(std::move(lowered), options);

  if (p->launched) pending_.push_back(std::move(p));
  else --taken_; // an empty domain, or an in-place rule with nothing to do: it ran nothing
  if (pending_.size() >= batch) flush();
}

void ShimBackend::compile(const std::string &text, const Kernel &kernel, const Case &c) {
  for (const char *arch : {"sm_90", "sm_75", "sm_80", "sm_100", "sm_120"}) {
    const NvrtcResult r = nvrtc_compile(text, arch, false, cuda_options(kernel));
    if (r.missing && !std::getenv("CI")) {
      ++skipped_;
      return;
    }
    if (!r.error.empty()) return complain(std::string("NVRTC for ") + arch + ": " + r.error, c);
    if (compiled_ >= archs_) break;
  }
  ++compiled_;
  everywhere_ += compiled_ <= archs_;
}

void ShimBackend::flush() {
  if (pending_.empty()) return;
  std::vector<std::string> texts;
  for (const auto &p : pending_) texts.push_back(p->text);
  std::string error;
  const auto built = test::ShimBatch::build(texts, error, sanitized);
  if (!built) {
    std::printf("MISMATCH: the shim did not compile: %s\n", error.substr(0, 4000).c_str());
    failed_ += int(pending_.size());
    return pending_.clear();
  }
  for (size_t k = 0; k < pending_.size(); ++k) {
    Pending &p = *pending_[k];
    std::vector<const void *> arguments;
    for (const auto &s : p.slots) arguments.push_back(s.data());
    running("as CUDA C", ran_, describe(p.c) + p.text);
    built->launch(k, p.geometry, arguments.data());
    ++ran_;
    std::string wrong = p.memory->written();
    if (wrong.empty()) wrong = difference(p.c, p.memory->out());
    if (!wrong.empty()) complain(wrong + "\n" + p.text, p.c);
  }
  pending_.clear();
}

void ShimBackend::finish() { flush(); }

} // namespace elsewise::fuzz
