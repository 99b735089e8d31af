// SPDX-License-Identifier: Apache-2.0
// Characters beyond ASCII that a spec may be pasted with. The ranges of letters are coarse: they only choose between
// two messages.
#include "compiler/lex/foreign.h"
#include "compiler/source/utf8.h"
#include <array>
#include <cstdint>
#include <cstdio>
#include <iterator>

namespace elsewise {
namespace {

struct Symbol {
  char32_t code;
  std::string_view ascii;
};
constexpr Symbol symbols[] = {
    {0xd7, "*"},    {0xb7, "*"},    {0x22c5, "*"},  {0x2217, "*"},  {0x2022, "*"},   {0xf7, "/"},     {0x2215, "/"},
    {0x2044, "/"},  {0x2212, "-"},  {0x2010, "-"},  {0x2011, "-"},  {0x2012, "-"},   {0x2013, "-"},   {0x2014, "-"},
    {0xb2, "**2"},  {0xb3, "**3"},  {0xbc, "0.25"}, {0xbd, "0.5"},  {0xbe, "0.75"},  {0x2264, "<="},  {0x2265, ">="},
    {0x2a7d, "<="}, {0x2a7e, ">="}, {0x2266, "<="}, {0x2267, ">="}, {0x2260, "!="},  {0x2261, "=="},  {0x2227, "and"},
    {0x2228, "or"}, {0xac, "not"},  {0x2208, "in"}, {0x3c0, "pi"},  {0x1d70b, "pi"}, {0x221e, "inf"}, {0x2192, "->"},
    {0x21d2, "->"}, {0x2236, ":"},  {0x3001, ","},  {0x3002, "."},  {0x3010, "["},   {0x3011, "]"},   {0x2026, ".."},
    {0x2025, ".."},
};

struct Blank {
  char32_t code;
  std::string_view name, ascii;
};
constexpr Blank blanks[] = {
    {0xa0, "a no-break space", " "},
    {0x202f, "a narrow no-break space", " "},
    {0x2007, "a figure space", " "},
    {0x2002, "an en space", " "},
    {0x2003, "an em space", " "},
    {0x2009, "a thin space", " "},
    {0x200a, "a hair space", " "},
    {0x3000, "an ideographic space", " "},
    {0x205f, "a mathematical space", " "},
    {0x2028, "a line separator", "\n"},
    {0x2029, "a paragraph separator", "\n"},
    {0x85, "a next-line control", "\n"},
    {0x200b, "an invisible space", ""},
    {0x2060, "an invisible word joiner", ""},
    {0xfeff, "an invisible byte order mark", ""},
    {0xad, "an invisible soft hyphen", ""},
};

constexpr char32_t quotes[] = {'"',    '\'',   '`',  0x2018, 0x2019, 0x201a, 0x201c,
                               0x201d, 0x201e, 0xab, 0xbb,   0x2039, 0x203a};

// Full-width forms, which stand for ASCII one by one.
constexpr char32_t first_wide = 0xff01, last_wide = 0xff5e, wide_offset = 0xfee0;
constexpr auto ascii_characters = [] {
  std::array<char, 128> all{};
  for (int k = 0; k < 128; ++k) all[k] = char(k);
  return all;
}();

struct Range {
  char32_t first, last;
};
constexpr Range letters[] = {
    {0xaa, 0xaa},     {0xb5, 0xb5},     {0xba, 0xba},     {0xc0, 0xd6},       {0xd8, 0xf6},       {0xf8, 0x2ff},
    {0x300, 0x36f},   {0x370, 0x3ff},   {0x400, 0x52f},   {0x531, 0x587},     {0x5d0, 0x5ea},     {0x620, 0x6d3},
    {0x900, 0xdff},   {0xe00, 0xe5b},   {0x10a0, 0x11ff}, {0x1e00, 0x1fff},   {0x2070, 0x2071},   {0x2080, 0x209c},
    {0x2100, 0x218b}, {0x3041, 0x30ff}, {0x3400, 0x4dbf}, {0x4e00, 0x9fff},   {0xac00, 0xd7a3},   {0xff10, 0xff19},
    {0xff21, 0xff3a}, {0xff3f, 0xff3f}, {0xff41, 0xff5a}, {0x1d400, 0x1d7ff}, {0x20000, 0x2fa1f},
};

} // namespace

std::string_view ascii_for(char32_t code) {
  if (first_wide <= code && code <= last_wide) return {&ascii_characters[code - wide_offset], 1};
  for (const Blank &b : blanks)
    if (b.code == code) return b.ascii;
  for (const Symbol &s : symbols)
    if (s.code == code) return s.ascii;
  return {};
}

std::string_view blank_name(char32_t code) {
  for (const Blank &b : blanks)
    if (b.code == code) return b.name;
  return {};
}

bool is_quote(char32_t code) {
  for (const char32_t q : quotes)
    if (q == code) return true;
  return false;
}

std::string narrow(std::string_view word) {
  std::string ascii;
  for (size_t at = 0; at < word.size();) {
    const utf8::Character c = utf8::next(word, at);
    at += c.bytes;
    const bool wide = first_wide <= c.code && c.code <= last_wide;
    if (c.code >= 0x80 && !wide) return {};
    ascii += wide ? char(c.code - wide_offset) : char(c.code);
  }
  return ascii;
}

bool is_foreign_letter(char32_t code) {
  for (const Range &r : letters)
    if (r.first <= code && code <= r.last) return true;
  return false;
}

std::string code_point(char32_t code) {
  char text[16];
  std::snprintf(text, sizeof text, "U+%04X", unsigned(code));
  return text;
}

} // namespace elsewise
