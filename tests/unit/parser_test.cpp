// SPDX-License-Identifier: Apache-2.0
// The parser and names as a whole: trees of good specs, limits, fix-its that mend what they are offered for, and soups
// of tokens that must only end well. Messages and carets are tests/lit/errors' business.
#include "compiler/names/names.h"
#include "compiler/parse/parser.h"
#include "grammar/builtins.h"
#include <algorithm>
#include <gtest/gtest.h>
#include <random>

using namespace elsewise;

namespace {

struct Parsed {
  Source source;
  Ast ast;
  Names names;
  bool failed;
  std::vector<Diagnostic> diagnostics;
};

Parsed parsed(std::string text) {
  Source source(std::move(text), "<spec>");
  Sink sink;
  const Tokens tokens = lex(source, sink);
  Ast ast = parse(source, tokens, sink);
  Names names = resolve(ast, sink);
  const bool failed = sink.failed();
  return {std::move(source), std::move(ast), std::move(names), failed, sink.take()};
}

std::string tree(const std::string &text) {
  const Parsed p = parsed(text);
  return p.failed ? render(p.diagnostics[0], p.source) : print_ast(p.source, p.ast);
}

std::string codes(const Parsed &p) {
  std::string all;
  for (const Diagnostic &d : p.diagnostics) all += (all.empty() ? "" : " ") + std::string(slug(d.code));
  return all;
}

std::string repeated(const std::string &text, size_t times) {
  std::string all;
  for (size_t k = 0; k < times; ++k) all += text;
  return all;
}

/// What must hold of every input.
void expect_sound(const std::string &text) {
  const Parsed p = parsed(text);
  const size_t size = text.size();
  size_t errors = 0;
  for (const Diagnostic &d : p.diagnostics) {
    errors += d.severity == Severity::Error;
    ASSERT_LE(d.where.begin, d.where.end) << text;
    ASSERT_LE(d.where.end, size) << text;
    for (const FixIt &f : d.fixits) {
      ASSERT_LE(f.where.begin, f.where.end) << text;
      ASSERT_LE(f.where.end, size) << text;
    }
    ASSERT_FALSE(render(d, p.source).empty());
  }
  ASSERT_EQ(p.failed, errors != 0) << text;
  bool error_node = false;
  std::vector<bool> used(p.ast.exprs.size()); // `x[0]` leaves the name `x` behind
  const auto use = [&](ExprId id) {
    if (id != no_expr) used[id] = true;
  };
  for (const SpecPiece &piece : p.ast.pieces) use(piece.guard), use(piece.value);
  for (const Let &let : p.ast.lets) use(let.value);
  for (ExprId id = ExprId(p.ast.exprs.size()); id-- > 0;)
    for (uint32_t k = 0; used[id] && k < p.ast[id].count; ++k) use(p.ast.child(id, k));
  for (ExprId id = 0; id < p.ast.exprs.size(); ++id) {
    const Expr &e = p.ast[id];
    error_node |= e.kind == ExprKind::Error;
    ASSERT_LE(e.where.end, size) << text;
    ASSERT_LE(e.where.begin, e.at.begin) << text;
    for (uint32_t k = 0; k < e.count; ++k) ASSERT_LT(p.ast.child(id, k), id) << text;
    if (!p.failed && used[id] && (e.kind == ExprKind::Name || e.kind == ExprKind::Call)) {
      ASSERT_NE(p.names.of[id].binding, Binding::None) << text;
    }
  }
  ASSERT_TRUE(p.failed || !error_node) << text;
  ASSERT_TRUE(p.failed || !p.ast.pieces.empty()) << text;
  for (const SpecPiece &piece : p.ast.pieces) {
    ASSERT_LT(piece.value, p.ast.exprs.size()) << text;
    ASSERT_LE(piece.where.end, size) << text;
    if (p.failed) continue;
    const bool bare = piece.guard == no_expr && !piece.is_else;
    ASSERT_TRUE(!bare || p.ast.pieces.size() == 1) << text;
    ASSERT_TRUE(!piece.is_else || &piece == &p.ast.pieces.back()) << text;
  }
  ASSERT_LE(print_ast(p.source, p.ast).size(), size_t(1) << 28) << text.substr(0, 200);
}

} // namespace

