// SPDX-License-Identifier: Apache-2.0
// What a phase says when a spec is wrong, and the sink it says it to. Every message's text stands in diagnostics.def,
// none here.
#pragma once
#include "compiler/source/source.h"
#include <string>
#include <vector>

namespace elsewise {

enum class Severity : uint8_t { Error, Warning };

/// One row a message; see diagnostics.def.
enum class Code : uint16_t {
#define DIAGNOSTIC(Name, severity, slug, text) Name,
#include "compiler/diagnostics/diagnostics.def"
};

/// Replace the bytes of `where` by `replacement`; an empty span inserts. `label` says what it does ("use the whole
/// quotient").
struct FixIt {
  Span where;
  std::string replacement;
  std::string label;
};

struct Diagnostic {
  Code code = {};
  Severity severity = Severity::Error;
  Span where;
  std::string message; // lower case, no full stop, source in backticks
  std::vector<FixIt> fixits;
  std::string note; // further line, may be empty
};

const char *slug(Code); // "unknown-name"
Severity severity(Code);

/// Phases report here and go on; nothing throws.
class Sink {
public:
  /// Fills {0}, {1}, … of the catalogue's text, each shortened to a readable line. Returns the diagnostic so that
  /// fix-its and a note can be added (before the next report).
  Diagnostic &report(Code code, Span where, std::vector<std::string> arguments = {});
  bool failed() const { return errors_ != 0; }
  const std::vector<Diagnostic> &diagnostics() const { return diagnostics_; }
  /// All diagnostics in the order of the text; the sink is empty afterwards.
  std::vector<Diagnostic> take();

private:
  std::vector<Diagnostic> diagnostics_;
  Diagnostic dropped_; // where those beyond the first hundred go
  unsigned errors_ = 0;
};

/// The fix-it's replacement, with a space where it would make one word with what it is put beside: `else-1` reads
/// `else i16(-1)` afterwards.
std::string apart(const FixIt &, const Source &);

/// `file:line:column: error: message [slug]`, the source line, a caret line under the right characters, then fix-its,
/// each shown in its line, and the note.
std::string render(const Diagnostic &, const Source &);

/// Nearest of `known` to `word`, by case, then by edit distance; empty if none is near. Foreign spellings of functions
/// stand in the builtin table.
std::string did_you_mean(std::string_view word, const std::vector<std::string> &known);

} // namespace elsewise
