// SPDX-License-Identifier: Apache-2.0
// A spec's text as tokens, with newlines only where they separate pieces. It knows spellings and nothing about what may
// stand where.
#pragma once
#include "compiler/diagnostics/diagnostic.h"
#include "compiler/parse/ast.h"

namespace elsewise {

enum class TokenKind : uint8_t {
#define TOKEN(Name, label) Name,
#include "grammar/tokens.def"
#define PUNCTUATION(Name, spelling) Name,
#include "grammar/tokens.def"
#define KEYWORD(Name, spelling) Name,
#include "grammar/tokens.def"
};

struct Token {
  TokenKind kind = TokenKind::End;
  Operator op = Operator::Or; // Operator: the first row of operators.def with this spelling, so `-` is Sub and the
                              // parser tells it from Neg
  Span where = {};
  Literal literal = {}; // Literal
};

/// Always ends in End. An Error token stands for text that was reported.
using Tokens = std::vector<Token>;

inline constexpr size_t longest_spec = 64 << 10; // bytes

Tokens lex(const Source &, Sink &);

/// `1:1 name i`, one token a line.
std::string print_tokens(const Source &, const Tokens &);

} // namespace elsewise
