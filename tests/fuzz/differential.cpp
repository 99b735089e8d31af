// SPDX-License-Identifier: Apache-2.0
// Prepares random programs and judges results. From the compiler it takes what the oracle needs, syntax and types, and
// from the bounds pass which reads are proved, so that programs that it refuses are drawn again; no result is its own.
#include "tests/fuzz/differential.h"
#include "compiler/ir/axes.h"
#include "compiler/lex/lex.h"
#include "compiler/lower/lower.h"
#include "compiler/parse/parser.h"
#include "compiler/passes/bounds.h"
#include "compiler/passes/fold.h"
#include "compiler/passes/passes.h"
#include "grammar/builtins.h"
#include <algorithm>
#include <cmath>
#include <cstring>
#include <sstream>

namespace elsewise::fuzz {
namespace {

int64_t count(const std::vector<int64_t> &shape) {
  int64_t n = 1;
  for (int64_t d : shape) n *= d;
  return n;
}

int64_t offset_of(const std::vector<int64_t> &shape, const std::vector<int64_t> &stride, int64_t position) {
  int64_t at = 0;
  for (size_t d = shape.size(); d-- > 0;) at += position % shape[d] * stride[d], position /= shape[d];
  return at;
}

// torch's broadcast of the named tensors; 0-d ones take part only if there is no other (they add nothing then either).
bool broadcast(const std::vector<const Input *> &arguments, const std::vector<bool> &elementwise,
               std::vector<int64_t> &domain, bool &any) {
  any = false;
  for (size_t a = 0; a < arguments.size(); ++a) {
    const Input *in = arguments[a];
    if (in->type.kind != ArgKind::Tensor || !elementwise[a]) continue;
    any = true;
    if (in->shape.size() > domain.size()) domain.insert(domain.begin(), in->shape.size() - domain.size(), 1);
    for (size_t d = 0; d < in->shape.size(); ++d) {
      int64_t &have = domain[domain.size() - in->shape.size() + d];
      if (have == 1) have = in->shape[d];
      else if (in->shape[d] != 1 && in->shape[d] != have) return false;
    }
  }
  return true;
}

// Whether the domain has the header's axes, and arguments the axes that they are measured along.
bool fits(const Case &c) {
  const Header &h = c.ast.header;
  const size_t named = h.axes.size(), rank = c.domain.size();
  if (h.present && (h.dots < 0 ? rank != named : rank < named)) return false;
  for (const Resolved &r : c.names.of) {
    if (r.binding != Binding::ArgumentLength) continue;
    const int axes = int(c.arguments[r.index]->shape.size());
    if (r.dim >= axes || r.dim < -axes) return false;
  }
  for (ExprId e = 0; e < c.ast.exprs.size(); ++e) // what `..` stands for is as long as the domain, or 1
    if (c.ast[e].kind == ExprKind::Read && c.ast[e].dots >= 0 && c.names.of[e].binding == Binding::Argument) {
      const std::vector<int64_t> &shape = c.arguments[c.names.of[e].index]->shape;
      const size_t first = size_t(c.ast[e].dots), behind = c.ast[e].count - first;
      for (size_t d = first; d + behind < shape.size() && shape.size() <= rank; ++d)
        if (shape[d] != 1 && shape[d] != c.domain[rank - shape.size() + d]) return false;
    }
  return true;
}

// Whether a guard looks at a tensor, or the condition of a `where` or the left side of an `and` or `or` at anything
// that varies: a divisor that is zero is refused for all of a piece that some position reaches.
bool data_decides(const Case &c) {
  std::vector<bool> data(c.ast.exprs.size());
  bool found = false;
  for (ExprId e = 0; e < c.ast.exprs.size(); ++e) {
    const Expr &x = c.ast[e];
    const Resolved &name = c.names.of[e];
    data[e] = x.kind == ExprKind::Name && name.binding == Binding::Argument &&
              c.signature.args[name.index].kind == ArgKind::Tensor;
    for (uint32_t k = 0; k < values(c.ast, c.names, e); ++k) data[e] = data[e] || data[c.ast.child(e, k)];
    const bool lazy = x.kind == ExprKind::Binary ? is_logic(x.op) : calls(c.ast, c.names, e, Rule::Select);
    found = found || (lazy && c.typed.at(c.ast.child(e, 0), Use::Value).type.stage != Stage::Host);
  }
  for (const SpecPiece &p : c.ast.pieces) found = found || (p.guard != no_expr && data[p.guard]);
  return found;
}

// Makes the domain a window of a greater one, whose lengths and places are sometimes beyond 32 bits. Where a part of
// length 1 would leave it open how long the whole argument is, the axis stays as it was.
void widen(Case &c, Random &random) {
  c.window = true;
  bool measures = false;
  for (const Resolved &r : c.names.of) measures |= r.binding == Binding::ArgumentLength && c.names.elementwise[r.index];
  __int128 count = 1;
  for (const int64_t extent : c.domain) {
    const int64_t around = random.chance(10) ? int64_t(1) << (31 + random.below(20)) : 2 * extent + 3;
    int64_t before = int64_t(random.below(uint64_t(around))), after = int64_t(random.below(uint64_t(around)));
    if (random.chance(25)) before = 0;
    if (random.chance(25)) after = 0;
    if ((measures && extent == 1) || count * (before + extent + after) > most_positions >> 16) before = after = 0;
    c.offset.push_back(before), c.whole.push_back(before + extent + after);
    count *= std::max<int64_t>(1, c.whole.back());
  }
}

// The whole argument of which a window was given a part: what lies outside the part is never read.
Operand whole_of(const Case &c, size_t argument) {
  const Input &in = *c.arguments[argument];
  Operand o{in.type, in.shape, in.stride, in.data(), in.integer, in.real};
  if (!c.window || in.type.kind != ArgKind::Tensor || !c.names.elementwise[argument]) return o;
  auto data = reinterpret_cast<uintptr_t>(o.data);
  for (size_t d = 0; d < o.shape.size(); ++d) {
    if (o.shape[d] == 1) continue;
    const size_t axis = c.domain.size() - o.shape.size() + d;
    o.shape[d] = c.whole[axis];
    data -= uintptr_t(c.offset[axis]) * uintptr_t(o.stride[d]) * uintptr_t(bytes(in.type.dtype));
  }
  o.data = reinterpret_cast<const uint8_t *>(data);
  return o;
}

// The row-major position in the whole domain of an element of the window.
int64_t position_in_whole(const Case &c, int64_t element) {
  if (!c.window) return element;
  int64_t position = 0, pitch = 1;
  for (size_t d = c.domain.size(); d-- > 0;) {
    position += (element % c.domain[d] + c.offset[d]) * pitch;
    element /= c.domain[d], pitch *= c.whole[d];
  }
  return position;
}

std::vector<int64_t> row_major(const std::vector<int64_t> &shape) {
  std::vector<int64_t> stride(shape.size());
  int64_t step = 1;
  for (size_t d = shape.size(); d-- > 0;) stride[d] = step, step *= std::max<int64_t>(shape[d], 1);
  return stride;
}

bool overlaps_itself(const Input &in) {
  std::vector<int64_t> at;
  for (int64_t p = 0; p < count(in.shape); ++p) at.push_back(offset_of(in.shape, in.stride, p));
  std::sort(at.begin(), at.end());
  return std::adjacent_find(at.begin(), at.end()) != at.end();
}

} // namespace

std::optional<Case> prepare(Program program, std::map<std::string, int> &refused) {
  Case c;
  c.program = std::move(program);
  Program &p = c.program;
  Source source(p.text, "<spec>");
  Sink sink;
  auto refuse = [&] {
    const auto &all = sink.diagnostics();
    auto first =
        std::find_if(all.begin(), all.end(), [](const Diagnostic &d) { return d.severity == Severity::Error; });
    refused[first == all.end() ? "?" : slug(first->code)]++;
    return std::nullopt;
  };
  c.ast = parse(source, lex(source, sink), sink);
  if (sink.failed()) return refuse();
  c.names = resolve(c.ast, sink);
  if (sink.failed()) return refuse();
  for (const std::string &name : c.names.arguments)
    for (const Input &in : p.inputs)
      if (in.name == name) c.arguments.push_back(&in), c.signature.args.push_back(in.type);
  if (c.arguments.size() != c.names.arguments.size()) {
    refused["unknown name"]++;
    return std::nullopt;
  }
  for (size_t a = 0; a < c.arguments.size(); ++a)
    if (c.names.indexed[a] && !c.signature.args[a].zero_dim)
      c.signature.args[a].rank = int8_t(c.arguments[a]->shape.size());
  bool any = false;
  if (!broadcast(c.arguments, c.names.elementwise, c.domain, any)) {
    refused["broadcast"]++;
    return std::nullopt;
  }
  if (!any) c.domain = p.domain, c.shape_given = true;
  if (!fits(c)) {
    refused["rank"]++;
    return std::nullopt;
  }
  if (c.names.needs_rank) c.signature.rank = int(c.domain.size());
  c.typed = specialise(source, c.ast, c.names, c.signature, sink);
  if (sink.failed()) return refuse();
  c.signature.out = c.typed.result; // every backend is given `out`, which has a say in the working float
  c.typed = specialise(source, c.ast, c.names, c.signature, sink);
  if (sink.failed()) return refuse();
  const Kernel settled = bounds(fold(lower(source, c.ast, c.names, c.signature, c.typed), {}), {});
  if (!unproved(settled).empty()) { // the oracle still says of what was proved whether it was right
    refused["index-unproved"]++;
    return std::nullopt;
  }
  for (const Reading &r : settled.reads) {
    c.reads = true;
    c.checked |= r.checked != 0;
    c.unguarded |= r.free && !r.checked;
  }

  for (ExprId e = 0; e < c.ast.exprs.size(); ++e) {
    c.reads |= c.ast[e].kind == ExprKind::Read; // what is dropped from the code may have been looked at
    const bool power = c.ast[e].kind == ExprKind::Binary && c.ast[e].op == Operator::Pow;
    const Builtin *const row = called(c.ast, c.names, e);
    c.inexact |= power || (row && row->sameness == Sameness::Ulp);
  }

  Random random(p.seed ^ 0x5eed);
  // Tables are whole in a window, and so are their axes that are read at the element's own place: none is drawn for it.
  bool whole_alone = true;
  for (size_t a = 0; a < c.arguments.size(); ++a) whole_alone &= !c.names.indexed[a] || !c.names.elementwise[a];
  for (const Reading &r : settled.reads) whole_alone &= r.own == 0;
  if (Random of_window(p.seed ^ 0x817d0); of_window.chance(30) && whole_alone) widen(c, of_window);
  const DType stored = c.typed.result;
  const int size = bytes(stored);
  const int64_t n = count(c.domain);
  c.out_stride = row_major(c.domain);
  if (p.in_place)
    for (size_t a = 0; a < c.arguments.size(); ++a) {
      const Input &in = *c.arguments[a];
      if (in.type.kind == ArgKind::Tensor && c.names.elementwise[a] && !c.names.indexed[a] && in.type.dtype == stored &&
          in.shape == c.domain && !overlaps_itself(in) && n > 0)
        c.same_view = int(a);
    }
  if (c.same_view >= 0) {
    const Input &in = *c.arguments[c.same_view];
    c.out_stride = in.stride;
    c.out_buffer.assign(zone, 0xa5);
    c.out_buffer.insert(c.out_buffer.end(), in.buffer.begin(), in.buffer.end());
    c.out_buffer.insert(c.out_buffer.end(), zone, 0xa5);
    c.out_offset = zone + in.offset * size;
  } else {
    if (p.out_layout == 2)
      for (int64_t &s : c.out_stride) s *= 2;
    int64_t reach = 1;
    for (size_t d = 0; d < c.domain.size(); ++d) reach += c.out_stride[d] * std::max<int64_t>(c.domain[d] - 1, 0);
    c.out_offset = zone + (p.out_layout == 3 ? size * int64_t(1 + random.below(15)) : 0);
    c.out_buffer.resize(size_t(c.out_offset + reach * size + zone));
    for (uint8_t &b : c.out_buffer) b = uint8_t(random.next());
  }

  c.data_decides = data_decides(c);
  std::vector<Operand> operands;
  for (size_t a = 0; a < c.arguments.size(); ++a) operands.push_back(whole_of(c, a));
  Oracle oracle(c.ast, c.names, c.typed, operands, c.window ? c.whole : c.domain);
  c.expected.resize(size_t(n * size));
  for (int64_t i = 0; i < n; ++i) {
    const Outcome o = oracle.element(position_in_whole(c, i), c.expected.data() + i * size);
    if (o != Outcome::Value && c.outcome == Outcome::Value) c.outcome = o, c.fault_position = i;
  }
  if (oracle.beyond()) { // the oracle's own arithmetic has 128 bits
    refused["beyond 128 bits"]++;
    return std::nullopt;
  }
  if (oracle.open()) {
    refused["the sign of a NaN"]++;
    return std::nullopt;
  }
  return c;
}

std::string difference(const Case &c, const std::vector<uint8_t> &out) {
  const DType d = c.typed.result;
  const int size = bytes(d);
  std::vector<uint8_t> outside = c.out_buffer, left = out;
  std::ostringstream s;
  int wrong = 0;
  for (int64_t i = 0; i < int64_t(c.expected.size()) / size; ++i) {
    const int64_t at = c.out_offset + offset_of(c.domain, c.out_stride, i) * size;
    const uint8_t *got = out.data() + at, *want = c.expected.data() + i * size;
    std::memset(outside.data() + at, 0, size), std::memset(left.data() + at, 0, size);
    if (!std::memcmp(got, want, size)) continue;
    if (is_float(d) && std::isnan(decode(d, got).real) && std::isnan(decode(d, want).real)) continue;
    if (d == DType::Bool && *got && *want) continue; // a bool that was moved keeps its byte
    if (wrong++) continue;
    const Scalar g = decode(d, got), w = decode(d, want);
    s.precision(17);
    s << "element " << i << ": got ";
    if (is_float(d)) s << g.real << ", want " << w.real;
    else s << (int64_t)g.integer << ", want " << (int64_t)w.integer;
  }
  if (wrong > 1) s << " (and " << wrong - 1 << " more)";
  if (outside != left) s << (wrong ? "; " : "") << "bytes outside `out` were written";
  return s.str();
}

std::string describe(const Case &c) {
  std::ostringstream s;
  s << "seed " << c.program.seed << "\n  " << c.program.text << "\n  domain [";
  for (int64_t d : c.domain) s << d << " ";
  if (c.window) {
    s << "] from [";
    for (int64_t d : c.offset) s << d << " ";
    s << "] of [";
    for (int64_t d : c.whole) s << d << " ";
  }
  s << "] result " << spelling(c.typed.result)
    << (c.same_view >= 0 ? " in place of " + c.arguments[c.same_view]->name : "") << " out stride [";
  for (int64_t d : c.out_stride) s << d << " ";
  s << "] offset " << c.out_offset - zone << "\n";
  for (const Input *in : c.arguments) {
    s << "  " << in->name << ": ";
    if (in->type.kind == ArgKind::Tensor) {
      s << spelling(in->type.dtype) << " shape [";
      for (int64_t d : in->shape) s << d << " ";
      s << "] stride [";
      for (int64_t d : in->stride) s << d << " ";
      s << "] offset " << in->offset << "\n";
    } else if (in->type.kind == ArgKind::Float) s << in->real << "\n";
    else s << (int64_t)in->integer << "\n";
  }
  return s.str();
}

static void note_reads(const Case &, Seen &);

void note(const Case &c, Seen &seen) {
  note_reads(c, seen);
  for (ExprId e = 0; e < c.ast.exprs.size(); ++e) {
    const Expr &x = c.ast[e];
    if (x.kind == ExprKind::Unary || x.kind == ExprKind::Binary)
      seen.operators[spelling(x.op) + std::string(x.kind == ExprKind::Unary ? " (unary)" : "")]++;
    if (x.kind == ExprKind::Call) seen.builtins[c.ast.name(e)]++;
    if (x.kind == ExprKind::Read) seen.layouts[x.dots >= 0 ? "read with .." : "read"]++;
  }
  for (const Input *in : c.arguments)
    if (in->type.kind == ArgKind::Tensor) seen.dtypes[std::string(spelling(in->type.dtype)) + " in"]++;
  seen.dtypes[std::string(spelling(c.typed.result)) + " out"]++;
  if (c.ast.header.present) seen.layouts["header"]++;
  if (c.ast.header.dots >= 0) seen.layouts["header with .."]++;
  if (!c.ast.lets.empty()) seen.layouts["let"]++;
  if (c.window) seen.layouts["window"]++;
  if (c.reads) seen.layouts[c.checked ? "read checked at the call" : "read proved"]++;
  if (c.unguarded) seen.layouts["read proved without guards"]++;
  if (c.outcome == Outcome::OutOfBounds) seen.layouts["read out of bounds"]++;
  seen.layouts[c.same_view >= 0            ? "in place"
               : c.program.out_layout == 2 ? "out strided"
               : c.program.out_layout == 3 ? "out offset"
                                           : "out contiguous"]++;
  for (const Input *in : c.arguments) {
    if (in->type.kind != ArgKind::Tensor) continue;
    const bool broadcasts = in->shape != c.domain;
    seen.layouts[in->shape.empty()                    ? "in 0-d"
                 : broadcasts                         ? "in broadcast"
                 : in->stride == row_major(in->shape) ? "in contiguous"
                                                      : "in strided"]++;
  }
}

// What lies at the edge of a proof.
static void note_reads(const Case &c, Seen &seen) {
  const auto read = [&](ExprId e) { return c.ast[e].kind == ExprKind::Read; };
  for (ExprId e = 0; e < c.ast.exprs.size(); ++e) {
    if (!read(e)) continue;
    std::vector<ExprId> todo;
    for (uint32_t k = 0; k < values(c.ast, c.names, e); ++k) todo.push_back(c.ast.child(e, k));
    bool data = false, nested = false, parameter = false;
    while (!todo.empty()) {
      const ExprId at = todo.back();
      const Resolved &name = c.names.of[at];
      todo.pop_back();
      nested |= read(at);
      if (c.ast[at].kind == ExprKind::Name && name.binding == Binding::Argument)
        (c.signature.args[name.index].kind == ArgKind::Tensor ? data : parameter) = true;
      for (uint32_t k = 0; k < values(c.ast, c.names, at); ++k) todo.push_back(c.ast.child(at, k));
    }
    if (data) seen.layouts["read at an element"]++;
    if (nested) seen.layouts["read at a read"]++;
    if (parameter) seen.layouts["read at a parameter"]++;
  }
  bool huge = false;
  for (const Input *in : c.arguments) huge |= in->type.kind == ArgKind::Int && (in->integer >> 31) + 1 > 1;
  if (c.reads && huge) seen.layouts["read beside a huge parameter"]++;
  for (size_t a = 0; a < c.arguments.size(); ++a) {
    const Input &in = *c.arguments[a];
    if (!c.names.indexed[a] || in.type.kind != ArgKind::Tensor) continue;
    const int64_t length = count(in.shape);
    if (length <= 1) seen.layouts[length ? "table of one element" : "empty table"]++;
    if (std::any_of(in.stride.begin(), in.stride.end(), [](int64_t s) { return s < 0; }))
      seen.layouts["table backwards"]++;
    if (dclass(in.type.dtype) == DClass::UInt && c.reads) seen.layouts["unsigned table"]++;
  }
}

std::vector<std::string> unseen(const Seen &seen) {
  std::vector<std::string> missing;
  auto want = [&](const std::map<std::string, int> &have, const std::string &name) {
    const auto at = have.find(name);
    if (at == have.end() || at->second == 0) missing.push_back(name);
  };
#define OPERATOR(Name, text, alternative, precedence, arity) want(seen.operators, arity == 1 ? text " (unary)" : text);
#include "grammar/operators.def"
  for (const Builtin &b : builtins()) want(seen.builtins, std::string(b.name));
#define DTYPE(Name, text, bytes, class, torch) want(seen.dtypes, text " in"), want(seen.dtypes, text " out");
#include "grammar/dtypes.def"
  for (int op = 0; op <= int(Op::Entry); ++op) want(seen.nodes, spelling(Op(op)));
  for (std::string_view pass : pass_names()) want(seen.passes, std::string(pass));
  for (const char *layout : {"rows form",
                             "flat form",
                             "a row for all",
                             "segments",
                             "segments in rows",
                             "inner pitch",
                             "wide",
                             "vector",
                             "scalar",
                             "repeated",
                             "strided",
                             "tiled",
                             "tiles",
                             "in place",
                             "out strided",
                             "out offset",
                             "out contiguous",
                             "header",
                             "header with ..",
                             "let",
                             "window",
                             "window form",
                             "in 0-d",
                             "in broadcast",
                             "in contiguous",
                             "in strided",
                             "read",
                             "read with ..",
                             "read proved",
                             "read proved without guards",
                             "read checked at the call",
                             "read out of bounds",
                             "read at an element",
                             "read at a read",
                             "read at a parameter",
                             "read beside a huge parameter",
                             "empty table",
                             "table of one element",
                             "table backwards",
                             "unsigned table"})
    want(seen.layouts, layout);
  return missing;
}

} // namespace elsewise::fuzz
