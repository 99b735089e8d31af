// SPDX-License-Identifier: Apache-2.0
// The catalogue as a table, and the sink that fills a row's text. It prints nothing and stops nobody.
#include "compiler/diagnostics/diagnostic.h"
#include "compiler/source/utf8.h"
#include <algorithm>

namespace elsewise {
namespace {

struct Row {
  Severity severity;
  const char *slug;
  std::string_view text;
};

constexpr Row rows[] = {
#define DIAGNOSTIC(Name, severity, slug, text) {Severity::severity, slug, text},
#include "compiler/diagnostics/diagnostics.def"
};

// A hostile spec may earn a message for every byte; nobody reads more than this, and memory stays bounded.
constexpr size_t most_kept = 100;

/// One line of at most `most` characters, so that a message stays a line whatever the spec holds.
std::string excerpt(std::string_view text) {
  constexpr size_t most = 72;
  std::string line;
  size_t characters = 0;
  bool blank = false;
  for (size_t at = 0; at < text.size();) {
    const utf8::Character c = utf8::next(text, at);
    at += c.bytes;
    if (c.code == ' ' || c.code == '\t' || c.code == '\n' || c.code == '\r') {
      blank = !line.empty();
      continue;
    }
    if (characters + blank >= most) return line + " ...";
    if (blank) line += ' ', ++characters, blank = false;
    utf8::append(line, utf8::printable(c));
    ++characters;
  }
  return line;
}

std::string fill(std::string_view text, const std::vector<std::string> &arguments) {
  std::string message;
  for (size_t at = 0; at < text.size(); ++at) {
    const bool hole = text[at] == '{' && at + 2 < text.size() && text[at + 2] == '}';
    const size_t which = hole ? size_t(text[at + 1] - '0') : 0;
    if (!hole || which > 9) {
      message += text[at];
      continue;
    }
    if (which < arguments.size()) message += excerpt(arguments[which]);
    at += 2;
  }
  return message;
}

} // namespace

const char *slug(Code code) { return rows[size_t(code)].slug; }
Severity severity(Code code) { return rows[size_t(code)].severity; }

Diagnostic &Sink::report(Code code, Span where, std::vector<std::string> arguments) {
  errors_ += severity(code) == Severity::Error;
  Diagnostic d{code, severity(code), where, fill(rows[size_t(code)].text, arguments), {}, {}};
  if (diagnostics_.size() >= most_kept) return dropped_ = std::move(d);
  return diagnostics_.emplace_back(std::move(d));
}

std::vector<Diagnostic> Sink::take() {
  errors_ = 0;
  std::vector<Diagnostic> taken = std::move(diagnostics_);
  diagnostics_.clear();
  std::stable_sort(taken.begin(), taken.end(),
                   [](const Diagnostic &a, const Diagnostic &b) { return a.where.begin < b.where.begin; });
  return taken;
}

} // namespace elsewise