TEST(Parser, SeedRule) {
  EXPECT_EQ(tree("i<n/4: x*0.5; i>=n-n/4: x*2; else x"), "1:1 (< i (/ n 4)) => (* x 0.5)\n"
                                                         "1:15 (>= i (- n (/ n 4))) => (* x 2)\n"
                                                         "1:30 else => x\n");
}

TEST(Parser, PiecesOnLines) {
  EXPECT_EQ(tree("\n# a comment\ni < 3:   # goes on\n  x +\n  1\n\n\nelse\n  min(x,\n      y)\n"),
            "3:1 (< i 3) => (+ x 1)\n8:1 else => (min x y)\n");
  EXPECT_EQ(tree("i<1: x;\ni<2: y\n;else: z;"), "1:1 (< i 1) => x\n2:1 (< i 2) => y\n3:2 else => z\n");
}

TEST(Parser, SignsAndPowers) {
  EXPECT_EQ(tree("-x**2"), "1:1 => (- (** x 2))\n");
  EXPECT_EQ(tree("2**-1"), "1:1 => (** 2 (- 1))\n");
  EXPECT_EQ(tree("2**-x**2"), "1:1 => (** 2 (- (** x 2)))\n");
  EXPECT_EQ(tree("2**3**4"), "1:1 => (** 2 (** 3 4))\n");
  EXPECT_EQ(tree("-x*-y"), "1:1 => (* (- x) (- y))\n");
  EXPECT_EQ(tree("~-+x"), "1:1 => (~ (- (+ x)))\n");
}

TEST(Parser, SpellingsOfOneOperatorAreOneOperator) {
  EXPECT_EQ(tree("a && b || !c"), tree("a and b or not c"));
  EXPECT_EQ(tree("! a == b"), "1:1 => (not (== a b))\n");
}

TEST(Parser, ChainsShareTheOperandBetween) {
  const Parsed p = parsed("a <= i < b != c: 1; else 0");
  ASSERT_FALSE(p.failed);
  const ExprId last = p.ast.pieces[0].guard, first = p.ast.child(last, 0);
  const ExprId ai = p.ast.child(first, 0), ib = p.ast.child(first, 1), bc = p.ast.child(last, 1);
  EXPECT_EQ(p.ast[last].op, Operator::And);
  EXPECT_EQ(p.ast.child(ai, 1), p.ast.child(ib, 0));
  EXPECT_EQ(p.ast.child(ib, 1), p.ast.child(bc, 0));
  EXPECT_EQ(p.source.slice(p.ast[ib].where), "i < b");
  EXPECT_EQ(p.source.slice(p.ast[last].where), "a <= i < b != c");
  EXPECT_EQ(tree("(a < b) < c"), "1:1 => (< (< a b) c)\n"); // parentheses end a chain
}

TEST(Parser, PlacesOfExpressions) {
  const Parsed p = parsed("(x + é) * 2");
  EXPECT_TRUE(p.failed);
  const Parsed q = parsed("((x + y)) * clip(x, 0, 1)");
  const ExprId product = q.ast.pieces[0].value;
  EXPECT_EQ(q.source.slice(q.ast[product].where), "((x + y)) * clip(x, 0, 1)");
  EXPECT_EQ(q.source.slice(q.ast[product].at), "*");
  const ExprId sum = q.ast.child(product, 0), call = q.ast.child(product, 1);
  EXPECT_EQ(q.source.slice(q.ast[sum].where), "x + y");
  EXPECT_TRUE(q.ast[sum].parenthesised);
  EXPECT_EQ(q.source.slice(q.ast[call].where), "clip(x, 0, 1)");
  EXPECT_EQ(q.source.slice(q.ast[call].at), "clip");
}

