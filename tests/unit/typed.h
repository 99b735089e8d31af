// SPDX-License-Identifier: Apache-2.0
// A spec typed for a signature written as text, for tests. It checks nothing itself.
#pragma once
#include "compiler/check/typed.h"
#include "compiler/parse/parser.h"

namespace elsewise::test {

struct Checked {
  Source source;
  Ast ast;
  Names names;
  Signature signature;
  Typed typed;
  bool failed = false;
  std::vector<Diagnostic> diagnostics;

  /// The last expression whose source is `text`.
  ExprId find(std::string_view text) const {
    for (ExprId e = ExprId(ast.exprs.size()); e-- > 0;)
      if (source.slice(ast[e].where) == text) return e;
    return no_expr;
  }
  const ExprType &at(std::string_view text, Use use = Use::Value) const { return typed.at(find(text), use); }
  std::string rendered() const {
    std::string all;
    for (const Diagnostic &d : diagnostics) all += render(d, source);
    return all;
  }
  std::string codes() const {
    std::string all;
    for (const Diagnostic &d : diagnostics) all += (all.empty() ? "" : " ") + std::string(slug(d.code));
    return all;
  }
  /// The spec after fix-it `fixit` of the first diagnostic.
  std::string mended(size_t fixit = 0) const {
    if (diagnostics.empty() || fixit >= diagnostics[0].fixits.size()) return "nothing to mend";
    const FixIt &f = diagnostics[0].fixits[fixit];
    std::string text(source.text());
    return text.replace(f.where.begin, f.where.end - f.where.begin, f.replacement);
  }
  std::string reachable() const {
    std::string all;
    for (const bool r : typed.reachable) all += r ? '1' : '0';
    return all;
  }
};

/// `kinds` is "x:f32 z:f16[] k:int rate:float flag:flag out:f16"; `[]` means a tensor of no dimensions, `s:f32[2]`
/// one of two, for a read at indices. What is not named is unknown.
inline Checked check(const std::string &text, const std::string &kinds = "") {
  Checked c{Source(text, "<spec>"), {}, {}, {}, {}, false, {}};
  Sink sink;
  const Tokens tokens = lex(c.source, sink);
  c.ast = parse(c.source, tokens, sink);
  c.names = resolve(c.ast, sink);
  c.signature.args.resize(c.names.arguments.size());
  for (size_t at = 0; at < kinds.size();) {
    const size_t end = std::min(kinds.find(' ', at), kinds.size()), colon = kinds.find(':', at);
    const std::string name = kinds.substr(at, colon - at);
    std::string kind = kinds.substr(colon + 1, end - colon - 1);
    at = end + 1;
    ArgType type;
    const bool zero_dim = kind.size() > 2 && kind.substr(kind.size() - 2) == "[]";
    if (zero_dim) kind.resize(kind.size() - 2);
    int8_t rank = -1;
    if (kind.back() == ']') rank = int8_t(kind[kind.size() - 2] - '0'), kind.resize(kind.size() - 3);
    if (kind == "int") type.kind = ArgKind::Int;
    else if (kind == "float") type.kind = ArgKind::Float;
    else if (kind == "flag") type.kind = ArgKind::Bool;
    else type = {ArgKind::Tensor, parse_dtype(kind).value(), zero_dim, rank};
    if (name == "out") c.signature.out = type.dtype;
    for (size_t a = 0; a < c.names.arguments.size(); ++a)
      if (c.names.arguments[a] == name) c.signature.args[a] = type;
  }
  c.typed = specialise(c.source, c.ast, c.names, c.signature, sink);
  c.failed = sink.failed();
  c.diagnostics = sink.take();
  return c;
}

} // namespace elsewise::test
