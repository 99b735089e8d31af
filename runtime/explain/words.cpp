// SPDX-License-Identifier: Apache-2.0
// Prints recipes by the language's own table of operators, with the parentheses that are needed. It knows no spelling
// of a backend.
#include "runtime/explain/words.h"
#include "compiler/passes/window.h"
#include "compiler/types/text.h"
#include "grammar/builtins.h"

namespace elsewise {
namespace {

struct Spelling {
  std::string_view name, text;
  int precedence;
};
constexpr Spelling operators[] = {
#define OPERATOR(Name, spelling, alternative, precedence, arity) {#Name, spelling, precedence},
#include "grammar/operators.def"
};
constexpr Spelling find(std::string_view name) {
  for (const Spelling &s : operators)
    if (s.name == name) return s;
  return {};
}
constexpr int atom = 99;

constexpr Spelling of_binary[] = {find("Add"),      find("Sub"),    find("Mul"),   find("Div"),
                                  find("FloorDiv"), find("Mod"),    find("Pow"),   find("Shl"),
                                  find("Shr"),      find("BitAnd"), find("BitOr"), find("BitXor")};
constexpr Spelling of_compare[] = {find("Lt"), find("Le"), find("Gt"), find("Ge"), find("Eq"), find("Ne")};
constexpr Spelling of_logic[] = {find("And"), find("Or"), find("Not")};
constexpr Spelling of_unary[] = {find("Neg"), find("BitNot")};

struct Text {
  std::string s;
  int precedence = atom;
};

class Printer {
public:
  explicit Printer(const Kernel &k) : k(k) {}

  Text text(NodeId n) const {
    const Inst &i = k[n];
    if (const NodeId inner = unsaid(n); inner != n) return text(inner);
    switch (i.op) {
    case Op::Const:
      if (is_float(i.type)) return number(shortest(i.type, k.constants[i.a].real));
      if (i.type == DType::Bool) return {k.constants[i.a].integer ? "true" : "false"};
      return number(decimal(k.constants[i.a].integer));
    case Op::Param:
    case Op::Load:
      return {k.arguments[i.a].name};
    case Op::Pos:
      return {i.a < k.axes.size() ? k.axes[i.a].name : "i"};
    case Op::Origin:
      return {"0"}; // only ever beside a position, or beside the stream of noise
    case Op::Len:
      if (i.a == flat_axis) return {"n"};
      return {length(i.a < k.axes.size() ? k.axes[i.a].name : axis_words(k, k.form.inner_axis))};
    case Op::ArgLen:
      return {length(k.arguments[i.a].name + (i.b ? ", " + std::to_string(int32_t(i.b)) : ""))};
    case Op::Unary:
      return {std::string(of_unary[i.sub].text) + side(i.a, of_unary[i.sub].precedence), of_unary[i.sub].precedence};
    case Op::Binary:
      return pair(i, of_binary[i.sub], BinaryOp(i.sub) == BinaryOp::Pow);
    case Op::Compare:
      return pair(i, of_compare[i.sub], true);
    case Op::Logic:
      if (LogicOp(i.sub) != LogicOp::Not) return pair(i, of_logic[i.sub], false);
      return {std::string(of_logic[i.sub].text) + " " + side(i.a, of_logic[i.sub].precedence),
              of_logic[i.sub].precedence};
    case Op::Where:
      return {call(name_of(Rule::Select), {i.a, i.b, i.c})};
    case Op::Cast:
      return {call(spelling(i.type), {i.a})};
    case Op::Call:
      return {call(builtins()[i.sub].name, operands(k, n))};
    case Op::Read:
      return read(i);
    case Op::Entry: // a value's alone
      break;
    }
    return {};
  }

private:
  Text number(std::string s) const {
    const bool negative = s.starts_with("-");
    return {std::move(s), negative ? of_unary[0].precedence : atom};
  }
  static std::string length(const std::string &of) { return std::string(name_of(Rule::Length)) + "(" + of + ")"; }
  std::string side(NodeId n, int least) const {
    const Text t = text(n);
    return t.precedence < least ? "(" + t.s + ")" : t.s;
  }
  Text pair(const Inst &i, const Spelling &by, bool both_tighter) const {
    const int p = by.precedence;
    return {side(i.a, p + both_tighter) + " " + std::string(by.text) + " " + side(i.b, p + 1), p};
  }
  std::string call(std::string_view name, const std::vector<NodeId> &list) const {
    std::string s(name);
    s += "(";
    for (size_t o = 0; o < list.size(); ++o) s += (o ? ", " : "") + text(list[o]).s;
    return s + ")";
  }
  Text read(const Inst &i) const {
    const Reading &r = k.reads[i.c];
    std::string s = k.arguments[r.argument].name + "[";
    bool dots = false, first = true;
    for (uint32_t o = i.sub; o < i.b; ++o) {
      const uint32_t axis = o - i.sub;
      const bool own = r.own >> axis & 1;
      if (own && dots) continue;
      s += (first ? "" : ", ") + (own ? ".." : text(k.operands[i.a + o]).s);
      dots |= own, first = false;
    }
    return {s + "]"};
  }

