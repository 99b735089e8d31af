// SPDX-License-Identifier: Apache-2.0
// The IR's text read back: what print() shows, also by hand. It folds nothing and merges nothing, so that what is read
// prints as it was.
#pragma once
#include "compiler/diagnostics/diagnostic.h"
#include "compiler/ir/ir.h"

namespace elsewise {

/// The kernel that the text shows. Lines that begin with `#` say nothing. Nodes may have any numbers, each once and
/// before its first use; they are numbered anew in the order of the lines. What is wrong goes to the sink, a line at a
/// time and at last the verifier's complaint; then the kernel is of no use.
Kernel read(const Source &, Sink &);

} // namespace elsewise
