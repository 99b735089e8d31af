// SPDX-License-Identifier: Apache-2.0
// What a row of THE builtin table says; the rows stand in builtins.def. Rows are data; the rules that read them
// (typing, lowering, emission, reference) stand with their readers.
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
  Predicate, // Bool; an integer or index gives what the reference gives for 0 (isnan)
  Whole,     // as Numeric, of integers and indexes only (popcount, wrap)
  WholeTest, // Bool, of integers and indexes only (bit)
  Ratio,     // result as Float, but the operands come as they are: compared and subtracted exactly (ramp)
  Select,    // where(condition, a, b): lazy, Op::Where
  CastTo,    // the row's name is a dtype: Op::Cast
  CastInt,   // int(e): weak float -> index, bool -> i64 data, float data -> i64, integer data -> i64
  CastFloat, // float(e): index -> weak float, integer and bool data -> f32, floats unchanged
  Length,    // len(t), len(s, d): its operands are names; an index
  Border,    // border(y, x): likewise
  Noise,     // rand(seed, stream): of whole numbers of any kind; a weak float worked in f32, by position
};

/// What the compiler itself looks a row up by, and what a proof about positions may use of it; of an Opaque one only
/// that equal operands give equal results.
enum class Meaning : uint8_t {
  Opaque,
  Least,
  Greatest,
  Magnitude,
  NotANumber,
  Floor,
  Ceil,
  Nearest,
  SquareRoot,
  CopySign,
  Power, // of floats `**` is this row
  BitCount,
  Between, // brings its first operand between the others
  Uniform, // of noise; as a node of the IR: the 32 bits that the position, the seed and the stream give
  Normal,  // of noise; as a node: a float of the normal distribution from such bits
};

/// What may be said of a row's results. Between processors: Bits, or Ulp, where each is within `ulp` of the exact
/// value. Against torch: Bits, Ulp, or DefinedHere, where `note` says what differs.
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
  std::string_view cuda_helper_int = {}; // the same for integer types
  std::string_view llvm = {}; // intrinsic for floats ("llvm.floor"), "fcmp uno" of an operand with itself, or
                              // "fcmp oeq inf" of its magnitude with infinity
  std::string_view llvm_signed = {}, llvm_unsigned = {}; // intrinsics for integers
  std::string_view cpu = {};         // instead of `llvm`: a deterministic function of SLEEF, "exp_u10"; also the host's
  std::string_view cpu_body[2] = {}; // where that function falls short: a body in which the row's own name is the bare
                                     // function; ClassF32, ClassF64
  std::string_view torch = {};       // expression in {0} {1} {2}; of a composite: in place of its body
  double (*real)(const double *) = nullptr; // reference on exact doubles, rounded afterwards to the computing type
                                            // (exact for every row that says Bits)
  __int128 (*integer)(const __int128 *) = nullptr; // the same for integers, before wrapping
  std::string_view derivative = {};                // in the DSL, by parameter, separated by ';'; "" where there is none
  Sameness sameness = Sameness::Bits;              // between processors
  uint32_t ulp = 0;                                // of f32 and f64; the bound of every processor
  Sameness with_torch = Sameness::Bits;            // against torch on the same processor
  std::string_view note = {};                      // how it differs from torch, for people
  std::string_view doc;
  std::string_view elsewhere = {}; // what other languages call it, separated by blanks; only for "did you mean"
  Meaning meaning = Meaning::Opaque;
  std::string_view torch_double =
      {}; // for doubles, where torch's own is not exact: calls a helper of compiler/emit/torch_helpers.h
};

std::span<const Builtin> builtins(); // defined in compiler/names/builtins.cpp, over the rows of builtins.def
/// Row of `name`, or -1.
int find_builtin(std::string_view name);
/// The name of the row with a rule that only one row has.
std::string_view name_of(Rule);

} // namespace elsewise
