// SPDX-License-Identifier: Apache-2.0
// Walks syntax and types together and writes down what typing decided. It promotes nothing, proves nothing and drops
// only pieces proved unreachable.
#include "compiler/lower/lower.h"
#include "compiler/check/composite.h"
#include "compiler/ir/arithmetic.h"
#include "compiler/ir/rows.h"
#include "compiler/lower/exact.h"
#include "compiler/lower/expand.h"
#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <utility>

namespace elsewise {

std::string one_line(std::string_view text) {
  std::string line;
  bool blank = false, comment = false;
  for (const char c : text) {
    if (c == '#') comment = true;
    if (c == '\n') comment = false;
    if (comment) continue;
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
      blank = true;
      continue;
    }
    if (blank && !line.empty()) line += ' ';
    blank = false;
    line += c;
  }
  return line;
}

namespace {

class Lowering {
public:
  Lowering(const Source &source, const Ast &ast, const Names &names, const Signature &signature, const Typed &typed)
      : source(source), ast(ast), names(names), signature(signature), typed(typed), b(k),
        reads(holding_reads(ast, names)), extremes(holding_extremes(ast, names)) {}

  Kernel run() {
    for (size_t a = 0; a < names.arguments.size(); ++a) k.arguments.push_back({names.arguments[a], signature.args[a]});
    k.outputs = {typed.result};
    k.source = source.text();
    add_axes();
    for (const Assumption &a : typed.assumed) // that it is a number, the signature says
      if (a.what == Assumption::NotNaN && signature.args[a.argument].kind == ArgKind::Float)
        k.checks.push_back({.what = Check::NotNaN,
                            .node = a.expr == no_expr ? b.param(a.argument, DType::F64) : value(a.expr, Use::Compare),
                            .where = {}});
    for (size_t p = 0; p < ast.pieces.size(); ++p)
      if (typed.reachable[p]) piece(ast.pieces[p]);
    return std::move(k);
  }

private:
  /// The header's axes: those left of `..` count from the left. Then those that only `border()` comes to.
  void add_axes() {
    const Header &h = ast.header;
    const int count = int(h.axes.size());
    for (int axis = 0; axis < count; ++axis)
      k.axes.push_back({h.axes[axis], h.dots < 0 || axis < h.dots ? axis : axis - count});
    if (!names.needs_rank) return;
    const int first = std::max(h.dots, 0);
    for (int dim = first; dim < signature.rank - count + first; ++dim)
      k.axes.push_back({"axis" + std::to_string(dim), dim});
  }

  void piece(const SpecPiece &p) {
    Piece piece;
    piece.where = p.where;
    piece.text = one_line(source.slice(p.where));
    const LineColumn at = source.position(p.where.begin);
    piece.line = at.line, piece.column = at.column;
    if (p.guard != no_expr) {
      piece.guard = value(p.guard, Use::Value);
      add_checks({p.guard, Use::Value}, true);
    }
    const NodeId v = value(p.value, Use::Value);
    add_checks({p.value, Use::Value}, false);
    if (k[v].type == DType::Index && is_integer(typed.promoted) && may_not_fit(v, typed.promoted))
      k.checks.push_back(
          {Check::Fits, v, typed.promoted, uint32_t(k.pieces.size()), ast.bare(p.value, p.value_written), false});
    piece.values = {b.cast(v, typed.result)};
    k.pieces.push_back(std::move(piece));
  }

  bool constant(NodeId n) const { return k[n].op == Op::Const; }
  bool host(NodeId n) const { return k[n].stage == Stage::Host; }

  // What a node checks holds only where evaluation comes to it. Operands are shared, by lets above all, so each node
  // keeps its own checks, and the host's conditions on its edges; they meet once for every piece.
  //
  // A read carries the conditions that lead to it from the piece's guard or value, the element's own too: so what holds
  // a read is made once for each of them.

  struct Place {
    ExprId expr;
    Use use;
    NodeId path = no_node; // the condition under which it is evaluated, if it holds a read; no_node: always
    auto operator<=>(const Place &) const = default;
  };
  struct Edge {
    Place to;
    NodeId condition; // no_node: always
  };
  struct Pending {
    Check check;
    int harmless;     // a value that passes
    NodeId condition; // as of an edge
  };
  struct Made {
    NodeId node = no_node;
    std::vector<Edge> edges;
    std::vector<Pending> checks;
  };

  // Conditions of the host; no_node: always.
  NodeId both(NodeId a, NodeId b_) { return a == no_node ? b_ : b_ == no_node ? a : b.logic(LogicOp::And, a, b_); }
  NodeId either(NodeId a, NodeId b_) { return a == no_node || b_ == no_node ? no_node : b.logic(LogicOp::Or, a, b_); }

