// SPDX-License-Identifier: Apache-2.0
// Tokens: numbers, words, newlines that separate and newlines that do not. Messages and carets are tests/lit/errors'
// business.
#include "compiler/lex/lex.h"
#include <cmath>
#include <gtest/gtest.h>

using namespace elsewise;

namespace {

std::string tokens(const std::string &text) {
  Source source(text, "<spec>");
  Sink sink;
  const Tokens all = lex(source, sink);
  return sink.failed() ? slug(sink.diagnostics()[0].code) : print_tokens(source, all);
}

Literal literal(const std::string &text) {
  Source source(text, "<spec>");
  Sink sink;
  const Tokens all = lex(source, sink);
  EXPECT_FALSE(sink.failed()) << text;
  EXPECT_EQ(all.size(), 2u) << text;
  EXPECT_EQ(all[0].kind, TokenKind::Literal) << text;
  return all[0].literal;
}

} // namespace

TEST(Lexer, SeedRule) {
  EXPECT_EQ(tokens("i<n/4: x*0.5"), "1:1 name i\n1:2 <\n1:3 name n\n1:4 /\n1:5 int 4\n1:6 :\n1:8 name x\n1:9 *\n"
                                    "1:10 float 0.5\n1:13 end\n");
}

TEST(Lexer, LongestOperatorWins) {
  EXPECT_EQ(tokens("**//<<<=&&&||!=!"),
            "1:1 **\n1:3 //\n1:5 <<\n1:7 <=\n1:9 &&\n1:11 &\n1:12 ||\n1:14 !=\n1:16 !\n1:17 end\n");
  EXPECT_EQ(tokens("android nota_ or1"), "1:1 name android\n1:9 name nota_\n1:15 name or1\n1:18 end\n");
}

TEST(Lexer, NewlinesSeparateOutsideBracketsOnly) {
  EXPECT_EQ(tokens("\n\nx\n\n# c\ny\n"), "3:1 name x\n3:2 newline\n6:1 name y\n6:2 newline\n7:1 end\n");
  EXPECT_EQ(tokens("f(\nx\n)\ny"), "1:1 name f\n1:2 (\n2:1 name x\n3:1 )\n3:2 newline\n4:1 name y\n4:2 end\n");
  for (const char *goes_on : {"x:\ny", "x +\ny", "x and\ny", "x,\ny", "else\ny", "x; # c\ny", "x:# c\n\n y"})
    EXPECT_EQ(tokens(goes_on).find("newline"), std::string::npos) << goes_on;
}

TEST(Lexer, AnOpenBracketHidesNoNewlines) {
  EXPECT_NE(tokens("(x\ny").find("newline"), std::string::npos);
  EXPECT_NE(tokens("(x; (\ny)\nz").find("2:3 newline"), std::string::npos);
  EXPECT_EQ(tokens("(a[\n)").find("newline"), std::string::npos); // the `[` is open, the parentheses are not
}

TEST(Lexer, CarriageReturnsAreBlank) {
  EXPECT_EQ(tokens("x\r\ny\r\n"), "1:1 name x\n1:3 newline\n2:1 name y\n2:3 newline\n3:1 end\n");
}

TEST(Lexer, Integers) {
  EXPECT_TRUE(literal("0").integer == 0);
  EXPECT_TRUE(literal("00").integer == 0);
  EXPECT_TRUE(literal("1_000_000").integer == 1000000);
  EXPECT_TRUE(literal("0xfF").integer == 255);
  EXPECT_TRUE(literal("9223372036854775808").integer == __int128(1) << 63);
  const __int128 largest = __int128(~static_cast<unsigned __int128>(0) >> 1);
  EXPECT_TRUE(literal("170141183460469231731687303715884105727").integer == largest);
  EXPECT_TRUE(literal("0x7fffffffffffffffffffffffffffffff").integer == largest);
  EXPECT_EQ(tokens("170141183460469231731687303715884105728"), "integer-too-large");
  EXPECT_EQ(tokens("0x80000000000000000000000000000000"), "integer-too-large");
  EXPECT_EQ(tokens(std::string(60000, '9')), "integer-too-large");
}

