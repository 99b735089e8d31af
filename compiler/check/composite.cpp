// SPDX-License-Identifier: Apache-2.0
// A row's body through the front end. Bodies are the table's own text, so that whatever is wrong with one is a fault of
// the table.
#include "compiler/check/composite.h"
#include "compiler/parse/parser.h"
#include <cassert>

namespace elsewise {

Composite composite(const Builtin &row) { return composite(row, row.body); }

Composite composite(const Builtin &row, std::string_view text) {
  const Source source(std::string(text), std::string(row.name));
  Sink sink;
  Composite c;
  c.ast = parse(source, lex(source, sink), sink);
  c.names = resolve(c.ast, sink);
  assert(!sink.failed() && c.ast.pieces.size() == 1);
  c.body = c.ast.pieces[0].value;
  return c;
}

} // namespace elsewise
