// SPDX-License-Identifier: Apache-2.0
// What a call would do, put together from the plan, the kernel, the host's bounds and the cache. It starts, compiles,
// keeps and writes nothing; words are for people and not read back.
#include "compiler/emit/emit.h"
#include "compiler/ir/walk.h"
#include "compiler/lower/lower.h"
#include "runtime/explain/count.h"
#include "runtime/explain/words.h"
#include "runtime/launch_taker.h"
#include "runtime/spec.h"
#include <algorithm>
#include <cstring>
#include <set>

namespace elsewise::api {

namespace {

std::string joined(const std::vector<std::string> &parts, std::string_view between) {
  std::string s;
  for (const std::string &part : parts) s += (s.empty() ? "" : std::string(between)) + part;
  return s;
}

std::vector<int64_t> list(DimsRef d) { return {d.begin(), d.end()}; }

class Look {
public:
  Look(const Spec &spec, const Plan &plan, const Launch &launch, const Call &call, std::span<const int64_t> positions)
      : spec(spec), plan(plan), launch(launch), call(call), k(launch.variant->kernel),
        cuda(plan.machine == Machine::Cuda) {
    work_on_host(plan, *launch.variant, call, host);
    counted = count_positions(k, plan.loop, host.values, host.poisoned, host.domain);
    for (size_t s = 0, p = 0; s < spec.ast.pieces.size(); ++s) { // those of the rule, of which the kernel has some
      const bool there = p < k.pieces.size() && k.pieces[p].where == spec.ast.pieces[s].where;
      of_piece.push_back(there ? uint32_t(p++) : ~0u);
      if (there && s < positions.size())
        counted.pieces[of_piece[s]].least = counted.pieces[of_piece[s]].most = positions[s];
    }
    if (!positions.empty() && !guarded()) { // then nothing is loaded but for values
      for (size_t a = 0; a < counted.loaded.size(); ++a) {
        int64_t loaded = 0;
        for (size_t p = 0; p < k.pieces.size(); ++p) loaded += counted.loads[p][a] ? counted.pieces[p].least : 0;
        counted.loaded[a] = std::min(counted.loaded[a], loaded);
      }
    }
  }

  Explained take() {
    e.dtype = plan.dtype, e.device = plan.device;
    e.shape = list(ref(plan.shape)), e.stride = list(ref(plan.stride)), e.positions = plan.count;
    e.window = plan.in_window;
    e.domain = e.window ? list(ref(plan.whole)) : e.shape;
    if (e.window) e.offset = call.offset.empty() ? std::vector<int64_t>(e.domain.size()) : list(call.offset);
    e.works_in_doubles = plan.typing->typed.working == DType::F64;
    e.walked = counted.walked;
    look_at_loop();
    look_at_pieces();
    look_at_operands();
    look_at_bytes();
    look_at_checks();
    look_at_code();
    return std::move(e);
  }

private:
  // Some element is tested, by a guard that is read where it may not hold.
  bool guarded() const {
    return std::any_of(k.pieces.begin(), k.pieces.end(), [](const Piece &p) { return p.guard != no_node; });
  }

  // ---- the loop

  std::string axis_name(size_t dim) const {
    const Header &h = spec.ast.header;
    const size_t rank = plan.shape.size(), named = h.axes.size(), left = h.dots < 0 ? named : size_t(h.dots);
    if (h.present && dim < left && dim < named) return h.axes[dim];
    if (h.present && h.dots >= 0 && rank - dim <= named - left) return h.axes[named - (rank - dim)];
    return "axis " + std::to_string(dim);
  }