  /// The checks of everything below `root`, each under the conditions that lead to it.
  void add_checks(Place root, bool in_guard) {
    std::map<Place, NodeId, std::greater<>> reached = {{root, no_node}}; // users before operands
    for (const auto &[place, reach] : reached)
      for (const Edge &edge : made[place].edges) {
        const NodeId here = both(reach, edge.condition);
        const auto [at, is_new] = reached.try_emplace(edge.to, here);
        if (!is_new) at->second = either(at->second, here);
      }
    const uint32_t piece = uint32_t(k.pieces.size());
    for (auto at = reached.rbegin(); at != reached.rend(); ++at)
      for (const Pending &p : made[at->first].checks) {
        const NodeId when = both(at->second, p.condition);
        Check c = p.check;
        if (when != no_node) c.node = b.where(when, c.node, b.integer(DType::Index, p.harmless));
        c.piece = piece, c.in_guard = in_guard;
        const bool known = std::any_of(k.checks.begin(), k.checks.end(), [&](const Check &other) {
          return other.piece == piece && other.what == c.what && other.node == c.node && other.dtype == c.dtype;
        });
        if (!known) k.checks.push_back(c);
      }
  }

  void check(Check::What what, NodeId n, int harmless, DType dtype, Span where) {
    current->checks.push_back({{what, n, dtype, ~0u, where}, harmless, condition});
  }

  bool may_not_fit(NodeId n, DType dtype) const {
    return host(n) && !(constant(n) && elsewise::fits(dtype, k.constants[k[n].a].integer));
  }

  /// Operand `n` of `e` in the type that the operation is worked in. An index that meets integer data must fit it.
  NodeId operand(ExprId e, uint32_t n, const ExprType &t) {
    const ExprId o = ast.child(e, n);
    const NodeId v = value(o, t.operands);
    if (k[v].type == DType::Index && t.compute != DType::Index && is_integer(t.compute) && may_not_fit(v, t.compute))
      check(Check::Fits, v, 0, t.compute, ast.bare(e, n));
    return b.cast(v, t.compute);
  }

  NodeId value(ExprId e, Use use) {
    // Many paths to lets that hold reads would double at each of them. Without a path a read has to be in bounds.
    constexpr size_t most_places = 1 << 16;
    const bool by_path = reads[e] && made.size() < most_places;
    const Place place{e, use, by_path ? path : no_node};
    if (current) current->edges.push_back({place, condition});
    const auto [at, is_new] = made.try_emplace(place);
    if (!is_new) return at->second.node;
    Made *const user = std::exchange(current, &at->second);
    const NodeId outer = std::exchange(condition, no_node), outer_path = std::exchange(path, place.path);
    const NodeId n = make(e, use);
    current = user, condition = outer, path = outer_path;
    return at->second.node = n;
  }

  NodeId make(ExprId e, Use use) {
    const NodeId n = make_plain(e, use);
    return use == Use::Index && is_integer(k[n].type) && k[n].type != DType::Index ? b.cast(n, DType::I64) : n;
  }

  NodeId make_plain(ExprId e, Use use) {
    const Expr &x = ast[e];
    const ExprType &t = typed.at(e, use);
    switch (x.kind) {
    case ExprKind::Literal: {
      const Literal &l = ast.literal(e);
      if (is_extreme(l.kind)) return b.constant(typed.result, extreme(typed.result, l.kind == LiteralKind::Highest));
      if (l.kind == LiteralKind::Float) return b.real(DType::F64, l.real);
      return b.integer(l.kind == LiteralKind::Bool ? DType::Bool : DType::Index, l.integer);
    }
    case ExprKind::Name:
      return name(names.of[e]);
    case ExprKind::Unary: {
      const NodeId a = operand(e, 0, t);
      b.at(x.where);
      return operate(b, x.op, t.compute, a, no_node);
    }
    case ExprKind::Binary:
      return binary(e, t);
    case ExprKind::Call:
      return call(e, t);
    case ExprKind::Read:
      return read(e);
    case ExprKind::Error:
      break; // typing would not have been complete
    }
    return no_node;
  }

