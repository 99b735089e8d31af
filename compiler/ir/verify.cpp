// SPDX-License-Identifier: Apache-2.0
// Whether a kernel is well formed: order, types, stages, pieces, checks, schedule. It repairs nothing; a complaint is a
// bug of the pass before.
#include "compiler/ir/abi.h"
#include "compiler/ir/axes.h"
#include "grammar/builtins.h"
#include "llvm/ADT/Twine.h"
#include <algorithm>

namespace elsewise {
namespace {

using llvm::Twine;

bool arithmetic(DType d) { return !is_half(d) && d != DType::Bool; }

std::string call(const Kernel &k, const Inst &i) {
  const auto rows = builtins();
  if (i.sub >= rows.size()) return "calls a row that is not in the builtin table";
  const Builtin &row = rows[i.sub];
  if (row.rule == Rule::Noise) {
    const bool normal = row.meaning == Meaning::Normal;
    if (i.b != (normal ? 1 : 3)) return "has the wrong number of operands";
    for (uint32_t n = 0; n < i.b; ++n)
      if (k[k.operands[i.a + n]].type != (normal ? DType::I32 : DType::I64)) return "has operands of the wrong type";
    return i.type == (normal ? DType::F32 : DType::I32) ? "" : "is noise of another type";
  }
  const bool primitive = row.rule == Rule::Numeric || row.rule == Rule::Rounding || row.rule == Rule::Float ||
                         row.rule == Rule::Predicate || row.rule == Rule::Whole;
  if (!row.body.empty() || !primitive) return "calls a row that has no entry for backends";
  if (i.b != (row.max_arguments == 255 ? 2 : row.max_arguments)) return "has the wrong number of operands";
  const DType d = k[k.operands[i.a]].type;
  for (uint32_t n = 1; n < i.b; ++n)
    if (k[k.operands[i.a + n]].type != d) return "has operands of several types";
  if (!arithmetic(d)) return "works in a type that has no arithmetic";
  if (is_float(d) && row.rule == Rule::Whole) return "works on whole numbers only";
  if (!is_float(d) && (row.cuda[ClassInt].empty() || !row.integer)) return "calls a row that has no integer entry";
  if (i.type != (row.rule == Rule::Predicate ? DType::Bool : d)) return "has not the type of its operands";
  return {};
}

std::string read(const Kernel &k, const Inst &i) {
  if (i.c >= k.reads.size()) return "reads nothing known";
  const Reading &r = k.reads[i.c];
  if (r.argument >= k.arguments.size() || k.arguments[r.argument].type.kind != ArgKind::Tensor)
    return "reads what is not a tensor";
  const ArgType &of = k.arguments[r.argument].type;
  if (i.type != of.dtype) return "has not the dtype of its tensor";
  const std::vector<NodeId> list = operands(k, i);
  if (int(list.size()) - i.sub != of.rank) return "has not one index an axis of its tensor";
  for (size_t o = 0; o < list.size(); ++o)
    if (k[list[o]].type != (o < i.sub ? DType::Bool : DType::Index)) return "has an index that is not an index";
  const uint64_t all = all_axes(uint32_t(of.rank));
  if ((r.own | r.proved | r.checked) & ~all) return "speaks of axes that its tensor lacks";
  if (r.settled && (r.own | r.proved | r.checked) != all) return "has an index that nobody proves or checks";
  return "";
}

std::string types(const Kernel &k, const Inst &i) {
  auto type = [&](NodeId n) { return k[n].type; };
  switch (i.op) {
  case Op::Const:
    return i.a < k.constants.size() ? "" : "is not in the list of constants";
  case Op::Param: {
    if (i.a >= k.arguments.size()) return "names no argument";
    const ArgKind kind = k.arguments[i.a].type.kind;
    const bool right = kind == ArgKind::Int     ? i.type == DType::Index
                       : kind == ArgKind::Float ? i.type == DType::F64
                                                : kind == ArgKind::Bool && i.type == DType::Bool;
    return right ? "" : "has not the type of its parameter";
  }
  case Op::Load:
    if (i.a >= k.arguments.size() || k.arguments[i.a].type.kind != ArgKind::Tensor) return "loads what is not a tensor";
    return i.type == k.arguments[i.a].type.dtype ? "" : "has not the dtype of its tensor";
  case Op::Len:
  case Op::Pos:
    return i.type == DType::Index && (i.a == flat_axis || i.a < k.axes.size() || (i.a == no_axis && i.op == Op::Len))
               ? ""
               : "is not an index of a known axis";
  case Op::Origin:
    if (i.a == list_axis) return i.type == DType::Index ? "" : "is not an index";
    if (!k.form.window) return "is where a window begins, and there is none";
    return i.type == DType::Index && (i.a == flat_axis || i.a < k.axes.size()) ? "" : "is not an index of a known axis";
  case Op::ArgLen:
    if (i.a >= k.arguments.size() || k.arguments[i.a].type.kind != ArgKind::Tensor)
      return "measures what is not a tensor";
    return i.type == DType::Index ? "" : "is a length and no index";
  case Op::Entry:
    if (i.a >= k.tables.size()) return "is not in the list of tables";
    if (i.type == DType::Index) return "is an index, and no piece has its own";
    return i.type == k.tables[i.a].type ? "" : "has not the type of its table";
  case Op::Unary:
    if (type(i.a) != i.type) return "has not the type of its operand";
    if (!arithmetic(i.type)) return "works in a type that has no arithmetic";
    return UnaryOp(i.sub) == UnaryOp::BitNot && is_float(i.type) ? "works on the bits of a float" : "";
  case Op::Binary: {
    if (type(i.a) != i.type || type(i.b) != i.type) return "has not the type of its operands";
    if (!arithmetic(i.type)) return "works in a type that has no arithmetic";
    const BinaryOp op = BinaryOp(i.sub);
    if (op == BinaryOp::Div && !is_float(i.type)) return "divides integers exactly";
    return op >= BinaryOp::Shl && is_float(i.type) ? "works on the bits of a float" : "";
  }
  case Op::Compare:
    if (type(i.a) != type(i.b)) return "has operands of two types";
    if (is_half(type(i.a))) return "works in a type that has no arithmetic";
    return i.type == DType::Bool ? "" : "is not a bool";
  case Op::Logic:
    for (const NodeId o : operands(k, i))
      if (type(o) != DType::Bool) return "has an operand that is not a bool";
    return i.type == DType::Bool ? "" : "is not a bool";
  case Op::Where:
    if (type(i.a) != DType::Bool) return "has a condition that is not a bool";
    if (type(i.b) != i.type || type(i.c) != i.type) return "has not the type of its arms";
    return is_half(i.type) ? "works in a type that has no arithmetic" : "";
  case Op::Cast:
    return type(i.a) != i.type ? "" : "converts a type to itself";
  case Op::Call:
    return call(k, i);
  case Op::Read:
    return read(k, i);
  }
  return "has no known operation";
}

std::string node(const Kernel &k, NodeId n) {
  const Inst &i = k[n];
  if ((i.op == Op::Call || i.op == Op::Read) && (i.b == 0 || i.a + i.b > k.operands.size())) return "has no operands";
  for (const NodeId o : operands(k, n))
    if (o >= n) return "uses a node that does not stand before it";
  if (std::string why = types(k, i); !why.empty()) return why;
  const Stage natural = natural_stage(k, i);
  if (i.stage < natural) return "stands at a stage before its operands";
  const bool leaf = operands(k, n).empty();
  return leaf && i.stage != natural ? "is a leaf at another stage than its own" : "";
}

std::string ranges(const Kernel &k, const Piece &p) {
  if (p.boxes.size() > 4) return "has more than 4 boxes";
  for (const auto &box : p.boxes) {
    if (box.empty()) return "has an empty box";
    for (size_t r = 0; r < box.size(); ++r) {
      if (box[r].axis != flat_axis && box[r].axis != no_axis && box[r].axis != k.form.inner_axis)
        return "has a range on an axis that is not the inner one";
      for (size_t s = 0; s < r; ++s)
        if (box[s].axis == box[r].axis) return "has two ranges of one axis in a box";
      if (box[r].lo == no_node && box[r].hi == no_node) return "has a range that is open at both ends";
      for (const NodeId b : {box[r].lo, box[r].hi})
        if (b != no_node && (b >= k.insts.size() || k[b].stage == Stage::Element || k[b].type != DType::Index))
          return "has a bound that is not an index of the host or of a row";
    }
  }
  return {};
}

std::string piece(const Kernel &k, const Piece &p) {
  if (std::string why = ranges(k, p); !why.empty()) return why;
  if (p.guard != no_node && (p.guard >= k.insts.size() || k[p.guard].type != DType::Bool))
    return "has a guard that is not a bool";
  if (p.values.size() != k.outputs.size()) return "has not one value an output";
  for (size_t o = 0; o < p.values.size(); ++o)
    if (p.values[o] >= k.insts.size() || k[p.values[o]].type != k.outputs[o])
      return "has a value that is not of its output's type";
  return {};
}

// By node: how many entries the shortest table has that the node takes one of; none: ~0.
std::vector<size_t> entries(const Kernel &k) {
  std::vector<size_t> most(k.insts.size(), ~size_t(0));
  for (NodeId n = 0; n < k.insts.size(); ++n) {
    if (k[n].op == Op::Entry) most[n] = k.tables[k[n].a].entries.size();
    for (const NodeId o : operands(k, n)) most[n] = std::min(most[n], most[o]);
  }
  return most;
}

std::string entry(const Piece &p, const std::vector<size_t> &most) {
  for (const NodeId v : p.values)
    if (p.entry >= most[v]) return "takes a constant that its table lacks";
  return p.guard != no_node && most[p.guard] != ~size_t(0) ? "has a guard that depends on the piece" : "";
}

std::string check(const Kernel &k, const Check &c) {
  const bool read = c.what == Check::InBounds;
  if (c.node >= k.insts.size() || (k[c.node].stage != Stage::Host && !read))
    return "looks at a node that is not the host's";
  if (c.piece != ~0u && c.piece >= k.pieces.size()) return "belongs to no piece";
  if (read) return k[c.node].op == Op::Read && c.piece != ~0u ? "" : "looks at no read of a piece";
  if (k[c.node].type != (c.what == Check::NotNaN ? DType::F64 : DType::Index))
    return "looks at a node of the wrong type";
  return c.what == Check::Fits && (!is_integer(c.dtype) || c.dtype == DType::Index) ? "fits no dtype" : "";
}

std::string form(const Kernel &k) {
  const Form &f = k.form;
  if (f.args.empty() && k.bodies.empty()) return {};
  std::vector<uint8_t> loops = f.row_axes;
  loops.push_back(f.inner_axis);
  if (f.row_axes.size() > f.rows) return "places more axes than there are rows";
  for (size_t a = 0; a < loops.size(); ++a) {
    if (loops[a] == no_axis) continue;
    if (loops[a] >= k.axes.size()) return "places an unknown axis";
    if (std::count(loops.begin(), loops.end(), loops[a]) > 1) return "places an axis twice";
  }
  if (f.args.size() != k.arguments.size() || f.same_view.size() != k.arguments.size())
    return "has not one entry an argument";
  for (size_t a = 0; a < f.args.size(); ++a) {
    const bool tensor = k.arguments[a].type.kind == ArgKind::Tensor;
    if (!tensor && (f.args[a] != Access::Absent || f.same_view[a])) return "reads a parameter by element";
    if (f.same_view[a] && k.arguments[a].type.dtype != k.outputs[0])
      return "lets a tensor of another dtype share the output";
  }
  if (f.flat && (f.rows == 0 || f.out != Access::Vector || f.vector < 2))
    return "is flat without rows of `out` in vectors";
  if (!f.flat && std::count(f.args.begin(), f.args.end(), Access::Column))
    return "has a column of a row, which only the flat form knows";
  if (f.out != Access::Vector && f.out != Access::Strided)
    return "writes neither along the inner axis nor with a stride";
  if (f.segments && (f.segments < 2 || !can_have_segments(k)))
    return "cuts rows into segments that the host cannot know";
  if (f.vector > 16 || f.vector & (f.vector - 1)) return "gives a thread positions that are no power of two up to 16";
  if (f.many && (f.rows || f.window || item_layout(k).capacity < 1))
    return "takes a list, but has rows or a window, or no room for one item";
  if (f.tile && (!f.rows || f.flat || f.out != Access::Vector))
    return "has tiles, but no rows, or flat ones, or a strided output";
  if (f.tile && f.tile != 32 && f.tile != 64 && f.tile != 128) return "has tiles of other than 32, 64 or 128 rows";
  if (!f.tile && std::count(f.args.begin(), f.args.end(), Access::Tiled))
    return "brings arguments in tiles, and has none";
  int64_t shared = 0;
  for (size_t a = 0; f.vector && a < f.args.size(); ++a)
    if (f.args[a] == Access::Tiled) shared += tile_bytes(f, bytes(k.arguments[a].type.dtype));
  if (shared > most_tile_bytes) return "has tiles that take more shared memory than a block has";
  return f.vector ? "" : "has no positions a thread";
}

// Each step's operands must be steps before it, or known to the device: constants and uniforms.
std::string steps(const Kernel &k, const std::vector<Step> &list, const std::vector<NodeId> &roots) {
  std::vector<bool> known(k.insts.size());
  for (const NodeId u : k.uniforms) known[u] = true;
  for (NodeId n = 0; n < k.insts.size(); ++n) known[n] = known[n] || k[n].op == Op::Const;
  for (size_t s = 0; s < list.size(); ++s) {
    const NodeId n = list[s].node;
    if (n >= k.insts.size() || k[n].stage == Stage::Host) return "places a node that is not an element's";
    if (known[n]) return "places a node twice";
    for (const NodeId o : operands(k, n))
      if (!known[o]) return (Twine("places %") + Twine(n) + " before its operand %" + Twine(o)).str();
    if (list[s].under != ~0u) {
      if (list[s].under <= s || list[s].under >= list.size()) return "protects a node by one that does not use it";
      const Inst &by = k[list[list[s].under].node];
      if (by.op != Op::Where && by.op != Op::Logic) return "protects a node by one that chooses nothing";
    }
    if (k[n].op == Op::Load && k.form.args[k[n].a] == Access::Absent)
      return "loads an argument that the form leaves out";
    known[n] = true;
  }
  for (const NodeId r : roots)
    if (!known[r]) return (Twine("leaves out %") + Twine(r)).str();
  return {};
}

std::string schedule(const Kernel &k) {
  if (k.bodies.empty() && k.guards.empty() && k.host.empty() && k.uniforms.empty()) return {};
  if (k.bodies.size() != k.pieces.size() || k.guards.size() != k.pieces.size()) return "has not one body a piece";
  std::vector<bool> known(k.insts.size());
  for (const NodeId n : k.host) {
    if (n >= k.insts.size() || k[n].stage != Stage::Host) return "gives the host a node that is not its own";
    for (const NodeId o : operands(k, n))
      if (!known[o]) return "gives the host a node before its operands";
    known[n] = true;
  }
  auto missing = [&](NodeId n) { return n != no_node && !known[n]; };
  for (const NodeId n : k.row) {
    if (n >= k.insts.size() || k[n].stage != Stage::Row) return "gives the rows a node that is not their own";
    for (const NodeId o : operands(k, n)) {
      const bool passed = k[o].op == Op::Const || (k[o].op == Op::Len && k[o].a == no_axis) ||
                          std::find(k.uniforms.begin(), k.uniforms.end(), o) != k.uniforms.end();
      if (k[o].stage == Stage::Host ? !passed : !known[o]) return "gives the rows a node before its operands";
    }
    known[n] = true;
  }
  for (const NodeId u : k.uniforms) {
    if (u >= k.insts.size() || missing(u)) return "passes a uniform that the host does not compute";
    if (is_half(k[u].type)) return "passes a half";
    if (k[u].op == Op::Const) return "passes a constant";
  }
  std::vector<bool> looked(k.insts.size());
  for (const Check &c : k.checks)
    if (c.what == Check::InBounds) looked[c.node] = true;
    else if (missing(c.node)) return "checks what the host does not compute";
  for (NodeId n = NodeId(k.insts.size()); n-- > 0;)
    if (looked[n])
      for (const NodeId o : operands(k, n)) {
        if (k[o].stage == Stage::Host && missing(o)) return "looks at a read whose operands the host does not compute";
        looked[o] = true;
      }
  for (size_t p = 0; p < k.pieces.size(); ++p) {
    for (const auto &box : k.pieces[p].boxes)
      for (const Range &r : box)
        if (missing(r.lo) || missing(r.hi)) return "bounds a piece by what neither the host nor a row computes";
    if (std::string why = steps(k, k.bodies[p], k.pieces[p].values); !why.empty()) return why;
    const NodeId guard = k.pieces[p].guard;
    if (std::string why = steps(k, k.guards[p], guard == no_node ? std::vector<NodeId>{} : std::vector{guard});
        !why.empty())
      return why;
  }
  return {};
}

} // namespace

std::string verify(const Kernel &k) {
  for (NodeId n = 0; n < k.insts.size(); ++n)
    if (std::string why = node(k, n); !why.empty()) return (Twine("%") + Twine(n) + " " + why).str();
  if (k.pieces.empty()) return "the kernel has no pieces";
  if (k.outputs.empty()) return "the kernel has no outputs";
  for (size_t p = 0; p < k.pieces.size(); ++p)
    if (std::string why = piece(k, k.pieces[p]); !why.empty()) return (Twine("piece ") + Twine(p) + " " + why).str();
  if (const std::vector<size_t> most = k.tables.empty() ? std::vector<size_t>{} : entries(k); !most.empty())
    for (size_t p = 0; p < k.pieces.size(); ++p)
      if (std::string why = entry(k.pieces[p], most); !why.empty())
        return (Twine("piece ") + Twine(p) + " " + why).str();
  for (size_t c = 0; c < k.checks.size(); ++c)
    if (std::string why = check(k, k.checks[c]); !why.empty()) return (Twine("check ") + Twine(c) + " " + why).str();
  if (std::string why = form(k); !why.empty()) return "the form " + why;
  if (std::string why = schedule(k); !why.empty()) return "the schedule " + why;
  return {};
}

} // namespace elsewise
