// SPDX-License-Identifier: Apache-2.0
// Formatted random programs: the same tree, and formatted they stay. The style itself is tests/python/test_format.py's.
#include "compiler/parse/format.h"
#include "compiler/parse/parser.h"
#include "tests/fuzz/generate.h"
#include <gtest/gtest.h>
#include <optional>

using namespace elsewise;

namespace {

struct Formatted {
  std::string tree, text;
};

/// Nothing for what does not parse.
std::optional<Formatted> formatted(const std::string &text) {
  const Source source(text, "<spec>");
  Sink sink;
  const Tokens tokens = lex(source, sink);
  const Ast ast = parse(source, tokens, sink);
  if (sink.failed()) return {};
  std::string tree;
  bool place = true; // `1:4 ` begins each line
  for (const char c : print_ast(source, ast)) {
    if (!place) tree += c;
    place = c == '\n' || (place && c != ' ');
  }
  return Formatted{tree, format(source, tokens)};
}

} // namespace

TEST(Format, KeepsTreesAndItsOwnWork) {
  int kept = 0;
  for (uint64_t seed = 1; seed <= 4000; ++seed) {
    const std::string text = fuzz::generate(seed).text;
    const auto once = formatted(text);
    if (!once) continue;
    const auto twice = formatted(once->text);
    ASSERT_TRUE(twice) << text << "\n" << once->text;
    ASSERT_EQ(once->tree, twice->tree) << text << "\n" << once->text;
    ASSERT_EQ(once->text, twice->text) << text;
    ++kept;
  }
  EXPECT_GT(kept, 3900);
}

TEST(Format, LongSpecs) {
  std::string deep = "x", many;
  for (int k = 0; k < 190; ++k) deep = "(" + deep + ")";
  for (int k = 0; k < 4000; ++k) many += "i<" + std::to_string(k) + ":x\n";
  for (const std::string &text : {deep, many, "x" + std::string(30000, '+') + "x"}) {
    const auto once = formatted(text);
    if (!once) continue; // too deep
    EXPECT_EQ(once->text, formatted(once->text)->text);
  }
}
