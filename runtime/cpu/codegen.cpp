// SPDX-License-Identifier: Apache-2.0
// The pass list and the options of code generation. Nothing here may allow fused, reordered or approximate arithmetic.
#include "runtime/cpu/codegen.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/SubtargetFeature.h"
#include "llvm/Transforms/InstCombine/InstCombine.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/LICM.h"
#include "llvm/Transforms/Scalar/LoopPassManager.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"
#include "llvm/Transforms/Vectorize/LoopVectorize.h"
#include <mutex>

namespace elsewise {
using namespace llvm;

// LLVM has these as options of its tools only. This copy of LLVM is nobody else's, and compile_mutex() is held.
static void set_option(StringRef name, bool value) {
  auto &options = cl::getRegisteredOptions();
  if (const auto found = options.find(name); found != options.end())
    static_cast<cl::opt<bool> *>(found->second)->setValue(value);
}

std::unique_ptr<TargetMachine> make_machine(const std::string &cpu, std::string &error) {
  static std::once_flag once;
  std::call_once(once, [] {
    InitializeNativeTarget();
    InitializeNativeTargetAsmPrinter();
  });
  const Triple triple(sys::getProcessTriple());
  const llvm::Target *target = TargetRegistry::lookupTarget(triple, error);
  if (!target) return nullptr;
  std::string name = cpu;
  SubtargetFeatures features;
  if (name.empty()) {
    name = sys::getHostCPUName().str();
    for (const auto &feature : sys::getHostCPUFeatures()) features.AddFeature(feature.first(), feature.second);
  }
  TargetOptions options;
  options.AllowFPOpFusion = FPOpFusion::Strict; // a fused product and sum rounds once where the language rounds twice
  if (const std::unique_ptr<MCSubtargetInfo> known(target->createMCSubtargetInfo(triple, "", ""));
      !known->isCPUStringValid(name)) {
    error = "unknown CPU `" + name + "`; `x86-64-v3` is the least that is vectorised in full";
    return nullptr;
  }
  return std::unique_ptr<TargetMachine>(target->createTargetMachine(triple, name, features.getString(), options,
                                                                    Reloc::PIC_, CodeModel::Small,
                                                                    CodeGenOptLevel::Default, /*JIT=*/true));
}

CpuTarget describe(const TargetMachine &machine) {
  return {.f16c = machine.getMCSubtargetInfo().checkFeatures("+f16c")};
}

void optimise(Module &module, TargetMachine &machine, bool short_loops) {
  // A vector loop for the remainder too costs a fifth of the time to compile, and makes rows of 17 to 100 positions three to eight times faster.
  set_option("enable-epilogue-vectorization", short_loops);
  module.setTargetTriple(machine.getTargetTriple());
  module.setDataLayout(machine.createDataLayout());
  LoopAnalysisManager loops;
  FunctionAnalysisManager functions;
  CGSCCAnalysisManager graphs;
  ModuleAnalysisManager modules;
  functions.registerPass([&] {
    TargetLibraryInfoImpl library(machine.getTargetTriple());
    library.disableAllFunctions(); // no call may become another library's, or appear where there was none
    return TargetLibraryAnalysis(library);
  });
  PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(graphs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, graphs, modules);

  FunctionPassManager passes;
  passes.addPass(EarlyCSEPass());
  passes.addPass(InstCombinePass());
  passes.addPass(SimplifyCFGPass());
  passes.addPass(LoopVectorizePass());
  passes.addPass(InstCombinePass());
  passes.addPass(SimplifyCFGPass());
  for (Function &f : module)
    if (!f.isDeclaration()) passes.run(f, functions);
}

bool generate(Module &module, TargetMachine &machine, CodeGenFileType type, SmallVectorImpl<char> &bytes,
              std::string &error) {
  set_option("disable-lsr", true); // loops come with one counter and ready addresses; looking for better ones takes a third of the time
  raw_svector_ostream stream(bytes);
  legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, stream, nullptr, type)) {
    error = "this CPU's code generator writes no such file";
    return false;
  }
  passes.run(module);
  return true;
}

} // namespace elsewise
