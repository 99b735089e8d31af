// SPDX-License-Identifier: Apache-2.0
// A spec's text as tokens. It reports text that no token can hold, and leaves the order of tokens to the parser.
#include "compiler/lex/lex.h"
#include "compiler/lex/foreign.h"
#include "compiler/lex/number.h"
#include "compiler/source/utf8.h"
#include <algorithm>
#include <llvm/ADT/StringExtras.h>
#include <optional>

namespace elsewise {
namespace {

struct Spelling {
  std::string_view text;
  TokenKind kind;
  Operator op;
};
constexpr Spelling spellings[] = {
#define OPERATOR(Name, spelling, alternative, precedence, arity)                                                       \
  {spelling, TokenKind::Operator, Operator::Name}, {alternative, TokenKind::Operator, Operator::Name},
#include "grammar/operators.def"
#define PUNCTUATION(Name, spelling) {spelling, TokenKind::Name, Operator::Or},
#include "grammar/tokens.def"
#define KEYWORD(Name, spelling) {spelling, TokenKind::Name, Operator::Or},
#include "grammar/tokens.def"
};

struct Constant {
  std::string_view text;
  Literal literal;
};
constexpr Constant constants[] = {
#define CONSTANT(spelling, kind, integer, real) {spelling, {LiteralKind::kind, integer, real}},
#include "grammar/tokens.def"
};

struct Habit {
  std::string_view text, meant;
};
constexpr Habit habits[] = {
#define HABIT(spelling, meant) {spelling, meant},
#include "grammar/tokens.def"
};

// Module names that people put before a function elsewhere.
constexpr std::string_view modules[] = {"torch", "np", "numpy", "math", "jnp", "jax", "cp",   "cupy",   "F",
                                        "nn",    "tf", "tl",    "xp",   "mx",  "jl",  "Math", "special"};

bool begins_word(char c) { return llvm::isAlpha(c) || c == '_'; }
bool in_word(char c) { return llvm::isAlnum(c) || c == '_'; }

/// The token that `text` spells exactly: an operator, punctuation, a keyword or a constant.
std::optional<Token> token_of(std::string_view text) {
  for (const Spelling &s : spellings)
    if (s.text == text) return Token{s.kind, s.op};
  for (const Constant &c : constants)
    if (c.text == text) return Token{TokenKind::Literal, Operator::Or, {}, c.literal};
  return {};
}

/// The longest operator or punctuation that `text` begins with.
const Spelling *longest_symbol(std::string_view text) {
  const Spelling *longest = nullptr;
  for (const Spelling &s : spellings)
    if (!s.text.empty() && !begins_word(s.text[0]) && text.starts_with(s.text) &&
        (!longest || s.text.size() > longest->text.size()))
      longest = &s;
  return longest;
}

class Lexer {
public:
  Lexer(const Source &source, Sink &sink) : source_(source), sink_(sink), text_(source.text()) {}

  Tokens run() {
    if (text_.size() > longest_spec) {
      sink_.report(Code::SpecTooLong, {uint32_t(longest_spec), uint32_t(longest_spec)},
                   {std::to_string(text_.size()), std::to_string(longest_spec)});
      push({TokenKind::Error}, 0);
    } else if (valid_utf8()) {
      if (text_.starts_with("\xef\xbb\xbf")) at_ = 3; // a byte order mark says nothing here
      while (at_ < text_.size()) step();
    }
    begin_ = at_ = uint32_t(text_.size());
    push({TokenKind::End}, at_);
    drop_newlines_in_brackets();
    return std::move(tokens_);
  }

private:
  /// Pushes `token` over [begin_, end) and goes on behind it.
  void push(Token token, uint32_t end) {
    token.where = {begin_, end};
    tokens_.push_back(token);
    at_ = end;
  }

  bool valid_utf8() {
    for (size_t at = 0; at < text_.size();) {
      const utf8::Character c = utf8::next(text_, at);
      if (!c.valid) { // the whole text is in doubt then: one message, no tokens
        const std::string value = "0x" + llvm::utohexstr(uint8_t(text_[at]), true, 2);
        sink_.report(Code::InvalidUtf8, {uint32_t(at), uint32_t(at) + 1}, {value});
        push({TokenKind::Error}, uint32_t(at));
        return false;
      }
      at += c.bytes;
    }
    return true;
  }

