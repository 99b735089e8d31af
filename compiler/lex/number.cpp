// SPDX-License-Identifier: Apache-2.0
// One number literal: `1`, `1_000`, `0x1f`, `0.5`, `.5`, `1.`, `1e-3`. What C and others would also read (suffixes,
// octal) gets an answer and no value.
#include "compiler/lex/number.h"
#include <charconv>
#include <llvm/ADT/StringExtras.h>

namespace elsewise {
namespace {

using llvm::isAlnum;
using llvm::isDigit;
using llvm::isHexDigit;

struct Scanner {
  const Source &source;
  Sink &sink;
  uint32_t begin, at;
  std::string digits = {}; // without underscores
  bool stray_underscore = false;

  char peek(uint32_t ahead = 0) const {
    const std::string_view text = source.text();
    return at + ahead < text.size() ? text[at + ahead] : '\0';
  }
  void take_digits(bool hexadecimal) {
    bool after_digit = false;
    for (;; ++at) {
      const char c = peek();
      const bool digit = hexadecimal ? isHexDigit(c) : isDigit(c);
      if (!digit && c != '_') break;
      if (digit) digits += c;
      else stray_underscore |= !after_digit || !(hexadecimal ? isHexDigit(peek(1)) : isDigit(peek(1)));
      after_digit = digit;
    }
  }
  Diagnostic &malformed(std::string why) {
    return sink.report(Code::MalformedNumber, {begin, at}, {std::string(source.slice({begin, at})), std::move(why)});
  }
};

bool is_suffix(std::string_view letters) { return letters.find_first_not_of("fFlLuU") == std::string_view::npos; }

/// Whether a number that no double comes near to is too large, and not too small: the sign of its leading digit's
/// exponent.
bool is_large(std::string_view digits) {
  const size_t e = std::min(digits.find('e'), digits.size());
  const size_t point = std::min(digits.find('.'), e);
  const size_t leading = digits.find_first_of("123456789");
  int64_t exponent = 0;
  if (e != digits.size()) {
    const bool negative = digits[e + 1] == '-';
    for (size_t k = e + 1; k < digits.size() && exponent < 1'000'000'000; ++k)
      if (isDigit(digits[k])) exponent = exponent * 10 + (digits[k] - '0');
    if (negative) exponent = -exponent;
  }
  return int64_t(point) - int64_t(leading) + exponent > 0;
}

} // namespace

Number scan_number(const Source &source, uint32_t begin, Sink &sink) {
  Scanner s{source, sink, begin, begin};
  const bool hexadecimal = s.peek() == '0' && (s.peek(1) == 'x' || s.peek(1) == 'X');
  bool real = false;
  if (hexadecimal) s.at += 2;
  s.take_digits(hexadecimal);
  if (!hexadecimal && s.peek() == '.' && s.peek(1) != '.') {
    real = true, s.digits += s.peek(), ++s.at;
    s.take_digits(false);
  }
  const bool sign = s.peek(1) == '+' || s.peek(1) == '-';
  if (!hexadecimal && (s.peek() == 'e' || s.peek() == 'E') && isDigit(s.peek(sign ? 2 : 1))) {
    real = true, s.digits += 'e', ++s.at;
    if (sign) s.digits += s.peek(), ++s.at;
    s.take_digits(false);
  }
  const uint32_t number_end = s.at;
  while (isAlnum(s.peek()) || s.peek() == '_' || (s.peek() == '.' && isDigit(s.peek(1)))) ++s.at;
  const std::string_view rest = source.slice({number_end, s.at});
  const Span rest_span{number_end, s.at};
  Number number{s.at, false, {}};

  if (hexadecimal && (s.digits.empty() || !rest.empty())) {
    s.malformed("`0x` is followed by digits from 0 to f");
  } else if (!rest.empty() && rest[0] == '.') {
    s.malformed("it has two points");
  } else if (!rest.empty() && is_suffix(rest)) {
    s.malformed("literals have no suffix").fixits = {{rest_span, "", "drop `" + std::string(rest) + "`"}};
  } else if (rest == "e" || rest == "E") {
    s.malformed("its exponent has no digits");
  } else if (s.digits == "0" && !rest.empty() && std::string_view("bBoO").find(rest[0]) != std::string_view::npos) {
    Diagnostic &d = s.malformed("numbers are decimal, or hexadecimal after `0x`");
    uint64_t value = 0; // Python's `0b101` and `0o17`
    const unsigned base = llvm::toLower(rest[0]) == 'b' ? 2 : 8;
    std::string digits;
    for (const char c : rest.substr(1))
      if (c != '_') digits += c;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, int(base));
    if (error == std::errc() && end == digits.data() + digits.size())
      d.fixits = {{{begin, s.at}, std::to_string(value), "write decimal"}};
  } else if ((rest == "j" || rest == "J") && !source.text().starts_with("[")) { // of an axis it may be a multiple
    s.malformed("there are no complex numbers");
  } else if (!rest.empty()) {
    s.malformed("a name follows it").fixits = {{{number_end, number_end}, "*", "multiply"}};
  } else if (s.stray_underscore) {
    std::string plain = hexadecimal ? "0x" + s.digits : s.digits;
    s.malformed("`_` stands between two digits").fixits = {{{begin, s.at}, plain, "leave it away"}};
  } else if (real) {
    if (s.digits.find_first_of("0123456789") == std::string::npos) {
      s.malformed("it has no digits");
      return number;
    }
    const char *text = s.digits.data(), *end = text + s.digits.size();
    double value = 0;
    const bool in_range = std::from_chars(text, end, value).ec == std::errc(); // rounds correctly, in any locale
    number.valid = in_range || !is_large(s.digits);
    number.literal = {LiteralKind::Float, 0, value};
    if (!number.valid)
      sink.report(Code::FloatTooLarge, {begin, s.at}, {std::string(source.slice({begin, s.at}))}).fixits = {
          {{begin, s.at}, "inf", "write infinity"}};
  } else if (!hexadecimal && s.digits.size() > 1 && s.digits[0] == '0' &&
             s.digits.find_first_not_of('0') != std::string::npos) {
    const std::string decimal = s.digits.substr(s.digits.find_first_not_of('0'));
    s.malformed("a leading zero means octal elsewhere and nothing here").fixits = {
        {{begin, s.at}, decimal, "write decimal"}};
  } else {
    using Wide = unsigned __int128;
    constexpr Wide largest = ~Wide(0) >> 1;
    const unsigned base = hexadecimal ? 16 : 10;
    Wide value = 0;
    number.valid = true;
    for (const char c : s.digits) {
      const unsigned digit = llvm::hexDigitValue(c);
      number.valid = value <= (largest - digit) / base;
      if (!number.valid) break;
      value = value * base + digit;
    }
    number.literal = {LiteralKind::Int, __int128(value), 0};
    if (!number.valid) sink.report(Code::IntegerTooLarge, {begin, s.at}, {std::string(source.slice({begin, s.at}))});
  }
  return number;
}

} // namespace elsewise
