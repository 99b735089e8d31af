// SPDX-License-Identifier: Apache-2.0
// Sets Kernel::form. It chooses no layout: the plan did.
#include "compiler/passes/form.h"
#include "compiler/ir/abi.h"
#include <algorithm>
#include <set>

namespace elsewise {

static std::vector<bool> loaded(const Kernel &k) {
  std::vector<bool> is(k.arguments.size());
  for (const Inst &i : k.insts)
    if (i.op == Op::Load) is[i.a] = true;
  return is;
}

Form contiguous_form(const Kernel &k) {
  Form f;
  const std::vector<bool> read = loaded(k);
  int out = 1, in = 1;
  for (const DType d : k.outputs) out = std::max(out, bytes(d));
  for (size_t a = 0; a < k.arguments.size(); ++a) {
    const ArgType &type = k.arguments[a].type;
    f.args.push_back(!read[a] ? Access::Absent : type.zero_dim ? Access::Broadcast : Access::Vector);
    if (f.args.back() == Access::Vector) in = std::max(in, bytes(type.dtype));
  }
  f.same_view.resize(k.arguments.size());
  f.dense.resize(k.arguments.size());
  for (const Reading &r : k.reads) f.dense[r.argument] = true;
  f.vector = uint8_t(std::max(1, std::min(16 / out, 32 / in)));
  // The last axis is inside, the one before it the fastest row axis. Those from the right stand behind those from the
  // left.
  std::vector<uint8_t> order;
  for (uint8_t a = 0; a < k.axes.size(); ++a) order.push_back(a);
  auto place = [&](uint8_t a) { return k.axes[a].dim < 0 ? k.axes[a].dim + 1000 : k.axes[a].dim; };
  std::stable_sort(order.begin(), order.end(), [&](uint8_t a, uint8_t b) { return place(a) > place(b); });
  if (!order.empty()) f.inner_axis = order[0], f.row_axes.assign(order.begin() + 1, order.end());
  f.rows = uint8_t(f.row_axes.size());
  return f;
}

// A mask costs a thread some instructions a piece, a table the same for any number: measured, they meet near here.
static constexpr size_t most_masked_boxes = 8;

// Room in a table for all bounds of the pieces: one entry a cut, the first, and one that is never used. None where a
// table does not pay or fit.
static void make_segments(Kernel &k, size_t parameter_bytes) {
  k.form.segments = 0;
  size_t boxes = 0;
  std::set<NodeId> cuts;
  for (const Piece &p : k.pieces) {
    boxes += std::max<size_t>(p.boxes.size(), 1);
    for (const auto &box : p.boxes)
      for (const Range &r : box)
        for (const NodeId bound : {r.lo, r.hi})
          if (bound != no_node) cuts.insert(bound);
  }
  if (boxes <= most_masked_boxes || cuts.size() > 65000 || !can_have_segments(k)) return;
  // What is passed besides: of pointers, strides and uniforms never fewer than there are.
  std::vector<bool> passed(k.insts.size());
  auto pass = [&](NodeId n) { passed[n] = passed[n] || (k[n].stage == Stage::Host && k[n].op != Op::Const); };
  for (NodeId n = 0; n < k.insts.size(); ++n)
    if (k[n].stage != Stage::Host)
      for (const NodeId o : operands(k, n)) pass(o);
  for (const Piece &p : k.pieces)
    for (const NodeId v : p.values) pass(v);
  const size_t words = k.form.wide ? 3 : 1;
  size_t slots = 16 + 3 * k.form.rows + words * size_t(std::count(passed.begin(), passed.end(), true));
  for (const Argument &a : k.arguments)
    if (a.type.kind == ArgKind::Tensor) slots += 3 + k.form.rows + size_t(std::max<int>(a.type.rank, 0));
  k.form.segments = uint16_t(cuts.size() + 2);
  if (segment_layout(k).size + slots * sizeof(Slot) > parameter_bytes) k.form.segments = 0;
}

Kernel form(const Kernel &from, const PassOptions &options) {
  Kernel k = from;
  k.form = options.has_form || !options.form.args.empty() ? options.form : contiguous_form(k);
  k.form.args.resize(k.arguments.size(), Access::Absent);
  k.form.same_view.resize(k.arguments.size());
  k.form.dense.resize(k.arguments.size());
  const std::vector<bool> read = loaded(k);
  for (size_t a = 0; a < k.arguments.size(); ++a)
    if (!read[a]) k.form.args[a] = Access::Absent;
  // A list's table would be one a tensor; flat rows choose by lane.
  if (k.form.many || k.form.flat) k.form.segments = 0;
  else make_segments(k, options.parameter_bytes);
  return k;
}

} // namespace elsewise
