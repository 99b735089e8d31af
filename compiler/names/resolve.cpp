// SPDX-License-Identifier: Apache-2.0
// Name resolution: a name before `(` is a function of the builtin table, any other is the position, the length or an
// argument. It looks at no types.
#include "compiler/names/names.h"
#include "grammar/builtins.h"
#include <llvm/ADT/SmallVector.h>
#include <llvm/ADT/StringRef.h>

namespace elsewise {
namespace {

// The keywords of a call. An argument of such a name could not be passed.
constexpr std::string_view call_keywords[] = {"out",    "shape",  "dtype", "device", "domain",
                                              "offset", "stream", "arch",  "path"};
// Python's own, for the same reason, as far as the language has not taken them.
constexpr std::string_view python_keywords[] = {
    "False",    "None",     "True", "as",     "assert",  "async", "await", "break",  "class",
    "continue", "def",      "del",  "except", "finally", "for",   "from",  "global", "import",
    "lambda",   "nonlocal", "pass", "raise",  "return",  "try",   "while", "with",   "yield"};

template <size_t count> bool contains(const std::string_view (&words)[count], std::string_view word) {
  for (const std::string_view w : words)
    if (w == word) return true;
  return false;
}

/// The builtin that `word` probably means: what another language calls it, else the nearest name.
std::string nearest_builtin(std::string_view word) {
  std::vector<std::string> known;
  for (const Builtin &row : builtins()) {
    llvm::SmallVector<llvm::StringRef, 8> elsewhere;
    llvm::StringRef(row.elsewhere).split(elsewhere, ' ', -1, false);
    for (const llvm::StringRef e : elsewhere)
      if (e.equals_insensitive(llvm::StringRef(word))) return std::string(row.name);
    known.emplace_back(row.name);
  }
  return did_you_mean(word, known);
}

std::string known_functions() {
  std::string list;
  for (const Builtin &row : builtins()) list += (list.empty() ? "" : " ") + std::string(row.name);
  return "functions: " + list;
}

std::string counted(const Builtin &row) {
  const auto arguments = [](int n) { return std::to_string(n) + (n == 1 ? " argument" : " arguments"); };
  if (row.max_arguments == 255) return "at least " + arguments(row.min_arguments);
  if (row.max_arguments == row.min_arguments) return arguments(row.min_arguments);
  return std::to_string(row.min_arguments) + " to " + arguments(row.max_arguments);
}

struct Resolver {
  const Ast &ast;
  Sink &sink;
  Names names = {};
  // By name of the tree: what it stands for as a value, once that is known. A wrong name is reported where it stands
  // first.
  std::vector<Resolved> values = {};
  std::vector<bool> seen = {};

  Names run() {
    names.of.resize(ast.exprs.size());
    values.resize(ast.names.size());
    seen.resize(ast.names.size());
    for (ExprId id = 0; id < ast.exprs.size(); ++id)
      if (ast[id].kind == ExprKind::Name) names.of[id] = value(id);
    for (ExprId id = 0; id < ast.exprs.size(); ++id)
      if (ast[id].kind == ExprKind::Call) names.of[id] = function(id);
    return std::move(names);
  }

  Resolved value(ExprId id) {
    const uint32_t payload = ast[id].payload;
    if (!seen[payload]) {
      seen[payload] = true;
      values[payload] = first_use(id);
    }
    return values[payload];
  }

  Resolved first_use(ExprId id) {
    const std::string &name = ast.name(id);
    if (name == "i") return {Binding::Position, flat_axis};
    if (name == "n") return {Binding::Length, flat_axis};
    if (contains(call_keywords, name) || contains(python_keywords, name)) {
      const bool python = contains(python_keywords, name);
      Diagnostic &d = sink.report(Code::ReservedName, ast[id].at,
                                  {name, python ? "it is a word of Python" : "it is a keyword of the call"});
      if (name == "True" || name == "False") {
        const std::string constant = llvm::StringRef(name).lower();
        d.fixits = {{ast[id].at, constant, "did you mean `" + constant + "`"}};
      }
      return {};
    }
    names.arguments.push_back(name);
    return {Binding::Argument, uint32_t(names.arguments.size() - 1)};
  }

  Resolved function(ExprId id) {
    const Expr &call = ast[id];
    const std::string &name = ast.name(id);
    const int row = find_builtin(name);
    if (row < 0) {
      unknown(id);
      return {};
    }
    const Builtin &b = builtins()[row];
    if (call.count < b.min_arguments || (b.max_arguments != 255 && call.count > b.max_arguments)) {
      sink.report(Code::ArgumentCount, call.where,
                  {"`" + std::string(b.signature) + "`", counted(b), std::to_string(call.count)});
      return {};
    }
    return {Binding::Builtin, uint32_t(row)};
  }

  void unknown(ExprId id) {
    const Span at = ast[id].at;
    const std::string &name = ast.name(id);
    const bool is_value = seen[ast[id].payload] || name == "i" || name == "n";
    const std::string nearest = nearest_builtin(name);
    if (name == "len") {
      sink.report(Code::NotYet, at, {"the length of an axis"});
    } else if (is_value || (nearest.empty() && name.size() == 1)) {
      sink.report(Code::NotAFunction, at, {name}).fixits = {{{at.end, at.end}, "*", "multiply"}};
    } else {
      Diagnostic &d = sink.report(Code::UnknownFunction, at, {name});
      if (!nearest.empty()) d.fixits = {{at, nearest, "did you mean `" + nearest + "`"}};
      d.note = known_functions();
    }
  }
};

} // namespace

Names resolve(const Ast &ast, Sink &sink) { return Resolver{ast, sink}.run(); }

} // namespace elsewise
