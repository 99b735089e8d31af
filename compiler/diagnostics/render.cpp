// SPDX-License-Identifier: Apache-2.0
// Diagnostics as text for people: place, message, source line, caret line, fix-its, note. It uses no colours, and
// trusts nothing in the spec to be printable.
#include "compiler/diagnostics/diagnostic.h"
#include "compiler/source/utf8.h"
#include <algorithm>
#include <cctype>

namespace elsewise {
namespace {

/// One character of a line as it is printed: its text, the columns it takes, and the byte of the line it came from.
struct Cell {
  std::string text;
  int width;
  size_t byte;
};

/// The characters around byte `focus`; further away none will be printed.
std::vector<Cell> cells(std::string_view line, size_t focus) {
  constexpr size_t reach = 1024;
  std::vector<Cell> all;
  size_t begin = focus > reach ? focus - reach : 0;
  while (begin > 0 && begin < line.size() && (uint8_t(line[begin]) & 0xc0) == 0x80) --begin;
  for (size_t at = begin; at < std::min(line.size(), focus + reach);) {
    const utf8::Character c = utf8::next(line, at);
    Cell cell{{}, 1, at};
    if (c.code == '\t' || c.code == '\n') {
      cell.text = c.code == '\t' ? "\t" : " ";
    } else {
      const char32_t shown = utf8::printable(c);
      utf8::append(cell.text, shown);
      cell.width = utf8::width(shown);
    }
    all.push_back(std::move(cell));
    at += c.bytes;
  }
  return all;
}

/// The part of a line worth printing: all of it, or what stands around byte `focus`. Dots replace what was cut.
struct Window {
  std::string before, after;
  size_t first, last;
};

Window window(const std::vector<Cell> &line, size_t focus) {
  constexpr size_t most = 120, context = 40;
  if (line.size() <= most) return {"", "", 0, line.size()};
  const auto at = std::lower_bound(line.begin(), line.end(), focus, [](const Cell &c, size_t b) { return c.byte < b; });
  const size_t middle = size_t(at - line.begin());
  size_t first = middle > context ? middle - context : 0;
  first = std::min(first, line.size() - most);
  const size_t last = first + most;
  return {first ? "... " : "", last < line.size() ? " ..." : "", first, last};
}

std::string shown(std::string_view line, size_t focus) {
  const std::vector<Cell> all = cells(line, focus);
  const Window w = window(all, focus);
  std::string text = w.before;
  for (size_t k = w.first; k < w.last; ++k) text += all[k].text;
  return text + w.after;
}

/// `^~~~` under the bytes [begin, end) of the line. Tabs stay tabs, so that the caret stands right at any tab width.
std::string carets(std::string_view line, size_t begin, size_t end) {
  const std::vector<Cell> all = cells(line, begin);
  const Window w = window(all, begin);
  std::string text(w.before.size(), ' ');
  bool marked = false;
  for (size_t k = w.first; k < w.last && all[k].byte < std::max(end, begin + 1); ++k) {
    const bool inside = all[k].byte >= begin;
    if (!inside || (marked && all[k].text == "\t")) {
      text += all[k].text == "\t" ? "\t" : std::string(all[k].width, ' ');
      continue;
    }
    for (int column = 0; column < std::max(all[k].width, marked ? 0 : 1); ++column, marked = true)
      text += marked ? '~' : '^';
  }
  if (!marked) text += '^'; // an insertion behind the last character
  return text;
}

size_t offset_in_line(const Source &source, std::string_view line) {
  return size_t(line.data() - source.text().data());
}

/// The line of `fix` as it would read afterwards.
std::string applied(const FixIt &fix, const Source &source) {
  const std::string_view first = source.line(fix.where.begin), last = source.line(fix.where.end);
  const size_t start = offset_in_line(source, first), stop = offset_in_line(source, last) + last.size();
  const std::string_view text = source.text();
  const size_t begin = std::min<size_t>(fix.where.begin, text.size()),
               end = std::min<size_t>(fix.where.end, text.size());
  std::string line(text.substr(start, begin - start));
  line += apart(fix, source);
  if (end < stop) line += text.substr(end, stop - end);
  return shown(line, begin - start);
}

} // namespace

std::string apart(const FixIt &fix, const Source &source) {
  const std::string_view text = source.text();
  auto word = [](std::string_view s, size_t at) {
    const auto c = at < s.size() ? uint8_t(s[at]) : uint8_t(0);
    return std::isalnum(c) || c == '_' || c >= 0x80;
  };
  const std::string &put = fix.replacement;
  if (put.empty()) return put;
  const size_t begin = fix.where.begin, end = fix.where.end;
  const bool left = begin > 0 && word(text, begin - 1) && word(put, 0) && (begin == end || !word(text, begin));
  const bool right = end > 0 && word(text, end) && word(put, put.size() - 1) && (begin == end || !word(text, end - 1));
  return (left ? " " : "") + put + (right ? " " : "");
}

std::string render(const Diagnostic &d, const Source &source) {
  const LineColumn at = source.position(d.where.begin);
  const std::string_view line = source.line(d.where.begin);
  const size_t start = offset_in_line(source, line);
  const size_t begin = std::min(d.where.begin - start, line.size()), end = std::min(d.where.end - start, line.size());
  std::string text = source.name() + ":" + std::to_string(at.line) + ":" + std::to_string(at.column) + ": ";
  text += d.severity == Severity::Error ? "error: " : "warning: ";
  text += d.message + " [" + slug(d.code) + "]\n";
  text += shown(line, begin) + "\n";
  text += carets(line, begin, end) + "\n";
  for (const FixIt &fix : d.fixits) text += "help: " + fix.label + ": `" + applied(fix, source) + "`\n";
  if (!d.note.empty()) text += "note: " + d.note + "\n";
  return text;
}

} // namespace elsewise
