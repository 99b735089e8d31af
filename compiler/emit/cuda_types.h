// SPDX-License-Identifier: Apache-2.0
// C spellings of dtypes and constants, and the helper functions that make every operation total. No expression is built
// here.
#pragma once
#include "compiler/emit/cuda_text.h"
#include "compiler/ir/ir.h"
#include <set>

namespace elsewise::cuda {

/// The type in memory: "u8" for bool, "f16" (its bits) for a half, "float".
std::string_view stored(DType);
/// The type that a node of this dtype has in an expression. Index: "i64", or "i128" in wide kernels.
std::string_view value(DType, bool wide);
/// A constant that round-trips exactly. `exact`: its C type must be the value type (an argument of an overloaded
/// function), else an int may stand for a wider one.
std::string literal(DType, const Constant &, bool wide, bool exact);

/// A function that emitted code may call. The emitted text of a helper whose CUDA spelling is PTX has another spelling
/// for hosts.
struct Helper {
  std::string_view name;
  std::string_view floats; // CUDA C with {T}; printed once a type. Empty: none for floats
  std::string_view signed_integers;
  std::string_view unsigned_integers;
  std::string_view host; // C++ of the same meaning for the CPU shim, where the CUDA spelling is not C++; {T} as above
};

/// Which helpers, for which types, a text needs; prints them with what they themselves call in front.
class Helpers {
public:
  explicit Helpers(bool wide) : wide_(wide) {}
  /// Helper by name for a value type.
  void use(std::string_view name, DType);
  /// Text of a builtin's row, with {T}: printed once a type, after the helpers that it calls.
  void use_text(std::string_view text, DType);
  /// Those that a text calls.
  void need(std::string_view text, DType);
  void print(Lines &) const;

private:
  bool wide_;
  std::vector<std::string> texts_; // in the order of printing
  std::set<std::string> seen_;
};

/// Typedefs and macros that `text` mentions.
void print_prelude(Lines &, std::string_view text);
/// Identifiers that helpers and preludes use: no name of the spec may be one of them.
const std::set<std::string, std::less<>> &helper_words();
/// Emitted text with every helper that is PTX replaced by its C++ spelling: for the CPU shim.
std::string for_host(std::string text);

} // namespace elsewise::cuda
