// SPDX-License-Identifier: Apache-2.0
// What the parts of the parser share: header and lets (header.cpp), pieces (pieces.cpp), expressions (expressions.cpp),
// habits of other languages (habits.cpp). Nobody else includes it.
#pragma once
#include "compiler/parse/parser.h"
#include <algorithm>
#include <llvm/ADT/ArrayRef.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/ADT/StringMap.h>
#include <map>
#include <optional>

namespace elsewise {

/// What an expression parsed to, and how it is written here.
struct Operand : Written {
  ExprId id = no_expr;
};

class Parser {
public:
  Parser(const Source &source, const Tokens &tokens, Sink &sink) : source_(source), tokens_(tokens), sink_(sink) {}
  Ast run();

private:
  // Pieces
  void header();
  bool axis();
  void behind_header(Span header);
  void misplaced_header();
  void let(const Token &word);
  bool assign(const Token &name);
  void define(const Token &name, const Operand &value, uint32_t begin);
  void check_unused();
  void piece();
  void else_piece(SpecPiece &);
  void guarded_piece(SpecPiece &);
  Operand value_after(Span colon, uint32_t begin);
  void behind_value();
  static void set_guard(SpecPiece &, const Operand &);
  static void set_value(SpecPiece &, const Operand &);
  void second_colon(const Token &);
  void recover();
  void check_bare_values();
  bool at_separator() const;

  // Expressions
  Operand whole();
  Operand expression(int least);
  Operand prefix(int least);
  Operand primary();
  Operand value_name(const Token &);
  Operand parenthesised();
  Operand call(const Token &name);
  Operand comparisons(const Operand &left);
  Operand c_conditional(const Operand &condition);
  Operand python_conditional(const Operand &value);
  Operand read(const Operand &of);
  Operand nested(int least);
  Operand nested_whole();
  Operand missing_operand();
  std::optional<Operator> comparison_here(Span &at);
  bool close(const Token &open, bool in_call);
  bool skip_brackets();
  bool call_behind() const;
  bool compares_here(const Token &function, size_t arguments) const;
  std::string as_condition(const Operand &) const;
  bool is_condition(const Operand &) const;
  void missing_operator(const Token &, bool in_call);
  void check_bits(const Operand &);

  // Habits of other languages
  Operand operand_of(ExprId parent, uint32_t k) const;
  ExprId last_comparison(const Operand &) const;
  bool begins_operand(const Token &) const;
  std::optional<Operator> binary_here() const;
  void take_binary(Operator);
  void foreign_word(const Token &, const char *meant);
  bool not_here() const;
  void check_lone(const Operand &left, const Operand &right);
  Operand lent_subject(const Operand &left);
  bool membership_here() const;
  Operand membership(const Operand &left);
  bool not_read(const Operand &of);
  Operand skip_read(const Operand &of);
  bool list_in_brackets(const Token &open) const;
  Operand skip_list(const Operand &of, const Token &open);
  void slice(const Operand &of, const Token &open, const Operand &begin, size_t axis);
  void second_dots(const Token &);
  Operand attribute(const Operand &receiver);
  Operand operator_call(const Token &name, llvm::ArrayRef<Operand> arguments, Span where);
  void skip_needless(bool piece_begins);
  bool skip_parameters();
  bool skip_target(bool guard_may_stand);
  bool forgot_let();
  bool else_here() const;
  bool else_behind() const;
  const Token &take_else();
  bool if_here() const;
  bool when_here() const;
  bool let_here() const;
  bool misspelt(const Token &, const char *word) const;
  bool colon_here(const Operand &guard);
  bool comment_before(const Token &);

  // Nodes
  Operand add(Expr, llvm::ArrayRef<Operand> operands);
  Operand leaf(ExprKind, const Token &, uint32_t payload);
  Operand unary(Operator, const Operand &, Span at);
  Operand binary(Operator, const Operand &, const Operand &, Span at);
  Operand error(Span);
  Operand give_up(Span); // error(), and the rest of the piece is skipped
  uint32_t name(const Token &);

  // Tokens
  const Token &here() const { return tokens_[at_]; }
  const Token &ahead() const { return tokens_[std::min<size_t>(at_ + 1, tokens_.size() - 1)]; }
  const Token &behind() const { return tokens_[at_ ? at_ - 1 : 0]; }
  bool is(TokenKind kind) const { return here().kind == kind; }
  const Token &take() { return tokens_[here().kind == TokenKind::End ? at_ : at_++]; }

  std::string word(Operator, Span at) const;
  std::string text(Span s) const { return std::string(source_.slice(s)); }
  std::string text(const Operand &) const; // with its parentheses; a foreign conditional as it should have been written

  const Source &source_;
  const Tokens &tokens_;
  Sink &sink_;
  Ast ast_;
  uint32_t at_ = 0;
  uint32_t nesting_ = 0;
  bool lost_ = false; // the rest of the piece makes no sense any more: say nothing about it
  unsigned conditionals_ = 0;
  llvm::StringMap<uint32_t> names_;
  std::map<ExprId, std::string> rewritten_;
  llvm::StringMap<uint32_t> lets_;     // by name: index into Ast::lets
  llvm::StringMap<Span> first_values_; // names that stood for values other than lets
  std::vector<bool> used_;             // by let
  // By expression: levels below it; operations below it, where a let's name is one.
  std::vector<uint32_t> levels_, operations_;
};

} // namespace elsewise
