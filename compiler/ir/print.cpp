// SPDX-License-Identifier: Apache-2.0
// The IR as text, one node a line and nothing left out, so that it can be compared and read back (read.cpp). It never
// aligns or wraps, so that a line depends on its node alone.
#include "compiler/ir/arithmetic.h"
#include "compiler/ir/ir.h"
#include "compiler/types/text.h"
#include "grammar/builtins.h"
#include "llvm/Support/raw_ostream.h"
#include <algorithm>

namespace elsewise {
namespace {

using llvm::raw_ostream;

std::string constant(DType d, const Constant &c) {
  if (is_float(d)) return shortest(d, c.real);
  return d == DType::Bool ? (c.integer ? "true" : "false") : decimal(c.integer);
}

void quoted(raw_ostream &out, std::string_view s) {
  out << '"';
  for (const char c : s)
    if (c == '\n') out << "\\n";
    else if (c == '\t') out << "\\t";
    else if (c == '\r') out << "\\r";
    else if (c == '"' || c == '\\') out << '\\' << c;
    else out << c;
  out << '"';
}

// A name in quotes where it would be taken for one of this text's own words.
void name(raw_ostream &out, std::string_view s) {
  static constexpr std::string_view words[] = {"row", "flat", "in", "and", "or", "when", "same", "dense", "entry"};
  if (is_form_word(s) || std::find(std::begin(words), std::end(words), s) != std::end(words)) quoted(out, s);
  else out << s;
}

void axis(raw_ostream &out, const Kernel &k, uint32_t a) {
  if (a < k.axes.size()) name(out, k.axes[a].name);
  else if (a == no_axis) out << "row";
  else if (a == list_axis) out << "list";
  else a == flat_axis ? out << "flat" : out << a;
}

void place(raw_ostream &out, Span s) {
  if (s != Span{}) out << " @" << s.begin << ".." << s.end;
}

const char *spelling(Stage s) { return s == Stage::Host ? "host" : s == Stage::Row ? "row" : "element"; }

void argument(raw_ostream &out, const Argument &a) {
  name(out, a.name);
  out << ": ";
  switch (a.type.kind) {
  case ArgKind::Unknown:
    out << "unknown";
    break;
  case ArgKind::Tensor:
    out << elsewise::spelling(a.type.dtype);
    if (a.type.rank >= 0) out << '[' << int(a.type.rank) << ']';
    else if (a.type.zero_dim) out << "[]";
    break;
  case ArgKind::Int:
    out << "int";
    break;
  case ArgKind::Float:
    out << "float";
    break;
  case ArgKind::Bool:
    out << "bool parameter";
    break; // `bool` alone is a tensor
  }
}

void axes(raw_ostream &out, const char *label, uint64_t set) {
  if (!set) return;
  out << ' ' << label << '(';
  for (int axis = 0, printed = 0; axis < 64; ++axis)
    if (set >> axis & 1) out << (printed++ ? " " : "") << axis;
  out << ')';
}

// `read s settled proved(0) as-long(0 t) free when %4, %5`: the condition stands among the operands.
void reading(raw_ostream &out, const Kernel &k, const Inst &i) {
  const Reading &r = k.reads[i.c];
  out << "read ";
  name(out, k.arguments[r.argument].name);
  axes(out, "own", r.own);
  if (r.settled) out << " settled";
  axes(out, "proved", r.proved);
  axes(out, "checked", r.checked);
  for (const Premise &p : r.premises) {
    out << (p.what == Premise::NotEmpty ? " not-empty(" : " as-long(") << int(p.axis);
    if (p.what == Premise::AsLong) out << ' ', axis(out, k, p.of);
    out << ')';
  }
  if (r.free) out << " free";
  if (r.tested != Reading::No) out << " tested(" << (r.tested == Reading::Alone ? "alone" : "behind") << ')';
  if (i.sub) out << " when";
}

void node(raw_ostream &out, const Kernel &k, NodeId n) {
  const Inst &i = k[n];
  out << "  %" << n << " = ";
  switch (i.op) {
  case Op::Const:
    out << "const " << constant(i.type, k.constants[i.a]);
    break;
  case Op::Param:
  case Op::Load:
    out << elsewise::spelling(i.op) << ' ';
    name(out, k.arguments[i.a].name);
    break;
  case Op::Len:
  case Op::Pos:
  case Op::Origin:
    out << elsewise::spelling(i.op) << ' ', axis(out, k, i.a);
    break;
  case Op::Entry:
    out << "entry " << i.a;
    break;
  case Op::ArgLen:
    out << "arglen ";
    name(out, k.arguments[i.a].name);
    out << ' ' << int32_t(i.b);
    break;
  case Op::Unary:
    out << elsewise::spelling(UnaryOp(i.sub));
    break;
  case Op::Binary:
    out << elsewise::spelling(BinaryOp(i.sub));
    break;
  case Op::Compare:
    out << elsewise::spelling(CompareOp(i.sub));
    if (Exactness(i.c) != usual_exactness(k[i.a].type)) out << ' ' << elsewise::spelling(Exactness(i.c));
    break;
  case Op::Logic:
    out << elsewise::spelling(LogicOp(i.sub));
    break;
  case Op::Call:
    out << "call " << builtins()[i.sub].name;
    break;
  case Op::Read:
    reading(out, k, i);
    break;
  case Op::Where:
  case Op::Cast:
    out << elsewise::spelling(i.op);
    break;
  }
  const char *between = " %";
  for (const NodeId o : operands(k, n)) out << between << o, between = ", %";
  out << " : " << elsewise::spelling(i.type) << ' ' << spelling(i.stage);
  place(out, k.span(n));
  out << '\n';
}

void piece(raw_ostream &out, const Kernel &k, const Piece &p) {
  out << "  piece " << p.line << ':' << p.column;
  place(out, p.where);
  const char *word = " ";
  for (const auto &box : p.boxes) {
    for (const Range &r : box) {
      out << word, axis(out, k, r.axis);
      out << " in [";
      if (r.lo != no_node) out << '%' << r.lo;
      out << ", ";
      if (r.hi != no_node) out << '%' << r.hi;
      out << ')';
      word = " and ";
    }
    word = " or ";
  }
  if (p.guard != no_node) out << " when %" << p.guard;
  if (p.entry) out << " entry " << p.entry;
  out << " ->";
  for (const NodeId v : p.values) out << " %" << v;
  if (!p.text.empty()) out << ' ', quoted(out, p.text);
  out << '\n';
}

void check(raw_ostream &out, const Check &c) {
  out << "  check ";
  if (c.what == Check::NotNaN) out << "notnan";
  if (c.what == Check::NonZero) out << "nonzero";
  if (c.what == Check::InBounds) out << "inbounds";
  if (c.what == Check::Fits) out << "fits " << elsewise::spelling(c.dtype);
  out << " %" << c.node;
  if (c.piece != ~0u) out << " piece " << c.piece;
  if (c.in_guard) out << " guard";
  place(out, c.where);
  out << '\n';
}

void form(raw_ostream &out, const Kernel &k) {
  static constexpr const char *access[] = {"absent", "vector", "scalar", "broadcast", "strided", "column", "tiled"};
  const Form &f = k.form;
  out << "  form rows(" << int(f.rows) << ") vector " << int(f.vector) << " out " << access[int(f.out)];
  for (size_t a = 0; a < f.args.size(); ++a) {
    out << ' ';
    name(out, a < k.arguments.size() ? k.arguments[a].name : "?");
    out << ' ' << access[int(f.args[a])];
    if (a < f.same_view.size() && f.same_view[a]) out << " same";
    if (a < f.dense.size() && f.dense[a]) out << " dense";
  }
  if (f.inner_axis != no_axis) out << " inner ", axis(out, k, f.inner_axis);
  for (size_t r = 0; r < f.row_axes.size(); ++r)
    if (f.row_axes[r] != no_axis) out << " r" << r << ' ', axis(out, k, f.row_axes[r]);
  if (!f.unit_pitch) out << " pitched";
  if (f.wide) out << " wide";
  if (f.narrow) out << " narrow";
  if (f.window) out << " window";
  if (f.tile) out << " tile(" << int(f.tile) << ')';
  if (f.many) out << " many(" << f.many << ')';
  if (f.flat) out << " flat";
  if (f.segments) out << " segments " << f.segments;
  out << '\n';
}

void list(raw_ostream &out, const char *label, const std::vector<NodeId> &nodes) {
  out << "  " << label;
  for (const NodeId n : nodes) out << " %" << n;
  out << '\n';
}

void steps(raw_ostream &out, const char *label, const Piece &p, const std::vector<Step> &list) {
  out << "  " << label << ' ' << p.line << ':' << p.column << " {";
  for (const Step &s : list) {
    out << " %" << s.node;
    if (s.under != ~0u) out << " under %" << list[s.under].node;
  }
  out << " }\n";
}

} // namespace

std::string print(const Kernel &k) {
  std::string text;
  llvm::raw_string_ostream out(text);
  out << "kernel (";
  for (size_t a = 0; a < k.arguments.size(); ++a) {
    if (a) out << ", ";
    argument(out, k.arguments[a]);
  }
  out << ')';
  for (size_t a = 0; a < k.axes.size(); ++a) {
    out << (a ? ", " : " over [");
    name(out, k.axes[a].name);
    out << ": " << k.axes[a].dim << (a + 1 == k.axes.size() ? "]" : "");
  }
  out << " ->";
  for (const DType d : k.outputs) out << ' ' << spelling(d);
  if (!k.source.empty()) out << ' ', quoted(out, k.source);
  out << '\n';
  for (const Table &t : k.tables) {
    out << "  table " << spelling(t.type);
    for (size_t e = 0; e < t.entries.size(); ++e) out << (e ? ", " : " ") << constant(t.type, t.entries[e]);
    out << '\n';
  }
  for (NodeId n = 0; n < k.insts.size(); ++n) node(out, k, n);
  for (const Piece &p : k.pieces) piece(out, k, p);
  for (const Check &c : k.checks) check(out, c);
  if (k.form != Form{} || !k.bodies.empty()) form(out, k);
  if (k.bodies.empty()) return text;
  list(out, "host", k.host);
  list(out, "uniforms", k.uniforms);
  if (!k.row.empty()) list(out, "rows", k.row);
  for (size_t p = 0; p < k.bodies.size(); ++p) {
    if (!k.guards[p].empty()) steps(out, "guard", k.pieces[p], k.guards[p]);
    steps(out, "body", k.pieces[p], k.bodies[p]);
  }
  return text;
}

} // namespace elsewise
