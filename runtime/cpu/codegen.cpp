// SPDX-License-Identifier: Apache-2.0
// The pass list and the options of code generation. Nothing here may allow fused, reordered or approximate arithmetic.
#include "runtime/cpu/codegen.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Operator.h"
#include "llvm/IR/OptBisect.h"
#include "llvm/IR/PatternMatch.h"
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
#include "llvm/Transforms/Utils/LoopUtils.h"
#include "llvm/Transforms/Vectorize/LoopVectorize.h"
#include <algorithm>
#include <mutex>

namespace elsewise {
using namespace llvm;

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
  const auto &features = machine.getMCSubtargetInfo();
  const bool avx2 = features.checkFeatures("+avx2,+fma"), avx512 = avx2 && features.checkFeatures("+avx512f");
  return {.f16c = features.checkFeatures("+f16c"),
          .avx512dq = features.checkFeatures("+avx512dq"),
          .function_bits = avx512 ? 512u
                           : avx2 ? 256u
                                  : 0u};
}

// Where a branch on C leads to a phi that takes C, it takes what C is on that edge. The vectorizer of LLVM 23 makes of
// the phi `select C, C, other` and, to be rid of a `not C`, turns C and the arms round, but not the C among the arms.
static void settle_phis(Function &function) {
  using namespace PatternMatch;
  for (BasicBlock &block : function)
    for (PHINode &phi : block.phis())
      for (unsigned k = 0; k < phi.getNumIncomingValues(); ++k) {
        BasicBlock *yes, *no;
        if (match(phi.getIncomingBlock(k)->getTerminator(), m_Br(m_Specific(phi.getIncomingValue(k)), yes, no)) &&
            yes != no)
          phi.setIncomingValue(k, ConstantInt::getBool(phi.getContext(), yes == &block));
      }
}

// A division that is the same for all positions must not sink into the arm of a condition: the vectorizer of LLVM 23
// makes it for all lanes at once, but only if the first of them takes the arm.
static void keep_divisions_outside() {
  static const bool once = [] {
    auto &options = cl::getRegisteredOptions();
    if (const auto at = options.find("instcombine-code-sinking"); at != options.end())
      static_cast<cl::opt<bool> *>(at->second)->setValue(false);
    return true;
  }();
  (void)once;
}

// What LLVM concludes of floats it notes as fast-math flags, and takes as leave to lose the sign of a zero further up:
// of `x * min(0 - i, 1)` a -0 where i is 0 (LLVM 23). Nothing here was given leave.
static void forget_flags(Function &function) {
  for (Instruction &i : instructions(function))
    if (isa<FPMathOperator>(i)) i.copyFastMathFlags(FastMathFlags());
}

// What hides conversions of F16 from the passes, see Arithmetic::opaque().
static void show_conversions(Function &function) {
  using namespace PatternMatch;
  for (Instruction &i : make_early_inc_range(instructions(function))) {
    Value *shown;
    if (!match(&i, m_Intrinsic<Intrinsic::canonicalize>(m_Value(shown)))) continue;
    i.replaceAllUsesWith(shown);
    i.eraseFromParent();
  }
}

// Loops that work in 128 bits stay as they are: the code generator of LLVM 23 divides by zero over vectors of such
// numbers, and no CPU has any.
static void keep_wide_loops(Function &function, FunctionAnalysisManager &functions) {
  for (Loop *loop : functions.getResult<LoopAnalysis>(function).getLoopsInPreorder()) {
    const bool wide = std::any_of(loop->block_begin(), loop->block_end(), [](BasicBlock *block) {
      return std::any_of(block->begin(), block->end(),
                         [](const Instruction &i) { return i.getType()->isIntegerTy(128); });
    });
    if (wide) addStringMetadataToLoop(loop, "llvm.loop.isvectorized", 1);
  }
}

void optimise(Module &module, TargetMachine &machine) {
  keep_divisions_outside();
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

  FunctionPassManager first, passes;
  first.addPass(EarlyCSEPass());
  first.addPass(InstCombinePass());
  first.addPass(SimplifyCFGPass());
  passes.addPass(LoopVectorizePass());
  passes.addPass(InstCombinePass());
  passes.addPass(SimplifyCFGPass());
  for (Function &f : module)
    if (!f.isDeclaration()) {
      functions.invalidate(f, first.run(f, functions));
      settle_phis(f);
      forget_flags(f);
      keep_wide_loops(f, functions);
      passes.run(f, functions);
      show_conversions(f);
      forget_flags(f);
    }
  for (Function &f : make_early_inc_range(module))
    if (f.isDeclaration() && f.use_empty()) f.eraseFromParent();
}

namespace {

// Loops come with one counter and ready addresses. Looking for better ones takes a third of the time to compile and
// finds none.
class Gate final : public OptPassGate {
public:
  bool shouldRunPass(StringRef pass, StringRef) const override { return pass != "Loop Strength Reduction"; }
  bool isEnabled() const override { return true; }
};

} // namespace

bool generate(Module &module, TargetMachine &machine, CodeGenFileType type, SmallVectorImpl<char> &bytes,
              std::string &error) {
  static Gate gate;
  module.getContext().setOptPassGate(gate);
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
