// SPDX-License-Identifier: Apache-2.0
// The sink, rendered diagnostics and suggestions. Which diagnostic a spec gets is tests/lit/errors' business.
#include "compiler/diagnostics/diagnostic.h"
#include <algorithm>
#include <gtest/gtest.h>
#include <set>

using namespace elsewise;

namespace {

/// The caret line under `where` in `text`.
std::string caret(const std::string &text, Span where) {
  Source source(text, "f");
  Sink sink;
  const std::string all = render(sink.report(Code::EmptySpec, where), source);
  const size_t first = all.find('\n') + 1, second = all.find('\n', first) + 1;
  return all.substr(second, all.find('\n', second) - second);
}

std::string source_line(const std::string &text, Span where) {
  Source source(text, "f");
  Sink sink;
  const std::string all = render(sink.report(Code::EmptySpec, where), source);
  const size_t first = all.find('\n') + 1;
  return all.substr(first, all.find('\n', first) - first);
}

} // namespace

TEST(Catalogue, SlugsAreDistinctAndTextsFollowTheStyle) {
  struct Row {
    const char *slug, *text;
  };
  const Row rows[] = {
#define DIAGNOSTIC(Name, severity, slug, text) {slug, text},
#include "compiler/diagnostics/diagnostics.def"
  };
  std::set<std::string> slugs;
  for (const Row &row : rows) {
    const std::string text = row.text;
    EXPECT_TRUE(slugs.insert(row.slug).second) << row.slug;
    EXPECT_FALSE(text.ends_with('.')) << text;
    EXPECT_FALSE(std::isupper(text[0])) << text;
    EXPECT_EQ(std::count(text.begin(), text.end(), '`') % 2, 0) << text;
  }
}

TEST(Sink, CountsErrorsAndSortsByPlace) {
  Sink sink;
  sink.report(Code::UnreachablePiece, {4, 5}, {"x"});
  EXPECT_FALSE(sink.failed());
  sink.report(Code::EmptySpec, {2, 3});
  EXPECT_TRUE(sink.failed());
  const std::vector<Diagnostic> taken = sink.take();
  ASSERT_EQ(taken.size(), 2u);
  EXPECT_EQ(taken[0].code, Code::EmptySpec);
  EXPECT_FALSE(sink.failed());
  EXPECT_TRUE(sink.take().empty());
}

TEST(Sink, ExcerptsStayOneReadableLine) {
  Sink sink;
  EXPECT_EQ(sink.report(Code::UnknownFunction, {}, {"a \n\t b\x1b[31m"}).message,
            "unknown function `a b\xef\xbf\xbd[31m`");
  const std::string message = sink.report(Code::UnknownFunction, {}, {std::string(5000, 'x')}).message;
  EXPECT_LT(message.size(), 120u);
  EXPECT_TRUE(message.ends_with("x ...`"));
  EXPECT_EQ(sink.report(Code::UnknownFunction, {}, {"{0}{1}"}).message, "unknown function `{0}{1}`");
}

TEST(Render, CaretsStandUnderTheirCharacters) {
  EXPECT_EQ(caret("abc def", {4, 7}), "    ^~~");
  EXPECT_EQ(caret("a\xc3\xa9\xcf\x80 def", {6, 9}), "    ^~~"); // two bytes, one column each
  EXPECT_EQ(caret("\xe6\x97\xa5 x", {4, 5}), "   ^");           // two columns
  EXPECT_EQ(caret("\xe6\x97\xa5 x", {0, 3}), "^~");             //
  EXPECT_EQ(caret("e\xcc\x81 x", {4, 5}), "  ^");               // a combining accent takes none
  EXPECT_EQ(caret("\tx\ty", {3, 4}), "\t \t^");                 // tabs stay tabs
  EXPECT_EQ(caret("x\n\ty z\nw", {3, 6}), "\t^~~");             //
  EXPECT_EQ(caret("abc", {3, 3}), "   ^");                      // behind the end
  EXPECT_EQ(caret("ab\ncd", {1, 4}), " ^");                     // only the first line
  EXPECT_EQ(caret("ab\r\ncd", {2, 3}), "  ^");
  EXPECT_EQ(caret("", {0, 0}), "^");
}

TEST(Render, PrintsNothingThatATerminalWouldObey) {
  EXPECT_EQ(source_line("a\x1b[0m\x07\xe2\x80\xae\xff z", {0, 1}),
            "a\xef\xbf\xbd[0m\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd z");
}

TEST(Render, LongLinesAreCutAroundTheCaret) {
  const std::string text = std::string(5000, 'a') + "$" + std::string(5000, 'b');
  const std::string line = source_line(text, {5000, 5001}), mark = caret(text, {5000, 5001});
  EXPECT_LT(line.size(), 140u);
  EXPECT_EQ(line[mark.find('^')], '$');
  EXPECT_TRUE(line.starts_with("... a") && line.ends_with("b ..."));
  EXPECT_EQ(source_line(text, {0, 1}).substr(0, 3), "aaa");
  const std::string tail = source_line(text, {10001, 10001}), end = caret(text, {10001, 10001});
  EXPECT_EQ(end.find('^'), tail.size());
}

TEST(Render, FixItsShowTheirLine) {
  Source source("i<3: x\nj = 4: y\nelse z", "rule.ew");
  Sink sink;
  Diagnostic &d = sink.report(Code::AssignForEqual, {9, 10});
  d.fixits = {{{9, 10}, "==", "compare"}, {{15, 15}, " + 1", "add one"}};
  d.note = "a note";
  EXPECT_EQ(render(d, source), "rule.ew:2:3: error: `=` is not an operator, equality is `==` [assign-for-equal]\n"
                               "j = 4: y\n"
                               "  ^\n"
                               "help: compare: `j == 4: y`\n"
                               "help: add one: `j = 4: y + 1`\n"
                               "note: a note\n");
  const Diagnostic across{Code::EmptySpec, Severity::Warning, {0, 1}, "m", {{{5, 11}, "q", "join"}}, ""};
  EXPECT_EQ(render(across, source), "rule.ew:1:1: warning: m [empty-spec]\ni<3: x\n^\nhelp: join: `i<3: q 4: y`\n");
}

TEST(DidYouMean, OnlyWhatIsNear) {
  const std::vector<std::string> known = {"x", "gain", "min", "clip", "sqrt", "n"};
  EXPECT_EQ(did_you_mean("Gain", known), "gain");
  EXPECT_EQ(did_you_mean("N", known), "n");
  EXPECT_EQ(did_you_mean("gian", known), "gain");
  EXPECT_EQ(did_you_mean("gains", known), "gain");
  EXPECT_EQ(did_you_mean("sqroot", known), "sqrt");
  EXPECT_EQ(did_you_mean("sin", known), "");
  EXPECT_EQ(did_you_mean("y", known), "");
  EXPECT_EQ(did_you_mean("banana", known), "");
  EXPECT_EQ(did_you_mean("", known), "");
  EXPECT_EQ(did_you_mean(std::string(100000, 'q'), known), "");
}
