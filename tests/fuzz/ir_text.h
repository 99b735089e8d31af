// SPDX-License-Identifier: Apache-2.0
// The IR's text against the kernel that it shows: after every pass, and in what the emitters make of it. It judges no
// pass.
#pragma once
#include "compiler/ir/ir.h"
#include "tests/fuzz/differential.h"

namespace elsewise::fuzz {

/// The first difference in meaning between two kernels, in words; empty if there is none. How constants, operands and
/// readings are numbered is no meaning.
std::string unlike(const Kernel &, const Kernel &);
/// The text of `k`, read: empty if it is `k`, and prints as it did.
std::string reread(const Kernel &k);
/// The same of what both emitters make of a scheduled kernel and of its text, read.
std::string emitted_again(const Kernel &scheduled);

/// A program's kernel as text: lowered, and after every pass.
std::vector<std::string> ir_texts(const Case &);
/// A program's kernel after every pass, in two forms made up here and in that of its call on a device. Empty, or what
/// went wrong; `kernels` counts those looked at.
std::string ir_text(const Case &, int &kernels);

} // namespace elsewise::fuzz