  /// `..` stands for the argument's axes that no index is for, each at the position of the domain's axis that it is
  /// aligned with from the right.
  NodeId read(ExprId e) {
    const Expr &x = ast[e];
    Reading reading{.argument = names.of[e].index};
    const int rank = signature.args[reading.argument].rank;
    const int domain = domain_rank(ast.header, signature);
    std::vector<NodeId> indices;
    for (int axis = 0, written = 0; axis < rank; ++axis) {
      const bool own = x.dots >= 0 && axis >= x.dots && axis < rank - int(x.count) + x.dots;
      if (own) {
        reading.own |= uint64_t(1) << axis;
        indices.push_back(b.pos(axis_at(domain - rank + axis, domain)));
      } else {
        indices.push_back(b.cast(value(ast.child(e, written++), Use::Index), DType::Index));
      }
    }
    b.at(x.where);
    return b.read(reading, path, indices);
  }

  /// The kernel's axis that is the domain's axis `dim`.
  uint32_t axis_at(int dim, int rank) const {
    uint32_t axis = 0;
    while (axis < k.axes.size() && (k.axes[axis].dim < 0 ? rank + k.axes[axis].dim : k.axes[axis].dim) != dim) ++axis;
    return axis;
  }

  NodeId name(const Resolved &r) {
    if (r.binding == Binding::Position) return b.pos(r.index);
    if (r.binding == Binding::Length) return b.len(r.index);
    switch (signature.args[r.index].kind) {
    case ArgKind::Float:
      return b.param(r.index, DType::F64);
    case ArgKind::Bool:
      return b.param(r.index, DType::Bool);
    case ArgKind::Int:
      return b.param(r.index, DType::Index);
    default:
      return b.load(r.index);
    }
  }

  /// What settles its right side by the left one: `&`, `|`, `*` and `+` of bools are `and` and `or`.
  static std::optional<LogicOp> logic_of(Operator op, const ExprType &t) {
    if (op == Operator::And) return LogicOp::And;
    if (op == Operator::Or) return LogicOp::Or;
    if (t.compute != DType::Bool) return std::nullopt;
    if (op == Operator::BitAnd || op == Operator::Mul) return LogicOp::And;
    if (op == Operator::BitOr || op == Operator::Add) return LogicOp::Or;
    return std::nullopt;
  }

  NodeId binary(ExprId e, const ExprType &t) {
    const Expr &x = ast[e];
    if (is_comparison(x.op)) return compare(e, t);
    if (const auto logic = logic_of(x.op, t)) {
      const auto side = [&](uint32_t n) { return b.cast(value(ast.child(e, n), t.operands), DType::Bool); };
      const NodeId left = side(0);
      const NodeId right = under(left, *logic == LogicOp::And, ast.child(e, 1), [&] { return side(1); });
      return operate(b, x.op, DType::Bool, left, right);
    }
    const NodeId left = operand(e, 0, t), right = operand(e, 1, t);
    const bool divides = x.op == Operator::Div || x.op == Operator::FloorDiv || x.op == Operator::Mod;
    b.at(x.where);
    const bool nonzero = constant(right) && k.constants[k[right].a].integer != 0;
    if (divides && t.compute == DType::Index && host(right) && !nonzero) {
      if (typed.at(ast.child(e, 1), t.operands).type.stage != Stage::Host) return divide_totally(b, x.op, left, right);
      check(Check::NonZero, right, 1, DType::Index, x.where);
    }
    return operate(b, x.op, t.compute, left, right);
  }

  /// What `make` makes of `e` where `known` is `truth`.
  template <class Make> NodeId under(NodeId known, bool truth, ExprId e, Make make) {
    if (!host(known) && !reads[e]) return make();
    const NodeId holds = truth ? known : b.logic(LogicOp::Not, known);
    if (host(known)) condition = holds;
    const NodeId outer = std::exchange(path, both(path, holds));
    const NodeId n = make();
    condition = no_node, path = outer;
    return n;
  }

  NodeId compare(ExprId e, const ExprType &t) {
    NodeId v[2];
    for (uint32_t n = 0; n < 2; ++n) {
      const ExprId o = ast.child(e, n);
      const Type &type = typed.at(o, t.operands).type;
      v[n] = value(o, t.operands);
      if (is_half(t.nominal) && type.category == Category::Scalar && host(v[n])) v[n] = b.cast(v[n], t.nominal);
    }
    const CompareOp op = CompareOp(int(ast[e].op) - int(Operator::Lt));
    if (t.operands == Use::Compare) { // exact, whatever the sizes
      const DType left = k[v[0]].type, right = k[v[1]].type;
      if (left == DType::Index && right == DType::F64) return compare_exactly(k, b, op, v[0], v[1]);
      if (left == DType::F64 && right == DType::Index) return compare_exactly(k, b, mirrored(op), v[1], v[0]);
    }
    if (t.compute == DType::Index && k[v[0]].type == DType::U64) return compare_u64(k, b, op, v[0], v[1]);
    if (t.compute == DType::Index && k[v[1]].type == DType::U64) return compare_u64(k, b, mirrored(op), v[1], v[0]);
    const NodeId left = b.cast(v[0], t.compute), right = b.cast(v[1], t.compute);
    return b.compare(op, left, right, t.operands == Use::Compare ? Exactness::Exact : Exactness::Data);
  }

