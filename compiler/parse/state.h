// SPDX-License-Identifier: Apache-2.0
// What the two halves of the parser share: pieces (pieces.cpp) and expressions (expressions.cpp). Nobody else includes
// it.
#pragma once
#include "compiler/parse/parser.h"
#include <algorithm>
#include <llvm/ADT/ArrayRef.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/ADT/StringMap.h>
#include <map>
#include <optional>

namespace elsewise {

class Parser {
public:
  Parser(const Source &source, const Tokens &tokens, Sink &sink) : source_(source), tokens_(tokens), sink_(sink) {}
  Ast run();

private:
  // Pieces
  void header();
  void let();
  void piece();
  void else_piece(SpecPiece &);
  void guarded_piece(SpecPiece &);
  ExprId value_after(Span colon, uint32_t begin);
  void behind_value();
  void recover();
  void check_bare_values();
  bool at_separator() const;

  // Expressions
  ExprId whole();
  ExprId expression(int least);
  ExprId prefix(int least);
  ExprId primary();
  ExprId parenthesised();
  ExprId call(const Token &name);
  ExprId comparisons(ExprId left);
  ExprId c_conditional(ExprId condition);
  ExprId python_conditional(ExprId value);
  ExprId read_behind(ExprId);
  ExprId nested(int least);
  ExprId nested_whole();
  ExprId missing_operand();
  std::optional<Operator> comparison_here(Span &at);
  bool close(const Token &open, bool in_call);
  bool skip_brackets();
  bool call_behind() const;
  bool is_condition(ExprId) const;
  void missing_operator(const Token &, bool in_call);
  void check_bits(ExprId);

  // Nodes
  ExprId add(Expr, llvm::ArrayRef<ExprId> operands, Span outer);
  ExprId leaf(ExprKind, const Token &, uint32_t payload);
  ExprId unary(Operator, ExprId, Span at);
  ExprId binary(Operator, ExprId, ExprId, Span at);
  ExprId error(Span);
  ExprId give_up(Span); // error(), and the rest of the piece is skipped
  uint32_t name(const Token &);

  // Tokens
  const Token &here() const { return tokens_[at_]; }
  const Token &ahead() const { return tokens_[std::min<size_t>(at_ + 1, tokens_.size() - 1)]; }
  const Token &behind() const { return tokens_[at_ ? at_ - 1 : 0]; }
  bool is(TokenKind kind) const { return here().kind == kind; }
  const Token &take() { return tokens_[here().kind == TokenKind::End ? at_ : at_++]; }

  std::string word(Operator, Span at) const;
  std::string text(Span s) const { return std::string(source_.slice(s)); }
  std::string text(ExprId e) const; // with its parentheses; a foreign conditional as it should have been written
  void not_yet(Span, const char *feature);

  const Source &source_;
  const Tokens &tokens_;
  Sink &sink_;
  Ast ast_;
  uint32_t at_ = 0;
  uint32_t nesting_ = 0;
  bool lost_ = false; // the rest of the piece makes no sense any more: say nothing about it
  unsigned conditionals_ = 0;
  llvm::StringMap<uint32_t> names_;
  std::vector<const char *> told_; // features that were reported as not supported yet
  std::map<ExprId, std::string> rewritten_;
  // By expression: with its parentheses; levels below it; operations below it.
  std::vector<Span> outer_;
  std::vector<uint32_t> levels_, operations_;
};

} // namespace elsewise
