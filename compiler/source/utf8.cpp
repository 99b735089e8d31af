// SPDX-License-Identifier: Apache-2.0
// UTF-8 read a character at a time. Widths are LLVM's; nothing here depends on the locale.
#include "compiler/source/utf8.h"
#include <llvm/Support/Unicode.h>

namespace elsewise::utf8 {

Character next(std::string_view text, size_t at) {
  const uint8_t lead = uint8_t(text[at]);
  if (lead < 0x80) return {lead, 1, true};
  const int bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || at + bytes > text.size()) return {replacement, 1, false};
  char32_t code = lead & (0xff >> (bytes + 1));
  for (int k = 1; k < bytes; ++k) {
    const uint8_t tail = uint8_t(text[at + k]);
    if ((tail & 0xc0) != 0x80) return {replacement, 1, false};
    code = code << 6 | (tail & 0x3f);
  }
  const char32_t least = bytes == 2 ? 0x80 : bytes == 3 ? 0x800 : 0x10000;
  if (code < least || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return {replacement, 1, false};
  return {code, uint8_t(bytes), true};
}

void append(std::string &text, char32_t code) {
  if (code < 0x80) {
    text += char(code);
  } else if (code < 0x800) {
    text += char(0xc0 | code >> 6);
    text += char(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    text += char(0xe0 | code >> 12);
    text += char(0x80 | (code >> 6 & 0x3f));
    text += char(0x80 | (code & 0x3f));
  } else {
    text += char(0xf0 | code >> 18);
    text += char(0x80 | (code >> 12 & 0x3f));
    text += char(0x80 | (code >> 6 & 0x3f));
    text += char(0x80 | (code & 0x3f));
  }
}

char32_t printable(Character c) {
  const char32_t code = c.code;
  const bool control = code < 0x20 || (code >= 0x7f && code < 0xa0);
  const bool invisible = (code >= 0x200b && code <= 0x200f) || (code >= 0x2028 && code <= 0x202e) ||
                         (code >= 0x2060 && code <= 0x206f) || code == 0xfeff;
  return !c.valid || control || invisible ? replacement : code;
}

int width(char32_t code) {
  std::string one;
  append(one, code);
  const int columns = llvm::sys::unicode::columnWidthUTF8(one);
  return columns < 0 ? 1 : columns;
}

} // namespace elsewise::utf8
