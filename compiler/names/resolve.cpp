// SPDX-License-Identifier: Apache-2.0
// Name resolution: a name before `(` is a function of the builtin table, any other is a position, a length or an
// argument. It looks at no types.
#include "compiler/names/habits.h"
#include "compiler/names/names.h"
#include "compiler/parse/parser.h"
#include "compiler/types/text.h"
#include "grammar/builtins.h"
#include <algorithm>
#include <llvm/ADT/STLExtras.h>
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
  std::vector<bool> used = {}; // by expression: a piece comes to it

  Names run() {
    names.of.resize(ast.exprs.size());
    values.resize(ast.names.size());
    seen.resize(ast.names.size());
    used.resize(ast.exprs.size());
    for (size_t k = 0; k < ast.header.axes.size(); ++k) allowed(ast.header.axes[k], ast.header.at[k], "an axis's");
    for (const Let &let : ast.lets) allowed(let.name, let.at, "a let's");
    for_roots([&](ExprId e) { mark(e); });
    std::vector<ExprId> uses; // of names, as they stand in the text
    for (ExprId id = 0; id < ast.exprs.size(); ++id)
      if ((ast[id].kind == ExprKind::Name || ast[id].kind == ExprKind::Read) && used[id]) uses.push_back(id);
    std::sort(uses.begin(), uses.end(),
              [&](ExprId a, ExprId b) { return std::pair(ast[a].at.begin, a) < std::pair(ast[b].at.begin, b); });
    for (const ExprId id : uses) names.of[id] = ast[id].kind == ExprKind::Name ? value(id) : indexed(id);
    for (ExprId id = 0; id < ast.exprs.size(); ++id)
      if (ast[id].kind == ExprKind::Call) names.of[id] = function(id);
    names.elementwise.resize(names.arguments.size());
    names.indexed.resize(names.arguments.size());
    used.assign(used.size(), false);
    for_roots([&](ExprId e) { read(e); });
    return std::move(names);
  }

  template <class Visit> void for_roots(Visit visit) {
    for (const SpecPiece &piece : ast.pieces)
      for (const ExprId e : {piece.guard, piece.value})
        if (e != no_expr) visit(e);
  }
  void mark(ExprId e) {
    if (used[e]) return;
    used[e] = true;
    for (uint32_t k = 0; k < ast[e].count; ++k) mark(ast.child(e, k));
  }
  /// Notes whose values are used.
  void read(ExprId e) {
    if (used[e]) return;
    used[e] = true;
    if (ast[e].kind == ExprKind::Name && names.of[e].binding == Binding::Argument)
      names.elementwise[names.of[e].index] = true;
    if (ast[e].kind == ExprKind::Read && names.of[e].binding == Binding::Argument)
      names.indexed[names.of[e].index] = true;
    for (uint32_t k = 0; k < elsewise::values(ast, names, e); ++k) read(ast.child(e, k));
  }

  /// Reports a name that the call or Python has taken.
  bool allowed(const std::string &name, Span at, const char *whose) {
    const bool python = llvm::is_contained(python_keywords, name);
    if (!python && !llvm::is_contained(call_keywords, name)) return true;
    Diagnostic &d = sink.report(Code::ReservedName, at,
                                {name, whose, python ? "it is a word of Python" : "it is a keyword of the call"});
    if (name == "True" || name == "False") {
      const std::string constant = llvm::StringRef(name).lower();
      d.fixits = {{at, constant, "did you mean `" + constant + "`"}};
    }
    return false;
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
    for (size_t k = 0; k < ast.header.axes.size(); ++k)
      if (ast.header.axes[k] == name) return {Binding::Position, uint32_t(k)};
    if (name == "i") return {Binding::Position, flat_axis};
    if (name == "n") return {Binding::Length, flat_axis};
    if (!allowed(name, ast[id].at, "an argument's")) return {};
    names.arguments.push_back(name);
    return {Binding::Argument, uint32_t(names.arguments.size() - 1)};
  }

  /// What stands before brackets.
  Resolved indexed(ExprId id) {
    const Resolved of = value(id);
    if (of.binding == Binding::Position || of.binding == Binding::Length) {
      Diagnostic &d = sink.report(Code::IndexedPosition, ast[id].at, {ast.name(id)});
      d.fixits = {{{ast[id].at.end, ast[id].where.end}, "", "drop the brackets"}};
      return {};
    }
    const Header &h = ast.header;
    names.needs_rank |= ast[id].dots >= 0 && (!h.present || h.dots >= 0);
    return of;
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
      Diagnostic &d = sink.report(Code::ArgumentCount, call.where,
                                  {"`" + std::string(b.signature) + "`", counted(b), std::to_string(call.count)});
      if (b.max_arguments == 255 && call.count == 1)
        d.note = "over all elements it is computed before, and passed as an argument";
      return {};
    }
    if (b.rule == Rule::Length) return used[id] ? length(id) : Resolved{};
    if (b.rule == Rule::Border) return used[id] ? border(id) : Resolved{};
    return {Binding::Builtin, uint32_t(row)};
  }

  /// An operand for messages: its name, if it is one.
  std::string text(ExprId call, uint32_t k) const {
    const Written &w = ast.written_at(call, k);
    const ExprId e = ast.child(call, k);
    return w.let != no_let ? ast.lets[w.let].name : ast[e].kind == ExprKind::Name ? ast.name(e) : "";
  }
  std::string shown(ExprId call, uint32_t k) const {
    const std::string name = text(call, k);
    return name.empty() ? "an expression" : "`" + name + "`";
  }

  std::string axes() const {
    std::string list;
    for (const std::string &a : ast.header.axes) list += (list.empty() ? "" : " ") + a;
    return list.empty() ? "axes get names from a header, as in `[b, t]`" : "axes: " + list;
  }

  /// What stands in brackets of `len` or `border`, as a name.
  Resolved named(ExprId call, uint32_t k) const {
    const ExprId e = ast.child(call, k);
    return ast[e].kind == ExprKind::Name ? names.of[e] : Resolved{};
  }
  /// Something was wrong with that operand and was reported.
  bool reported(ExprId call, uint32_t k) const {
    const ExprId e = ast.child(call, k);
    return ast[e].kind == ExprKind::Error || (ast[e].kind == ExprKind::Name && names.of[e].binding == Binding::None);
  }

  Resolved length(ExprId id) {
    const Resolved of = named(id, 0);
    const Span at = ast.bare(id, 0);
    if (reported(id, 0)) return {};
    const bool axis = of.binding == Binding::Position && of.index != flat_axis;
    if (!axis && of.binding != Binding::Argument) {
      Diagnostic &d = sink.report(Code::NoLength, at, {ast.name(id), shown(id, 0)});
      if (of.binding == Binding::Position || of.binding == Binding::Length)
        d.fixits = {{ast[id].where, "n", "the number of elements"}};
      else d.note = axes();
      return {};
    }
    if (axis && ast[id].count == 2) {
      sink.report(Code::OneLength, ast[id].where, {text(id, 0), ast.name(id)}).fixits = {
          {ast[id].where, ast.name(id) + "(" + text(id, 0) + ")", "its length"}};
      return {};
    }
    if (axis) return {Binding::Length, of.index};
    if (ast[id].count == 1) return {Binding::ArgumentLength, of.index, 0};
    if (reported(id, 1)) return {};
    ExprId number = ast.child(id, 1);
    const bool negative = ast[number].kind == ExprKind::Unary && ast[number].op == Operator::Neg;
    if (negative) number = ast.child(number, 0);
    const bool whole = ast[number].kind == ExprKind::Literal && ast.literal(number).kind == LiteralKind::Int &&
                       ast.literal(number).integer <= most_axes;
    if (!whole) {
      sink.report(Code::AxisNumber, ast.bare(id, 1), {ast.name(id), shown(id, 1)}).note =
          "`" + ast.name(id) + "(" + text(id, 0) + ", 1)` is the length of its second axis, `-1` counts from the right";
      return {};
    }
    const auto d = int32_t(ast.literal(number).integer);
    return {Binding::ArgumentLength, of.index, negative ? -d : d};
  }

  Resolved border(ExprId id) {
    const Header &h = ast.header;
    for (uint32_t k = 0; k < ast[id].count; ++k) {
      if (reported(id, k)) return {};
      const Resolved of = named(id, k);
      if (of.binding == Binding::Position && of.index != flat_axis) continue;
      sink.report(Code::NoBorder, ast.bare(id, k), {ast.name(id), shown(id, k)}).note = axes();
      return {};
    }
    if (ast[id].count) return {Binding::Border};
    if (h.present && h.dots < 0 && h.axes.empty()) {
      sink.report(Code::BorderOfPoint, ast[id].where, {ast.name(id)});
      return {};
    }
    names.needs_rank |= !h.present || h.dots >= 0;
    return {Binding::Border};
  }

  /// `x(i)`, as Fortran and MATLAB write it.
  bool own_element(ExprId call) const {
    if (ast.header.present || ast[call].count != 1) return false;
    const ExprId position = ast.child(call, 0);
    return ast[position].kind == ExprKind::Name && names.of[position].binding == Binding::Position;
  }

  /// `mean(x)`: what looks at many elements is an argument.
  void reduction(ExprId id) {
    const std::string &name = ast.name(id);
    Diagnostic &d = sink.report(Code::Reduction, ast[id].at, {name});
    const uint32_t count = ast[id].count;
    d.note = "compute it before, and pass it as an argument";
    if (count == 0 || ast[ast.child(id, 0)].kind != ExprKind::Name || ast.written_at(id, 0).let != no_let) return;
    const std::string &of = ast.name(ast.child(id, 0)), argument = of + "_" + name;
    const std::string index =
        ast.header.present ? "" : as_index(name, count == 2 ? whole_number(ast.child(id, 1)) : "");
    if (!index.empty()) {
      d.note.clear();
      d.fixits = {{ast[id].where, of + "[" + index + "]", "read the element there"}};
      return;
    }
    d.fixits = {{ast[id].where, argument, "make it an argument"}};
    if (count == 1)
      d.note = "and pass it: `" + argument + "=" + of + "." + name + "(" + std::string(reduction_argument(name)) + ")`";
  }

  /// A literal as it is written, its sign included, or a name; empty if it is neither.
  std::string whole_number(ExprId e) const {
    if (ast[e].kind == ExprKind::Name) return ast.name(e);
    const bool negative = ast[e].kind == ExprKind::Unary && ast[e].op == Operator::Neg;
    const ExprId leaf = negative ? ast.child(e, 0) : e;
    if (ast[leaf].kind != ExprKind::Literal || ast.literal(leaf).kind != LiteralKind::Int) return {};
    return (negative ? "-" : "") + decimal(ast.literal(leaf).integer);
  }

  /// Others draw from a range, and keep what they draw from to themselves.
  static std::string of_noise(const Builtin &row) {
    const std::string call = "`" + std::string(row.signature) + "`";
    return row.meaning == Meaning::Uniform
               ? call + " takes a seed and is uniform from 0 up to 1; from a up to b it is `a + (b-a)*" +
                     std::string(row.signature) + "`"
               : call + " takes a seed and has mean 0 and variance 1; about m by s it is `m + s*" +
                     std::string(row.signature) + "`";
  }

  void unknown(ExprId id) {
    const Span at = ast[id].at;
    const std::string &name = ast.name(id);
    bool is_value = seen[ast[id].payload] || name == "i" || name == "n";
    for (const Let &let : ast.lets) is_value |= let.name == name;
    for (const std::string &axis : ast.header.axes) is_value |= axis == name;
    const std::string nearest = nearest_builtin(name);
    if ((is_value || (nearest.empty() && name.size() == 1)) && own_element(id)) {
      const Span call = ast[id].where;
      sink.report(Code::OwnElement, call, {name + "(i)", name}).fixits = {
          {{at.end, call.end}, "", "drop the parentheses"}};
    } else if (is_reduction(name) && !is_value) {
      reduction(id);
    } else if (is_value || (nearest.empty() && name.size() == 1)) {
      sink.report(Code::NotAFunction, at, {name}).fixits = {{{at.end, at.end}, "*", "multiply"}};
    } else {
      Diagnostic &d = sink.report(Code::UnknownFunction, at, {name});
      const int row = find_builtin(foreign_builtin(name));
      if (row >= 0 && builtins()[row].rule == Rule::Noise && ast[id].count != 1) d.note = of_noise(builtins()[row]);
      else if (!nearest.empty()) d.fixits = {{at, nearest, "did you mean `" + nearest + "`"}};
      else d.note = known_functions();
    }
  }
};

} // namespace

Names resolve(const Ast &ast, Sink &sink) { return Resolver{ast, sink}.run(); }

} // namespace elsewise