TEST(Names, ArgumentsInOrderOfFirstUse) {
  const Parsed p = parsed("i < k: b*a + x; n > j: x; else N");
  EXPECT_EQ(p.names.arguments, (std::vector<std::string>{"k", "b", "a", "x", "j", "N"}));
  EXPECT_EQ(p.ast.names, (std::vector<std::string>{"i", "k", "b", "a", "x", "n", "j", "N"}));
}

TEST(Names, EveryRowResolvesWithItsOwnCount) {
  for (size_t row = 0; row < builtins().size(); ++row) {
    const Builtin &b = builtins()[row];
    const std::string operands = b.min_arguments ? "a" + repeated(", a", b.min_arguments - 1) : "";
    const std::string call = std::string(b.name) + "(" + operands + ")";
    const Parsed p = parsed(call);
    ASSERT_FALSE(p.failed) << call;
    const Resolved r = p.names.of[p.ast.pieces[0].value];
    const bool names_operands = b.rule == Rule::Length || b.rule == Rule::Border;
    EXPECT_EQ(r.binding, b.rule == Rule::Length   ? Binding::ArgumentLength
                         : b.rule == Rule::Border ? Binding::Border
                                                  : Binding::Builtin);
    EXPECT_TRUE(names_operands || r.index == row) << call;
  }
}

TEST(Names, WhatOtherLanguagesCallARowIsSuggested) {
  for (const Builtin &row : builtins()) {
    const std::string first(row.elsewhere.substr(0, row.elsewhere.find(' ')));
    if (first.empty() || find_builtin(first) >= 0) continue;
    const Parsed p = parsed(first + "(x)");
    ASSERT_EQ(codes(p), "unknown-function") << first;
    ASSERT_EQ(p.diagnostics[0].fixits.size(), 1u) << first;
    EXPECT_EQ(p.diagnostics[0].fixits[0].replacement, row.name);
  }
}

// Each is wrong in one way; the first fix-it of every message mends it.
TEST(FixIts, MendWhatTheyAreOfferedFor) {
  const std::pair<const char *, const char *> cases[] = {
      {"c ? a : b", "where(c, a, b)"},
      {"c ? a : d ? e : f", "where(c, a, where(d, e, f))"},
      {"i<3 ? x : -x", "where(i<3, x, -x)"},
      {"x if i<3 else y if i<5 else z", "where(i<3, x, where(i<5, y, z))"},
      {"i = 3: x; else 0", "i == 3: x; else 0"},
      {"i>3 & i<5: x; else 0", "i>3 and i<5: x; else 0"},
      {"i<3 | i>5 | i==4: x; else 0", "i<3 or i>5 or i==4: x; else 0"},
      {"(2^10) * x", "(2**10) * x"},
      {"i<3 x; else 0", "i<3: x; else 0"},
      {"if i<3: x; elif i<5: y; else if i<7: z; else 0", "i<3: x; i<5: y; i<7: z; else 0"},
      {"if (i<3): x; else 0", "(i<3): x; else 0"},
      {"if(i<3, x, y)", "where(i<3, x, y)"},
      {"x if i<3; else 0", "i<3: x; else 0"},
      {"else i<3: x; else 0", "i<3: x; else 0"},
      {"i<3: x else 0", "i<3: x; else 0"},
      {"i<3: x, i<5: y; else 0", "i<3: x; i<5: y; else 0"},
      {"i<3: x; 0", "i<3: x; else 0"},
      {"min(x, max(y, 0", "min(x, max(y, 0))"},
      {"min(x y)", "min(x, y)"},
      {"clip(x, lo=0, hi=1)", "clip(x, 0, 1)"},
      {"x is y", "x == y"},
      {"x is not y", "x != y"},
      {"x <> y", "x != y"},
      {"x * !y", "x * (!y)"},
      {"2 x", "2*x"},
      {"2x", "2*x"},
      {"(x + 1)(y)", "(x + 1)*(y)"},
      {"1.5f*x", "1.5*x"},
      {"x*007", "x*7"},
      {"np.where(x < torch.pi, x, 1)", "where(x < pi, x, 1)"},
      {"x \xe2\x89\xa4 2\xc2\xb7\xcf\x80", "x <= 2*pi"},
      {"clamp(x, 0, 1)", "clip(x, 0, 1)"},
      {"-True", "-true"},
      {"MAX(x, 0)", "max(x, 0)"},
      {"x + x(y)", "x + x*(y)"},
  };
  for (const auto &[wrong, right] : cases) {
    std::string text = wrong;
    for (int round = 0; round < 8 && parsed(text).failed; ++round) {
      const Parsed p = parsed(text);
      ASSERT_FALSE(p.diagnostics[0].fixits.empty()) << text << "\n" << render(p.diagnostics[0], p.source);
      const FixIt &f = p.diagnostics[0].fixits[0];
      text.replace(f.where.begin, f.where.end - f.where.begin, f.replacement);
    }
    EXPECT_EQ(text, right) << wrong;
    EXPECT_FALSE(parsed(text).failed) << text;
  }
}

