// SPDX-License-Identifier: Apache-2.0
// LLVM IR to optimised IR, assembly and objects for one CPU. It links and runs nothing.
#pragma once
#include "compiler/emit/llvm.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Target/TargetMachine.h"
#include <memory>
#include <string>

namespace elsewise {

/// The machine for `cpu` ("": this computer's, with exactly the features it has). nullptr and `error` if LLVM does not
/// know it. Not thread-safe, like every TargetMachine.
std::unique_ptr<llvm::TargetMachine> make_machine(const std::string &cpu, std::string &error);
CpuTarget describe(const llvm::TargetMachine &);
/// A short list of passes: what makes a piece's loop a vector loop, and little else, since a call waits for it.
void optimise(llvm::Module &, llvm::TargetMachine &);
bool generate(llvm::Module &, llvm::TargetMachine &, llvm::CodeGenFileType, llvm::SmallVectorImpl<char> &,
              std::string &error);

} // namespace elsewise