  void step() {
    begin_ = at_;
    const char c = text_[at_];
    const char next = at_ + 1 < text_.size() ? text_[at_ + 1] : '\0';
    if (c == ' ' || c == '\t' || c == '\r' || c == '\f') ++at_;
    else if (c == '\n') newline();
    else if (c == '#') at_ = uint32_t(std::min(text_.find('\n', at_), text_.size()));
    else if (llvm::isDigit(c) || (c == '.' && llvm::isDigit(next))) number();
    else if (begins_word(c)) word();
    else if (c == '.' && begins_word(next) && follows_value()) dot();
    else if (c == '/' && next == '*') comment();
    else if (uint8_t(c) >= 0x80) foreign();
    else symbol();
  }

  void newline() {
    if (goes_on()) ++at_;
    else push({TokenKind::Newline}, at_ + 1);
  }
  /// Whether a newline here separates nothing: at the start, behind another separator, or behind what wants an operand.
  bool goes_on() const {
    if (tokens_.empty()) return true;
    switch (tokens_.back().kind) {
    case TokenKind::Newline:
    case TokenKind::Semicolon:
    case TokenKind::Colon:
    case TokenKind::Comma:
    case TokenKind::Question:
    case TokenKind::Assign:
    case TokenKind::Arrow:
    case TokenKind::Operator:
    case TokenKind::Else:
      return true;
    default:
      return false;
    }
  }

  /// Only brackets that are closed hide newlines, and none reaches over a `;`: so one that was left open spoils one
  /// piece and not the spec.
  void drop_newlines_in_brackets() {
    std::vector<size_t> open;
    std::vector<int> depth(tokens_.size() + 1, 0); // change of depth in front of a token
    for (size_t k = 0; k < tokens_.size(); ++k) {
      const TokenKind kind = tokens_[k].kind;
      if (kind == TokenKind::Semicolon) open.clear();
      if (kind == TokenKind::LeftParen || kind == TokenKind::LeftBracket) open.push_back(k);
      if (kind != TokenKind::RightParen && kind != TokenKind::RightBracket) continue;
      const TokenKind opener = kind == TokenKind::RightParen ? TokenKind::LeftParen : TokenKind::LeftBracket;
      while (!open.empty() && tokens_[open.back()].kind != opener) open.pop_back();
      if (open.empty()) continue;
      ++depth[open.back()], --depth[k];
      open.pop_back();
    }
    size_t kept = 0;
    int now = 0;
    for (size_t k = 0; k < tokens_.size(); ++k) {
      now += depth[k];
      if (now == 0 || tokens_[k].kind != TokenKind::Newline) tokens_[kept++] = tokens_[k];
    }
    tokens_.resize(kept);
  }

  void number() {
    const Number n = scan_number(source_, at_, sink_);
    push(n.valid ? Token{TokenKind::Literal, Operator::Or, {}, n.literal} : Token{TokenKind::Error}, n.end);
  }

  void word() {
    uint32_t end = at_;
    std::optional<Span> stranger;
    while (end < text_.size()) {
      const utf8::Character c = utf8::next(text_, end);
      if (c.code < 0x80 ? !in_word(char(c.code)) : !is_foreign_letter(c.code)) break;
      if (c.code >= 0x80 && !stranger) stranger = Span{end, end + c.bytes};
      end += c.bytes;
    }
    if (const std::string ascii = stranger ? narrow(source_.slice({at_, end})) : ""; !ascii.empty()) {
      const Span where{at_, end};
      const char32_t code = utf8::next(text_, stranger->begin).code;
      sink_.report(Code::ForeignSymbol, where, {std::string(source_.slice(where)), code_point(code), ascii}).fixits = {
          {where, ascii, "write ASCII"}};
      return push({TokenKind::Error}, end);
    }
    if (stranger) {
      const char32_t code = utf8::next(text_, stranger->begin).code;
      sink_.report(Code::ForeignLetter, *stranger, {std::string(source_.slice(*stranger)), code_point(code)});
      return push({TokenKind::Error}, end);
    }
    push(token_of(source_.slice({at_, end})).value_or(Token{TokenKind::Name}), end);
  }

