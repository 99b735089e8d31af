// SPDX-License-Identifier: Apache-2.0
// Numbers as text. It knows no language's words beside "inf" and "nan".
#include "compiler/types/text.h"
#include <algorithm>
#include <charconv>
#include <cmath>

namespace elsewise {

std::string decimal(__int128 v) {
  if (v == 0) return "0";
  std::string digits;
  for (unsigned __int128 rest = v < 0 ? -(unsigned __int128)v : (unsigned __int128)v; rest; rest /= 10)
    digits += char('0' + int(rest % 10));
  if (v < 0) digits += '-';
  std::reverse(digits.begin(), digits.end());
  return digits;
}

std::string shortest(DType d, double v) {
  if (std::isnan(v)) return "nan";
  if (std::isinf(v)) return v < 0 ? "-inf" : "inf";
  char text[40];
  char *const end = text + sizeof text;
  return {text, (d == DType::F64 ? std::to_chars(text, end, v) : std::to_chars(text, end, float(v))).ptr};
}

std::string shortest_literal(DType d, double v) {
  std::string text = shortest(d, v);
  if (std::isfinite(v) && text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

} // namespace elsewise