  /// A whole value of which an arm is an extreme: that is one of the stored dtype, so every arm is stored by itself,
  /// `through` the types that the choices around it are worked in.
  NodeId stored(ExprId e, std::vector<DType> &through) {
    if (ast[e].kind == ExprKind::Literal && is_extreme(ast.literal(e).kind)) return make(e, Use::Value);
    if (!extremes[e]) {
      NodeId v = value(e, Use::Value);
      const auto fit = [&](DType d) {
        if (k[v].type == DType::Index && d != DType::Index && is_integer(d) && may_not_fit(v, d))
          check(Check::Fits, v, 0, d, ast[e].where);
      };
      for (size_t n = through.size(); n-- > 0;) fit(through[n]), v = b.cast(v, through[n]);
      fit(typed.promoted);
      return b.cast(v, typed.result);
    }
    const ExprType &t = typed.at(e, Use::Value);
    const NodeId chosen = value(ast.child(e, 0), Use::Value), around = condition, outer = path;
    const bool worked = t.type.kind != Kind::Extreme;
    if (worked) through.push_back(t.compute);
    NodeId arms[2];
    for (uint32_t n = 0; n < 2; ++n) {
      // As under() does; but an arm that chooses again is no operand of its own, so its condition adds to this one.
      const ExprId arm = ast.child(e, n + 1);
      const NodeId holds = n ? b.logic(LogicOp::Not, chosen) : chosen;
      if (host(chosen)) condition = both(around, holds);
      if (host(chosen) || reads[arm]) path = both(outer, holds);
      arms[n] = b.cast(stored(arm, through), opmath(typed.result)); // where halves are chosen
      condition = around, path = outer;
    }
    if (worked) through.pop_back();
    return b.where(chosen, arms[0], arms[1]);
  }

  NodeId border(ExprId e) {
    std::vector<NodeId> distances;
    const auto add = [&](uint32_t axis) {
      const NodeId p = b.pos(axis);
      b.at(ast[e].where);
      const NodeId last = b.binary(BinaryOp::Sub, b.len(axis), b.integer(DType::Index, 1));
      distances.push_back(p);
      distances.push_back(b.binary(BinaryOp::Sub, last, p));
    };
    for (uint32_t n = 0; n < ast[e].count; ++n) add(names.of[ast.child(e, n)].index);
    if (ast[e].count == 0)
      for (uint32_t axis = 0; axis < k.axes.size(); ++axis) add(axis);
    return expand_call(k, b, least_row(), DType::Index, distances);
  }

  NodeId call(ExprId e, const ExprType &t) {
    const Resolved &r = names.of[e];
    if (r.binding == Binding::Length) return b.len(r.index);
    if (r.binding == Binding::ArgumentLength) return b.arg_len(r.index, r.dim);
    if (r.binding == Binding::Border) return border(e);
    const uint32_t row = r.index;
    const ExprId first = ast.child(e, 0);
    switch (builtins()[row].rule) {
    case Rule::CastTo:
      return b.cast(value(first, t.operands), t.type.dtype);
    case Rule::CastInt: {
      const NodeId v = value(first, t.operands);
      if (t.type.kind != Kind::Index) return b.cast(v, DType::I64);
      return is_float(k[v].type) ? b.cast(b.cast(v, DType::I64), DType::Index) : v; // saturates where a device would
    }
    case Rule::CastFloat: {
      const NodeId v = value(first, t.operands);
      if (is_float(k[v].type)) return v;
      if (t.type.kind == Kind::Data) return b.cast(v, DType::F32);
      return b.cast(v, host(v) ? DType::F64 : t.type.dtype);
    }
    case Rule::Select: {
      if (extremes[e]) {
        std::vector<DType> through;
        return stored(e, through);
      }
      const NodeId condition = value(first, Use::Value);
      const NodeId yes = under(condition, true, ast.child(e, 1), [&] { return operand(e, 1, t); });
      const NodeId no = under(condition, false, ast.child(e, 2), [&] { return operand(e, 2, t); });
      return b.where(condition, yes, no);
    }
    case Rule::Ratio:
      return ratio(e, row, t);
    case Rule::Noise: {
      const auto key = [&](uint32_t n) { // modulo 2^64, whatever it is made of
        return n < ast[e].count ? b.cast(value(ast.child(e, n), t.operands), DType::I64) : b.integer(DType::I64, 0);
      };
      const NodeId seed = key(0);
      // Tensors of a list have noise of their own.
      const NodeId stream = b.binary(BinaryOp::Add, key(1), b.cast(b.origin(list_axis), DType::I64));
      return b.cast(noise(b, builtins()[row], seed, stream), t.type.dtype);
    }
    default:
      break;
    }
    std::vector<NodeId> list;
    for (uint32_t n = 0; n < ast[e].count; ++n) list.push_back(operand(e, n, t));
    b.at(ast[e].where);
    const Total total = check_divisors(e, row, t, list);
    if (builtins()[row].meaning == Meaning::BitCount && t.compute == DType::Index && !host(list[0])) {
      // A position has 64 bits, also where code works it in 128.
      return b.cast(b.call(uint8_t(row), DType::I64, {b.cast(list[0], DType::I64)}), DType::Index);
    }
    return expand_call(k, b, row, t.compute, list, total);
  }