  // Which axes of the domain each of the loop's is: in the loop's own order, taken until the lengths agree. None has
  // length 1, so there is one way.
  void look_at_loop() {
    e.rows = plan.count ? plan.loop.rows : 0, e.extent = plan.count ? plan.loop.extent : 0;
    std::vector<size_t> order;
    for (size_t d = plan.shape.size(); d-- > 0;)
      if (plan.shape[d] != 1) order.push_back(d);
    auto far = [&](size_t d) { return plan.stride[d] < 0 ? -plan.stride[d] : plan.stride[d]; };
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return far(a) < far(b); });
    size_t next = 0;
    auto add = [&](int64_t length) {
      LoopAxis axis{{}, length};
      std::vector<size_t> dims;
      for (int64_t reached = 1; reached < length && next < order.size(); ++next)
        reached *= plan.shape[order[next]], dims.push_back(order[next]);
      std::sort(dims.begin(), dims.end());
      for (const size_t d : dims) axis.axes.push_back(axis_name(d));
      e.loop.push_back(std::move(axis));
    };
    if (plan.count == 0) return;
    add(plan.loop.extent);
    for (const int64_t length : plan.loop.lengths) add(length);

    const int out_bytes = bytes(plan.dtype);
    e.vector = cuda ? k.form.vector : 1;
    if (!cuda) {
      const HostCpu cpu = host_cpu();
      e.target = cpu.name;
      e.vectors = plan.loop.out.inner != 1
                      ? "element by element: the inner axis of `out` is not contiguous"
                      : "LLVM vectorises each piece's loop, up to " + std::to_string(cpu.vector_bits) + " bits at once";
      // Measured: a row of 3 bytes takes some nanoseconds, and its bytes a tenth of one.
      if (plan.loop.extent < 16 && plan.loop.rows >= 1024)
        e.vectors += "; that many short rows take a CPU far longer than a copy does: put a longer axis last";
    } else if (k.form.out != Access::Vector) {
      e.vectors = "1 position a thread: the inner axis of `out` is not contiguous";
    } else {
      const int v = k.form.vector;
      e.vectors = std::to_string(v) + (v == 1 ? " position" : " positions") + " a thread" +
                  (k.form.flat ? ", across the ends of rows" : "") + ": stores of " + std::to_string(v * out_bytes) +
                  " bytes";
      int widest = 0;
      for (size_t a = 0; a < k.arguments.size(); ++a)
        if (k.form.args[a] == Access::Vector) widest = std::max(widest, v * bytes(k.arguments[a].type.dtype));
      if (widest) e.vectors += ", loads of " + std::to_string(widest);
      if (v * out_bytes < 16 && widest >= 32) e.vectors += ", the most that a thread loads of one tensor";
    }
  }

  // ---- pieces

  HostValue known(NodeId n) const { // a constant within a row's bound is no node of the host's list
    return k[n].op == Op::Const ? host_value(k[n].type, k.constants[k[n].a]) : host.values[n];
  }

  PositionRange::End end_of(NodeId n, uint8_t axis, bool last) const {
    const bool flat = axis == flat_axis;
    const uint8_t of = axis == no_axis ? k.form.inner_axis : axis;
    const int64_t origin = flat ? host.domain.origin : of < host.origins.size() ? host.origins[of] : 0;
    const int64_t most = flat ? host.domain.span : host.domain.extent;
    PositionRange::End end;
    if (n == no_node || k[n].stage == elsewise::Stage::Host) {
      end.known = true;
      end.at = origin + (n != no_node ? clamp_bound(known(n), most) : last ? most : 0);
      end.text = std::to_string(end.at);
    } else {
      end.text = words(k, n);
    }
    return end;
  }

  void look_at_boxes(const Piece &p, PieceUse &use) const {
    for (const auto &box : p.boxes) {
      std::vector<PositionRange> ranges;
      std::string rows;
      for (const Range &r : box) {
        const bool by_host = r.hi == no_node || k[r.hi].stage == elsewise::Stage::Host;
        const NodeId hi = by_host ? r.hi : bare_end(k, r.hi, rows);
        if (r.lo == no_node && hi == no_node && !by_host) continue; // the condition alone
        PositionRange range;
        range.axis = axis_words(k, r.axis), range.each_row = r.axis != flat_axis && k.form.rows > 0;
        range.begin = end_of(r.lo, r.axis, false), range.end = end_of(hi, r.axis, true);
        if (range.begin.known && range.end.known && range.begin.at > range.end.at) range.begin = range.end; // empty
        ranges.push_back(std::move(range));
      }
      use.boxes.push_back(std::move(ranges)), use.rows.push_back(std::move(rows));
    }
  }

