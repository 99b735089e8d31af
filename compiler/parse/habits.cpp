// SPDX-License-Identifier: Apache-2.0
// Other languages' habits that a parser meets: words for operators, assignments, membership, methods, lambdas. Each is
// reported with how it is written here, and read on as what it means; nothing of it is part of the language.
#include "compiler/names/habits.h"
#include "compiler/parse/precedence.h"
#include "compiler/parse/state.h"
#include "grammar/builtins.h"
#include <cctype>
#include <llvm/ADT/StringRef.h>

namespace elsewise {
namespace {

bool is_word(std::string_view text, std::initializer_list<std::string_view> words) {
  for (const std::string_view w : words)
    if (llvm::StringRef(w).equals_insensitive(llvm::StringRef(text))) return true;
  return false;
}

bool is_word_character(char c) { return std::isalnum((unsigned char)c) || c == '_'; }

/// The row of operators.def with this spelling and two operands.
std::optional<Operator> operator_of(std::string_view meant) {
  for (Operator op = Operator::Or;; op = Operator(int(op) + 1)) {
    if (spelling(op) == meant && arity(op) == 2) return op;
    if (op == Operator::Pow) return {};
  }
}

} // namespace

/// Whether an operand may begin at `t`.
bool Parser::begins_operand(const Token &t) const {
  return t.kind == TokenKind::Name || t.kind == TokenKind::Literal || t.kind == TokenKind::LeftParen ||
         (t.kind == TokenKind::Operator && with_arity(t.op, 1).has_value());
}

/// The binary operator at this token. A name cannot follow an operand, so there a word such as `AND` is one too.
std::optional<Operator> Parser::binary_here() const {
  const Token &t = here();
  if (t.kind == TokenKind::Operator) return with_arity(t.op, 2);
  if (t.kind != TokenKind::Name || !begins_operand(ahead())) return {};
  const std::string_view word = source_.slice(t.where), meant = infix_word(word);
  if (!meant.empty()) return operator_of(meant);
  const std::string near = did_you_mean(word, {spelling(Operator::And), spelling(Operator::Or)});
  return near.empty() ? std::nullopt : operator_of(near);
}

/// Whether `t` is a name that is hardly anything but this keyword.
bool Parser::misspelt(const Token &t, const char *word) const {
  return t.kind == TokenKind::Name && !did_you_mean(source_.slice(t.where), {word}).empty();
}

/// Takes the operator that binary_here() found.
void Parser::take_binary(Operator op) {
  const Token &t = take();
  if (t.kind == TokenKind::Name) foreign_word(t, spelling(op));
  if (is(TokenKind::Assign) && here().where.begin == t.where.end) { // `x *= 2`
    const Token &assign = take();
    const Span both = join(t.where, assign.where);
    sink_.report(Code::Assignment, both, {text(both)}).fixits = {{assign.where, "", "only the operator"}};
  }
}

void Parser::foreign_word(const Token &t, const char *meant) {
  sink_.report(Code::ForeignWord, t.where, {text(t.where), meant}).fixits = {
      {t.where, meant, "write `" + std::string(meant) + "`"}};
}

/// `NOT x`: a name cannot stand before an operand.
bool Parser::not_here() const {
  return is(TokenKind::Name) && is_word(source_.slice(here().where), {"not"}) && begins_operand(ahead());
}

/// An operand of an expression, as it is written there.
Operand Parser::operand_of(ExprId parent, uint32_t k) const {
  return {ast_.written_at(parent, k), ast_.child(parent, k)};
}

/// The comparison that an expression of `and` and `or` ends in, or no_expr.
ExprId Parser::last_comparison(const Operand &all) const {
  Operand e = all;
  while (e.let == no_let && ast_[e.id].kind == ExprKind::Binary && is_logic(ast_[e.id].op)) e = operand_of(e.id, 1);
  const bool compares = e.let == no_let && ast_[e.id].kind == ExprKind::Binary && is_comparison(ast_[e.id].op);
  return compares ? e.id : no_expr;
}

/// `i > 3 and < 5`: the comparison before the `and` lends its subject, that of its operands which is no number.
Operand Parser::lent_subject(const Operand &left) {
  const ExprId e = last_comparison(left);
  if (e == no_expr) return {};
  const Operand subject = operand_of(e, ast_[ast_.child(e, 0)].kind == ExprKind::Literal ? 1 : 0);
  sink_.report(Code::MissingSubject, here().where, {text(here().where), text(behind().where)}).fixits = {
      {{here().where.begin, here().where.begin}, text(subject) + " ", "compare `" + text(subject) + "` again"}};
  return subject;
}

/// `i == 0 or 1`: a number is no condition, and was to be compared like the one before.
void Parser::check_lone(const Operand &left, const Operand &right) {
  if (lost_ || right.let != no_let) return;
  if (ast_[right.id].kind != ExprKind::Literal || ast_.literal(right.id).kind == LiteralKind::Bool) return;
  const ExprId e = last_comparison(left);
  if (e == no_expr) return;
  const std::string start = text(Span{operand_of(e, 0).at.begin, ast_[e].at.end});
  sink_.report(Code::LoneNumber, right.at, {text(right.at), text(ast_[e].where)}).fixits = {
      {{right.at.begin, right.at.begin}, start + " ", "compare again"}};
  ast_.exprs[right.id] = {.kind = ExprKind::Error, .where = right.at, .at = right.at};
}

/// Whether a word stands here that asks elsewhere whether a value is among others.
bool Parser::membership_here() const {
  if (is(TokenKind::Operator) && here().op == Operator::Not) return ahead().kind == TokenKind::In;
  if (is(TokenKind::In)) return true;
  return is(TokenKind::Name) && begins_operand(ahead()) && is_word(source_.slice(here().where), {"between", "in"});
}

/// `i in range(a, b)`, `i in [a, b)`, `i in (1, 3, 5)`, `i between a and b`, at the word.
Operand Parser::membership(const Operand &left) {
  const Token &word = here();
  const bool negated = word.kind == TokenKind::Operator; // `not in`
  take();
  if (negated) take();
  const Span at = join(word.where, behind().where);
  const std::string i = text(left);
  const int tight = precedence(Operator::Lt) + 1;
  std::vector<std::pair<std::string, std::string>> meant; // text, label
  const auto range = [&](const Operand &a, const char *low, const char *high, const Operand &b) {
    meant.push_back({(a.id == no_expr ? "0" : text(a)) + low + i + high + text(b), "everything between"});
  };
  if (is_word(source_.slice(word.where), {"between"})) {
    const Operand a = expression(tight);
    if (!lost_ && is(TokenKind::Operator) && here().op == Operator::And) {
      take();
      const Operand b = expression(tight);
      if (!lost_) range(a, " <= ", " <= ", b);
    }
  } else {
    const bool function = is(TokenKind::Name) && ahead().kind == TokenKind::LeftParen &&
                          is_word(source_.slice(here().where), {"range", "arange", "xrange"});
    if (function) take();
    if (is(TokenKind::LeftParen) || is(TokenKind::LeftBracket)) {
      const Token &open = take();
      llvm::SmallVector<Operand, 4> each;
      while (!lost_ && begins_operand(here())) {
        each.push_back(nested_whole());
        if (lost_ || !is(TokenKind::Comma)) break;
        take();
      }
      if (lost_) return error(join(left.at, at));
      const bool inclusive = is(TokenKind::RightBracket);
      if (is(TokenKind::RightParen) || inclusive) {
        take();
        const bool square = open.kind == TokenKind::LeftBracket;
        std::string any;
        for (const Operand &e : each) any += (any.empty() ? "" : " or ") + i + " == " + text(e);
        if (function && each.size() == 1) range(Operand{}, " <= ", " < ", each[0]);
        if (function && each.size() == 2) range(each[0], " <= ", " < ", each[1]);
        if (!function && !each.empty() && square == inclusive)
          meant.push_back({each.size() == 1 ? any : "(" + any + ")", "one of them"});
        if (!function && each.size() == 2) range(each[0], square ? " <= " : " < ", inclusive ? " <= " : " < ", each[1]);
      }
    } else if (begins_operand(here())) {
      const Operand a = expression(tight);
      if (!lost_ && is(TokenKind::Dots)) { // Rust's and Swift's
        take();
        const Operand b = expression(tight);
        if (!lost_) range(a, " <= ", " < ", b);
      }
    }
  }
  if (lost_) return error(join(left.at, at));
  const Span where = join(left.at, behind().where);
  Diagnostic &d = sink_.report(Code::Membership, at, {text(at)});
  for (const auto &[written, label] : meant)
    d.fixits.push_back({where, negated ? "not (" + written + ")" : written, label});
  return meant.empty() ? give_up(where) : error(where);
}

/// Whether what stands before the bracket is no argument, and so has no elements to read at an index.
bool Parser::not_read(const Operand &of) {
  const Expr &e = ast_[of.id];
  if (of.let != no_let) {
    sink_.report(Code::IndexedLet, of.at, {text(of.at)}).note =
        "a let stands for one value at this position; index the arguments in it, where it is defined";
    return true;
  }
  if (e.kind == ExprKind::Read) { // `x[b][t]`
    const Token &close = behind(), &open = here();
    Diagnostic &d = sink_.report(Code::SecondBrackets, open.where, {text(of)});
    if (ahead().kind != TokenKind::RightBracket)
      d.fixits = {{{close.where.begin, open.where.end}, ", ", "one index an axis"}};
    return true;
  }
  if (e.kind == ExprKind::Error) return true; // it was reported
  if (e.kind == ExprKind::Name && !e.parenthesised) return false;
  Diagnostic &d = sink_.report(Code::IndexedValue, of.at, {text(of)});
  if (e.kind == ExprKind::Name) d.fixits = {{of.at, ast_.name(of.id), "drop the parentheses"}};
  else d.note = "index the arguments in it, each by itself";
  return true;
}

Operand Parser::skip_read(const Operand &of) {
  const bool closed = skip_brackets();
  const Span where = join(of.at, behind().where);
  return closed ? error(where) : give_up(where);
}

/// `x[(b, t)]`, `x[[b, t]]`: behind `open`, brackets of their own with a comma in them, and nothing else.
bool Parser::list_in_brackets(const Token &open) const {
  if (!is(TokenKind::LeftParen) && !is(TokenKind::LeftBracket)) return false;
  int depth = 0;
  bool comma = is(TokenKind::LeftBracket);
  for (size_t k = size_t(&open - tokens_.data()) + 1; k < tokens_.size(); ++k) {
    const TokenKind kind = tokens_[k].kind;
    if (kind == TokenKind::End || kind == TokenKind::Semicolon || kind == TokenKind::Newline) return false;
    depth += kind == TokenKind::LeftParen || kind == TokenKind::LeftBracket;
    depth -= kind == TokenKind::RightParen || kind == TokenKind::RightBracket;
    comma |= kind == TokenKind::Comma && depth == 1;
    if (depth == 0) return comma && tokens_[k + 1].kind == TokenKind::RightBracket;
  }
  return false;
}

Operand Parser::skip_list(const Operand &of, const Token &open) {
  const Span inner = here().where;
  skip_brackets();
  const Span list = join(inner, behind().where);
  take();
  sink_.report(Code::IndexList, list, {text(list)}).fixits = {
      {list, text(Span{list.begin + 1, list.end - 1}), "one index an axis"}};
  return error(join(of.at, join(open.where, behind().where)));
}

void Parser::second_dots(const Token &dots) {
  Diagnostic &d = sink_.report(Code::SecondDots, dots.where);
  if (const Token &before = tokens_[at_ - 2]; before.kind == TokenKind::Comma)
    d.fixits = {{join(before.where, dots.where), "", "drop it"}};
}

/// `x[a:b:s]`, `x[a..b]`, at the colon or the dots: a slice is a whole array elsewhere, and here one element of it.
void Parser::slice(const Operand &of, const Token &open, const Operand &begin, size_t axis) {
  const bool dots = is(TokenKind::Dots);
  const Span first = begin.id == no_expr ? here().where : begin.at;
  take();
  const auto ends = [&] {
    return is(TokenKind::Colon) || is(TokenKind::Comma) || is(TokenKind::RightBracket) || at_separator();
  };
  Operand end, step;
  if (dots && is(TokenKind::Assign)) take(); // `a..=b`
  if (!ends()) end = nested_whole();
  if (!lost_ && is(TokenKind::Colon)) {
    take();
    if (!ends()) step = nested_whole();
  }
  if (lost_) return;
  const Span where = join(first, behind().where);
  Diagnostic &d = sink_.report(Code::Slice, where, {text(where)});
  // The element of `x[a:b]` at this position, if the axis has a name; `x[:, d]` is `x[.., d]`.
  const bool alone = axis == 0 && tokens_[size_t(&open - tokens_.data()) + 1].where.begin == first.begin;
  const auto &axes = ast_.header.axes;
  const bool all = begin.id == no_expr && end.id == no_expr && step.id == no_expr;
  const std::string position = !ast_.header.present && alone && is(TokenKind::RightBracket) ? "i"
                               : ast_.header.dots < 0 && axis < axes.size()                 ? axes[axis]
                                                                                            : "";
  const int sum = precedence(Operator::Add), product = precedence(Operator::Mul);
  const auto operand = [&](const Operand &o, int least) {
    const Expr &e = ast_[o.id];
    const bool loose = o.let == no_let && !e.parenthesised && e.kind == ExprKind::Binary && precedence(e.op) < least;
    return loose ? "(" + text(o) + ")" : text(o);
  };
  if (all && alone && is(TokenKind::Comma) && !ast_.header.present) {
    d.fixits = {{where, "..", "the element's own place along the axes before"}};
  } else if (!position.empty()) {
    const std::string length =
        std::string(name_of(Rule::Length)) + "(" + text(of) + (axis ? ", " + std::to_string(axis) : "") + ")";
    const bool backwards = step.id != no_expr && text(step) == "-1";
    std::string place = position;
    if (backwards && begin.id == no_expr) {
      place = length + "-1-" + position;
    } else {
      if (step.id != no_expr) place = operand(step, product) + "*" + position;
      const Expr *from = begin.id == no_expr ? nullptr : &ast_[begin.id];
      const bool behind_end = from && from->kind == ExprKind::Unary && from->op == Operator::Neg && begin.let == no_let;
      if (behind_end) place = length + text(begin) + "+" + place; // `x[-3:]`
      else if (from) place = operand(begin, sum) + "+" + place;
    }
    d.fixits = {{where, place, "the element at this position"}};
  } else {
    d.note = "a header names the axes, as in `[b, t]`, and then `x[b, t+1]` is one element";
  }
}

/// `x.abs()`, `x.shape[0]`, at the dot.
Operand Parser::attribute(const Operand &receiver) {
  const Token &dot = take();
  const Token &name_token = take(); // the lexer makes a dot only before a word
  const std::string of = text(receiver), name = text(name_token.where);
  const Span begin = join(receiver.at, dot.where);
  // A function's own parentheses serve for those around its operand.
  std::vector<std::string> arguments = {rewritten_.count(receiver.id) ? of : text(ast_.bare(receiver.id, receiver))};
  bool called = false;
  if (is(TokenKind::LeftParen)) {
    const Token &open = take();
    called = true;
    for (bool more = !is(TokenKind::RightParen); more && !lost_;) {
      const Operand e = nested_whole();
      arguments.push_back(text(e));
      more = !lost_ && is(TokenKind::Comma);
      if (more) take();
    }
    if (lost_ || !close(open, true)) return give_up(join(begin, behind().where));
  } else if (is(TokenKind::LeftBracket) && ahead().kind != TokenKind::RightBracket && name == "shape") {
    const Span open = here().where;
    if (!skip_brackets()) return give_up(join(begin, behind().where));
    arguments.push_back(text(Span{open.end, behind().where.begin}));
    called = true;
  }
  const Span where = join(begin, behind().where);
  const std::string seen = text(where);
  std::string meant, label = "call the function";
  const auto call = [&](std::string_view function) {
    std::string written = std::string(function) + "(";
    for (size_t k = 0; k < arguments.size(); ++k) written += (k ? ", " : "") + arguments[k];
    return written + ")";
  };
  const bool asks_length = called && arguments.size() == 2 && (name == "shape" || name == "size");
  const std::string function = called ? nearest_builtin(name) : "";
  if (asks_length) {
    meant = call(name_of(Rule::Length)), label = "the length of an axis";
  } else if (is_element_count(name) && arguments.size() == 1) {
    meant = "n", label = "the number of elements";
  } else if (called && is_reduction(name)) {
    Diagnostic &d = sink_.report(Code::Reduction, name_token.where, {name});
    const std::string index = ast_.header.present ? "" : as_index(name, arguments.size() > 1 ? arguments[1] : "");
    if (!index.empty() && receiver.let == no_let && ast_[receiver.id].kind == ExprKind::Name) {
      d.fixits = {{where, of + "[" + index + "]", "read the element there"}};
    } else {
      d.note = "compute it before, and pass it as an argument";
      if (receiver.let != no_let || ast_[receiver.id].kind == ExprKind::Name)
        d.fixits = {{where, of + "_" + name, "make it an argument"}};
    }
    return error(where);
  } else if (called && arguments.size() == 2 && is_word(name, {"astype", "to", "type"})) {
    const std::string cast = nearest_builtin(arguments[1].substr(arguments[1].rfind('.') + 1));
    if (!cast.empty()) meant = cast + "(" + of + ")";
  } else if (called && !function.empty()) {
    if (function == name_of(Rule::Select) && arguments.size() == 3)
      std::swap(arguments[0], arguments[1]); // x.where(c, y)
    meant = call(function);
  } else if (called) {
    arguments[0] = of;
    meant = as_operator(name, arguments);
    if (!meant.empty()) meant = "(" + meant + ")", label = "write the operator";
  } else if ((receiver.let != no_let || ast_[receiver.id].kind == ExprKind::Name) && name != "shape") {
    sink_.report(Code::DottedName, where, {seen}).fixits = {{where, of + "_" + name, "an argument of its own"}};
    return error(where);
  }
  if (meant.empty()) {
    sink_.report(Code::DottedName, where, {seen});
    return error(where);
  }
  sink_.report(Code::MethodCall, where, {seen, meant}).fixits = {{where, meant, label}};
  const Operand e = error(where);
  rewritten_[e.id] = meant;
  return e;
}

/// A call that is an operator here; its id is no_expr if it is none.
Operand Parser::operator_call(const Token &name_token, llvm::ArrayRef<Operand> arguments, Span where) {
  const std::string name = text(name_token.where);
  if (name_token.kind != TokenKind::Name || find_builtin(name) >= 0) return {};
  std::vector<std::string> operands;
  for (const Operand &a : arguments) operands.push_back(text(a));
  std::string written = as_operator(name, operands);
  if (written.empty()) return {};
  const std::string shown = written;
  const auto alone = [](const Token &t) {
    switch (t.kind) {
    case TokenKind::Newline:
    case TokenKind::Semicolon:
    case TokenKind::Colon:
    case TokenKind::Comma:
    case TokenKind::LeftParen:
    case TokenKind::RightParen:
    case TokenKind::LeftBracket:
    case TokenKind::RightBracket:
    case TokenKind::Else:
    case TokenKind::End:
      return true;
    default:
      return false;
    }
  };
  const size_t before = size_t(&name_token - tokens_.data());
  if (!(before == 0 || alone(tokens_[before - 1])) || !alone(here())) written = "(" + written + ")";
  while (where.begin > 0 && source_.text()[where.begin - 1] == '.') // with a module's name before it
    for (--where.begin; where.begin > 0 && is_word_character(source_.text()[where.begin - 1]);) --where.begin;
  sink_.report(Code::OperatorFunction, name_token.where, {name, shown}).fixits = {
      {where, written, "write the operator"}};
  const Operand e = error(where);
  rewritten_[e.id] = written;
  return e;
}

/// Words that say nothing here, where a piece or a value begins: `return`, `lambda x:`, `x ->`, `out[i] =`.
void Parser::skip_needless(bool piece_begins) {
  for (bool again = true; again;) {
    again = false;
    const Token &t = here();
    if (t.kind != TokenKind::Name && t.kind != TokenKind::LeftParen) return;
    const std::string word = text(t.where);
    if (t.kind == TokenKind::Name && is_word(word, {"return"}) && begins_operand(ahead())) {
      sink_.report(Code::NeedlessWord, t.where, {word}).fixits = {
          {{t.where.begin, ahead().where.begin}, "", "drop it"}};
      take(), again = true;
    } else {
      again = (piece_begins && ast_.pieces.empty() && skip_parameters()) || skip_target(piece_begins);
    }
  }
}

/// `lambda x, y:`, `def f(x):`, `x ->`, `(x, y) ->`.
bool Parser::skip_parameters() {
  uint32_t k = at_;
  const auto kind = [&] { return tokens_[std::min<size_t>(k, tokens_.size() - 1)].kind; };
  const std::string word = text(here().where);
  const bool lambda = word == "lambda", def = word == "def" || word == "fn" || word == "func" || word == "function";
  if (lambda || def) ++k;
  if (def && kind() == TokenKind::Name) ++k;
  if (def && kind() != TokenKind::LeftParen) return false;
  const bool list = kind() == TokenKind::LeftParen;
  if (list) ++k;
  while (kind() == TokenKind::Name) {
    ++k;
    if (kind() != TokenKind::Comma) break;
    ++k;
  }
  if (list && kind() != TokenKind::RightParen) return false;
  if (list) ++k;
  if (kind() != TokenKind::Arrow && !((lambda || def) && kind() == TokenKind::Colon)) return false;
  if (k + 1 >= tokens_.size() || !begins_operand(tokens_[k + 1])) return false;
  const Span where = join(here().where, tokens_[k].where);
  sink_.report(Code::ParameterList, where, {text(where)}).fixits = {
      {{where.begin, tokens_[k + 1].where.begin}, "", "drop it"}};
  at_ = k + 1;
  return true;
}

/// `g = value; x*g`: a name for what is used later. Reported, and read as a let.
bool Parser::forgot_let() {
  if (!is(TokenKind::Name) || ahead().kind != TokenKind::Assign) return false;
  const Token &name = here();
  const std::string word = text(name.where);
  if (word == "i" || word == "n" || !begins_operand(tokens_[at_ + 2])) return false;
  uint32_t k = at_ + 2;
  for (;; ++k) {
    const TokenKind kind = tokens_[k].kind;
    if (kind == TokenKind::End || kind == TokenKind::Colon) return false; // alone, or a guard that compares
    if (kind == TokenKind::Semicolon || kind == TokenKind::Newline) break;
  }
  bool used = false;
  for (; tokens_[k].kind != TokenKind::End; ++k)
    used = used || (tokens_[k].kind == TokenKind::Name && text(tokens_[k].where) == word);
  if (!used) return false;
  const Span where = join(name.where, ahead().where);
  sink_.report(Code::Assignment, where, {text(where)}).fixits = {
      {{name.where.begin, name.where.begin}, "let ", "name a value"}};
  return true;
}

/// `y =`, `out[i] =`. Where a guard may stand, `y = 3: x` compares.
bool Parser::skip_target(bool guard_may_stand) {
  if (!is(TokenKind::Name)) return false;
  uint32_t k = at_ + 1;
  if (tokens_[k].kind == TokenKind::LeftBracket)
    for (int depth = 0; k < tokens_.size(); ++k) {
      const TokenKind kind = tokens_[k].kind;
      if (kind == TokenKind::End || kind == TokenKind::Semicolon || kind == TokenKind::Newline) return false;
      depth += kind == TokenKind::LeftBracket, depth -= kind == TokenKind::RightBracket;
      if (depth == 0) break;
    }
  else --k;
  if (k + 2 >= tokens_.size() || tokens_[k + 1].kind != TokenKind::Assign || !begins_operand(tokens_[k + 2]))
    return false;
  if (guard_may_stand) {
    const std::string_view target = source_.slice(here().where);
    if (target == "i" || target == "n") return false;
    int depth = 0;
    uint32_t after = k + 2;
    for (bool chosen = false;; ++after) {
      const TokenKind kind = tokens_[after].kind;
      depth += kind == TokenKind::LeftParen, depth -= kind == TokenKind::RightParen;
      chosen |= kind == TokenKind::Question;
      if (kind == TokenKind::Colon && depth == 0 && !chosen) return false;
      if (kind == TokenKind::End || kind == TokenKind::Semicolon || kind == TokenKind::Newline) break;
    }
    while (tokens_[after].kind == TokenKind::Semicolon || tokens_[after].kind == TokenKind::Newline) ++after;
    if (tokens_[after].kind == TokenKind::Else) return false; // a guard whose value is missing
  }
  const Span where = join(here().where, tokens_[k + 1].where);
  sink_.report(Code::Assignment, where, {text(where)}).fixits = {
      {{where.begin, tokens_[k + 2].where.begin}, "", "only the value"}};
  at_ = k + 2;
  return true;
}

/// `Let a =`, `var a =`: two names and `=` are nothing else.
bool Parser::let_here() const {
  if (is(TokenKind::Let)) return true;
  if (!is(TokenKind::Name) || ahead().kind != TokenKind::Name || tokens_[at_ + 2].kind != TokenKind::Assign)
    return false;
  return misspelt(here(), "let") || is_word(source_.slice(here().where), {"var", "val", "const", "auto", "local"});
}

/// In a call, whether `i=0` compares: as the condition of a choice, if no operand is called so.
bool Parser::compares_here(const Token &function, size_t arguments) const {
  const int row = function.kind == TokenKind::Name ? find_builtin(text(function.where)) : -1;
  if (row < 0 || builtins()[row].rule != Rule::Select || arguments != 0) return false;
  return !is_word(source_.slice(here().where), {"c", "cond", "condition"});
}

/// `otherwise`, `default`, `_`, `ELSE`: as good as `else` where a piece begins that is the last.
bool Parser::else_here() const {
  if (is(TokenKind::Else)) return true;
  if (!is(TokenKind::Name)) return false;
  const std::string_view word = source_.slice(here().where);
  const TokenKind next = ahead().kind;
  if (!is_word(word, {"else", "otherwise", "default", "_", "elsewise"}))
    return misspelt(here(), "else") && (next == TokenKind::Name || next == TokenKind::Literal);
  if (next == TokenKind::Name || next == TokenKind::Literal || next == TokenKind::Arrow) return true;
  if (next != TokenKind::Colon) return false;
  uint32_t k = at_;
  const auto ends = [&](TokenKind kind) { return kind == TokenKind::Semicolon || kind == TokenKind::Newline; };
  while (tokens_[k].kind != TokenKind::End && !ends(tokens_[k].kind)) ++k;
  while (ends(tokens_[k].kind)) ++k;
  return tokens_[k].kind == TokenKind::End;
}

/// `else` behind a value, in any case.
bool Parser::else_behind() const {
  if (is(TokenKind::Else)) return true;
  if (!is(TokenKind::Name)) return false;
  return (is_word(source_.slice(here().where), {"else", "otherwise"}) || misspelt(here(), "else")) &&
         (begins_operand(ahead()) || ahead().kind == TokenKind::Colon);
}

/// Takes the word that else_here() found.
const Token &Parser::take_else() {
  const Token &word = take();
  if (word.kind == TokenKind::Name) foreign_word(word, "else");
  return word;
}

/// `if`, `elif`, `when`, `case`, … before a guard.
bool Parser::if_here() const {
  if (is(TokenKind::If)) return !call_behind();
  if (is(TokenKind::Elif)) return true;
  if (!is(TokenKind::Name) || !begins_operand(ahead()) || ahead().kind == TokenKind::Operator) return false;
  const std::string_view word = source_.slice(here().where);
  const bool conditional = is_word(word, {"if", "elif", "elseif", "elsif"});
  if (ahead().kind == TokenKind::LeftParen) return conditional && !call_behind();
  return conditional || is_word(word, {"when", "case"});
}

/// `x when i < 3`, as `x if i < 3`.
bool Parser::when_here() const {
  return is(TokenKind::Name) && is_word(source_.slice(here().where), {"when"}) && begins_operand(ahead());
}

/// `then`, `->`, `,` in the place of the colon behind a guard.
bool Parser::colon_here(const Operand &guard) {
  const Token &t = here();
  if (t.kind == TokenKind::Colon) {
    take();
    return true;
  }
  const bool then = t.kind == TokenKind::Name && is_word(source_.slice(t.where), {"then", "do"});
  const bool comma =
      t.kind == TokenKind::Comma && guard.id != no_expr && is_condition(guard) && begins_operand(ahead());
  if (!then && !comma && t.kind != TokenKind::Arrow) return false;
  Span place{behind().where.end, t.where.end};
  sink_.report(Code::ForeignWord, t.where, {text(t.where), ":"}).fixits = {{place, ":", "write `:`"}};
  take();
  return true;
}

/// A line of `//`, which begins a comment elsewhere: whether one did before `t` on its line.
bool Parser::comment_before(const Token &t) {
  const size_t line = source_.text().substr(0, t.where.begin).rfind('\n') + 1; // npos + 1: the first one
  for (uint32_t k = at_; k-- > 0 && tokens_[k].where.begin >= line;) {
    const Token &c = tokens_[k];
    if (c.kind != TokenKind::Operator || c.op != Operator::FloorDiv) continue;
    sink_.report(Code::ForeignComment, c.where, {text(c.where)}).fixits = {{c.where, "#", "write `#`"}};
    return true;
  }
  return false;
}

} // namespace elsewise
