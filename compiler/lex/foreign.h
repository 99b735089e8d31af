// SPDX-License-Identifier: Apache-2.0
// Characters beyond ASCII that a spec may be pasted with. It only says what is meant; the lexer decides what to do
// about it.
#pragma once
#include <string>
#include <string_view>

namespace elsewise {

/// What ASCII spelling `code` stands for ("<=" for U+2264, " " for a no-break space); empty if none, or if it shows
/// nothing.
std::string_view ascii_for(char32_t code);
/// What a blank beyond ASCII is called ("a no-break space"); empty if it is none.
std::string_view blank_name(char32_t code);
/// Whether `code` quotes a string somewhere.
bool is_quote(char32_t code);
/// A word of full-width forms in ASCII; empty if it has any other character beyond ASCII.
std::string narrow(std::string_view word);
/// Whether a person would take `code` for a letter of a name.
bool is_foreign_letter(char32_t code);
/// "U+00E9".
std::string code_point(char32_t code);

} // namespace elsewise