  static bool is_empty(const std::vector<PositionRange> &box) {
    return std::any_of(box.begin(), box.end(),
                       [](const PositionRange &r) { return r.begin.known && r.end.known && r.begin.at >= r.end.at; });
  }

  std::string where(const PieceUse &use, bool first) const {
    std::vector<std::string> boxes;
    bool all_rows = true; // of every box, so that it is said once
    for (const bool empty : {false, true})
      for (size_t b = 0; b < use.boxes.size(); ++b) {
        if (is_empty(use.boxes[b]) != empty || (empty && !boxes.empty()))
          continue; // what holds nowhere, if that is all
        std::vector<std::string> parts;
        bool each_row = false;
        for (const PositionRange &r : use.boxes[b]) {
          parts.push_back(r.axis + " in [" + r.begin.text + ", " + r.end.text + ")");
          each_row |= r.each_row;
        }
        std::string box = joined(parts, " and ");
        if (!use.rows[b].empty()) box += (box.empty() ? "rows where `" : " of rows where `") + use.rows[b] + "`";
        all_rows &= each_row && use.rows[b].empty();
        boxes.push_back(std::move(box));
      }
    std::string s = boxes.empty() ? (first ? "everywhere" : "everywhere else") : joined(boxes, " or ");
    if (!boxes.empty() && all_rows) s += " of each row";
    if (!use.guard.empty()) s = boxes.empty() ? "where `" + use.guard + "`" : s + " where `" + use.guard + "`";
    return s;
  }

  // Some expression below, or this one, for which `is` holds.
  template <class Is> bool any_below(ExprId of, Is is) const {
    std::vector<ExprId> open{of};
    std::vector<bool> seen(spec.ast.exprs.size()); // lets are shared
    while (!open.empty()) {
      const ExprId x = open.back();
      open.pop_back();
      if (seen[x]) continue;
      seen[x] = true;
      if (is(x)) return true;
      for (uint32_t c = 0; c < values(spec.ast, spec.names, x); ++c) open.push_back(spec.ast.child(x, c));
    }
    return false;
  }

  // It differs from element to element by more than their positions: a tensor's element, or one read at an index that
  // moves along the row.
  bool looks_at_elements(ExprId of) const {
    return any_below(of, [&](ExprId x) {
      const Resolved &r = spec.names.of[x];
      if (r.binding != Binding::Argument || call.args[r.index].kind != ArgKind::Tensor) return false;
      if (spec.ast[x].kind != ExprKind::Read) return !plan.operands[r.index].host_scalar;
      return spec.ast[x].dots >= 0 || any_below(x, [&](ExprId y) {
               const Resolved &at = spec.names.of[y];
               return at.binding == Binding::Position && (at.index == flat_axis || at.index == k.form.inner_axis);
             });
    });
  }
  void conjuncts(ExprId x, const Written &w, std::vector<std::pair<ExprId, Span>> &to) const {
    const Expr &expr = spec.ast[x];
    if (expr.kind == ExprKind::Binary && expr.op == Operator::And && w.let == no_let) {
      for (uint32_t c = 0; c < 2; ++c) conjuncts(spec.ast.child(x, c), spec.ast.written_at(x, c), to);
    } else {
      to.emplace_back(x, spec.ast.bare(x, w));
    }
  }
  size_t parts_of(NodeId n) const {
    const Inst &i = k[n];
    return i.op == Op::Logic && LogicOp(i.sub) == LogicOp::And ? parts_of(i.a) + parts_of(i.b) : 1;
  }

