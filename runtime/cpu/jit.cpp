// SPDX-License-Identifier: Apache-2.0
// One kernel variant through the CPU back end: IR, passes, object, running code. It decides neither when to compile nor
// what to run.
#include "runtime/cpu/jit.h"
#include "compiler/ir/functions.h"
#include "compiler/ir/rows.h"
#include "runtime/cpu/codegen.h"
#include "runtime/cpu/engine.h"
#include "runtime/cpu/run.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Object/ObjectFile.h"
#include "llvm/Support/raw_ostream.h"
#include <atomic>

namespace elsewise {
using namespace llvm;

namespace {

std::atomic<uint64_t> compilations = 0;

std::string text_of(const Module &module) {
  std::string text;
  raw_string_ostream stream(text);
  module.print(stream, nullptr);
  return text;
}

// Unoptimised IR for `machine`, verified unless assertions are off.
std::unique_ptr<Module> make_module(const Kernel &kernel, LLVMContext &context, const TargetMachine &machine,
                                    std::string &error) {
  std::unique_ptr<Module> module = emit_llvm(kernel, context, describe(machine), error);
  if (!module) {
    error = "internal error: " + error + "; please report this rule";
    return nullptr;
  }
#ifndef NDEBUG
  std::string broken;
  raw_string_ostream stream(broken);
  if (verifyModule(*module, &stream)) {
    error = "internal error: the LLVM IR is malformed; please report this rule\n" + broken + text_of(*module);
    return nullptr;
  }
#endif
  return module;
}

// Why the kernel cannot be compiled for `machine`: it calls functions of a library that cannot be used.
std::string missing(const Kernel &kernel, const TargetMachine &machine) {
  for (const Inst &i : kernel.insts) {
    if (i.stage == Stage::Host) continue; // not worked by this code
    const bool power = i.op == Op::Binary && BinaryOp(i.sub) == BinaryOp::Pow && is_float(i.type);
    if (!power && (i.op != Op::Call || builtins()[i.sub].cpu.empty())) continue;
    const std::string name(builtins()[power ? power_row() : i.sub].name);
    if (!functions::unavailable().empty()) return "`" + name + "` cannot run here: " + functions::unavailable();
    if (describe(machine).function_bits == 0)
      return "`" + name + "` needs AVX2 and FMA: `x86-64-v3` is the least CPU for it";
  }
  return {};
}

class Compiled final : public CpuCode {
public:
  explicit Compiled(std::unique_ptr<LinkedCode> code) : code(std::move(code)) {
    function = reinterpret_cast<Function>(this->code->entry);
  }

private:
  std::unique_ptr<LinkedCode> code;
};

// The streaming path writes whole lines of a contiguous output that no input shares.
void describe_output(const Kernel &kernel, CpuCode &code) {
  code.rows = kernel.form.rows;
  code.output_bytes = bytes(kernel.outputs[0]);
  bool separate = kernel.outputs.size() == 1 && kernel.form.out != Access::Strided;
  for (bool same : kernel.form.same_view) separate &= !same;
  const std::vector<SlotInfo> infos = slots(kernel, Backend::Cpu);
  code.slot_count = uint32_t(infos.size());
  for (size_t i = 0; i < infos.size(); ++i) {
    if (infos[i].kind == SlotKind::Out) code.out_slot = uint32_t(i);
    if (infos[i].kind == SlotKind::OutStride && infos[i].index < code.out_strides.size())
      code.out_strides[infos[i].index] = int32_t(i);
    if (infos[i].kind == SlotKind::RowLength && infos[i].index < code.row_lengths.size())
      code.row_lengths[infos[i].index] = int32_t(i);
  }
  if (separate && kernel.form.rows <= code.out_strides.size()) code.stream_from = stream_from();
}

int64_t code_bytes(ArrayRef<char> object) {
  auto file =
      object::ObjectFile::createObjectFile(MemoryBufferRef(StringRef(object.data(), object.size()), "elsewise"));
  if (!file) {
    consumeError(file.takeError());
    return 0;
  }
  int64_t bytes = 0;
  for (const object::SectionRef &section : (*file)->sections())
    if (section.isText()) bytes += int64_t(section.getSize());
  return bytes;
}

// Making one costs as much as a small pass, so each is kept. Under compile_mutex().
TargetMachine *kept_machine(const std::string &cpu, std::string &error) {
  static auto &machines = *new StringMap<std::unique_ptr<TargetMachine>>;
  std::unique_ptr<TargetMachine> &machine = machines[cpu];
  if (!machine) machine = make_machine(cpu, error);
  return machine.get();
}

} // namespace

HostCpu host_cpu() {
  std::lock_guard lock(compile_mutex());
  std::string error;
  const TargetMachine *machine = kept_machine("", error);
  if (!machine) return {};
  const unsigned bits = describe(*machine).function_bits;
  return {machine->getTargetCPU().str(), bits ? bits : 128};
}

std::unique_ptr<CpuCode> compile_cpu(const Kernel &scheduled, std::string &error, const std::string &cpu) {
  std::lock_guard lock(compile_mutex());
  TargetMachine *machine = kept_machine(cpu, error);
  if (!machine) return nullptr;
  if (error = missing(scheduled, *machine); !error.empty()) return nullptr;
  LLVMContext context;
  context.setDiscardValueNames(true);
  std::unique_ptr<Module> module = make_module(scheduled, context, *machine, error);
  if (!module) return nullptr;
  optimise(*module, *machine);
  SmallVector<char, 0> object;
  if (!generate(*module, *machine, CodeGenFileType::ObjectFile, object, error)) return nullptr;
  std::unique_ptr<LinkedCode> code = link_object(object, "elsewise", error);
  if (!code) {
    error = "internal error: CPU code does not link; please report this rule\n" + error + "\n" + text_of(*module);
    return nullptr;
  }
  ++compilations;
  auto compiled = std::make_unique<Compiled>(std::move(code));
  describe_output(scheduled, *compiled);
  compiled->code_bytes = code_bytes(object);
  return compiled;
}

std::string cpu_text(const Kernel &scheduled, bool assembly, const std::string &cpu, std::string &error) {
  std::lock_guard lock(compile_mutex());
  std::unique_ptr<TargetMachine> machine = make_machine(cpu, error);
  if (!machine) return "";
  if (error = missing(scheduled, *machine); !error.empty()) return "";
  LLVMContext context;
  std::unique_ptr<Module> module = make_module(scheduled, context, *machine, error);
  if (!module) return "";
  optimise(*module, *machine);
  if (!assembly) return text_of(*module);
  SmallVector<char, 0> text;
  if (!generate(*module, *machine, CodeGenFileType::AssemblyFile, text, error)) return "";
  return std::string(text.data(), text.size());
}

uint64_t orc_compilations() { return compilations; }

} // namespace elsewise