  // What stands below a node that no rule would write: conversions of what is worked anyway, where a window begins, and
  // the ends beyond which no bound matters.
  NodeId unsaid(NodeId n) const {
    const Inst &i = k[n];
    if (is_position(k, n) && i.op == Op::Binary) return k[i.a].op == Op::Pos ? i.a : i.b;
    if (i.op == Op::Binary && BinaryOp(i.sub) == BinaryOp::Sub && k[i.b].op == Op::Origin) return i.a;
    if (i.op == Op::Cast) {
      const DType from = k[i.a].type;
      const bool widened = is_float(from) && is_float(i.type) && bytes(from) <= bytes(i.type);
      if (widened || from == DType::Index || i.type == DType::Index || k[i.a].stage == Stage::Host) return i.a;
    }
    if (const NodeId inner = unclamped(n); inner != n)
      if (const NodeId value = unclamped(inner); value != inner) return value;
    return n;
  }
  NodeId unclamped(NodeId n) const {
    constexpr __int128 far = __int128(1) << 61;
    const Inst &i = k[n];
    if (i.op != Op::Call || i.type != DType::Index || i.b != 2) return n;
    const Meaning meaning = builtins()[i.sub].meaning;
    if (meaning != Meaning::Least && meaning != Meaning::Greatest) return n;
    const Inst &end = k[k.operands[i.a + 1]];
    if (end.op != Op::Const) return n;
    const __int128 at = k.constants[end.a].integer;
    return at >= far || at <= -far ? k.operands[i.a] : n;
  }

  const Kernel &k;
};

} // namespace

std::string words(const Kernel &k, NodeId n) { return Printer(k).text(n).s; }

std::string axis_words(const Kernel &k, uint8_t axis) {
  if (axis == no_axis) axis = k.form.inner_axis;
  return axis < k.axes.size() ? k.axes[axis].name : "i";
}

NodeId bare_end(const Kernel &k, NodeId end, std::string &conditions) {
  if (end == no_node) return no_node;
  const Inst &i = k[end];
  // As the ranges pass makes them: a condition empties the range.
  if (i.op == Op::Where && k[i.c].op == Op::Const && k.constants[k[i.c].a].integer <= 0) {
    conditions += (conditions.empty() ? "" : " and ") + words(k, i.a);
    return bare_end(k, i.b, conditions);
  }
  if (i.op == Op::Len && (i.a == no_axis || i.a == k.form.inner_axis)) return no_node;
  return end;
}

std::string form_words(const Form &f) {
  std::string s = f.rows == 0 ? "one row" : "rows over " + std::to_string(f.rows) + (f.rows == 1 ? " axis" : " axes");
  if (f.flat) s += ", one behind the other";
  if (f.tile) s += ", in tiles of " + std::to_string(f.tile) + " rows";
  if (f.segments) s += ", pieces by segments";
  if (f.many) s += ", a list of tensors";
  if (f.window) s += ", a window";
  if (!f.unit_pitch) s += ", the inner axis is not the innermost of the domain";
  if (f.narrow) s += ", 32-bit indexes";
  if (f.wide) s += ", 128-bit indexes";
  return s;
}

} // namespace elsewise