TEST(Recovery, SeveralErrorsAtOnce) {
  EXPECT_EQ(codes(parsed("i<1: x +\n; i<2 y; i<3: x $ y\ni<4: (x\ni<5: foo(x)\nelse min(x)")),
            "missing-operand missing-colon stray-character unclosed-bracket unknown-function argument-count");
  EXPECT_EQ(codes(parsed("[b, t]\nlet w = s[1:3]\nlet v = 2\nt < lens[]: x[b][t]*w\nelse w[0]")),
            "slice empty-brackets second-brackets indexed-let");
  EXPECT_EQ(codes(parsed("[b, b, 3]\nlet w == 2\nlet i = 3\nx: 1\n[c]\nlet = 3\nelse len(2)*w")),
            "duplicate-axis not-an-axis let-without-assign let-hides header-not-first let-without-name no-length");
}

TEST(Recovery, AnOpenBracketSpoilsOnePiece) {
  const Parsed p = parsed("i<3: min(x, (y\ni<5: x\nelse 0");
  EXPECT_EQ(codes(p), "unclosed-bracket");
  EXPECT_EQ(p.ast.pieces.size(), 3u);
}

TEST(Recovery, AConditionalCutShortInAnotherOne) {
  EXPECT_EQ(codes(parsed("i<3: min(x, y ? z\nels : w ? x")), "ternary-operator ternary-operator");
  expect_sound("i<3: x; a: clip(x, lo, hi?\nels : hi?min(x, y, 1e-3)");
  expect_sound("x[ true ]");
}

TEST(Limits, Nesting) {
  EXPECT_FALSE(parsed(repeated("(", most_nesting) + "x" + repeated(")", most_nesting)).failed);
  EXPECT_EQ(codes(parsed(repeated("(", most_nesting + 1) + "x" + repeated(")", most_nesting + 1))), "too-deep");
  EXPECT_EQ(codes(parsed(repeated("(", longest_spec))), "too-deep");
  EXPECT_EQ(codes(parsed(repeated("-", longest_spec))), "too-deep");
  EXPECT_EQ(codes(parsed(repeated("not ", longest_spec / 4))), "too-deep");
  EXPECT_EQ(codes(parsed(repeated("x**", longest_spec / 3 - 1) + "x")), "too-deep");
  EXPECT_EQ(codes(parsed(repeated("min(", longest_spec / 4 - 1) + "x")), "too-deep");
  EXPECT_EQ(codes(parsed(repeated("c?", longest_spec / 2 - 1) + "x")), "too-deep");
  EXPECT_EQ(codes(parsed(repeated("x if ", longest_spec / 5 - 1) + "x")), "if-piece");
}

TEST(Limits, LevelsOfATree) {
  EXPECT_FALSE(parsed("x" + repeated("+x", most_levels)).failed);
  EXPECT_EQ(codes(parsed("x" + repeated("+x", most_levels + 1))), "too-deep");
  EXPECT_EQ(codes(parsed("x" + repeated("<x", longest_spec / 2 - 1))), "too-deep");
}

