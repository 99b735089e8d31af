// SPDX-License-Identifier: Apache-2.0
// Printing, reading, comparing. The kernels come from the passes as they are; none is made up here.
#include "tests/fuzz/ir_text.h"
#include "compiler/emit/emit.h"
#include "compiler/emit/llvm.h"
#include "compiler/ir/read.h"
#include "compiler/lower/lower.h"
#include "compiler/passes/form.h"
#include "compiler/passes/passes.h"
#include "runtime/launch_taker.h"
#include "tests/fuzz/call.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/raw_ostream.h"
#include <bit>

namespace elsewise::fuzz {
namespace {

std::string of(const char *what, size_t n) { return std::string(what) + " " + std::to_string(n); }

std::string unlike_node(const Kernel &a, const Kernel &b, NodeId n) {
  const Inst &i = a[n], &j = b[n];
  if (i.op != j.op || i.type != j.type || i.stage != j.stage) return of("node", n);
  if (a.span(n) != b.span(n)) return of("the place of node", n);
  if (operands(a, n) != operands(b, n)) return of("the operands of node", n);
  switch (i.op) {
  case Op::Const: {
    const Constant &x = a.constants[i.a], &y = b.constants[j.a];
    const bool same = x.integer == y.integer && std::bit_cast<uint64_t>(x.real) == std::bit_cast<uint64_t>(y.real);
    return same ? "" : of("the value of node", n);
  }
  case Op::Read:
    return i.sub == j.sub && a.reads[i.c] == b.reads[j.c] ? "" : of("the reading of node", n);
  case Op::Call:
    return i.sub == j.sub ? "" : of("the row of node", n);
  default:
    return i == j ? "" : of("node", n);
  }
}

bool same_type(const ArgType &a, const ArgType &b) { // of a parameter, the kind is all
  return a.kind == ArgKind::Tensor ? a == b : a.kind == b.kind;
}

bool same_steps(const std::vector<std::vector<Step>> &a, const std::vector<std::vector<Step>> &b) {
  auto step = [](const Step &x, const Step &y) { return x.node == y.node && x.under == y.under; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](const auto &x, const auto &y) {
    return std::equal(x.begin(), x.end(), y.begin(), y.end(), step);
  });
}

bool same_piece(const Piece &a, const Piece &b) {
  auto range = [](const Range &x, const Range &y) { return x.axis == y.axis && x.lo == y.lo && x.hi == y.hi; };
  return a.guard == b.guard && a.values == b.values && a.entry == b.entry && a.where == b.where && a.text == b.text &&
         a.line == b.line && a.column == b.column &&
         std::equal(a.boxes.begin(), a.boxes.end(), b.boxes.begin(), b.boxes.end(), [&](const auto &x, const auto &y) {
           return std::equal(x.begin(), x.end(), y.begin(), y.end(), range);
         });
}

bool same_table(const Table &a, const Table &b) {
  return a.type == b.type && std::equal(a.entries.begin(), a.entries.end(), b.entries.begin(), b.entries.end(),
                                        [](const Constant &x, const Constant &y) {
                                          return x.integer == y.integer &&
                                                 std::bit_cast<uint64_t>(x.real) == std::bit_cast<uint64_t>(y.real);
                                        });
}

bool same_check(const Check &a, const Check &b) {
  return a.what == b.what && a.node == b.node && a.piece == b.piece && a.where == b.where && a.in_guard == b.in_guard &&
         (a.what != Check::Fits || a.dtype == b.dtype);
}

std::string llvm_text(const Kernel &k) {
  llvm::LLVMContext context;
  std::string text;
  const auto module = emit_llvm(k, context, CpuTarget{}, text);
  if (!module) return text;
  llvm::raw_string_ostream stream(text);
  module->print(stream, nullptr);
  return text;
}

Kernel again(const std::string &text, std::string &why) {
  const Source source(text, "<ir>");
  Sink sink;
  Kernel k = read(source, sink);
  for (const Diagnostic &d : sink.diagnostics()) why += render(d, source);
  return k;
}

} // namespace

