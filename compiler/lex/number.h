// SPDX-License-Identifier: Apache-2.0
// One number literal. Signs belong to the parser.
#pragma once
#include "compiler/diagnostics/diagnostic.h"
#include "compiler/parse/ast.h"

namespace elsewise {

struct Number {
  uint32_t end; // byte behind it, and behind any letters that run into it
  bool valid;   // otherwise it was reported
  Literal literal;
};

/// Reads the number that begins at byte `begin`: a digit, or a point before a digit.
Number scan_number(const Source &, uint32_t begin, Sink &);

} // namespace elsewise