TEST(Lexer, Floats) {
  EXPECT_EQ(literal("0.1").real, 0.1);
  EXPECT_EQ(literal(".5").real, 0.5);
  EXPECT_EQ(literal("1.").real, 1.0);
  EXPECT_EQ(literal("1e-3").real, 1e-3);
  EXPECT_EQ(literal("1E+2").real, 100.0);
  EXPECT_EQ(literal("08.5").real, 8.5);
  EXPECT_EQ(literal("1_0.2_5").real, 10.25);
  EXPECT_EQ(literal("4.9406564584124654e-324").real, 4.9406564584124654e-324);
  EXPECT_EQ(literal("1e-400").real, 0.0);
  EXPECT_EQ(literal("9007199254740993.0").real, 9007199254740992.0); // half to even
  EXPECT_EQ(literal("1.7976931348623157e308").real, 1.7976931348623157e308);
  EXPECT_EQ(tokens("1.8e308"), "float-too-large");
  EXPECT_EQ(literal("." + std::string(60000, '3')).real, 1.0 / 3);
  EXPECT_EQ(tokens("1e99999999999999999999"), "float-too-large");
  EXPECT_EQ(tokens(std::string(400, '9') + ".0"), "float-too-large");
  EXPECT_EQ(literal("1e-99999999999999999999").real, 0.0);
  EXPECT_EQ(literal("0." + std::string(400, '0') + "1e+10").real, 0.0);
  EXPECT_EQ(literal("0." + std::string(400, '0') + "1e+401").real, 1.0);
  EXPECT_EQ(literal("0e999").real, 0.0);
}

TEST(Lexer, Constants) {
  EXPECT_EQ(literal("true").kind, LiteralKind::Bool);
  EXPECT_TRUE(literal("true").integer == 1 && literal("false").integer == 0);
  EXPECT_TRUE(std::isinf(literal("inf").real) && std::isnan(literal("nan").real));
  EXPECT_EQ(literal("pi").real, M_PI);
}

TEST(Lexer, WhatIsNoNumber) {
  for (const char *wrong :
       {"1f", "10UL", "0x", "0xg", "1e", "1e+", "2x", "017", "1__0", "1_", "0b1", "0o7", "1.2.3", "1._5", "1_.5"})
    EXPECT_EQ(tokens(wrong), "malformed-number") << wrong;
}

TEST(Lexer, InvalidUtf8) {
  for (const char *wrong :
       {"\xff", "\xc3", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x28\xa1", "# \x80", "\xe2\x89"})
    EXPECT_EQ(tokens(wrong), "invalid-utf8") << wrong;
  EXPECT_EQ(tokens("# \xf0\x9f\x98\x80 \xc3\xa9\nx"), "2:1 name x\n2:2 end\n");
}

TEST(Lexer, AByteThatIsNoUtf8IsOneColumn) {
  Source source("\xc3\xa9\xff\xc3\x28$", "<spec>");
  EXPECT_EQ(source.position(2).column, 2u);
  EXPECT_EQ(source.position(3).column, 3u);
  EXPECT_EQ(source.position(4).column, 4u);
  EXPECT_EQ(source.position(5).column, 5u);
}

TEST(Lexer, ColumnsCountCharacters) {
  Source source("# \xc3\xa9\n\t\xcf\x80 + \xf0\x9f\x98\x80x", "<spec>");
  EXPECT_EQ(source.position(4).line, 1u);
  EXPECT_EQ(source.position(5).line, 2u);
  EXPECT_EQ(source.position(5).column, 1u);
  EXPECT_EQ(source.position(8).column, 3u);  // behind the two bytes of pi
  EXPECT_EQ(source.position(15).column, 7u); // behind the four bytes of the face
  EXPECT_EQ(source.position(99).column, 8u); // the end
  EXPECT_EQ(source.line(4), "# \xc3\xa9");   // the newline belongs to the line that it ends
}
