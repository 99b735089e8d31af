// SPDX-License-Identifier: Apache-2.0
// Rows of the builtin table that the compiler itself makes nodes of, found by what they mean. No builtin's name stands
// here.
#pragma once
#include "grammar/builtins.h"

namespace elsewise {

template <class Match> uint8_t row_where(Match match) {
  const auto rows = builtins();
  for (size_t r = 0; r < rows.size(); ++r)
    if (match(rows[r])) return uint8_t(r);
  return 255; // not in the table: the verifier refuses the call
}
inline uint8_t least_row() {
  return row_where([](const Builtin &r) { return r.meaning == Meaning::Least; });
}
inline uint8_t greatest_row() {
  return row_where([](const Builtin &r) { return r.meaning == Meaning::Greatest; });
}
inline uint8_t magnitude_row() {
  return row_where([](const Builtin &r) { return r.meaning == Meaning::Magnitude; });
}
inline uint8_t floor_row() {
  return row_where([](const Builtin &r) { return r.meaning == Meaning::Floor; });
}
inline uint8_t ceil_row() {
  return row_where([](const Builtin &r) { return r.meaning == Meaning::Ceil; });
}
inline uint8_t square_root_row() {
  return row_where([](const Builtin &r) { return r.meaning == Meaning::SquareRoot; });
}
inline uint8_t power_row() {
  return row_where([](const Builtin &r) { return r.meaning == Meaning::Power; });
}

} // namespace elsewise
