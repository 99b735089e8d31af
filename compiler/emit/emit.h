// SPDX-License-Identifier: Apache-2.0
// The three ways out of the compiler as text. None of them decides a type.
#pragma once
#include "compiler/check/typed.h"
#include "compiler/ir/abi.h"

namespace elsewise {
/// CUDA C for people: one `extern "C" __global__ void elsewise(...)` whose parameters are slots(kernel, Backend::Cuda).
/// Compile with cuda_options().
std::string emit_cuda(const Kernel &scheduled);
/// How many pieces, from the first, a thread of that kernel tells apart by a mask before it reads or works anything, so
/// that a vector within one of them runs it alone; 0: there is no mask. Not of forms with segments.
size_t masked_pieces(const Kernel &scheduled);
/// Options that the text's meaning depends on: {"--fmad=false", "--minimal", "-std=c++17", …}.
std::vector<std::string> cuda_options(const Kernel &scheduled);
/// Python source of `def rule(...)` in plain torch, from AST and types only; works in the computing type and rounds
/// once, as the language says. `window`: of a part of a domain, which it is given too.
std::string emit_torch(const Source &, const Ast &, const Names &, const Signature &, const Typed &,
                       bool window = false);
} // namespace elsewise
