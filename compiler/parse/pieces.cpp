// SPDX-License-Identifier: Apache-2.0
// Pieces: guards, values, `else`, and how to go on behind one that did not parse. Expressions are read elsewhere.
#include "compiler/parse/precedence.h"
#include "compiler/parse/state.h"

namespace elsewise {

Ast parse(const Source &source, const Tokens &tokens, Sink &sink) { return Parser(source, tokens, sink).run(); }

void Parser::set_guard(SpecPiece &p, const Operand &o) { p.guard = o.id, p.guard_written = o; }
void Parser::set_value(SpecPiece &p, const Operand &o) { p.value = o.id, p.value_written = o; }

bool Parser::at_separator() const { return is(TokenKind::End) || is(TokenKind::Newline) || is(TokenKind::Semicolon); }

Ast Parser::run() {
  const auto skip_separators = [&] {
    while (is(TokenKind::Newline) || is(TokenKind::Semicolon)) take();
  };
  bool any = false, ended = false, told = false;
  skip_separators();
  if (is(TokenKind::LeftBracket)) header();
  for (skip_separators(); !is(TokenKind::End); skip_separators()) {
    const uint32_t begin = at_;
    if (is(TokenKind::LeftBracket)) {
      misplaced_header();
      continue;
    }
    if (let_here() || forgot_let()) {
      if (ended && !told) {
        sink_.report(Code::AfterElse, here().where, {text(here().where)});
        told = true;
      }
      const bool written = let_here();
      if (is(TokenKind::Name) && written) foreign_word(here(), "let");
      let(written ? take() : here());
      recover();
      continue;
    }
    any = true;
    if (ast_.pieces.size() == most_pieces) {
      sink_.report(Code::TooManyPieces, here().where, {std::to_string(most_pieces)});
      break;
    }
    piece();
    const SpecPiece &last = ast_.pieces.back();
    if (ended && !told) {
      sink_.report(Code::AfterElse, last.where, {text(last.where)});
      told = true;
    }
    ended |= last.is_else;
    recover();
    if (at_ == begin) take();
  }
  if (!any && !sink_.failed()) sink_.report(Code::EmptySpec, at_ ? here().where : Span{0, 0});
  if (!ended || !told) check_bare_values();
  check_unused();
  return std::move(ast_);
}

/// Goes to the next piece if this one was given up.
void Parser::recover() {
  while (lost_ && !at_separator()) take();
  lost_ = false;
  nesting_ = conditionals_ = 0;
}

void Parser::piece() {
  if (ast_.pieces.empty() || !else_here()) skip_needless(true);
  const Token &first = here();
  SpecPiece p;
  if (else_here()) else_piece(p);
  else guarded_piece(p);
  const Span last = at_ && &first != &here() ? behind().where : first.where;
  if (lost_) {
    // Nothing more is said about this piece: a guard that may hold anywhere, and no value.
    if (!p.is_else && p.guard == no_expr) set_guard(p, error(first.where));
    set_value(p, error(join(first.where, last)));
  }
  p.where = join(first.where, last);
  ast_.pieces.push_back(p);
}

void Parser::else_piece(SpecPiece &p) {
  const Token &word = take_else();
  if (if_here()) {
    const Span both = join(word.where, here().where);
    sink_.report(Code::IfPiece, both, {text(both)}).fixits = {{{both.begin, ahead().where.begin}, "", "drop it"}};
    take();
    return guarded_piece(p);
  }
  p.is_else = true;
  if (is(TokenKind::Colon)) take();
  else if (is(TokenKind::Arrow)) colon_here({});
  skip_needless(false);
  if (at_separator()) {
    sink_.report(Code::MissingValue, word.where, {text(word.where)});
    set_value(p, error(word.where));
    return;
  }
  const uint32_t value_begin = here().where.begin;
  const Operand value = whole();
  set_value(p, value);
  if (!lost_ && is(TokenKind::Colon)) {
    sink_.report(Code::ElseWithGuard, word.where).fixits = {{{word.where.begin, value_begin}, "", "drop it"}};
    p.is_else = false;
    set_guard(p, value);
    set_value(p, value_after(take().where, word.where.begin));
  }
  behind_value();
}

void Parser::guarded_piece(SpecPiece &p) {
  const Token &first = here();
  if (if_here()) {
    sink_.report(Code::IfPiece, first.where, {text(first.where)}).fixits = {
        {{first.where.begin, ahead().where.begin}, "", "drop it"}};
    take();
  }
  if (is(TokenKind::Colon)) {
    sink_.report(Code::MissingGuard, here().where);
    set_guard(p, error(here().where));
    set_value(p, value_after(take().where, first.where.begin));
    return behind_value();
  }
  const Operand e = whole();
  if (lost_) return;
  const Token &t = here();
  const bool begins_value = t.kind == TokenKind::Name || t.kind == TokenKind::Literal || t.kind == TokenKind::LeftParen;
  if (colon_here(e)) {
    set_guard(p, e);
    set_value(p, value_after(behind().where, first.where.begin));
  } else if (is_condition(e) && begins_value) {
    const uint32_t end = e.at.end;
    sink_.report(Code::MissingColon, t.where, {text(e)}).fixits = {{{end, end}, ":", "insert it"}};
    set_guard(p, e);
    skip_needless(false);
    set_value(p, whole());
  } else {
    set_value(p, e);
  }
  behind_value();
}

/// The value behind `colon`, of a piece that begins at byte `begin`.
Operand Parser::value_after(Span colon, uint32_t begin) {
  skip_needless(false);
  if (!at_separator() && !is(TokenKind::Else)) return whole();
  sink_.report(Code::MissingValue, colon, {text(Span{begin, colon.end})});
  return error(colon);
}

/// Reports what stands between a value and the end of its piece.
void Parser::behind_value() {
  const Token &t = here();
  if (lost_ || at_separator()) return;
  if (else_behind()) { // go on with it
    if (behind().kind != TokenKind::Colon)
      sink_.report(Code::MissingSeparator, t.where, {text(t.where)}).fixits = {
          {{behind().where.end, behind().where.end}, ";", "end the piece"}};
    return;
  }
  lost_ = true;
  switch (t.kind) {
  case TokenKind::Error:
    return;
  case TokenKind::RightParen:
  case TokenKind::RightBracket:
    sink_.report(Code::UnmatchedBracket, t.where, {text(t.where)});
    return;
  case TokenKind::Comma:
    sink_.report(Code::UnexpectedToken, t.where, {text(t.where)}).fixits = {{t.where, ";", "separate pieces"}};
    return;
  case TokenKind::Colon:
    second_colon(t);
    return;
  default:
    missing_operator(t, false);
  }
}

/// `i<3: x: else 0`: a piece begins behind the colon if it can.
void Parser::second_colon(const Token &colon) {
  Diagnostic &d = sink_.report(Code::SecondColon, colon.where);
  bool piece = ahead().kind == TokenKind::Else;
  for (uint32_t k = at_ + 1; !piece && tokens_[k].kind != TokenKind::End; ++k) {
    if (tokens_[k].kind == TokenKind::Semicolon || tokens_[k].kind == TokenKind::Newline) break;
    piece = tokens_[k].kind == TokenKind::Colon;
  }
  if (piece) d.fixits = {{colon.where, ";", "begin a piece"}};
  else d.note = "pieces are separated by `;` or a new line";
}

/// A value without a guard is the whole spec, or something is missing.
void Parser::check_bare_values() {
  if (ast_.pieces.size() < 2) return;
  bool told = false; // one bare value explains the next
  for (const SpecPiece &p : ast_.pieces) {
    if (p.guard != no_expr || p.is_else || ast_[p.value].kind == ExprKind::Error) continue;
    if (&p == &ast_.pieces.back()) {
      if (told) continue;
      sink_.report(Code::LastWithoutElse, p.where, {text(p.where)}).fixits = {
          {{p.where.begin, p.where.begin}, "else ", "insert it"}};
    } else if (is_condition({p.value_written, p.value})) {
      sink_.report(Code::GuardWithoutValue, p.where, {text(p.where)});
    } else {
      if (!told) sink_.report(Code::BareValue, p.where, {text(p.where)});
      told = true;
    }
  }
}

} // namespace elsewise
