// SPDX-License-Identifier: Apache-2.0
// Intervals from dtypes alone. It looks at no condition, and drops no operand that may be a fault.
#include "compiler/passes/clips.h"
#include "compiler/ir/rows.h"
#include "compiler/passes/fold.h"
#include "compiler/passes/rewrite.h"
#include <algorithm>
#include <optional>

namespace elsewise {
namespace {

/// What a value may be. An index of which nothing is known has none: a comparison takes it beyond 64 bits.
struct Ends {
  std::optional<__int128> lo, hi;
};

bool chooses(const Kernel &k, NodeId n, DType type) {
  const Inst &i = k[n];
  return i.op == Op::Call && i.type == type && i.b == 2 && (i.sub == least_row() || i.sub == greatest_row());
}

/// A cast that keeps every value of its operand.
bool widens(const Kernel &k, const Inst &i) {
  return i.op == Op::Cast && is_integer(k[i.a].type) && k[i.a].type != DType::Index && bytes(k[i.a].type) <= 4;
}

Ends ends(const Kernel &k, NodeId n) {
  const Inst &i = k[n];
  if (i.op == Op::Const) return {k.constants[i.a].integer, k.constants[i.a].integer};
  if (widens(k, i)) return {least(k[i.a].type), greatest(k[i.a].type)};
  if (!chooses(k, n, DType::Index)) return {};
  const Ends a = ends(k, k.operands[i.a]), b = ends(k, k.operands[i.a + 1]);
  // An empty optional is less than any number: of the least, `lo` is known if both are, and `hi` if one is.
  if (i.sub == least_row()) return {std::min(a.lo, b.lo), a.hi && b.hi ? std::min(a.hi, b.hi) : std::max(a.hi, b.hi)};
  return {std::max(a.lo, b.lo), a.hi && b.hi ? std::max(a.hi, b.hi) : std::nullopt};
}

NodeId clipped(Kernel &k, Builder &b, uint8_t row, NodeId left, NodeId right) {
  const bool swapped = k[left].stage == Stage::Host;
  const NodeId element = swapped ? right : left, bound = swapped ? left : right;
  if (k[element].stage == Stage::Host || k[bound].stage != Stage::Host) return b.call(row, DType::Index, {left, right});
  const Ends data = ends(k, element), limit = ends(k, bound);
  const bool below = row == least_row();
  const std::optional<__int128> end = below ? data.hi : data.lo, nearer_than = below ? limit.hi : limit.lo;
  if (!end) return b.call(row, DType::Index, {left, right});
  if (k[bound].op == Op::Const && (below ? *limit.lo >= *end : *limit.hi <= *end)) return element;
  if (nearer_than && (below ? *nearer_than <= *end : *nearer_than >= *end))
    return b.call(row, DType::Index, {left, right});
  const NodeId nearest = b.integer(DType::Index, *end);
  const NodeId nearer = folded(k, b, b.call(row, DType::Index, {bound, nearest}));
  return b.call(row, DType::Index, swapped ? std::vector{nearer, element} : std::vector{element, nearer});
}

/// Whether something that is chosen from has few bits.
bool has_few_bits(const Kernel &k, NodeId n) {
  const Inst &i = k[n];
  if (!chooses(k, n, DType::I64)) return widens(k, i);
  return has_few_bits(k, k.operands[i.a]) || has_few_bits(k, k.operands[i.a + 1]);
}

/// An i64 as an index: what is chosen of data and bounds is chosen of indexes.
NodeId as_index(Kernel &k, Builder &b, NodeId n) {
  const Inst i = k[n];
  if (chooses(k, n, DType::I64)) {
    const NodeId left = k.operands[i.a], right = k.operands[i.a + 1]; // the list grows below
    const NodeId first = as_index(k, b, left), second = as_index(k, b, right);
    return clipped(k, b, i.sub, first, second);
  }
  if (widens(k, i)) return b.cast(i.a, DType::Index);
  return folded(k, b, b.cast(n, DType::Index));
}

NodeId replaced(Kernel &k, Builder &b, NodeId made) {
  const Inst i = k[made];
  if (i.op == Op::Cast && i.type == DType::Index && chooses(k, i.a, DType::I64) && has_few_bits(k, i.a))
    return as_index(k, b, i.a);
  if (chooses(k, made, DType::Index)) return clipped(k, b, i.sub, k.operands[i.a], k.operands[i.a + 1]);
  return made;
}

} // namespace

Kernel clips(const Kernel &from, const PassOptions &) { return prune(rewrite(from, replaced)); }

} // namespace elsewise