  /// Whether what stands right before may be a value.
  bool follows_value() const {
    if (tokens_.empty() || tokens_.back().where.end != at_) return false;
    const TokenKind kind = tokens_.back().kind;
    return kind == TokenKind::Name || kind == TokenKind::RightParen || kind == TokenKind::RightBracket;
  }
  /// `torch.sqrt`: before a known module's name the part behind the dot is what is meant. Other dots are the parser's.
  void dot() {
    const Token prefix = tokens_.back();
    const bool module = prefix.kind == TokenKind::Name && std::find(std::begin(modules), std::end(modules),
                                                                    source_.slice(prefix.where)) != std::end(modules);
    if (!module) return push({TokenKind::Dot}, at_ + 1);
    uint32_t end = at_ + 1;
    while (end < text_.size() && (in_word(text_[end]) || text_[end] == '.')) ++end;
    const Span whole{prefix.where.begin, end};
    Diagnostic &d = sink_.report(Code::DottedName, whole, {std::string(source_.slice(whole))});
    tokens_.pop_back();
    at_ = uint32_t(source_.slice(whole).rfind('.')) + whole.begin + 1;
    d.fixits = {{{whole.begin, at_}, "", "drop the prefix"}};
  }

  /// `/* … */` is a comment elsewhere, and can be nothing else here.
  void comment() {
    const size_t close = text_.find("*/", at_ + 2);
    const uint32_t end = close == text_.npos ? uint32_t(text_.size()) : uint32_t(close) + 2;
    sink_.report(Code::ForeignComment, {at_, at_ + 2}, {"/*"}).fixits = {{{at_, end}, "", "drop it"}};
    at_ = end;
  }

  /// All blanks beyond ASCII, at the first: one message, and a fix-it that mends them all.
  void blank(uint32_t end) {
    const auto foreign = [&](size_t at) {
      const utf8::Character c = utf8::next(text_, at);
      return blank_name(c.code).empty() ? 0u : unsigned(c.bytes);
    };
    if (!blank_told_) {
      const Span first{at_, end};
      std::string mended;
      size_t last = end;
      for (size_t at = at_; at < text_.size(); ++at)
        if (uint8_t(text_[at]) >= 0xc0 && foreign(at)) last = at + foreign(at);
      for (size_t at = at_; at < last;) {
        const unsigned bytes = uint8_t(text_[at]) >= 0xc0 ? foreign(at) : 0;
        if (bytes) mended += ascii_for(utf8::next(text_, at).code), at += bytes;
        else mended += text_[at++];
      }
      const char32_t code = utf8::next(text_, at_).code;
      sink_.report(Code::ForeignBlank, first, {std::string(blank_name(code)), code_point(code)}).fixits = {
          {{at_, uint32_t(last)}, mended, "write plain blanks"}};
      blank_told_ = true;
    }
    at_ = end;
  }

  void foreign() {
    const utf8::Character c = utf8::next(text_, at_);
    uint32_t end = at_ + c.bytes;
    if (!blank_name(c.code).empty()) return blank(end);
    const bool word_goes_on =
        end < text_.size() && (in_word(text_[end]) || is_foreign_letter(utf8::next(text_, end).code));
    const std::string_view ascii = ascii_for(c.code);
    if (ascii.empty() || (is_foreign_letter(c.code) && word_goes_on)) {
      if (is_foreign_letter(c.code)) return word();
      return stray(end);
    }
    sink_
        .report(Code::ForeignSymbol, {at_, end},
                {std::string(source_.slice({at_, end})), code_point(c.code), std::string(ascii)})
        .fixits = {{{at_, end}, apart(ascii, end), "write ASCII"}};
    push(token_of(ascii).value_or(Token{TokenKind::Error}), end);
  }

  /// A word in the place of a symbol, with the blanks that the symbol did without.
  std::string apart(std::string_view ascii, uint32_t end) const {
    std::string word(ascii);
    if (!begins_word(ascii[0])) return word;
    if (at_ > 0 && in_word(text_[at_ - 1])) word.insert(0, " ");
    if (end < text_.size() && in_word(text_[end])) word += " ";
    return word;
  }

  /// Behind `let name`.
  bool defines() const {
    return tokens_.size() >= 2 && tokens_.back().kind == TokenKind::Name &&
           tokens_[tokens_.size() - 2].kind == TokenKind::Let;
  }

  /// Behind what can only be a guard, where `=>` is an arrow and no slip for `>=`.
  bool behind_guard() const {
    for (size_t k = tokens_.size(); k-- > 0;) {
      const Token &t = tokens_[k];
      if (t.kind == TokenKind::Else) return true;
      if (t.kind == TokenKind::Semicolon || t.kind == TokenKind::Newline || t.kind == TokenKind::Colon) return false;
      if (t.kind != TokenKind::Operator) continue;
      if (is_logic(t.op)) return false;
      if (is_comparison(t.op)) return true;
    }
    return false;
  }

