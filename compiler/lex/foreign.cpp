// SPDX-License-Identifier: Apache-2.0
// Characters beyond ASCII that a spec may be pasted with. The ranges of letters are coarse: they only choose between
// two messages.
#include "compiler/lex/foreign.h"
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
    {0xa0, " "},    {0x202f, " "},  {0x2009, " "},  {0x3000, " "},   {0xd7, "*"},     {0xb7, "*"},    {0x22c5, "*"},
    {0x2217, "*"},  {0xf7, "/"},    {0x2215, "/"},  {0x2212, "-"},   {0x2013, "-"},   {0x2014, "-"},  {0xb2, "**2"},
    {0xb3, "**3"},  {0x2264, "<="}, {0x2265, ">="}, {0x2a7d, "<="},  {0x2a7e, ">="},  {0x2260, "!="}, {0x2227, "and"},
    {0x2228, "or"}, {0xac, "not"},  {0x3c0, "pi"},  {0x1d70b, "pi"}, {0x221e, "inf"}, {0xff1a, ":"},  {0xff1b, ";"},
    {0xff08, "("},  {0xff09, ")"},  {0xff0c, ","},  {0x2026, ".."},
};

struct Range {
  char32_t first, last;
};
constexpr Range letters[] = {
    {0xaa, 0xaa},     {0xb5, 0xb5},       {0xba, 0xba},       {0xc0, 0xd6},     {0xd8, 0xf6},     {0xf8, 0x2ff},
    {0x300, 0x36f},   {0x370, 0x3ff},     {0x400, 0x52f},     {0x531, 0x587},   {0x5d0, 0x5ea},   {0x620, 0x6d3},
    {0x900, 0xdff},   {0xe00, 0xe5b},     {0x10a0, 0x11ff},   {0x1e00, 0x1fff}, {0x2070, 0x2071}, {0x2080, 0x209c},
    {0x2100, 0x218b}, {0x3041, 0x30ff},   {0x3400, 0x4dbf},   {0x4e00, 0x9fff}, {0xac00, 0xd7a3}, {0xff21, 0xff3a},
    {0xff41, 0xff5a}, {0x1d400, 0x1d7ff}, {0x20000, 0x2fa1f},
};

} // namespace

std::string_view ascii_for(char32_t code) {
  for (const Symbol &s : symbols)
    if (s.code == code) return s.ascii;
  return {};
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
