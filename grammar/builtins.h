// SPDX-License-Identifier: Apache-2.0
// THE builtin table: one row a function, with its spelling for every backend. A builtin's name stands in this file and
// in no other non-test file. Rows are data; the rules that read them (typing, lowering, emission, reference) stand with
// their readers.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

namespace elsewise {

/// How a row types its operands and result.
enum class Rule : uint8_t {
  Numeric,   // result: promotion of the operands; index stays index (min, max, clip, abs)
  Rounding,  // as Numeric, but integers and indexes pass unchanged (floor, ceil, round)
  Float,     // integers and indexes become floats first (sqrt): index -> weak float, integer data -> f32
  Predicate, // Bool; integers and indexes give false (isnan)
  Select,    // where(condition, a, b): lazy, Op::Where
  CastTo,    // the row's name is a dtype: Op::Cast
  CastInt,   // int(e): weak float -> index, bool -> i64 data, float data -> i64, integer data -> i64
  CastFloat, // float(e): index -> weak float, integer and bool data -> f32, floats unchanged
  Length,    // len(t), len(s, d): its operands are names; an index
  Border,    // border(y, x): likewise
};

/// What a proof about positions may use of a row; of an Opaque one only that equal operands give equal results.
enum class Meaning : uint8_t { Opaque, Least, Greatest, Magnitude, NotANumber };

/// What may be said of a row's results across backends and against torch.
enum class Sameness : uint8_t { Bits, Ulp, DefinedHere };

/// Computing classes that a primitive is spelt for.
enum Class : uint8_t { ClassF32, ClassF64, ClassInt, class_count }; // ClassInt: iN, uN and Index

struct Builtin {
  std::string_view name;
  std::string_view signature;           // for people: "min(a, b, ...)"
  uint8_t min_arguments, max_arguments; // 255: any number; the row then folds from the left, two at a time
  Rule rule;
  std::string_view body =
      {}; // composite: a spec in its parameters a, b, c, … ("min(max(a, b), c)"); no backend entry is then needed
  // Primitives, by Class; {0} {1} are the operands. An empty entry: the class cannot occur (Rounding on integers).
  std::string_view cuda[class_count] = {}; // CUDA C expression, also valid C++ behind the test shim
  std::string_view cuda_helper = {}; // CUDA C text that the float expressions call, {T} replaced by float or double;
                                     // printed once a type, only if used
  std::string_view cuda_helper_int = {};                 // the same for integer types
  std::string_view llvm = {};                            // intrinsic for floats ("llvm.floor"), or "fcmp uno"
  std::string_view llvm_signed = {}, llvm_unsigned = {}; // intrinsics for integers
  std::string_view torch = {};                           // expression in {0} {1}
  double (*real)(const double *) = nullptr; // reference on exact doubles, rounded afterwards to the computing type
                                            // (exact for every row that says Bits)
  __int128 (*integer)(const __int128 *) = nullptr; // the same for integers, before wrapping
  std::string_view derivative = {};                // in the DSL, by parameter, separated by ';'; "" where there is none
  Sameness sameness = Sameness::Bits;
  uint32_t ulp = 0;
  std::string_view doc;
  std::string_view elsewhere = {}; // what other languages call it, separated by blanks; only for "did you mean"
  Meaning meaning = Meaning::Opaque;
  std::string_view torch_double =
      {}; // for doubles, where torch's own is not exact: calls a helper of compiler/emit/torch_helpers.h
};

// clang-format off
// In CUDA text, {T} of a helper is the computing type. Helpers are overloads, so that one expression serves every class.
inline constexpr std::string_view min_helper_float =
    "__device__ {T} minimum({T} a, {T} b) { return a != a || a < b || (a == b && signbit(a)) ? a : b; }";
inline constexpr std::string_view max_helper_float =
    "__device__ {T} maximum({T} a, {T} b) { return a != a || a > b || (a == b && !signbit(a)) ? a : b; }";
inline constexpr std::string_view min_helper_int = "__device__ {T} minimum({T} a, {T} b) { return a < b ? a : b; }";
inline constexpr std::string_view max_helper_int = "__device__ {T} maximum({T} a, {T} b) { return a > b ? a : b; }";
inline constexpr std::string_view abs_helper_int = "__device__ {T} magnitude({T} a) { return a < 0 ? negate(a) : a; }";

namespace reference {
// C++ that says what a primitive means, on exact doubles and integers. No backend uses it.
inline double min(const double *v) { return v[0] != v[0] || v[1] != v[1] ? __builtin_nan("") : v[0] < v[1] || (v[0] == v[1] && __builtin_signbit(v[0])) ? v[0] : v[1]; }
inline double max(const double *v) { return v[0] != v[0] || v[1] != v[1] ? __builtin_nan("") : v[0] > v[1] || (v[0] == v[1] && !__builtin_signbit(v[0])) ? v[0] : v[1]; }
inline double abs(const double *v) { return __builtin_fabs(v[0]); }
inline double sqrt(const double *v) { return __builtin_sqrt(v[0]); } // a correctly rounded double root rounds correctly once more to float
inline double floor(const double *v) { return __builtin_floor(v[0]); }
inline double ceil(const double *v) { return __builtin_ceil(v[0]); }
inline double round(const double *v) { return __builtin_nearbyint(v[0]); } // in the default mode: half to even
inline double isnan(const double *v) { return v[0] != v[0]; }
inline __int128 min_integer(const __int128 *v) { return v[0] < v[1] ? v[0] : v[1]; }
inline __int128 max_integer(const __int128 *v) { return v[0] > v[1] ? v[0] : v[1]; }
inline __int128 abs_integer(const __int128 *v) { return v[0] < 0 ? -v[0] : v[0]; }
} // namespace reference

inline constexpr Builtin builtin_rows[] = {
    {.name = "min", .signature = "min(a, b, ...)", .min_arguments = 2, .max_arguments = 255, .rule = Rule::Numeric,
     .cuda = {"minimum({0}, {1})", "minimum({0}, {1})", "minimum({0}, {1})"}, .cuda_helper = min_helper_float, .cuda_helper_int = min_helper_int,
     .llvm = "llvm.minimum", .llvm_signed = "llvm.smin", .llvm_unsigned = "llvm.umin", .torch = "torch.minimum({0}, {1})",
     .real = reference::min, .integer = reference::min_integer,
     .derivative = "where(a < b, 1, where(a == b, 0.5, 0)); where(b < a, 1, where(a == b, 0.5, 0))",
     .doc = "the least of its arguments; NaN if one is NaN; -0 is less than +0", .elsewhere = "minimum amin fmin fminf least", .meaning = Meaning::Least},
    {.name = "max", .signature = "max(a, b, ...)", .min_arguments = 2, .max_arguments = 255, .rule = Rule::Numeric,
     .cuda = {"maximum({0}, {1})", "maximum({0}, {1})", "maximum({0}, {1})"}, .cuda_helper = max_helper_float, .cuda_helper_int = max_helper_int,
     .llvm = "llvm.maximum", .llvm_signed = "llvm.smax", .llvm_unsigned = "llvm.umax", .torch = "torch.maximum({0}, {1})",
     .real = reference::max, .integer = reference::max_integer,
     .derivative = "where(a > b, 1, where(a == b, 0.5, 0)); where(b > a, 1, where(a == b, 0.5, 0))",
     .doc = "the greatest of its arguments; NaN if one is NaN; +0 is greater than -0", .elsewhere = "maximum amax fmax fmaxf greatest", .meaning = Meaning::Greatest},
    {.name = "clip", .signature = "clip(x, lo, hi)", .min_arguments = 3, .max_arguments = 3, .rule = Rule::Numeric, .body = "min(max(a, b), c)",
     .derivative = "where(b <= a and a <= c, 1, 0); where(a < b, 1, 0); where(a > c, 1, 0)",
     .doc = "min(max(x, lo), hi): x kept between lo and hi; NaN stays NaN", .elsewhere = "clamp clamp_ saturate bound limit"},
    {.name = "abs", .signature = "abs(x)", .min_arguments = 1, .max_arguments = 1, .rule = Rule::Numeric,
     .cuda = {"fabsf({0})", "fabs({0})", "magnitude({0})"}, .cuda_helper_int = abs_helper_int,
     .llvm = "llvm.fabs", .llvm_signed = "llvm.abs", .torch = "torch.abs({0})",
     .real = reference::abs, .integer = reference::abs_integer, .derivative = "where(a > 0, 1, where(a < 0, -1, 0))",
     .doc = "the magnitude of x; the least integer of a dtype stays as it is", .elsewhere = "fabs fabsf absolute magnitude", .meaning = Meaning::Magnitude},
    {.name = "sqrt", .signature = "sqrt(x)", .min_arguments = 1, .max_arguments = 1, .rule = Rule::Float,
     .cuda = {"sqrtf({0})", "sqrt({0})", ""}, .llvm = "llvm.sqrt", .torch = "torch.sqrt({0})",
     .real = reference::sqrt, .derivative = "0.5 / sqrt(a)",
     .doc = "the square root, correctly rounded; NaN below zero", .elsewhere = "sqrtf root sqroot square_root", .torch_double = "_root({0})"},
    {.name = "floor", .signature = "floor(x)", .min_arguments = 1, .max_arguments = 1, .rule = Rule::Rounding,
     .cuda = {"floorf({0})", "floor({0})", ""}, .llvm = "llvm.floor", .torch = "torch.floor({0})", .real = reference::floor, .derivative = "0",
     .doc = "the greatest whole number not above x, in x's own dtype", .elsewhere = "floorf"},
    {.name = "ceil", .signature = "ceil(x)", .min_arguments = 1, .max_arguments = 1, .rule = Rule::Rounding,
     .cuda = {"ceilf({0})", "ceil({0})", ""}, .llvm = "llvm.ceil", .torch = "torch.ceil({0})", .real = reference::ceil, .derivative = "0",
     .doc = "the least whole number not below x, in x's own dtype", .elsewhere = "ceilf ceiling"},
    {.name = "round", .signature = "round(x)", .min_arguments = 1, .max_arguments = 1, .rule = Rule::Rounding,
     .cuda = {"rintf({0})", "rint({0})", ""}, .llvm = "llvm.roundeven", .torch = "torch.round({0})", .real = reference::round, .derivative = "0",
     .doc = "the nearest whole number, halves to even, in x's own dtype", .elsewhere = "rint rintf roundeven nearbyint around"},
    {.name = "where", .signature = "where(condition, a, b)", .min_arguments = 3, .max_arguments = 3, .rule = Rule::Select, .torch = "torch.where({0}, {1}, {2})",
     .doc = "a where the condition holds, else b; the other one is neither read nor evaluated", .elsewhere = "select iif ifelse cond if_else choose mux"},
    {.name = "isnan", .signature = "isnan(x)", .min_arguments = 1, .max_arguments = 1, .rule = Rule::Predicate,
     .cuda = {"isnan({0})", "isnan({0})", ""}, .llvm = "fcmp uno", .torch = "torch.isnan({0})", .real = reference::isnan,
     .doc = "true where x is not a number; false for every integer", .elsewhere = "is_nan nan_p isnanf", .meaning = Meaning::NotANumber},
    {.name = "len", .signature = "len(t)", .min_arguments = 1, .max_arguments = 2, .rule = Rule::Length,
     .doc = "the length of axis t, or of axis 0 of the argument t; `len(s, d)` of its axis d, negative from the right", .elsewhere = "length size numel"},
    {.name = "border", .signature = "border()", .min_arguments = 0, .max_arguments = 255, .rule = Rule::Border,
     .doc = "how far the nearest face of the domain is, 0 at it; `border(y, x)` over those axes alone", .elsewhere = "margin edge_distance"},
    {.name = "int", .signature = "int(x)", .min_arguments = 1, .max_arguments = 1, .rule = Rule::CastInt,
     .doc = "the whole part: of a float without a tensor an exact integer, of data i64; saturates, NaN is 0", .elsewhere = "integer long trunc truncate to_int astype"},
    {.name = "float", .signature = "float(x)", .min_arguments = 1, .max_arguments = 1, .rule = Rule::CastFloat,
     .doc = "a float: of positions and lengths one that does not widen data, of integer data f32; floats stay as they are", .elsewhere = "to_float"},
#define DTYPE(Name, spelling, bytes, class, torch) \
    {.name = spelling, .signature = spelling "(x)", .min_arguments = 1, .max_arguments = 1, .rule = Rule::CastTo, .doc = "x as " torch "; floats truncate and saturate, integers wrap, NaN is 0", .elsewhere = torch},
#include "grammar/dtypes.def"
};
// clang-format on

std::span<const Builtin> builtins(); // defined in compiler/names/builtins.cpp, over the rows below
/// Row of `name`, or -1.
int find_builtin(std::string_view name);

} // namespace elsewise
