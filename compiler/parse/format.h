// SPDX-License-Identifier: Apache-2.0
// A spec's text in the one style that specs are shown in. It moves blanks and line ends, spells `&&` as `and`, and
// changes no token beyond that: parentheses stay as they were written.
#pragma once
#include "compiler/lex/lex.h"

namespace elsewise {

/// The style, for a text that lexes and parses without an error:
///
/// - A spec that stands on one line stays there, its parts separated by `; `. One with a line end between its first and
///   its last token gets a line for the header and for each let and piece; line ends inside a part stay, and what
///   follows them is indented. One blank line between parts stays one.
/// - Values of neighbouring lines stand below each other. `else` has no colon.
/// - Comments stay where they are: behind what stands on their line, or on a line of their own.
/// - Blanks are around `and or`, comparisons, `| ^ &` and shifts; around `+ -` in a value (`x*2 + 1`), not beside a
///   comparison (`i >= n-n/4`), and in brackets only beside a product (`(2*x + 1)`, `x[i-1]`); around products only
///   where a whole value is one and has `//`, `%`, or a part in parentheses or with a sign (`x // 2`, `x * (1-w)`).
///
/// Ends in a newline if the text has one. Formatting what is formatted changes nothing.
std::string format(const Source &, const Tokens &);

} // namespace elsewise