TEST(Limits, SharedOperandsCountAsOftenAsTheyAreUsed) {
  std::string chain = "x"; // each level doubles what a walk of the tree visits
  for (int level = 0; level < 12; ++level) chain = "0<(" + chain + ")<1";
  EXPECT_FALSE(parsed(chain).failed);
  for (int level = 0; level < 60; ++level) chain = "0<(" + chain + ")<1";
  EXPECT_EQ(codes(parsed(chain)), "too-complex");
}

TEST(Limits, LengthAndPieces) {
  const std::string most = "i==0:x;"; // as many as fit
  EXPECT_FALSE(parsed(repeated(most, most_pieces)).failed);
  EXPECT_EQ(codes(parsed(repeated(most, most_pieces + 1))), "too-many-pieces");
  EXPECT_FALSE(parsed("x" + repeated(" ", longest_spec - 1)).failed);
  EXPECT_EQ(codes(parsed("x" + repeated(" ", longest_spec))), "spec-too-long");
}

TEST(Limits, MessagesAreBounded) {
  Source source(repeated("$\n", longest_spec / 2), "<spec>");
  Sink sink;
  parse(source, lex(source, sink), sink);
  EXPECT_TRUE(sink.failed());
  EXPECT_EQ(sink.diagnostics().size(), 100u);
}

// Token soup, bytes and mutated specs. --gtest_shuffle --gtest_repeat=N makes other ones each time.
class Soup : public testing::TestWithParam<int> {
protected:
  std::mt19937 random{unsigned(testing::UnitTest::GetInstance()->random_seed()) * 7919u + unsigned(GetParam())};
  size_t below(size_t n) { return random() % n; }
};

TEST_P(Soup, OfTokens) {
  const char *words[] = {
      "i",     "n",  "x",    "y",   "min",  "clip", "where", "(",    ")",        "[",        "]",
      ":",     ";",  "\n",   ",",   "?",    "=",    "==",    "<",    "<=",       "+",        "-",
      "**",    "*",  "/",    "//",  "&",    "|",    "^",     "~",    "not",      "and",      "or",
      "!",     "&&", "else", "let", "if",   "elif", "is",    "in",   "1",        "2.",       "0x1f",
      "1e400", "..", ".",    "#",   "true", "nan",  "out",   "foo",  "\xc3\xa9", "\xcf\x80", "\xe2\x89\xa4",
      "$",     "\t", "x.y",  "np.", "'",    "1f",   "else:", "i<3:", ">>"};
  for (int k = 0; k < 200; ++k) {
    std::string text;
    for (size_t length = 1 + below(below(4) ? 12 : 80); length; --length) {
      text += words[below(std::size(words))];
      if (below(2)) text += ' ';
    }
    expect_sound(text);
    if (HasFatalFailure()) return;
  }
}

TEST_P(Soup, OfBytes) {
  for (int k = 0; k < 100; ++k) {
    std::string text(below(60), ' ');
    const bool ascii = below(2);
    for (char &c : text) c = char(ascii ? below(128) : below(256));
    expect_sound(text);
    if (HasFatalFailure()) return;
  }
}

TEST_P(Soup, OfMutations) {
  const char *good[] = {"i<n/4: x*0.5; i>=n-n/4: x*2; else x",
                        "a <= i < b and (x > 3 or not y): clip(x, lo, hi)\nelse: min(x, y, 1e-3)",
                        "i == 0: where(x < 0, -x, x**2)\nn-1-i < k: f32(i)/float(n)\nelse 0x1f & int(x) << 2"};
  for (int k = 0; k < 200; ++k) {
    std::string text = good[below(std::size(good))];
    for (size_t edits = 1 + below(4); edits && !text.empty(); --edits) {
      const size_t at = below(text.size()), length = std::min(below(6), text.size() - at);
      if (below(3) == 0) text.erase(at, length);
      else if (below(2)) text.insert(at, text.substr(below(text.size()), below(6)));
      else text[at] = char(32 + below(95));
    }
    expect_sound(text);
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Parser, Soup, testing::Range(0, 10));
