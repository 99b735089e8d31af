// SPDX-License-Identifier: Apache-2.0
// Layout of emitted text. It breaks lines and aligns comments, and never looks into the code it is given.
#include "compiler/emit/cuda_text.h"
#include <algorithm>

namespace elsewise::cuda {

// Columns as clang-format counts them: code points, which is right for all but double-width characters.
static size_t width(std::string_view s) {
  return std::count_if(s.begin(), s.end(), [](unsigned char c) { return (c & 0xc0) != 0x80; });
}

void Lines::add(int indent, std::string code, std::string comment) {
  indent += base_;
  lines_.push_back({std::string(indent, ' ') + code, std::move(comment), indent});
}

void Lines::statements(int indent, std::string_view head, const std::vector<std::string> &items, std::string comment) {
  std::string line;
  size_t on_line = 0;
  for (const std::string &item : items) {
    if (on_line && base_ + indent + width(line) + 2 + width(item) + 1 > columns) {
      add(indent, line + ";", std::move(comment));
      comment.clear(), on_line = 0;
    }
    line = on_line++ ? line + ", " + item : std::string(head) + item;
  }
  if (on_line) add(indent, line + ";", std::move(comment));
}

void Lines::list(int indent, std::string_view open, const std::vector<std::string> &items, std::string_view tail,
                 std::string comment) {
  std::string line(open);
  const size_t inner = indent + width(open);
  const size_t base = base_;
  bool first = true, broken = false;
  for (size_t k = 0; k < items.size(); ++k) {
    const std::string item = items[k] + (k + 1 < items.size() ? "," : std::string(tail));
    const size_t start = broken ? inner + width(line) : indent + width(line);
    if (!first && base + start + 1 + width(item) > columns) {
      add(int(broken ? inner : indent), line);
      broken = true, line = item;
    } else line += (first ? "" : " ") + item;
    first = false;
  }
  if (items.empty()) line += tail;
  add(int(broken ? inner : indent), line, std::move(comment));
}

void Lines::comment(int indent, std::string_view text) {
  indent += base_;
  const size_t room = columns - indent - 3;
  while (width(text) > room) {
    // The last blank that keeps the line inside the limit; a word longer than a line stays whole.
    size_t cut = std::string_view::npos, column = 0;
    for (size_t at = 0; at < text.size(); ++at) {
      if (text[at] == ' ' && (column <= room || cut == std::string_view::npos)) cut = at;
      column += (text[at] & 0xc0) != 0x80;
      if (column > room && cut != std::string_view::npos) break;
    }
    if (cut == std::string_view::npos || cut == 0) break;
    lines_.push_back({"", std::string(text.substr(0, cut)), indent});
    text.remove_prefix(cut + 1);
  }
  lines_.push_back({"", std::string(text), indent});
}

std::string Lines::str() const {
  // Trailing comments of neighbouring lines start in one column. A group that has no room for that gives up its longest
  // member's comment.
  std::vector<Line> lines;
  for (size_t at = 0; at < lines_.size();) {
    size_t end = at;
    while (end < lines_.size() && !lines_[end].code.empty() && !lines_[end].comment.empty()) ++end;
    if (end == at) {
      lines.push_back(lines_[at++]);
      continue;
    }
    // From `at` on, as many neighbours as fit; the one that breaks the group has its comment above it.
    size_t stop = at, column = 0, longest = 0;
    for (; stop < end; ++stop) {
      const size_t c = std::max(column, width(lines_[stop].code) + 1),
                   l = std::max(longest, width(lines_[stop].comment) + 3);
      if (c + l > columns) break;
      column = c, longest = l;
    }
    for (size_t k = at; k < stop; ++k) {
      Line line = lines_[k];
      line.code += std::string(column - width(line.code), ' ') + "// " + line.comment;
      line.comment.clear();
      lines.push_back(std::move(line));
    }
    if (stop < end) {
      Lines above;
      above.comment(lines_[stop].indent, lines_[stop].comment);
      lines.insert(lines.end(), above.lines_.begin(), above.lines_.end());
      lines.push_back({lines_[stop].code, "", lines_[stop].indent});
      ++stop;
    }
    at = stop;
  }
  std::string out;
  for (const Line &line : lines) {
    if (!line.comment.empty()) out += std::string(line.indent, ' ') + "// " + line.comment;
    out += line.code + "\n";
  }
  return out;
}

std::string comment_text(std::string_view text) {
  std::string out;
  for (char c : text) out += (unsigned char)c < 0x20 || c == 0x7f ? ' ' : c;
  while (!out.empty() && out.back() == ' ') out.pop_back();
  if (!out.empty() && out.back() == '\\') out += " .";
  return out;
}

static bool word_char(char c) {
  return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool mentions(std::string_view text, std::string_view word) {
  for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1))
    if ((at == 0 || !word_char(text[at - 1])) &&
        (at + word.size() >= text.size() || !word_char(text[at + word.size()])))
      return true;
  return false;
}

std::string replace(std::string text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

} // namespace elsewise::cuda
