// SPDX-License-Identifier: Apache-2.0
// Expressions, by precedence climbing over the operator table. Where another language's habit shows, it says how the
// same is written here.
#include "compiler/parse/precedence.h"
#include "compiler/parse/state.h"
#include "grammar/builtins.h"
#include <cctype>

namespace elsewise {
namespace {

bool is_bits(Operator op) { return op == Operator::BitAnd || op == Operator::BitOr || op == Operator::BitXor; }

std::string select_call(const std::string &condition, const std::string &a, const std::string &b) {
  return std::string(name_of(Rule::Select)) + "(" + condition + ", " + a + ", " + b + ")";
}

} // namespace

// Nodes

Operand Parser::add(Expr e, llvm::ArrayRef<Operand> operands) {
  uint32_t levels = 0;
  uint64_t operations = 1;
  for (const Operand &o : operands)
    levels = std::max(levels, levels_[o.id] + 1), operations += o.let == no_let ? operations_[o.id] : 1;
  const bool deep = levels > most_levels;
  if (deep || operations > most_operations) {
    if (!lost_)
      sink_.report(deep ? Code::TooDeep : Code::TooComplex, e.at,
                   {std::to_string(deep ? most_levels : most_operations)});
    return give_up(e.where);
  }
  e.first = uint32_t(ast_.children.size());
  e.count = uint32_t(operands.size());
  for (const Operand &o : operands) ast_.children.push_back(o.id), ast_.written.push_back(o);
  ast_.exprs.push_back(e);
  levels_.push_back(levels);
  operations_.push_back(uint32_t(operations));
  return {{e.where}, ExprId(ast_.exprs.size() - 1)};
}

Operand Parser::leaf(ExprKind kind, const Token &t, uint32_t payload) {
  return add({.kind = kind, .where = t.where, .at = t.where, .payload = payload}, {});
}
Operand Parser::unary(Operator op, const Operand &operand, Span at) {
  const Span where = join(at, operand.at);
  return add({.kind = ExprKind::Unary, .op = op, .where = where, .at = at}, {operand});
}
Operand Parser::binary(Operator op, const Operand &left, const Operand &right, Span at) {
  const Span where = join(left.at, right.at);
  return add({.kind = ExprKind::Binary, .op = op, .where = where, .at = at}, {left, right});
}
Operand Parser::error(Span where) { return add({.kind = ExprKind::Error, .where = where, .at = where}, {}); }
Operand Parser::give_up(Span where) {
  lost_ = true;
  return error(where);
}

uint32_t Parser::name(const Token &t) {
  const auto [entry, is_new] = names_.try_emplace(text(t.where), uint32_t(ast_.names.size()));
  if (is_new) ast_.names.push_back(text(t.where));
  return entry->second;
}

std::string Parser::text(const Operand &e) const {
  const auto rewritten = rewritten_.find(e.id);
  return rewritten == rewritten_.end() ? text(e.at) : rewritten->second;
}

// Expressions

Operand Parser::nested(int least) {
  if (nesting_ >= most_nesting) {
    if (!lost_) sink_.report(Code::TooDeep, here().where, {std::to_string(most_nesting)});
    return give_up(here().where);
  }
  ++nesting_;
  const Operand e = least ? expression(least) : whole();
  --nesting_;
  return e;
}
Operand Parser::nested_whole() { return nested(0); }

/// An expression, and the conditionals of other languages behind it.
Operand Parser::whole() {
  Operand e = expression(precedence(Operator::Or));
  while (!lost_ && (is(TokenKind::Question) || is(TokenKind::If) || when_here()))
    e = is(TokenKind::Question) ? c_conditional(e) : python_conditional(e);
  return e;
}

Operand Parser::expression(int least) {
  Operand left = prefix(least);
  while (!lost_) {
    const Token &t = here();
    const auto op = binary_here();
    if (membership_here()) {
      if (least > precedence(Operator::Lt)) break;
      left = membership(left);
      continue;
    }
    const bool compares = (op && is_comparison(*op)) || t.kind == TokenKind::Assign || t.kind == TokenKind::Is;
    if (compares) {
      if (least > precedence(Operator::Lt)) break;
      left = comparisons(left);
      continue;
    }
    if (!op || precedence(*op) < least) break;
    take_binary(*op);
    // `**` binds tighter than a sign on its left and looser than one on its right, and associates to the right.
    const bool power = *op == Operator::Pow;
    const Operand lent =
        is_logic(*op) && is(TokenKind::Operator) && is_comparison(here().op) ? lent_subject(left) : Operand{};
    const Operand right = lent.id != no_expr ? comparisons(lent)
                          : power            ? nested(precedence(Operator::Neg))
                                             : expression(precedence(*op) + 1);
    if (is_logic(*op)) check_lone(left, right);
    const Operand both = binary(*op, left, right, t.where);
    const auto literal = [&](const Operand &o) {
      return ast_[o.id].kind == ExprKind::Literal && ast_.literal(o.id).kind != LiteralKind::Bool;
    };
    if (*op == Operator::BitXor && literal(left) && literal(right)) {
      sink_.report(Code::XorOfLiterals, t.where).fixits = {{t.where, spelling(Operator::Pow), "write a power"}};
      left = error(both.at);
    } else {
      left = both;
    }
  }
  return left;
}

/// The comparison at this token, and its place; `=` and `is` are reported and read as what is meant.
std::optional<Operator> Parser::comparison_here(Span &at) {
  const Token &t = here();
  at = t.where;
  if (const auto op = binary_here(); op && is_comparison(*op)) {
    take_binary(*op);
    return op;
  }
  if (t.kind == TokenKind::Assign) {
    take();
    sink_.report(Code::AssignForEqual, at).fixits = {{at, spelling(Operator::Eq), "compare"}};
    return Operator::Eq;
  }
  if (t.kind == TokenKind::Is) {
    take();
    const bool negated = is(TokenKind::Operator) && here().op == Operator::Not;
    if (negated) at = join(at, take().where);
    const Operator op = negated ? Operator::Ne : Operator::Eq;
    Diagnostic &d = sink_.report(Code::NotAnOperator, at, {text(at)});
    if (text(here().where) == "None") d.note = "no argument may be left out, so none is `None`";
    else d.fixits = {{at, spelling(op), "compare"}};
    return op;
  }
  return {};
}

/// `a < b <= c` is the `and` of `a < b` and `b <= c`, which share `b`.
Operand Parser::comparisons(const Operand &first) {
  Operand left = first;
  Operand chain;
  Span at;
  while (!lost_) {
    const auto op = comparison_here(at);
    if (!op) break;
    const Operand right = expression(precedence(*op) + 1);
    check_bits(left);
    check_bits(right);
    const Operand one = binary(*op, left, right, at);
    chain = chain.id == no_expr ? one : binary(Operator::And, chain, one, at);
    left = right;
  }
  return chain;
}

/// A word operator in the place of a sign, with the blanks that a sign did without.
std::string Parser::word(Operator op, Span at) const {
  const std::string_view all = source_.text();
  auto joins = [](char c) { return std::isalnum((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80; };
  std::string s = spelling(op);
  if (at.begin > 0 && joins(all[at.begin - 1])) s.insert(0, " ");
  if (at.end < all.size() && joins(all[at.end])) s += " ";
  return s;
}

/// `i > 3 & i < 5`: `&` takes `3` and `i` here and in Python, and not in the mind of whoever wrote it.
void Parser::check_bits(const Operand &e) {
  Expr &bits = ast_.exprs[e.id];
  if (lost_ || bits.kind != ExprKind::Binary || !is_bits(bits.op) || bits.parenthesised) return;
  Diagnostic &d = sink_.report(Code::BitsBesideComparison, bits.at, {spelling(bits.op)});
  if (bits.op != Operator::BitXor) {
    d.fixits.push_back(
        {bits.at, word(bits.op == Operator::BitAnd ? Operator::And : Operator::Or, bits.at), "combine conditions"});
  }
  d.fixits.push_back({e.at, "(" + text(e) + ")", "work on bits"});
  bits.kind = ExprKind::Error;
  bits.count = 0;
}

Operand Parser::prefix(int least) {
  const Token &t = here();
  const bool foreign = not_here();
  const auto op = foreign                         ? std::optional(Operator::Not)
                  : t.kind == TokenKind::Operator ? with_arity(t.op, 1)
                                                  : std::nullopt;
  if (!op) return primary();
  take();
  if (foreign) foreign_word(t, spelling(*op));
  if (*op != Operator::Not || least <= precedence(*op)) return unary(*op, nested(precedence(*op)), t.where);
  const Operand e = unary(*op, nested(precedence(Operator::Neg)), t.where);
  if (!lost_)
    sink_.report(Code::NotNeedsParentheses, t.where, {text(t.where)}).fixits = {
        {e.at, "(" + text(e) + ")", "put it in parentheses"}};
  return e;
}

Operand Parser::primary() {
  const Token &t = here();
  Operand e;
  switch (t.kind) {
  case TokenKind::Literal:
    ast_.literals.push_back(take().literal);
    e = leaf(ExprKind::Literal, t, uint32_t(ast_.literals.size() - 1));
    break;
  case TokenKind::Name:
  case TokenKind::Error:
    take();
    if (is(TokenKind::LeftParen)) e = call(t);
    else e = t.kind == TokenKind::Name ? value_name(t) : error(t.where);
    break;
  case TokenKind::LeftParen:
    e = parenthesised();
    break;
  case TokenKind::If:
    if (!call_behind()) return missing_operand();
    sink_.report(Code::UnknownFunction, t.where, {text(t.where)}).fixits = {
        {t.where, std::string(name_of(Rule::Select)), "choose by a function"}};
    take();
    e = call(t);
    break;
  default:
    return missing_operand();
  }
  while (!lost_ && (is(TokenKind::LeftBracket) || is(TokenKind::Dot))) e = is(TokenKind::Dot) ? attribute(e) : read(e);
  return e;
}

/// A name that stands for a value: a let's is the let's own value.
Operand Parser::value_name(const Token &t) {
  if (const auto let = lets_.find(text(t.where)); let != lets_.end()) {
    used_[let->second] = true;
    return {{t.where, let->second}, ast_.lets[let->second].value};
  }
  first_values_.try_emplace(text(t.where), t.where);
  return leaf(ExprKind::Name, t, name(t));
}

Operand Parser::parenthesised() {
  const Token &open = take();
  if (is(TokenKind::RightParen)) {
    const Span both = join(open.where, take().where);
    sink_.report(Code::EmptyParentheses, both);
    return error(both);
  }
  Operand e = nested_whole();
  if (!close(open, false)) return give_up(join(open.where, e.at));
  if (e.let == no_let) ast_.exprs[e.id].parenthesised = true;
  e.at = join(open.where, behind().where);
  return e;
}

Operand Parser::call(const Token &name_token) {
  const uint32_t payload = name_token.kind == TokenKind::Name ? name(name_token) : 0;
  const Token &open = take();
  llvm::SmallVector<Operand, 4> arguments;
  bool wrong = name_token.kind != TokenKind::Name;
  for (bool more = !is(TokenKind::RightParen); more && !lost_ && !at_separator();) {
    if (is(TokenKind::Name) && ahead().kind == TokenKind::Assign && !compares_here(name_token, arguments.size())) {
      const Span key = join(here().where, ahead().where);
      sink_.report(Code::KeywordArgument, key, {text(here().where)}).fixits = {{key, "", "drop the name"}};
      take(), take();
    }
    if (is(TokenKind::Comma) || is(TokenKind::RightParen)) {
      sink_.report(Code::MissingArgument, here().where, {text(here().where)});
      wrong = true;
    } else {
      arguments.push_back(nested_whole());
    }
    more = !lost_ && is(TokenKind::Comma);
    if (more) take();
  }
  if (lost_ || !close(open, true)) return give_up(join(name_token.where, behind().where));
  const Span where = join(name_token.where, behind().where);
  if (wrong) return error(where);
  if (const Operand e = operator_call(name_token, arguments, where); e.id != no_expr) return e;
  return add({.kind = ExprKind::Call, .where = where, .at = name_token.where, .payload = payload}, arguments);
}

/// `s[e0, .., e1]`, at the bracket behind `of`.
Operand Parser::read(const Operand &of) {
  if (not_read(of)) return skip_read(of);
  const Token &open = take();
  if (list_in_brackets(open)) return skip_list(of, open);
  llvm::SmallVector<Operand, 4> indices;
  int8_t dots = -1;
  bool sliced = false;
  if (is(TokenKind::RightBracket)) {
    const Span both = join(open.where, take().where);
    sink_.report(Code::EmptyBrackets, both, {text(of)}).fixits = {{both, "", "the element at this position"}};
    return error(join(of.at, both));
  }
  for (bool more = true; more && !lost_ && !at_separator();) {
    if (is(TokenKind::Dots) && ahead().kind != TokenKind::Comma && ahead().kind != TokenKind::RightBracket) {
      sliced = true, slice(of, open, {}, indices.size()); // `..b`
      indices.push_back(error(of.at));
    } else if (is(TokenKind::Dots)) {
      const Token &t = take();
      if (dots >= 0) second_dots(t);
      else dots = int8_t(indices.size());
    } else if (is(TokenKind::Comma) || is(TokenKind::RightBracket)) {
      Diagnostic &d = sink_.report(Code::MissingIndex, here().where, {text(here().where)});
      const Span comma = behind().kind == TokenKind::Comma ? behind().where : here().where;
      d.fixits = {{comma, "", "drop the comma"}};
      indices.push_back(error(here().where));
    } else if (is(TokenKind::Colon)) {
      sliced = true, slice(of, open, {}, indices.size());
      indices.push_back(error(of.at));
    } else {
      indices.push_back(nested_whole());
      if (!lost_ && (is(TokenKind::Colon) || (is(TokenKind::Dots) && behind().kind != TokenKind::Comma)))
        sliced = true, slice(of, open, indices.back(), indices.size() - 1);
    }
    more = !lost_ && is(TokenKind::Comma);
    if (more) take();
  }
  if (lost_ || !close(open, false)) return give_up(join(of.at, behind().where));
  const Span where = join(of.at, behind().where);
  if (sliced) return error(where);
  if (indices.size() > most_axes) {
    sink_.report(Code::TooManyAxes, where, {std::to_string(most_axes)});
    return error(where);
  }
  return add({.kind = ExprKind::Read, .where = where, .at = of.at, .payload = ast_[of.id].payload, .dots = dots},
             indices);
}

/// A condition of another language, where a number that is not 0 is one.
std::string Parser::as_condition(const Operand &e) const {
  const Expr &x = ast_[e.id];
  const bool number = e.let == no_let && x.kind == ExprKind::Binary && !is_comparison(x.op) && !is_logic(x.op);
  if (!number) return text(e);
  return (is_bits(x.op) && e.at == x.where ? "(" + text(e) + ")" : text(e)) + " != 0";
}

// The conditionals of other languages. Only the outermost is reported, with the inner ones rewritten in its fix-it.

Operand Parser::c_conditional(const Operand &condition) {
  const Token &mark = take();
  ++conditionals_;
  const Operand a = nested_whole();
  Operand b;
  if (!lost_ && is(TokenKind::Colon)) take(), b = nested_whole();
  --conditionals_;
  if (lost_) return error(condition.at);
  const std::string call = b.id == no_expr ? "" : select_call(as_condition(condition), text(a), text(b));
  const Span where = join(condition.at, (b.id == no_expr ? a : b).at);
  if (conditionals_ == 0 || b.id == no_expr) {
    Diagnostic &d = sink_.report(Code::TernaryOperator, mark.where, {"c ? a : b", select_call("c", "a", "b")});
    if (b.id != no_expr) d.fixits = {{where, call, "choose by a function"}};
  }
  const Operand e = b.id == no_expr ? give_up(where) : error(where);
  if (b.id != no_expr) rewritten_[e.id] = call;
  return e;
}

Operand Parser::python_conditional(const Operand &value) {
  const Token &mark = take();
  ++conditionals_;
  const Operand condition = nested(precedence(Operator::Or));
  Operand other;
  if (!lost_ && is(TokenKind::Else)) take(), other = nested_whole();
  --conditionals_;
  if (lost_) return error(value.at);
  const Span where = join(value.at, (other.id == no_expr ? condition : other).at);
  if (other.id == no_expr) {
    sink_.report(Code::IfPiece, mark.where, {text(mark.where)}).fixits = {
        {where, as_condition(condition) + ": " + text(value), "put the guard first"}};
    return give_up(where);
  }
  const std::string call = select_call(as_condition(condition), text(value), text(other));
  if (conditionals_ == 0)
    sink_.report(Code::TernaryOperator, mark.where, {"a if c else b", select_call("c", "a", "b")}).fixits = {
        {where, call, "choose by a function"}};
  const Operand e = error(where);
  rewritten_[e.id] = call;
  return e;
}

// What does not fit

/// Called where an operand has to begin and none does.
Operand Parser::missing_operand() {
  const Token &t = here();
  const Token &last = behind();
  const bool at_start = at_ == 0 || last.kind == TokenKind::Newline || last.kind == TokenKind::Semicolon;
  const bool floor_division = t.kind == TokenKind::Operator && t.op == Operator::FloorDiv;
  if (at_start && floor_division) {
    sink_.report(Code::ForeignComment, t.where, {text(t.where)}).fixits = {{t.where, "#", "write `#`"}};
  } else if (t.kind == TokenKind::Operator) { // a binary one, or prefix() would have taken it
    Diagnostic &d = sink_.report(Code::MissingOperand, t.where, {text(t.where), "left"});
    if (at_start && at_ != 0)
      d.note = "a line goes on only behind an operator, so `" + text(t.where) +
               "` would stand at the end of the line before";
  } else if (!at_start && (last.kind == TokenKind::Operator || last.kind == TokenKind::Assign ||
                           last.kind == TokenKind::Is || last.kind == TokenKind::Question)) {
    sink_.report(Code::MissingOperand, last.where, {text(last.where), "right"});
  } else if (t.kind == TokenKind::RightParen || t.kind == TokenKind::RightBracket) {
    sink_.report(Code::UnmatchedBracket, t.where, {text(t.where)});
  } else if (!at_start && last.kind == TokenKind::LeftParen &&
             (at_separator() || t.kind == TokenKind::Colon || t.kind == TokenKind::Else)) {
    sink_.report(Code::UnclosedBracket, last.where, {text(last.where)});
  } else if (t.kind == TokenKind::End || t.kind == TokenKind::Newline) {
    sink_.report(Code::MissingValue, last.where, {text(last.where)});
  } else {
    Diagnostic &d = sink_.report(Code::UnexpectedToken, t.where, {text(t.where)});
    if (t.kind == TokenKind::LeftBracket)
      d.note = "`[` reads a tensor right behind its name, and names axes on the first line";
  }
  return give_up(t.where);
}

/// Takes the parenthesis or bracket that closes `open`, or reports why there is none.
bool Parser::close(const Token &open, bool in_call) {
  if (lost_) return false;
  const Token &t = here();
  const bool bracket = open.kind == TokenKind::LeftBracket;
  if (t.kind == (bracket ? TokenKind::RightBracket : TokenKind::RightParen)) {
    take();
    return true;
  }
  lost_ = true;
  if (t.kind == TokenKind::Error) return false;
  if (t.kind == TokenKind::Comma) {
    sink_.report(Code::UnexpectedToken, t.where, {text(t.where)}).note =
        "commas separate the arguments of a function, and indices between brackets";
  } else if (at_separator() || t.kind == TokenKind::Colon || t.kind == TokenKind::Else ||
             t.kind == TokenKind::RightBracket || t.kind == TokenKind::RightParen || t.kind == TokenKind::Let) {
    const uint32_t end = behind().where.end;
    Diagnostic &d = sink_.report(Code::UnclosedBracket, open.where, {text(open.where)});
    if (behind().kind != TokenKind::Comma) d.fixits = {{{end, end}, bracket ? "]" : ")", "close it"}};
  } else {
    missing_operator(t, in_call);
  }
  return false;
}

/// Two operands side by side, the second one at `t`.
void Parser::missing_operator(const Token &t, bool in_call) {
  const Token &last = behind();
  if (last.kind == TokenKind::Error) return; // it was reported, and what it was is anyone's guess
  if (comment_before(t)) return;
  const bool begins = t.kind == TokenKind::Name || t.kind == TokenKind::Literal || t.kind == TokenKind::LeftParen;
  Diagnostic &d = begins ? sink_.report(Code::MissingOperator, t.where, {text(last.where), text(t.where)})
                         : sink_.report(Code::UnexpectedToken, t.where, {text(t.where)});
  const Span between{last.where.end, t.where.begin};
  const TokenKind next = ahead().kind;
  const bool function = last.kind == TokenKind::Name && find_builtin(text(last.where)) >= 0;
  if (function && (t.kind == TokenKind::Name || t.kind == TokenKind::Literal) && next != TokenKind::LeftParen &&
      next != TokenKind::LeftBracket)
    d.fixits = {{{last.where.end, t.where.end}, "(" + text(t.where) + ")", "call the function"}};
  if (begins && in_call) d.fixits = {{between, ", ", "separate arguments"}};
  if (begins) d.fixits.push_back({between, "*", "multiply"});
}

/// Goes from `[` behind the bracket that closes it; false if none does.
bool Parser::skip_brackets() {
  uint32_t depth = 0;
  do {
    const TokenKind kind = here().kind;
    if (kind == TokenKind::End || kind == TokenKind::Semicolon || kind == TokenKind::Newline) return false;
    depth += kind == TokenKind::LeftBracket || kind == TokenKind::LeftParen;
    depth -= kind == TokenKind::RightBracket || kind == TokenKind::RightParen;
    take();
  } while (depth);
  return true;
}

/// Whether `if` begins a call `if(c, a, b)`: a comma stands between its parentheses.
bool Parser::call_behind() const {
  int depth = 0;
  for (uint32_t k = at_ + 1; k < tokens_.size(); ++k) {
    const TokenKind kind = tokens_[k].kind;
    depth += kind == TokenKind::LeftParen;
    depth -= kind == TokenKind::RightParen;
    if (depth < 1 || kind == TokenKind::Semicolon || kind == TokenKind::Newline) return false;
    if (depth == 1 && kind == TokenKind::Comma) return true;
  }
  return false;
}

bool Parser::is_condition(const Operand &e) const {
  const Expr &x = ast_[e.id];
  return (x.kind == ExprKind::Binary || x.kind == ExprKind::Unary) && (is_comparison(x.op) || is_logic(x.op));
}

} // namespace elsewise
