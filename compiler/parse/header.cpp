// SPDX-License-Identifier: Apache-2.0
// What may stand before pieces: the header that names axes, and lets. It resolves no name but a let's, whose uses are
// its value.
#include "compiler/parse/state.h"

namespace elsewise {
namespace {

/// What the language has taken: words, constants, operators that are words.
bool is_word(const Token &t, std::string_view spelt) {
  const char c = spelt.empty() ? ' ' : spelt[0];
  return t.kind != TokenKind::Name && ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'));
}

} // namespace

/// `[b, .., t]`. What is wrong in it is reported; the axes that are right count nevertheless, so that their names are
/// no arguments.
void Parser::header() {
  const Token &open = take();
  ast_.header.present = true;
  while (!is(TokenKind::RightBracket)) {
    if (!axis()) {
      sink_.report(Code::UnclosedBracket, open.where, {text(open.where)});
      lost_ = true;
      recover();
      return;
    }
    if (is(TokenKind::Comma)) {
      const Token &comma = take();
      if (is(TokenKind::RightBracket))
        sink_.report(Code::MissingAxis, here().where, {text(here().where)}).fixits = {
            {comma.where, "", "drop the comma"}};
    } else if (is(TokenKind::Name) || is(TokenKind::Dots)) {
      const Span between{behind().where.end, here().where.begin};
      sink_.report(Code::UnexpectedToken, here().where, {text(here().where)}).fixits = {
          {between, ", ", "separate axes"}};
    }
  }
  take();
  ast_.header.where = join(open.where, behind().where);
  behind_header(ast_.header.where);
}

/// One entry of the header; false where the header is never closed.
bool Parser::axis() {
  Header &h = ast_.header;
  const Token &t = here();
  switch (t.kind) {
  case TokenKind::End:
  case TokenKind::Newline:
  case TokenKind::Semicolon:
    return false;
  case TokenKind::Comma:
    sink_.report(Code::MissingAxis, t.where, {text(t.where)}).fixits = {{t.where, "", "drop the comma"}};
    return true; // the caller takes it
  case TokenKind::Dots:
    take();
    if (h.dots >= 0) {
      Diagnostic &d = sink_.report(Code::SecondDots, t.where);
      const bool first = tokens_[at_ - 2].kind != TokenKind::Comma;
      if (!first) d.fixits = {{join(tokens_[at_ - 2].where, t.where), "", "drop it"}};
    } else {
      h.dots = int(h.axes.size());
    }
    return true;
  case TokenKind::Error:
    take();
    return true;
  case TokenKind::Name:
    take();
    if (std::find(h.axes.begin(), h.axes.end(), text(t.where)) != h.axes.end()) {
      sink_.report(Code::DuplicateAxis, t.where, {text(t.where)}).note =
          "each axis has a name of its own; `..` stands for axes that need none";
    } else if (h.axes.size() == most_axes) {
      sink_.report(Code::TooManyAxes, t.where, {std::to_string(most_axes)});
    } else {
      h.axes.push_back(text(t.where));
      h.at.push_back(t.where);
    }
    return true;
  default:
    break;
  }
  take();
  Diagnostic &d = sink_.report(Code::NotAnAxis, t.where, {text(t.where)});
  if (is_word(t, text(t.where))) d.note = "`" + text(t.where) + "` is a word of the language";
  else d.note = "a header names each axis, as in `[b, t]`, or leaves some unnamed: `[.., t]`";
  while (!at_separator() && !is(TokenKind::Comma) && !is(TokenKind::RightBracket)) take(); // what belongs to it
  return true;
}

void Parser::behind_header(Span header) {
  if (at_separator()) return;
  if (is(TokenKind::Colon)) { // `[t]: x`
    sink_.report(Code::UnexpectedToken, here().where, {text(here().where)}).fixits = {
        {here().where, ";", "end the header"}};
    take();
    return;
  }
  sink_.report(Code::MissingSeparator, here().where, {text(here().where)}).fixits = {
      {{header.end, header.end}, ";", "end the header"}};
}

void Parser::misplaced_header() {
  const Span open = here().where;
  const bool closed = skip_brackets();
  const Span where = join(open, behind().where);
  Diagnostic &d = sink_.report(Code::HeaderNotFirst, where, {text(where)});
  if (ast_.header.present) d.note = "there is a header already: `" + text(ast_.header.where) + "`";
  lost_ = !closed || !at_separator();
  recover();
}

/// `let name = value`; `word` is where the definition begins.
void Parser::let(const Token &word) {
  const Token &name = here();
  if (name.kind != TokenKind::Name) {
    lost_ = true;
    if (name.kind == TokenKind::Error) return;
    Diagnostic &d = sink_.report(Code::LetWithoutName, at_separator() ? word.where : name.where);
    if (is_word(name, text(name.where))) d.note = "`" + text(name.where) + "` is a word of the language";
    return;
  }
  take();
  Operand value = error(name.where);
  if (assign(name)) {
    if (at_separator() || is(TokenKind::Else))
      sink_.report(Code::MissingValue, behind().where, {text(join(word.where, behind().where))});
    else value = whole();
  }
  define(name, value, word.where.begin);
  if (lost_ || at_separator()) return;
  if (is(TokenKind::Colon)) {
    sink_.report(Code::UnexpectedToken, here().where, {text(here().where)}).note =
        "a let names a value and has no guard: `" + text(name.where) + "` may stand in one";
    lost_ = true;
    return;
  }
  behind_value();
}

/// Takes `=`, or reports what stands in its place; false if no value can follow.
bool Parser::assign(const Token &name) {
  const Token &t = here();
  if (t.kind == TokenKind::Assign) {
    take();
    return true;
  }
  if (at_separator()) {
    sink_.report(Code::MissingValue, name.where, {"let " + text(name.where)});
    return false;
  }
  if (t.kind == TokenKind::Error) {
    lost_ = true;
    return false;
  }
  Diagnostic &d = sink_.report(Code::LetWithoutAssign, t.where, {text(name.where)});
  const bool instead =
      t.kind == TokenKind::Colon || t.kind == TokenKind::Is || (t.kind == TokenKind::Operator && is_comparison(t.op));
  if (instead) {
    const bool apart = behind().where.end < t.where.begin;
    d.fixits = {{t.where, apart ? "=" : " =", "define it"}};
    take();
    return !at_separator();
  }
  if (t.kind == TokenKind::Name || t.kind == TokenKind::Literal) {
    d.fixits = {{{name.where.end, name.where.end}, " =", "insert it"}};
    return true;
  }
  if (t.kind == TokenKind::LeftParen) d.note = "a let has no parameters: it is a name for one value";
  lost_ = true;
  return false;
}

/// Makes the name known; it stands for `value` from here on, unless it is something already.
void Parser::define(const Token &name, const Operand &value, uint32_t begin) {
  const std::string word = text(name.where);
  const auto first = first_values_.find(word);
  const auto &axes = ast_.header.axes;
  const char *already = nullptr;
  if (std::find(axes.begin(), axes.end(), word) != axes.end()) already = "an axis";
  else if (lets_.count(word)) already = "a let";
  else if (word == "i") already = "the position";
  else if (word == "n") already = "the number of elements";
  if (already) {
    sink_.report(Code::LetHides, name.where, {word, already}).note = "give the let another name";
    return;
  }
  if (first != first_values_.end()) {
    Diagnostic &d = sink_.report(Code::UsedBeforeLet, first->second, {word});
    d.note = "a let stands before its uses, and sees earlier lets only";
  }
  if (value.let == no_let) ast_.exprs[value.id].parenthesised = true; // its uses are operands by themselves
  lets_[word] = uint32_t(ast_.lets.size());
  ast_.lets.push_back({word, name.where, value.id, {begin, behind().where.end}, value});
  used_.push_back(false);
}

void Parser::check_unused() {
  if (sink_.failed()) return;
  for (size_t k = 0; k < ast_.lets.size(); ++k) {
    if (used_[k]) continue;
    const Let &let = ast_.lets[k];
    Span whole = let.where; // and what separates it from the next piece
    for (const Token &t : tokens_)
      if (t.where.begin >= let.where.end && t.kind != TokenKind::Semicolon && t.kind != TokenKind::Newline) {
        whole.end = t.where.begin;
        break;
      }
    sink_.report(Code::UnusedLet, let.at, {let.name}).fixits = {{whole, "", "drop it"}};
  }
}

} // namespace elsewise