  // The residual guard as it was written: those conjuncts that look at elements if they are all that is left, else the
  // whole guard.
  std::string guard_text(const SpecPiece &written, const Piece &p) const {
    if (p.guard == no_node) return "";
    if (!p.boxes.empty()) {
      std::vector<std::pair<ExprId, Span>> all;
      conjuncts(written.guard, written.guard_written, all);
      std::vector<std::string> parts;
      for (const auto &[x, at] : all)
        if (looks_at_elements(x)) parts.push_back(one_line(spec.source.slice(at)));
      if (!parts.empty() && parts.size() == parts_of(p.guard)) return joined(parts, " and ");
    }
    return one_line(spec.source.slice(spec.ast.bare(written.guard, written.guard_written)));
  }

  // Every node that a piece's guard, bounds and values come to.
  template <class Each> void below(const Piece &p, Each each) const {
    std::set<NodeId> seen;
    auto from = [&](NodeId root) {
      if (root != no_node)
        walk(k, root, [&](NodeId n) {
          const bool first = seen.insert(n).second;
          if (first) each(n);
          return first;
        });
    };
    from(p.values[0]), from(p.guard);
    for (const auto &box : p.boxes)
      for (const Range &r : box) from(r.lo), from(r.hi);
  }

  // In place, where its positions are neither read nor written. Vectors across the ends of rows, and those in which
  // elements are tested, are stored whole.
  bool stays(uint32_t piece) const { return is_identity(k, piece) && !k.form.flat && !guarded(); }

  std::string does(uint32_t piece, const PieceUse &use) const {
    const Piece &p = k.pieces[piece];
    const NodeId v = p.values[0];
    if (stays(piece)) return "nothing: the element itself, in place";
    if (is_identity(k, piece))
      return k.form.flat ? "written back with what is beside it" : "the element itself, in place";
    if (k[v].op == Op::Load && k[v].type == plan.dtype) return "moved as bits";
    if (k[v].stage == elsewise::Stage::Host || k[v].op == Op::Entry) return "one value for all";
    return use.reads.empty() ? "worked out from positions" : "worked out";
  }

  void look_at_pieces() {
    for (size_t s = 0; s < spec.ast.pieces.size(); ++s) {
      const SpecPiece &written = spec.ast.pieces[s];
      PieceUse use;
      use.text = one_line(spec.source.slice(written.where));
      const LineColumn at = spec.source.position(written.where.begin);
      use.line = at.line, use.column = at.column;
      const uint32_t next = of_piece[s];
      if (next == ~0u) {
        use.never = true;
        use.where = "nowhere", use.does = "never reached";
        e.pieces.push_back(std::move(use));
        continue;
      }
      const Piece &p = k.pieces[next];
      look_at_boxes(p, use);
      use.guard = guard_text(written, p);
      use.where = where(use, next == 0);
      std::set<uint32_t> arguments;
      below(p, [&](NodeId n) {
        if (k[n].op == Op::Load) arguments.insert(k[n].a);
        else if (k[n].op == Op::Read) arguments.insert(k.reads[k[n].c].argument);
      });
      for (const uint32_t a : arguments) use.reads.push_back(k.arguments[a].name);
      use.does = does(next, use);
      const PieceCount &count = counted.pieces[next];
      use.least = count.least, use.most = count.most;
      if (counted.line && plan.count > 0) {
        use.has_segments = true;
        const bool flat = k.form.inner_axis == no_axis || k.axes.empty();
        const int64_t origin = flat ? host.domain.origin : host.origins[k.form.inner_axis];
        for (const Run &g : count.segments) use.segments.emplace_back(origin + g.begin, origin + g.end);
      }
      e.pieces.push_back(std::move(use));
    }
  }

  // ---- operands

