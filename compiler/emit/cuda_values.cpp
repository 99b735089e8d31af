// SPDX-License-Identifier: Apache-2.0
// What device functions are given besides elements: values that the row worked out once, and reads whose index hardly
// moves along a vector. It places nothing ahead of a condition that it needs.
#include "compiler/emit/cuda_index.h"
#include "compiler/emit/cuda_kernel.h"
#include "compiler/ir/rows.h"

namespace elsewise::cuda {

namespace {

bool is_leaf(const Kernel &k, NodeId n) {
  return k[n].op == Op::Const || k[n].op == Op::Pos || k[n].stage == Stage::Host;
}

/// What stands at or below a node.
struct Below {
  bool read = false, costly = false; // a read; arithmetic that takes many instructions
  bool total = true;                 // a row may work it out ahead of every guard
};

std::vector<Below> below(const Kernel &k, const Reaches &known) {
  std::vector<Below> all(k.insts.size());
  for (NodeId n = 0; n < k.insts.size(); ++n) {
    const Inst &i = k[n];
    Below &b = all[n];
    if (is_leaf(k, n)) continue;
    if (i.op == Op::Load) b.total = false;
    if (i.op == Op::Read) b.read = true, b.total = reads_anywhere(k, n);
    if (i.op == Op::Call && is_float(i.type)) b.costly = true;
    if (i.op == Op::Binary) b.costly = BinaryOp(i.sub) == BinaryOp::Div || BinaryOp(i.sub) == BinaryOp::Pow;
    // Index arithmetic may leave 64 bits where a guard fails.
    if ((i.op == Op::Binary || i.op == Op::Unary) && i.type == DType::Index && !known[n]) b.total = false;
    for (const NodeId o : operands(k, n)) {
      b.read |= all[o].read, b.costly |= all[o].costly;
      b.total &= all[o].total;
    }
  }
  return all;
}

/// An index that only rises, or only falls, along the inner axis; and whether it stays for a vector's length at a time.
struct Slope {
  bool monotone = false, slow = false;
};

Slope slope(const Kernel &k, NodeId n, int vector) {
  const Inst &i = k[n];
  if (i.stage != Stage::Element) return {true, true};
  if (i.op == Op::Pos) return {true, false};
  if (i.op == Op::Unary && UnaryOp(i.sub) == UnaryOp::Neg) return slope(k, i.a, vector);
  const bool ends =
      i.op == Op::Call && i.type == DType::Index && i.b == 2 && (i.sub == least_row() || i.sub == greatest_row());
  if (i.op != Op::Binary && !ends) return {};
  const NodeId left = ends ? k.operands[i.a] : i.a, right = ends ? k.operands[i.a + 1] : i.b;
  if (k[left].stage == Stage::Element && k[right].stage == Stage::Element) return {};
  const bool moves_left = k[left].stage == Stage::Element;
  const Slope s = slope(k, moves_left ? left : right, vector);
  if (!s.monotone || ends) return s;
  switch (BinaryOp(i.sub)) {
  case BinaryOp::Add:
  case BinaryOp::Sub:
  case BinaryOp::Mul:
    return s;
  case BinaryOp::FloorDiv:
  case BinaryOp::Shr: {
    if (!moves_left) return {};
    const auto by = known_integer(k, right);
    const bool shift = BinaryOp(i.sub) == BinaryOp::Shr;
    const bool far =
        !by || (shift ? *by >= 5 || (__int128(1) << int(std::max<__int128>(*by, 0))) >= vector : *by >= vector);
    return {true, s.slow || far};
  }
  default:
    return {};
  }
}

} // namespace

/// A read along the vector whose index is one for most vectors.
bool KernelPrinter::varies_slowly(NodeId n) const {
  const Inst &i = k_[n];
  // In the flat form a vector may lie in two rows.
  if (i.op != Op::Read || i.stage != Stage::Element || v_ == 1 || form_.wide || form_.flat) return false;
  const std::vector<NodeId> list = operands(k_, n);
  bool any = false;
  for (size_t o = 0; o < list.size(); ++o) {
    if (k_[list[o]].stage != Stage::Element) continue;
    if (o < i.sub) return false;
    const Slope s = slope(k_, list[o], v_);
    if (!s.monotone || !s.slow) return false;
    any = true;
  }
  return any;
}

/// `x[.., c+1]` where `x` is read at its own element too, contiguous along the loop.
uint32_t KernelPrinter::neighbour(NodeId n, int64_t &distance) const {
  const Inst &i = k_[n];
  if (i.op != Op::Read || i.stage != Stage::Element || i.sub || form_.wide || form_.window) return ~0u;
  const Reading &r = k_.reads[i.c];
  const uint32_t a = r.argument;
  if (same_view(a) || (access(a) != Access::Vector && access(a) != Access::Scalar)) return ~0u;
  const std::vector<NodeId> list = operands(k_, n);
  if (list.size() > 62 || r.own != (uint64_t(1) << (list.size() - 1)) - 1) return ~0u; // all axes but the last
  // The index: a position, and a constant.
  NodeId at = list.back();
  distance = 0;
  if (k_[at].op == Op::Binary) {
    const BinaryOp op = BinaryOp(k_[at].sub);
    const auto by = known_integer(k_, k_[at].b), first = known_integer(k_, k_[at].a);
    constexpr int64_t far = 1 << 20;
    const bool sum = op == BinaryOp::Add && (by || first), difference = op == BinaryOp::Sub && by;
    if (!sum && !difference) return ~0u;
    const __int128 d = by ? *by : *first;
    if (d > far || d < -far) return ~0u;
    distance = difference ? -int64_t(d) : int64_t(d), at = by ? k_[at].a : k_[at].b;
  }
  if (k_[at].op != Op::Pos) return ~0u;
  if (k_[at].a == flat_axis) return form_.rows == 0 && form_.unit_pitch && list.size() == 1 ? a : ~0u;
  if (k_[at].a != form_.inner_axis) return ~0u;
  // The loop's axis is the domain's last one, as the argument's is.
  const int dim = k_.axes[form_.inner_axis].dim;
  const bool last =
      std::all_of(k_.axes.begin(), k_.axes.end(), [&](const Axis &x) { return x.dim <= dim && x.dim >= 0; });
  return dim == -1 || (dim >= 0 && last) ? a : ~0u;
}

std::vector<uint32_t> KernelPrinter::arguments(const Reads &r) const {
  std::vector<uint32_t> all = r.args;
  int64_t distance;
  for (const NodeId n : r.given)
    if (const uint32_t a = neighbour(n, distance); a != ~0u) all.push_back(a);
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

/// Chooses the given nodes: they have no names yet.
void KernelPrinter::choose_values() {
  const std::vector<Below> known = below(k_, *names_.reaches);
  std::set<NodeId> rows, calls, never;
  auto walk = [&](NodeId root, const std::vector<Step> &steps) {
    std::vector<bool> free(k_.insts.size()); // evaluated wherever the root is
    for (const Step &s : steps) free[s.node] = s.under == ~0u;
    std::vector<NodeId> todo{root};
    std::set<NodeId> seen;
    while (!todo.empty()) {
      const NodeId n = todo.back();
      todo.pop_back();
      if (!seen.insert(n).second || is_leaf(k_, n)) continue;
      const Below &b = known[n];
      if (k_[n].stage == Stage::Row && b.total && (b.read || b.costly)) {
        rows.insert(n);
        continue;
      }
      int64_t distance;
      if (varies_slowly(n) || neighbour(n, distance) != ~0u) (free[n] ? calls : never).insert(n);
      for (const NodeId o : operands(k_, n)) todo.push_back(o);
    }
  };
  for (size_t p = 0; p < count_; ++p) {
    walk(k_.pieces[p].values[0], k_.bodies[p]);
    if (residual(p)) walk(k_.pieces[p].guard, k_.guards[p]);
  }
  for (const NodeId n : rows) {
    names_.given[n], row_values_.push_back(n);
    std::vector<NodeId> todo{n};
    while (!todo.empty()) {
      const NodeId m = todo.back();
      todo.pop_back();
      if (k_[m].stage == Stage::Host) continue;
      if (k_[m].type == DType::Index && k_[m].op != Op::Pos) small_rows_ &= small(m);
      for (const NodeId o : operands(k_, m)) todo.push_back(o);
    }
  }
  for (const NodeId n : calls) {
    if (never.contains(n)) continue;
    names_.given[n];
    int64_t distance;
    if (const uint32_t a = neighbour(n, distance); a != ~0u && access(a) == Access::Vector && v_ > 1) beside_.insert(a);
  }
}

void KernelPrinter::name_values() {
  for (auto &[n, name] : names_.given) {
    NodeId bare = n;
    while (k_[bare].op == Op::Cast) bare = k_[bare].a;
    const std::string stem = k_[bare].op == Op::Read ? names_.args[k_.reads[k_[bare].c].argument] : "row";
    const std::string wish = stem + (stem.back() == '_' ? "value" : "_value");
    name = wish;
    for (int more = 2; !names_.taken.insert(name).second; ++more) name = wish + num(more);
  }
}

/// What a row's own arithmetic calls the positions of its axes; of the others nothing.
std::vector<std::string> KernelPrinter::row_positions() const {
  std::vector<std::string> positions(k_.axes.size());
  for (size_t d = 0; d < form_.row_axes.size(); ++d)
    if (form_.row_axes[d] != no_axis) positions[form_.row_axes[d]] = row_position(d);
  return positions;
}

/// Names as the kernel's body has them at a place of the vector, such as `c + k`.
KernelNames KernelPrinter::body_names(const std::string &place) const {
  KernelNames names = names_;
  names.axes.assign(k_.axes.size(), "first + " + place);
  for (size_t d = 0; d < form_.row_axes.size(); ++d)
    if (form_.row_axes[d] != no_axis) names.axes[form_.row_axes[d]] = row_position(d);
  if (form_.rows == 0) names.flat = "first + " + place;
  else if (form_.unit_pitch) names.flat = "start + " + place;
  else names.flat = "start + i64(" + place + ") * pitch";
  return names;
}

/// What a call passes for a given node.
std::string KernelPrinter::given(NodeId n, bool lanes) const {
  if (k_[n].stage == Stage::Row) return names_.given.at(n);
  int64_t d;
  if (const uint32_t a = neighbour(n, d); a != ~0u) {
    const auto moved = [&](const std::string &place) {
      return place + (d < 0 ? " - " + num(-d) : d > 0 ? " + " + num(d) : "");
    };
    const std::string memory = names_.args[a] + "[" + moved(lanes ? "c + k" : "p") + "]";
    if (!lanes || access(a) != Access::Vector || d >= v_ || d <= -v_) return memory;
    const std::string own = vectors_[a] + ".at[" + moved("k") + "]";
    return d > 0   ? "k < " + num(v_ - d) + " ? " + own + " : " + memory
           : d < 0 ? "k < " + num(-d) + " ? " + memory + " : " + own
                   : own;
  }
  KernelNames names = body_names(lanes ? "c + k" : "p");
  names.given.erase(n);
  return body_expression(k_, names, helpers_, n);
}

std::vector<NodeId> KernelPrinter::slow(const Reads &r) const {
  std::vector<NodeId> list;
  for (const NodeId n : r.given)
    if (varies_slowly(n)) list.push_back(n);
  return list;
}

// Where the index is the same for the first and the last position, which it is for all between, the vector reads once.
void KernelPrinter::print_slow(Lines &out, int indent, size_t p, const std::vector<NodeId> &slow) {
  const Reads &r = values_read_[p];
  KernelNames first = body_names("c"), last = body_names("c + " + num(v_ - 1));
  std::string same;
  std::set<NodeId> compared;
  std::vector<std::string> reads;
  for (const NodeId n : slow) {
    first.given.erase(n), last.given.erase(n);
    for (const NodeId index : operands(k_, n)) {
      if (k_[index].stage != Stage::Element || !compared.insert(index).second) continue;
      same = conjunction(same, body_expression(k_, first, helpers_, index) +
                                   " == " + body_expression(k_, last, helpers_, index));
    }
    reads.push_back("const " + std::string(given_type(k_, n)) + " " + names_.given.at(n) + " = " +
                    body_expression(k_, first, helpers_, n) + ";");
  }
  const std::string name = function(p), loop = "for (int k = 0; k < " + num(v_) + "; ++k)";
  out.add(indent, "if (" + same + ") {");
  for (const std::string &line : reads) out.add(indent + 2, line, "one element for the whole vector");
  conditional(out, indent + 2, loop, "v.at[k] = " + call(name, r, true, p, slow) + ";");
  out.add(indent, "} else {");
  conditional(out, indent + 2, loop, "v.at[k] = " + call(name, r, true, p) + ";");
  out.add(indent, "}");
}

} // namespace elsewise::cuda
