// SPDX-License-Identifier: Apache-2.0
// A kernel's nodes, ranges and form in the words of the language, for people. Nothing here is read back, and nothing
// decides anything.
#pragma once
#include "compiler/ir/ir.h"
#include <optional>
#include <string>

namespace elsewise {

/// A node as a rule would say it: `r + 1`, `lens[b]`. Conversions that a rule leaves unsaid are left unsaid, and in a
/// window positions are the domain's.
std::string words(const Kernel &, NodeId);

/// Positions along `i` or the inner axis, as a rule calls them.
std::string axis_words(const Kernel &, uint8_t axis);

/// A range's end without the conditions that empty it, which come in `conditions`. no_node: the axis' own end.
NodeId bare_end(const Kernel &, NodeId end, std::string &conditions);

/// How the kernel is laid out for a launch: "one row", "rows over 2 axes, 32-bit indexes". A new field of Form that
/// chooses other code has its words here.
std::string form_words(const Form &);

} // namespace elsewise
