// SPDX-License-Identifier: Apache-2.0
// The style of format.h, over tokens: where one stands decides the blanks around it. It builds no tree and looks at no
// name.
#include "compiler/parse/format.h"
#include "compiler/parse/precedence.h"
#include <algorithm>

namespace elsewise {
namespace {

constexpr const char *indent = "    ", *before_comment = "    ";
constexpr size_t widest_head = 40; // guards beyond that do not push the values of their neighbours away

/// Brackets, or a guard, a value, an argument: where the blanks of an operator depend on the others.
struct Level {
  uint32_t depth = 0;       // of brackets
  bool loose = false;       // comparisons, bits, shifts
  bool sum = false;         // + -
  bool product = false;     // * / // %
  bool parted = false;      // a product with a part in parentheses or with a sign, or one of // and %
  bool signed_term = false; // a sum with a part with a sign
};

/// A token that is written, which separators and the colon of `else` are not.
struct Word {
  const Token *token;
  uint32_t item;         // header, let or piece
  uint32_t level = 0;    // index into levels
  bool binary = false;   // of an operator: two operands
  bool head_end = false; // behind it the value of a piece begins
  bool group = false;    // of a bracket: around an operand, neither a call's nor a read's
};

struct Comment {
  std::string_view text;
  bool own_line;
};
/// What stands between two words, or at an end of the text.
struct Gap {
  std::vector<Comment> comments; // an empty one is a blank line, or several
  bool broken = false;
  bool plain() const {
    return std::all_of(comments.begin(), comments.end(), [](const Comment &c) { return c.text.empty(); });
  }
};

class Formatter {
public:
  Formatter(const Source &source, const Tokens &tokens) : source_(source) {
    take_words(tokens);
    find_levels();
  }

  std::string run() {
    for (uint32_t k = 0; k + 1 < words_.size() && !many_lines_; ++k) many_lines_ = gap(k).broken;
    leading();
    for (uint32_t first = 0; first < words_.size();) {
      uint32_t last = first;
      while (last + 1 < words_.size() && words_[last + 1].item == words_[first].item) ++last;
      item(first, last);
      first = last + 1;
    }
    align();
    std::string text;
    for (const Line &line : lines_) text += line.text + line.comment + "\n";
    if (source_.text().find('\n') == std::string_view::npos) text.pop_back();
    return text;
  }

private:
  /// A line, or lines, of the result.
  struct Line {
    std::string text, comment;
    size_t value_at = 0; // where a value begins on the line of its guard
    bool joins = false;  // the line before is a piece of the same run
  };

  void take_words(const Tokens &tokens) {
    uint32_t item = 0;
    for (size_t k = 0; k + 1 < tokens.size(); ++k) { // all but End
      const TokenKind kind = tokens[k].kind;
      const bool separates = kind == TokenKind::Newline || kind == TokenKind::Semicolon;
      if (separates) ++item;
      else if (kind != TokenKind::Colon || k == 0 || tokens[k - 1].kind != TokenKind::Else)
        words_.push_back({&tokens[k], item});
    }
  }

  static bool opens(const Token &t) { return t.kind == TokenKind::LeftParen || t.kind == TokenKind::LeftBracket; }
  static bool closes(const Token &t) { return t.kind == TokenKind::RightParen || t.kind == TokenKind::RightBracket; }
  static bool ends_value(const Token &t) {
    return t.kind == TokenKind::Name || t.kind == TokenKind::Literal || closes(t);
  }

  void find_levels() {
    std::vector<uint32_t> open; // of each bracket, the level inside
    uint32_t base = 0;          // the level outside of brackets
    const auto begin = [&] {
      levels_.push_back({uint32_t(open.size())});
      return uint32_t(levels_.size() - 1);
    };
    for (size_t k = 0; k < words_.size(); ++k) {
      Word &word = words_[k];
      const Token &t = *word.token;
      const bool first = k == 0 || words_[k - 1].item != word.item;
      const bool operand_before = !first && ends_value(*words_[k - 1].token);
      if (first) open.clear(), base = begin();
      if (closes(t)) open.pop_back();
      word.level = open.empty() ? base : open.back();
      if (opens(t)) {
        word.group = !operand_before;
        open.push_back(0);
        open.back() = begin();
      } else if (t.kind == TokenKind::Comma) {
        open.back() = begin();
      } else if (t.kind == TokenKind::Colon || t.kind == TokenKind::Assign) {
        base = begin();
      } else if (t.kind == TokenKind::Operator && operand_before) {
        word.binary = true;
        note(k);
      }
      word.head_end = t.kind == TokenKind::Colon || t.kind == TokenKind::Else;
    }
  }

