// SPDX-License-Identifier: Apache-2.0
// Sets Kernel::form. It chooses no layout: the plan did.
#include "compiler/passes/form.h"
#include <algorithm>

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

Kernel form(const Kernel &from, const PassOptions &options) {
  Kernel k = from;
  k.form = options.has_form || !options.form.args.empty() ? options.form : contiguous_form(k);
  k.form.args.resize(k.arguments.size(), Access::Absent);
  k.form.same_view.resize(k.arguments.size());
  k.form.dense.resize(k.arguments.size());
  const std::vector<bool> read = loaded(k);
  for (size_t a = 0; a < k.arguments.size(); ++a)
    if (!read[a]) k.form.args[a] = Access::Absent;
  return k;
}

} // namespace elsewise
