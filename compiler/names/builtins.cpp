// SPDX-License-Identifier: Apache-2.0
// Look-up in the builtin table. No name and no rule of a builtin stands here.
#include "grammar/builtins.h"
#include "grammar/builtin_reference.h"

namespace elsewise {
namespace {

constexpr Builtin builtin_rows[] = {
#include "grammar/builtins.def"
};

} // namespace

std::span<const Builtin> builtins() { return builtin_rows; }

int find_builtin(std::string_view name) {
  for (size_t row = 0; row < std::size(builtin_rows); ++row)
    if (builtin_rows[row].name == name) return int(row);
  return -1;
}

std::string_view name_of(Rule rule) {
  for (const Builtin &row : builtin_rows)
    if (row.rule == rule) return row.name;
  return {};
}

} // namespace elsewise