  static std::string kind_of(const ArgType &t) {
    switch (t.kind) {
    case ArgKind::Int:
      return "int";
    case ArgKind::Float:
      return "float";
    case ArgKind::Bool:
      return "bool";
    case ArgKind::Tensor:
    case ArgKind::Unknown:
      break;
    }
    return std::string(spelling(t.dtype)) + (t.zero_dim ? "[0]" : "");
  }

  // Elements of an operand over the domain that differ.
  int64_t distinct(const PlannedOperand &o) const {
    int64_t n = 1;
    for (size_t d = 0; d < plan.shape.size(); ++d)
      if (o.stride[d] != 0 || plan.shape[d] == 0) n *= plan.shape[d];
    return n;
  }

  void look_at_operands() {
    for (size_t a = 0; a < k.arguments.size(); ++a) {
      const PlannedOperand &o = plan.operands[a];
      OperandUse use;
      use.name = k.arguments[a].name;
      use.kind = kind_of(plan.typing->signature.args[a]);
      if (call.args[a].kind != ArgKind::Tensor) use.access = "a launch argument";
      else if (o.host_scalar) use.access = "a launch argument, read on the host";
      else if (o.measured) use.access = "its lengths alone";
      else describe(a, o, use);
      e.operands.push_back(std::move(use));
    }
    OperandUse out;
    out.name = "out", out.kind = spelling(plan.dtype);
    const bool contiguous = plan.loop.out.inner == 1;
    out.access = !contiguous ? "strided" : cuda ? "vector" : "contiguous";
    if (!contiguous && plan.count > 1) {
      out.why = std::to_string(plan.loop.out.inner) + " elements apart along the inner axis";
      out.cure = call.out ? "give an `out` whose elements fill its memory" : "";
    }
    e.operands.push_back(std::move(out));
  }

  void describe(size_t a, const PlannedOperand &o, OperandUse &use) const {
    std::vector<std::string> ways;
    const Access access = k.form.args[a];
    const bool in_place = k.form.same_view[a];
    const int64_t inner = plan.loop.inputs[a].inner;
    if (in_place) {
      ways.push_back("in place, as `out`");
    } else if (o.tensor) {
      switch (access) {
      case Access::Absent:
        break;
      case Access::Vector:
        ways.push_back(cuda ? "vector" : "contiguous");
        break;
      case Access::Broadcast:
        ways.push_back(k.form.rows ? "one value a row" : "one value for all");
        break;
      case Access::Scalar:
        ways.push_back("element by element");
        if (plan.form.args[a] == Access::Scalar) {
          use.why = "its rows begin at other places in a vector than those of `out`";
          use.cure = "pad its rows to a multiple of " + std::to_string(k.form.vector) + " elements, or pass `" +
                     use.name + ".contiguous()` if that gives them the lengths of `out`";
        } else {
          use.why = "its address is not aligned as that of `out`";
          use.cure = "pass `" + use.name + ".clone()` if it is used more than once";
        }
        break;
      case Access::Column:
        ways.push_back("the same in every row");
        break;
      case Access::Tiled:
        ways.push_back("through tiles in shared memory"); // near the speed of a contiguous one: nothing to mend
        break;
      case Access::Strided:
        ways.push_back("strided");
        use.why = k.form.flat && inner == 1 ? "its rows do not lie one behind the other as those of `out`"
                                            : std::to_string(inner) + " elements apart along the inner axis";
        use.cure = "pass `" + use.name + ".contiguous()` if it is used more than once";
        break;
      }
    }
    if (o.table) {
      ways.push_back("at indices");
      if (!k.form.dense.empty() && !k.form.dense[a] && use.why.empty() && o.table_stride.size() &&
          o.table_stride.back() != 0)
        use.why = "its last axis is not contiguous";
    }
    use.access = ways.empty() ? "not read" : joined(ways, " and ");
  }

  // ---- bytes

