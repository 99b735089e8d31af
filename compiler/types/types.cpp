// SPDX-License-Identifier: Apache-2.0
// The dtype table as functions. It knows nothing of promotion and of how values are computed.
#include "compiler/types/types.h"
#include <string>

namespace elsewise {
namespace {

struct Row {
  const char *spelling, *torch;
  int bytes;
  DClass dclass;
};

constexpr Row rows[] = {
#define DTYPE(Name, spelling, bytes, class, torch) {spelling, torch, bytes, DClass::class},
#include "grammar/dtypes.def"
    {"index", "int64", 8, DClass::Int},
};

struct Alias {
  std::string_view name;
  DType dtype;
};

// What torch and NumPy also call them. `float` and `int` mean different widths in the two, so they are not here.
constexpr Alias aliases[] = {
    {"half", DType::F16},  {"double", DType::F64}, {"long", DType::I64},
    {"short", DType::I16}, {"bool_", DType::Bool}, {"byte", DType::U8},
};

} // namespace

const char *spelling(DType d) { return rows[size_t(d)].spelling; }
const char *torch_name(DType d) { return rows[size_t(d)].torch; }
int bytes(DType d) { return rows[size_t(d)].bytes; }
DClass dclass(DType d) { return rows[size_t(d)].dclass; }

__int128 least(DType d) { return dclass(d) == DClass::Int ? -((__int128)1 << (8 * bytes(d) - 1)) : 0; }
__int128 greatest(DType d) {
  if (d == DType::Bool) return 1;
  return ((__int128)1 << (8 * bytes(d) - (dclass(d) == DClass::Int))) - 1;
}

std::optional<DType> parse_dtype(std::string_view name) {
  for (std::string_view prefix : {"torch.", "numpy.", "np."})
    if (name.substr(0, prefix.size()) == prefix) {
      name.remove_prefix(prefix.size());
      break;
    }
  for (int d = 0; d < dtype_count; ++d)
    if (name == rows[d].spelling || name == rows[d].torch) return DType(d);
  for (const Alias &alias : aliases)
    if (name == alias.name) return alias.dtype;
  return std::nullopt;
}

} // namespace elsewise