  /// Operands as they are: whole numbers and doubles where no tensor has entered; else in the computing type, or in 64
  /// bits if all are whole.
  NodeId ratio(ExprId e, uint32_t row, const ExprType &t) {
    std::vector<NodeId> list;
    for (uint32_t n = 0; n < ast[e].count; ++n) list.push_back(value(ast.child(e, n), t.operands));
    b.at(ast[e].where);
    bool on_host = true, whole = true;
    for (const NodeId n : list) on_host &= host(n), whole &= !is_float(k[n].type);
    if (t.type.kind == Kind::Data) {
      bool wide = false, placed = false; // u64 data is beyond i64, unless positions make it that
      for (const NodeId n : list) wide |= k[n].type == DType::U64, placed |= k[n].type == DType::Index && !host(n);
      const DType common = !whole ? t.compute : wide && !placed ? DType::U64 : DType::I64;
      for (uint32_t n = 0; n < list.size(); ++n)
        if (common == DType::U64 && k[list[n]].type == DType::Index && may_not_fit(list[n], common))
          check(Check::Fits, list[n], 0, common, ast.bare(e, n));
      for (NodeId &n : list) n = b.cast(n, common);
      return expand_call(k, b, row, t.compute, list);
    }
    for (NodeId &n : list)
      if (k[n].type != DType::Index) n = b.cast(n, k[n].type == DType::Bool ? DType::Index : DType::F64);
    return expand_call(k, b, row, on_host ? DType::F64 : t.type.dtype, list);
  }

  /// A uniform that a row's body divides by must not be zero, as if the division were written out; what was written
  /// with a position may be, and then the body divides totally.
  Total check_divisors(ExprId e, uint32_t row, const ExprType &t, const std::vector<NodeId> &list) {
    Total total = Total::Elements;
    if (t.compute != DType::Index || builtins()[row].body.empty()) return total;
    const Composite c = composite(builtins()[row]);
    for (ExprId x = 0; x < c.ast.exprs.size(); ++x) {
      const Expr &divide = c.ast[x];
      if (divide.kind != ExprKind::Binary || (divide.op != Operator::FloorDiv && divide.op != Operator::Mod)) continue;
      const ExprId divisor = c.ast.child(x, 1);
      if (c.ast[divisor].kind != ExprKind::Name) continue;
      const uint32_t p = c.parameter(divisor);
      const NodeId n = list[p];
      if (!host(n) || (constant(n) && k.constants[k[n].a].integer != 0)) continue;
      if (typed.at(ast.child(e, p), t.operands).type.stage == Stage::Host)
        check(Check::NonZero, n, 1, DType::Index, ast[e].where);
      else total = Total::Everywhere;
    }
    return total;
  }

  const Source &source;
  const Ast &ast;
  const Names &names;
  const Signature &signature;
  const Typed &typed;
  Kernel k;
  Builder b;
  const std::vector<bool> reads, extremes; // by expression: one stands below it, one may be its value
  std::map<Place, Made> made;
  Made *current = nullptr;    // what is being made
  NodeId condition = no_node; // of the host, under which its next operand is evaluated
  NodeId path = no_node;      // of any stage, from the piece's guard or value to what is being made
};

} // namespace

Kernel lower(const Source &source, const Ast &ast, const Names &names, const Signature &signature, const Typed &typed) {
  return Lowering(source, ast, names, signature, typed).run();
}

} // namespace elsewise
