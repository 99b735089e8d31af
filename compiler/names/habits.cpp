// SPDX-License-Identifier: Apache-2.0
// Tables of other languages' words. A row that the language takes up as a builtin is found there first, and then means
// nothing here.
#include "compiler/names/habits.h"
#include "compiler/diagnostics/diagnostic.h"
#include "compiler/types/types.h"
#include "grammar/builtins.h"
#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/ADT/StringExtras.h>

namespace elsewise {
namespace {

struct Form {
  std::string_view function, written; // {0} {1}: the operands
  size_t operands;
};
constexpr Form forms[] = {
    {"power", "{0}**{1}", 2},
    {"square", "{0}**2", 1},
    {"cube", "{0}**3", 1},
    {"reciprocal", "1/{0}", 1},
    {"mod", "{0} % {1}", 2},
    {"modulo", "{0} % {1}", 2},
    {"remainder", "{0} % {1}", 2},
    {"floor_divide", "{0}//{1}", 2},
    {"floordiv", "{0}//{1}", 2},
    {"idiv", "{0}//{1}", 2},
    {"divide", "{0}/{1}", 2},
    {"true_divide", "{0}/{1}", 2},
    {"truediv", "{0}/{1}", 2},
    {"div", "{0}/{1}", 2},
    {"multiply", "{0}*{1}", 2},
    {"mul", "{0}*{1}", 2},
    {"add", "{0} + {1}", 2},
    {"subtract", "{0} - {1}", 2},
    {"sub", "{0} - {1}", 2},
    {"negative", "-{0}", 1},
    {"neg", "-{0}", 1},
    {"logical_and", "{0} and {1}", 2},
    {"and", "{0} and {1}", 2},
    {"logical_or", "{0} or {1}", 2},
    {"or", "{0} or {1}", 2},
    {"logical_not", "not {0}", 1},
    {"bitwise_and", "{0} & {1}", 2},
    {"bitwise_or", "{0} | {1}", 2},
    {"bitwise_xor", "{0} ^ {1}", 2},
    {"xor", "{0} ^ {1}", 2},
    {"bitwise_not", "~{0}", 1},
    {"invert", "~{0}", 1},
    {"left_shift", "{0} << {1}", 2},
    {"right_shift", "{0} >> {1}", 2},
    {"equal", "{0} == {1}", 2},
    {"eq", "{0} == {1}", 2},
    {"not_equal", "{0} != {1}", 2},
    {"ne", "{0} != {1}", 2},
    {"less", "{0} < {1}", 2},
    {"lt", "{0} < {1}", 2},
    {"less_equal", "{0} <= {1}", 2},
    {"le", "{0} <= {1}", 2},
    {"greater", "{0} > {1}", 2},
    {"gt", "{0} > {1}", 2},
    {"greater_equal", "{0} >= {1}", 2},
    {"ge", "{0} >= {1}", 2},
};

struct Infix {
  std::string_view word, meant;
};
constexpr Infix infixes[] = {
    {"and", "and"}, {"or", "or"},  {"andalso", "and"}, {"orelse", "or"}, {"mod", "%"},   {"rem", "%"},
    {"div", "//"},  {"xor", "^"},  {"eq", "=="},       {"ne", "!="},     {"neq", "!="},  {"lt", "<"},
    {"le", "<="},   {"lte", "<="}, {"gt", ">"},        {"ge", ">="},     {"gte", ">="},  {"equals", "=="},
    {"shl", "<<"},  {"shr", ">>"}, {"times", "*"},     {"plus", "+"},    {"minus", "-"},
};

constexpr std::string_view reductions[] = {
    "sum",     "mean",    "average", "prod",    "product",       "std",    "var",     "median",      "norm",
    "cumsum",  "cumprod", "any",     "all",     "argmax",        "argmin", "softmax", "log_softmax", "sort",
    "argsort", "unique",  "nansum",  "nanmean", "count_nonzero", "roll",   "diff",    "flip",        "reverse"};

struct Needs {
  std::string_view function, argument;
};
constexpr Needs needs[] = {{"cumsum", "0"}, {"cumprod", "0"}, {"softmax", "-1"}, {"log_softmax", "-1"}};

constexpr std::string_view counts[] = {"numel", "nelement", "size", "length", "count", "nelem", "N", "num_elements"};
constexpr std::pair<std::string_view, DType> casts[] = {
    {"double", DType::F64}, {"half", DType::F16}, {"short", DType::I16}, {"byte", DType::U8}, {"char", DType::I8}};

/// Whether an operand binds tighter than any operator: a name, a number, a call, or what stands in parentheses.
bool is_primary(std::string_view text) {
  size_t at = 0;
  const auto word = [](char c) { return llvm::isAlnum(c) || c == '_' || c == '.'; };
  while (at < text.size() && word(text[at])) ++at;
  if (at == text.size()) return at > 0;
  if (text[at] != '(') return false;
  for (int depth = 0; at < text.size(); ++at) {
    depth += text[at] == '(', depth -= text[at] == ')';
    if (depth == 0) return at + 1 == text.size();
  }
  return false;
}

} // namespace

std::string foreign_builtin(std::string_view word) {
  for (const Builtin &row : builtins()) {
    llvm::SmallVector<llvm::StringRef, 8> elsewhere;
    llvm::StringRef(row.elsewhere).split(elsewhere, ' ', -1, false);
    for (const llvm::StringRef e : elsewhere)
      if (e.equals_insensitive(llvm::StringRef(word))) return std::string(row.name);
  }
  return {};
}

std::string nearest_builtin(std::string_view word) {
  if (std::string same = foreign_builtin(word); !same.empty()) return same;
  std::vector<std::string> known;
  for (const Builtin &row : builtins()) known.emplace_back(row.name);
  for (const auto &[cast, dtype] : casts)
    if (word == cast) return spelling(dtype);
  return did_you_mean(word, known);
}

std::string as_operator(std::string_view function, std::span<const std::string> operands) {
  const std::string lower = llvm::StringRef(function.data(), function.size()).lower();
  for (const Form &form : forms) {
    if (form.function != lower || form.operands != operands.size()) continue;
    std::string text;
    for (size_t k = 0; k < form.written.size(); ++k) {
      if (form.written[k] != '{') {
        text += form.written[k];
        continue;
      }
      const std::string &operand = operands[size_t(form.written[k + 1] - '0')];
      text += is_primary(operand) ? operand : "(" + operand + ")";
      k += 2;
    }
    return text;
  }
  return {};
}

std::string_view infix_word(std::string_view word) {
  for (const Infix &i : infixes)
    if (llvm::StringRef(i.word).equals_insensitive(llvm::StringRef(word))) return i.meant;
  return {};
}

bool is_reduction(std::string_view function) { return llvm::is_contained(reductions, function); }
std::string_view reduction_argument(std::string_view function) {
  for (const Needs &n : needs)
    if (n.function == function) return n.argument;
  return {};
}

std::string as_index(std::string_view function, const std::string &shift) {
  if (function == "flip" || function == "reverse") return "n-1-i";
  if (function != "roll" || shift.empty()) return {};
  return "(i - " + (is_primary(shift) ? shift : "(" + shift + ")") + ") % n";
}

bool is_element_count(std::string_view name) { return llvm::is_contained(counts, name); }

} // namespace elsewise