  void look_at_bytes() {
    const int64_t size = bytes(plan.dtype);
    e.copy = 2 * plan.count * size;
    int64_t kept = 0;
    e.at_most = guarded();
    for (size_t p = 0; p < e.pieces.size(); ++p) {
      e.at_most |= e.pieces[p].least != e.pieces[p].most;
      if (of_piece[p] != ~0u && stays(of_piece[p])) kept += e.pieces[p].least;
    }
    e.untouched = kept;
    e.written = (plan.count - kept) * size;
    e.operands.back().bytes = e.written;
    std::vector<int64_t> wanted(k.arguments.size()); // elements, of those that differ
    for (size_t a = 0; a < wanted.size(); ++a)
      if (plan.operands[a].tensor) wanted[a] = std::min(loaded_beyond_identity(a), distinct(plan.operands[a]));
    for (size_t a = 0; a < wanted.size(); ++a) {
      int64_t elements = wanted[a];
      if (plan.operands[a].table) {
        int64_t all = 1, asked = 0;
        for (size_t d = 0; d < plan.shapes[a].size(); ++d)
          if (plan.operands[a].table_stride[d] != 0 || plan.shapes[a][d] == 0) all *= plan.shapes[a][d];
        for (size_t p = 0; p < e.pieces.size(); ++p)
          if (of_piece[p] != ~0u) asked += gathered(a, of_piece[p], e.pieces[p].most);
        elements = std::min(elements + asked, std::max(all, elements));
        e.at_most |= asked > 0;
      }
      e.operands[a].bytes = elements * bytes(k.arguments[a].type.dtype);
      e.read += e.operands[a].bytes;
    }
    for (size_t p = 0; p < e.pieces.size(); ++p) {
      PieceUse &use = e.pieces[p];
      if (of_piece[p] == ~0u || stays(of_piece[p])) continue;
      use.written = use.most * size;
      for (size_t a = 0; a < wanted.size(); ++a) {
        int64_t elements = 0;
        if (plan.operands[a].tensor && counted.loads[of_piece[p]][a])
          elements += std::min(use.most, distinct(plan.operands[a]));
        if (plan.operands[a].table) elements += gathered(a, of_piece[p], use.most);
        use.read += std::min(elements * bytes(k.arguments[a].type.dtype), e.operands[a].bytes);
      }
    }
  }

  // What is the element itself in place is not loaded; vectors across the ends of rows are loaded whole.
  int64_t loaded_beyond_identity(size_t a) const {
    if (k.form.flat && counted.loaded[a] && (k.form.same_view[a] || k.form.args[a] == Access::Vector))
      return plan.count;
    int64_t kept = 0;
    for (uint32_t p = 0; p < k.pieces.size() && k.form.same_view[a]; ++p)
      if (stays(p)) kept += counted.pieces[p].least;
    return counted.loaded[a] - kept;
  }

  // Reads of argument `a` by a piece that has `positions`.
  int64_t gathered(size_t a, uint32_t piece, int64_t positions) const {
    int64_t times = 0;
    below(k.pieces[piece], [&](NodeId n) {
      if (k[n].op != Op::Read || k.reads[k[n].c].argument != a || positions == 0) return;
      const auto stage = k[n].stage;
      times += stage == elsewise::Stage::Element ? positions : stage == elsewise::Stage::Row ? plan.loop.rows : 1;
    });
    return times;
  }

  // ---- checks

  std::string premise(const Reading &r, const Premise &p) const {
    const std::string name = "`" + k.arguments[r.argument].name + "`";
    const std::string axis =
        plan.shapes[r.argument].size() == 1 ? name : "axis " + std::to_string(p.axis) + " of " + name;
    if (p.what == Premise::NotEmpty) return axis + " is not empty";
    return axis + " is as long as " + (p.of == flat_axis ? "the domain" : "axis `" + k.axes[p.of].name + "`");
  }

