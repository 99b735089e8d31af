// SPDX-License-Identifier: Apache-2.0
// From typed syntax to IR. Every conversion that typing decided becomes a Cast here; nothing is optimised.
#pragma once
#include "compiler/check/typed.h"
#include "compiler/ir/ir.h"

namespace elsewise {
/// A piece's source on one line: comments dropped, blanks joined.
std::string one_line(std::string_view);
/// `typed.complete` must hold.
Kernel lower(const Source &, const Ast &, const Names &, const Signature &, const Typed &);
} // namespace elsewise
