// SPDX-License-Identifier: Apache-2.0
// Tokens as a syntax tree. It reports every piece that does not parse and goes on at the next one; it decides neither
// names nor types.
#pragma once
#include "compiler/lex/lex.h"
#include "compiler/parse/ast.h"

namespace elsewise {

inline constexpr uint32_t most_pieces = 4096;
inline constexpr uint32_t most_axes = 64;     // of a header: what a tensor has at most
inline constexpr uint32_t most_nesting = 200; // parentheses, signs, powers inside each other
inline constexpr uint32_t most_levels =
    1000; // from a piece's value down to a leaf: what a recursive walk of the tree has to bear
inline constexpr uint32_t most_operations =
    1 << 17; // of a piece's or let's expression, counting what chained comparisons share as often as it is used

/// After an error the tree holds an Error expression in that place, and the sink at least one diagnostic.
Ast parse(const Source &, const Tokens &, Sink &);

/// `1:1 (< i (/ n 4)) => (* x 0.5)`, one piece a line; before them the header and the lets.
std::string print_ast(const Source &, const Ast &);

} // namespace elsewise