  /// Says of the level of the binary operator at `k` what it has to be known for.
  void note(size_t k) {
    Level &level = levels_[words_[k].level];
    const int p = precedence(words_[k].token->op);
    const bool sign = k + 1 < words_.size() && words_[k + 1].token->kind == TokenKind::Operator;
    if (p >= precedence(Operator::Lt) && p < precedence(Operator::Add)) level.loose = true;
    if (p == precedence(Operator::Add)) level.sum = true, level.signed_term |= sign;
    if (p == precedence(Operator::Mul)) {
      level.product = true;
      const bool right = k + 1 < words_.size() && words_[k + 1].token->kind == TokenKind::LeftParen;
      const Operator op = words_[k].token->op;
      level.parted |= op == Operator::FloorDiv || op == Operator::Mod || sign || right || ends_group(k - 1);
    }
  }
  bool ends_group(size_t k) const {
    if (words_[k].token->kind != TokenKind::RightParen) return false;
    for (int depth = 0;; --k) {
      depth += closes(*words_[k].token) - opens(*words_[k].token);
      if (depth == 0) return words_[k].group;
      if (k == 0) return false;
    }
  }

  bool spaced(const Word &word) const {
    const Level &level = levels_[word.level];
    const int p = precedence(word.token->op);
    if (p < precedence(Operator::Add)) return true;
    if (p == precedence(Operator::Add))
      return level.signed_term || (!level.loose && (level.depth == 0 || level.product));
    return p == precedence(Operator::Mul) && level.parted && level.depth == 0 && !level.loose && !level.sum;
  }

  /// Whether a blank stands between neighbours on one line.
  bool blank(const Word &left, const Word &right) const {
    const Token &a = *left.token, &b = *right.token;
    if (a.kind == TokenKind::Operator) return left.binary ? spaced(left) : a.op == Operator::Not;
    if (b.kind == TokenKind::Operator && right.binary) return spaced(right);
    if (opens(a) || closes(b) || b.kind == TokenKind::Comma || b.kind == TokenKind::Colon) return false;
    return !opens(b) || right.group;
  }

  /// What the source has between word k and the next one; k = -1 is the start of the text.
  Gap gap(ptrdiff_t k) const {
    const std::string_view text = source_.text();
    size_t at = k < 0 ? 0 : words_[size_t(k)].token->where.end;
    const size_t end = size_t(k + 1) < words_.size() ? words_[size_t(k + 1)].token->where.begin : text.size();
    Gap found;
    for (int newlines = k < 0; at < end; ++at) { // since the last thing that stands on a line
      if (text[at] == '\n') {
        found.broken = true;
        if (++newlines == 2) found.comments.push_back({"", true});
      } else if (text[at] == '#') {
        const size_t close = std::min(text.find('\n', at), text.size());
        const std::string_view comment = text.substr(at, close - at);
        found.comments.push_back({comment.substr(0, comment.find_last_not_of(" \t\r\f") + 1), newlines > 0});
        newlines = 0, at = close - 1;
      }
    }
    if (k < 0 && !found.comments.empty() && found.comments.front().text.empty())
      found.comments.erase(found.comments.begin());
    if (size_t(k + 1) == words_.size() && !found.comments.empty() && found.comments.back().text.empty())
      found.comments.pop_back();
    return found;
  }

  std::string spelt(const Word &word) const {
    const Token &t = *word.token;
    return t.kind == TokenKind::Operator ? spelling(t.op) : std::string(source_.slice(t.where));
  }

  void leading() {
    for (const Comment &c : gap(-1).comments) lines_.push_back({std::string(c.text)});
  }

  void item(uint32_t first, uint32_t last) {
    Line line;
    bool broken = false;
    const bool header = words_[first].token->kind == TokenKind::LeftBracket;
    for (uint32_t k = first;; ++k) {
      line.text += spelt(words_[k]);
      if (k == last) break;
      const Gap between = gap(k);
      if (between.broken && !(header && between.plain())) {
        for (const Comment &c : between.comments)
          if (!c.text.empty())
            (line.text += c.own_line ? "\n" + std::string(indent) : std::string(before_comment)) += c.text;
        (line.text += "\n") += indent;
        broken = true;
        continue;
      }
      if (blank(words_[k], words_[k + 1])) line.text += " ";
      if (words_[k].head_end && !broken) line.value_at = line.text.size();
    }
    if (many_lines_ || first == 0) {
      line.joins = line.value_at && joins_;
      joins_ = line.value_at;
      lines_.push_back(std::move(line));
    } else {
      (lines_.back().text += "; ") += line.text;
    }
    for (const Comment &c : gap(last).comments) {
      if (!c.own_line) (lines_.back().comment += before_comment) += c.text;
      else lines_.push_back({std::string(c.text)}), joins_ = false;
    }
  }

  /// Values of neighbouring pieces begin in one column.
  void align() {
    for (size_t first = 0; first < lines_.size();) {
      size_t last = first + 1, column = lines_[first].value_at;
      for (; last < lines_.size() && lines_[last].joins; ++last) column = std::max(column, lines_[last].value_at);
      for (; first < last && many_lines_ && column <= widest_head; ++first)
        lines_[first].text.insert(lines_[first].value_at, column - lines_[first].value_at, ' ');
      first = last;
    }
  }

  const Source &source_;
  std::vector<Word> words_;
  std::vector<Level> levels_;
  std::vector<Line> lines_;
  bool many_lines_ = false; // a line end between first and last word
  bool joins_ = false;      // the last line is a piece, and the next one follows right behind it
};

} // namespace

std::string format(const Source &source, const Tokens &tokens) { return Formatter(source, tokens).run(); }

} // namespace elsewise
