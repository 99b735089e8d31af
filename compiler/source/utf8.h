// SPDX-License-Identifier: Apache-2.0
// UTF-8 read a character at a time, where a byte that is not valid counts as one character. It knows no letters and no
// case.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace elsewise::utf8 {

inline constexpr char32_t replacement = 0xfffd;

/// One character of a text; `valid` is false for a byte that belongs to none (code is then U+FFFD).
struct Character {
  char32_t code;
  uint8_t bytes;
  bool valid;
};

/// The character at byte `at`, which must lie in `text`. Overlong forms, surrogates and codes above U+10FFFF are not
/// valid.
Character next(std::string_view text, size_t at);
void append(std::string &text, char32_t code);
/// `c` itself, or U+FFFD for what would move a terminal's cursor or show nothing: controls, bidirectional marks,
/// invalid bytes.
char32_t printable(Character c);
/// Columns that a terminal gives to `code`: 0 for combining marks, 2 for wide characters.
int width(char32_t code);

} // namespace elsewise::utf8
