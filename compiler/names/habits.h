// SPDX-License-Identifier: Apache-2.0
// What other languages call functions, operators and lengths. It says what is meant, reports nothing, and knows no
// builtin by name.
#pragma once
#include <span>
#include <string>
#include <string_view>

namespace elsewise {

/// The builtin that `word` probably means: what another language calls it, else the nearest name; empty if none.
std::string nearest_builtin(std::string_view word);

/// The builtin that another language calls `word`; empty if none.
std::string foreign_builtin(std::string_view word);

/// How a call of a function that is an operator here is written: `pow(a, b)` is `a ** b`. Operands are put in
/// parentheses where they need them. Empty if it is none, or takes another number of operands.
std::string as_operator(std::string_view function, std::span<const std::string> operands);

/// The operator that a word between two operands stands for elsewhere, in any case: `AND`, `mod`; empty if none.
std::string_view infix_word(std::string_view word);

/// Whether a function looks at many elements at once, such as `mean`.
bool is_reduction(std::string_view function);

/// What a method of that name is called with elsewhere, where it needs something: `cumsum` an axis.
std::string_view reduction_argument(std::string_view function);

/// A function that takes elements from other places, as the index that it reads along one axis: `roll` by `shift`;
/// empty if it is none, or lacks the shift.
std::string as_index(std::string_view function, const std::string &shift);

/// Whether a name of another language asks for the number of elements, such as `numel`.
bool is_element_count(std::string_view name);

} // namespace elsewise