  void symbol() {
    const std::string_view rest = text_.substr(at_);
    const Spelling *s = longest_symbol(rest);
    for (const Habit &h : habits) {
      if (defines() && h.text.ends_with('=') && rest.starts_with(h.text)) { // `let a := 1`
        const uint32_t end = at_ + uint32_t(h.text.size());
        sink_.report(Code::NotAnOperator, {at_, end}, {std::string(h.text)}).fixits = {{{at_, end}, "=", "define it"}};
        return push({TokenKind::Assign}, end);
      }
      if (defines() && h.text == "=!") continue; // `let a =!b`
      if (!rest.starts_with(h.text) || (s && s->text.size() >= h.text.size())) continue;
      const uint32_t end = at_ + uint32_t(h.text.size());
      if (h.text == "=>" && behind_guard()) return push({TokenKind::Arrow}, end);
      sink_.report(Code::NotAnOperator, {at_, end}, {std::string(h.text)}).fixits = {
          {{at_, end}, std::string(h.meant), "did you mean `" + std::string(h.meant) + "`"}};
      return push(*token_of(h.meant), end);
    }
    if (s) push({s->kind, s->op}, at_ + uint32_t(s->text.size()));
    else stray(at_ + 1);
  }

  /// The whole rule in quotes, as pasted from a program.
  bool quoted(uint32_t inner) {
    if (!tokens_.empty() || !is_quote(utf8::next(text_, at_).code)) return false;
    size_t close = text_.find_last_not_of(" \t\r\n");
    while (close > 0 && (uint8_t(text_[close]) & 0xc0) == 0x80) --close;
    if (close < inner || !is_quote(utf8::next(text_, close).code)) return false;
    const Span where{at_, uint32_t(text_.size())};
    const std::string content(text_.substr(inner, close - inner));
    sink_.report(Code::QuotedSpec, {at_, inner}).fixits = {{where, content, "drop the quotes"}};
    push({TokenKind::Error}, uint32_t(text_.size()));
    return true;
  }

  void stray(uint32_t end) {
    const utf8::Character c = utf8::next(text_, at_);
    if (quoted(end)) return;
    if (c.code == '"' || c.code == '\'') { // with all that it quotes, if it is closed on this line
      const char ends[] = {text_[at_], '\n'};
      const size_t close = text_.find_first_of(std::string_view(ends, 2), end);
      if (close != text_.npos && text_[close] != '\n') end = uint32_t(close) + 1;
    }
    const bool visible = utf8::printable(c) == c.code && utf8::width(c.code) > 0;
    Diagnostic &d = sink_.report(Code::StrayCharacter, {at_, end},
                                 {visible ? std::string(source_.slice({at_, end})) : code_point(c.code)});
    if (c.code == '\\') d.note = "a line goes on behind an operator, and inside parentheses";
    if (c.code == '"' || c.code == '\'') d.note = "a spec has no strings";
    if (c.code == '{' || c.code == '}') d.note = "parentheses group";
    push({TokenKind::Error}, end);
  }

  const Source &source_;
  Sink &sink_;
  std::string_view text_;
  Tokens tokens_;
  uint32_t at_ = 0, begin_ = 0;
  bool blank_told_ = false;
};

const char *label(const Token &t) {
  switch (t.kind) {
#define TOKEN(Name, label)                                                                                             \
  case TokenKind::Name:                                                                                                \
    return label;
#include "grammar/tokens.def"
  default:
    return "";
  }
}

} // namespace

Tokens lex(const Source &source, Sink &sink) { return Lexer(source, sink).run(); }

std::string print_tokens(const Source &source, const Tokens &tokens) {
  constexpr const char *literals[] = {"int", "float", "bool", "lowest", "highest"};
  std::string text;
  for (const Token &t : tokens) {
    const LineColumn at = source.position(t.where.begin);
    text += std::to_string(at.line) + ":" + std::to_string(at.column) + " ";
    const std::string_view spelt = source.slice(t.where);
    if (t.kind == TokenKind::Literal) text += std::string(literals[int(t.literal.kind)]) + " " + std::string(spelt);
    else if (t.kind == TokenKind::Name || t.kind == TokenKind::Error)
      text += std::string(label(t)) + " " + std::string(spelt);
    else if (t.kind == TokenKind::End || t.kind == TokenKind::Newline) text += label(t);
    else text += spelt;
    text += "\n";
  }
  return text;
}

} // namespace elsewise