  // Why no read leaves its tensor, and what of this call the host has looked at. Each was found to be well.
  void look_at_checks() {
    std::set<std::string> said;
    auto say = [&](std::string text) {
      if (said.insert(text).second) e.checks.push_back(std::move(text));
    };
    for (const uint32_t p : of_piece) {
      if (p == ~0u) continue;
      below(k.pieces[p], [&](NodeId n) {
        if (k[n].op != Op::Read) return;
        const Reading &r = k.reads[k[n].c];
        const uint64_t looked = k[n].c < launch.looks.size() ? launch.looks[k[n].c].axes : r.checked;
        const std::string written(one_line(spec.source.slice(k.span(n))));
        std::string text = "`" + (written.empty() ? words(k, n) : written) + "` is in bounds: ";
        if (looked) {
          text += "the host worked its indices out";
        } else {
          std::vector<std::string> given;
          for (const Premise &premised : r.premises) given.push_back(premise(r, premised));
          text += "proved" + (given.empty() ? "" : ", as " + joined(given, " and "));
        }
        if (r.tested != Reading::No) text += "; rows test them too, ahead of the guards";
        say(std::move(text));
      });
    }
    for (const Check &c : k.checks) {
      std::string parameters;
      walk(k, c.node, [&](NodeId n) {
        if (k[n].op == Op::Param) parameters += (parameters.empty() ? "`" : ", `") + k.arguments[k[n].a].name + "`";
      });
      if (parameters.empty()) continue; // lengths alone
      if (c.what == Check::NotNaN) say(parameters + " is not NaN, as which it would leave positions without a piece");
      else
        say("`" + one_line(spec.source.slice(c.where)) + "` " +
            (c.what == Check::NonZero ? "does not divide by 0" : "fits " + std::string(spelling(c.dtype))));
    }
  }

  // How a position comes to its piece.
  std::string choice() const {
    const size_t pieces = k.pieces.size();
    if (pieces == 1 && !guarded()) return "";
    if (!cuda && !k.tables.empty() && !guarded())
      return "each row is cut at the bounds; pieces of one shape share a loop";
    if (!cuda)
      return guarded() ? "each row is cut at the bounds; elements are tested in the parts that need it"
                       : "each row is cut at the bounds, with a loop for each part";
    if (k.form.segments) {
      const std::vector<uint32_t> body = bodies(k);
      const size_t distinct = std::set<uint32_t>(body.begin(), body.end()).size();
      return "a block searches a table of " + std::to_string(e.segments) +
             (e.segments == 1 ? " segment" : " segments") + ", " + std::to_string(e.table_bytes) +
             " bytes of launch arguments; " + std::to_string(distinct) + (distinct == 1 ? " body" : " bodies") +
             " for " + std::to_string(pieces) + " pieces";
    }
    if (k.form.flat) return "each position takes the first piece that holds; vectors are read and written whole";
    if (!masked_pieces(k)) return "each position takes the first piece that holds";
    return "a thread compares bounds once; a vector within one piece runs it alone, others go position by position" +
           std::string(guarded() ? ", and so where elements are tested" : "");
  }

  // ---- code

