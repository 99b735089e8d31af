// SPDX-License-Identifier: Apache-2.0
// The pass list and the options of code generation. Nothing here may allow fused, reordered or approximate arithmetic.
#include "runtime/cpu/codegen.h"
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
#include "llvm/Transforms/Vectorize/LoopVectorize.h"
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

// Where a value is rounded to F16, InstCombine of LLVM 23 works what it is made of in F16 too if the numbers are exact
// there, and of a whole number it looks at the digits alone: `x * (y << 31)` is worked with an infinity. A zero that it
// cannot see through, added to a whole number that leaves F16, hides how few digits that has.
static void hide_digits(Function &function) {
  SmallVector<CastInst *> casts;
  bool rounds = false;
  for (Instruction &i : instructions(function)) {
    rounds |= isa<FPTruncInst>(i) && i.getType()->isHalfTy();
    if ((isa<SIToFPInst>(i) || isa<UIToFPInst>(i)) && i.getOperand(0)->getType()->getIntegerBitWidth() > 16)
      casts.push_back(cast<CastInst>(&i));
  }
  if (!rounds || casts.empty()) return;
  IRBuilder<> b(&*function.getEntryBlock().getFirstInsertionPt());
  AllocaInst *slot = b.CreateAlloca(b.getInt64Ty());
  b.CreateStore(b.getInt64(0), slot, /*isVolatile=*/true);
  Value *zero = b.CreateLoad(b.getInt64Ty(), slot, /*isVolatile=*/true);
  for (CastInst *c : casts) {
    Value *whole = c->getOperand(0);
    b.SetInsertPoint(c);
    c->setOperand(0, b.CreateOr(whole, b.CreateIntCast(zero, whole->getType(), false)));
  }
}

// And of `x < 0 ? 0 : x` it makes `x > 0 ? x : 0`, which loses the sign of a zero, where a cast from F16 stands
// between. Compared with the number next to the arm it is no least or greatest any more.
static void keep_arms_apart(Function &function) {
  for (Instruction &i : instructions(function)) {
    auto *select = dyn_cast<SelectInst>(&i);
    auto *compare = select ? dyn_cast<FCmpInst>(select->getCondition()) : nullptr;
    if (!compare) continue;
    CmpInst::Predicate order = compare->getPredicate();
    Value *left = compare->getOperand(0), *right = compare->getOperand(1);
    if (isa<ConstantFP>(left)) std::swap(left, right), order = CmpInst::getSwappedPredicate(order);
    auto *cast = dyn_cast<FPExtInst>(left);
    const auto *limit = dyn_cast<ConstantFP>(right);
    Value *yes = select->getTrueValue(), *no = select->getFalseValue();
    const auto *arm = dyn_cast<ConstantFP>(yes == left ? no : yes);
    if (!cast || !cast->getOperand(0)->getType()->isHalfTy() || !limit || !arm || (yes != left && no != left)) continue;
    if (!limit->getValueAPF().isFinite() || limit->getValueAPF().compare(arm->getValueAPF()) != APFloat::cmpEqual)
      continue;
    // `x < a` is `x <= ` what comes before a, `x >= a` is `x > ` it; and so upwards.
    const bool below = order == CmpInst::FCMP_OLT || order == CmpInst::FCMP_ULT || order == CmpInst::FCMP_OGE ||
                       order == CmpInst::FCMP_UGE;
    const bool strict = CmpInst::isStrictPredicate(order);
    if (!strict && !CmpInst::isNonStrictPredicate(order)) continue;
    APFloat beside = limit->getValueAPF();
    beside.next(/*nextDown=*/below);
    IRBuilder<> b(select);
    select->setCondition(
        b.CreateFCmp(strict ? CmpInst::getNonStrictPredicate(order) : CmpInst::getStrictPredicate(order), left,
                     ConstantFP::get(left->getType(), beside)));
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
      hide_digits(f);
      keep_arms_apart(f);
      functions.invalidate(f, first.run(f, functions));
      settle_phis(f);
      forget_flags(f);
      passes.run(f, functions);
      forget_flags(f);
    }
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