std::string unlike(const Kernel &a, const Kernel &b) {
  if (a.insts.size() != b.insts.size()) return "the number of nodes";
  if (a.arguments.size() != b.arguments.size() || a.axes.size() != b.axes.size()) return "the number of arguments";
  for (size_t k = 0; k < a.arguments.size(); ++k)
    if (a.arguments[k].name != b.arguments[k].name || !same_type(a.arguments[k].type, b.arguments[k].type))
      return of("argument", k);
  for (size_t k = 0; k < a.axes.size(); ++k)
    if (a.axes[k].name != b.axes[k].name || a.axes[k].dim != b.axes[k].dim) return of("axis", k);
  for (NodeId n = 0; n < a.insts.size(); ++n)
    if (std::string what = unlike_node(a, b, n); !what.empty()) return what;
  if (!std::equal(a.tables.begin(), a.tables.end(), b.tables.begin(), b.tables.end(), same_table)) return "a table";
  if (!std::equal(a.pieces.begin(), a.pieces.end(), b.pieces.begin(), b.pieces.end(), same_piece)) return "a piece";
  if (!std::equal(a.checks.begin(), a.checks.end(), b.checks.begin(), b.checks.end(), same_check)) return "a check";
  if (a.outputs != b.outputs || a.source != b.source) return "the head";
  if (a.form != b.form) return "the form";
  if (a.host != b.host || a.uniforms != b.uniforms || a.row != b.row) return "a list of nodes";
  if (!same_steps(a.guards, b.guards)) return "a guard";
  return same_steps(a.bodies, b.bodies) ? "" : "a body";
}

std::string reread(const Kernel &k) {
  const std::string text = print(k);
  std::string why;
  const Kernel got = again(text, why);
  if (!why.empty()) return "the text is refused: " + why + text;
  if (why = unlike(k, got); !why.empty()) return why + " is read as another:\n" + text;
  return print(got) == text ? "" : "printed once more, the text is another:\n" + text;
}

std::string emitted_again(const Kernel &scheduled) {
  if (std::string why = reread(scheduled); !why.empty()) return why;
  std::string why;
  const Kernel got = again(print(scheduled), why);
  if (emit_cuda(scheduled) != emit_cuda(got)) return "the CUDA C is another:\n" + print(scheduled);
  return llvm_text(scheduled) == llvm_text(got) ? "" : "the LLVM IR is another:\n" + print(scheduled);
}

std::vector<std::string> ir_texts(const Case &c) {
  Source source(c.program.text, "<spec>");
  const Kernel lowered = lower(source, c.ast, c.names, c.signature, c.typed);
  std::vector<std::string> texts{print(lowered)};
  PassOptions options;
  options.observe = [&](std::string_view, const Kernel &k) { texts.push_back(print(k)); };
  (void)run_passes(lowered, options);
  return texts;
}

std::string ir_text(const Case &c, int &kernels) {
  Source source(c.program.text, "<spec>");
  const Kernel lowered = lower(source, c.ast, c.names, c.signature, c.typed);
  std::string why = reread(lowered);
  auto passes = [&](PassOptions options) {
    options.observe = [&](std::string_view pass, const Kernel &k) {
      ++kernels;
      if (!why.empty()) return;
      why = k.bodies.empty() ? reread(k) : emitted_again(k);
      if (!why.empty()) why = "after " + std::string(pass) + ": " + why;
    };
    (void)run_passes(lowered, options);
  };
  passes({});
  PassOptions wide;
  wide.form = contiguous_form(lowered), wide.has_form = true;
  wide.form.wide = true, wide.form.unit_pitch = c.program.seed % 2;
  passes(wide);

  // The forms of the program's own call on a device.
  const api::LaunchTaker taker = [&](const Kernel &kernel, const Geometry &, std::span<void *const>) {
    ++kernels;
    if (why.empty()) why = emitted_again(kernel);
  };
  std::vector<uint8_t> out = c.out_buffer;
  CallOf call(c, out, api::Device{api::DeviceKind::Cuda, 0});
  const api::TakeLaunches taking(taker);
  const api::MoveLimits moved(limits_of(c));
  if (auto spec = api::compile(c.program.text, "<spec>"))
    if (auto plan = api::plan(spec.value, call.call)) (void)api::run(*plan.value, call.call);
  return why;
}

} // namespace elsewise::fuzz