  void look_at_code() {
    e.form = form_words(k.form);
    look_at_table();
    e.choice = choice();
    const Variant &variant = *launch.variant;
    if (!cuda) {
      e.compiled = variant.compiled.load(std::memory_order_acquire);
      if (e.compiled) e.code_bytes = variant.cpu->code_bytes;
      return;
    }
    std::string why;
    if (!launch_taker()) e.target = device_arch(plan.device.ordinal, why);
    e.compiled = !launch_taker() && variant.cuda.loaded(plan.device.ordinal);
    if (!e.compiled && !e.target.empty()) {
      const ForkGate gate;
      const std::lock_guard lock(launch.variant->compiling);
      e.made = !variant.cuda.cubin(e.target).empty();
    }
    if (const auto facts = launch_taker() ? std::nullopt : variant.cuda.facts(plan.device.ordinal)) {
      e.has_facts = true;
      e.registers = facts->registers, e.local_bytes = facts->local_bytes, e.shared_bytes = facts->shared_bytes;
      e.binary = facts->binary;
    }
    if (plan.count == 0) return;
    Geometry g = geometry(k, k.form, plan.loop.rows, plan.loop.extent,
                          call.out ? reinterpret_cast<uintptr_t>(call.out->data) : 0, ref(plan.loop.out.rows));
    if (launch.live >= 0) {
      const LiveRanges live = live_ranges(k, launch.cut.segments, plan.loop.extent, g.shift, g.grid);
      const int64_t width = int64_t(block_threads) * k.form.vector;
      int64_t launched = 0;
      for (int r = 0; r < 4 && live.begin[r] != ~0u; ++r) {
        const unsigned stop = r < 3 && live.begin[r + 1] != ~0u ? live.begin[r + 1] : g.grid;
        const int64_t begin = live.first[r] * width - g.shift, end = begin + int64_t(stop - live.begin[r]) * width;
        launched += std::max<int64_t>(0, std::min(end, plan.loop.extent) - std::max<int64_t>(begin, 0));
      }
      e.not_launched = plan.loop.extent - launched;
    }
    e.grid = g.grid, e.block_x = g.block_x, e.block_y = g.block_y;
    look_at_ends(g.shift);
  }

  // Of the table of segments, as the launch would take it: those entries that begin somewhere.
  void look_at_table() {
    const std::vector<uint8_t> &table = launch.cut.table;
    if (!k.form.segments || table.empty()) return;
    const SegmentLayout layout = segment_layout(k);
    for (uint32_t s = 0; s < layout.count; ++s) {
      int64_t begin = 0;
      std::memcpy(&begin, table.data() + size_t(s) * layout.begin_bytes, layout.begin_bytes);
      e.segments += begin < plan.loop.extent;
    }
    e.table_bytes = int64_t(table.size());
  }

  // Positions of each row that are not in a whole vector of `out`.
  void look_at_ends(int64_t shift) {
    const int64_t v = k.form.vector, length = plan.loop.extent * (k.form.flat ? plan.loop.rows : 1);
    if (v == 1) return;
    if (k.form.rows > 0 && !k.form.flat)
      for (const int64_t stride : plan.loop.out.rows)
        if (stride % v != 0) {
          e.head = e.tail = -1;
          return;
        }
    e.head = std::min((v - shift) % v, length);
    e.tail = (length - e.head) % v;
  }

  const Spec &spec;
  const Plan &plan;
  const Launch &launch;
  const Call &call;
  const Kernel &k;
  const bool cuda;
  HostSide host;
  Counted counted;
  std::vector<uint32_t> of_piece; // by e.pieces: of the kernel; ~0u: never reached
  Explained e;
};

} // namespace

Result<Explained> explain(const SpecRef &spec, const Call &call, std::span<const int64_t> positions) noexcept try {
  auto looked = look_at_plan(*spec, call);
  if (!looked) return pass_on<Explained>(std::move(looked));
  const Plan &plan = *looked.value.plan;
  auto launch = look_at_launch(plan, call);
  if (!launch) return pass_on<Explained>(std::move(launch));
  if (call.out)
    if (std::string wrong = wrong_memory(plan, *launch.value, call); !wrong.empty())
      return fault<Explained>(Fault::Value, std::move(wrong), *spec);
  Result<Explained> result;
  result.value = Look(*spec, plan, *launch.value, call, positions).take();
  result.value.plan_cached = looked.value.cached;
  return result;
} catch (const std::exception &error) {
  return crashed<Explained>(error);
}

std::string numbered(const Spec &spec) noexcept try {
  std::string text(spec.source.text());
  for (size_t p = spec.ast.pieces.size(); p-- > 0;) {
    const Span at = spec.ast.pieces[p].value_written.at;
    text.replace(at.begin, at.end - at.begin, " " + std::to_string(p)); // the blank: `else(x)`
  }
  return text;
} catch (const std::exception &) { // no memory for it
  return "";
}

} // namespace elsewise::api
