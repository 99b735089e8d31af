// SPDX-License-Identifier: Apache-2.0
// Finds pieces of one shape and moves their constants to tables. It changes no bound, no guard and no order of pieces.
#include "compiler/passes/lift.h"
#include "grammar/builtins.h"
#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <optional>

namespace elsewise {
namespace {

// As many as are classified by a table: below, each piece's own code is the fastest.
constexpr size_t fewest_alike = 9;

/// The values of a piece as words that are equal for pieces of one shape, and the constants in which these may differ,
/// each where it is used.
struct Shape {
  std::vector<uint64_t> words;
  std::vector<NodeId> constants;
};

// Halves travel as F32, which holds them; what has no literal of plain C stays where it is.
bool may_lift(const Kernel &k, NodeId n) {
  if (k[n].op != Op::Const || k[n].type == DType::Index) return false;
  return !is_float(k[n].type) || std::isfinite(k.constants[k[n].a].real);
}

// A divisor or an exponent that is known has much faster code than any.
bool is_worth_knowing(const Inst &user, size_t operand) {
  const BinaryOp op = BinaryOp(user.sub);
  return user.op == Op::Binary && operand == 1 &&
         (op == BinaryOp::FloorDiv || op == BinaryOp::Mod || op == BinaryOp::Pow);
}

class Walk {
public:
  Walk(const Kernel &k) : k_(k) {}

  std::optional<Shape> of(const Piece &p) {
    shape_ = {}, number_.clear(), depends_.clear(), fit_ = true;
    for (const NodeId v : p.values) use(v);
    return fit_ && !shape_.constants.empty() ? std::optional(std::move(shape_)) : std::nullopt;
  }

private:
  // The word of an operand; true if a constant that may differ stands at or below it.
  bool use(NodeId n, bool stays = false) {
    const Inst &i = k_[n];
    if (!stays && may_lift(k_, n)) {
      shape_.words.insert(shape_.words.end(), {0, uint64_t(i.type)});
      shape_.constants.push_back(n);
      return true;
    }
    if (i.stage != Stage::Element) { // the host's and a row's are the same node, or another shape
      shape_.words.insert(shape_.words.end(), {1, n});
      return false;
    }
    if (const auto at = number_.find(n); at != number_.end()) {
      shape_.words.insert(shape_.words.end(), {2, at->second});
      return depends_[at->second];
    }
    const bool noise = i.op == Op::Call && builtins()[i.sub].rule == Rule::Noise;
    fit_ = fit_ && i.op != Op::Read && !noise;
    const std::vector<NodeId> list = operands(k_, n);
    const bool leaf = list.empty(), called = i.op == Op::Call;
    shape_.words.insert(shape_.words.end(),
                        {3, uint64_t(i.op) << 24 | uint64_t(i.sub) << 16 | uint64_t(i.type) << 8 | uint64_t(i.stage),
                         leaf                  ? i.a
                         : called              ? i.b
                         : i.op == Op::Compare ? i.c
                                               : 0});
    bool differs = false;
    for (size_t o = 0; o < list.size(); ++o) differs |= use(list[o], is_worth_knowing(i, o));
    fit_ = fit_ && !(differs && i.type == DType::Index); // the host looks at it by the constants
    number_.insert({n, uint32_t(depends_.size())});
    depends_.push_back(differs);
    return differs;
  }

  const Kernel &k_;
  Shape shape_;
  std::map<NodeId, uint32_t> number_; // of nodes met in this piece
  std::vector<bool> depends_;         // by number: a constant that may differ stands below
  bool fit_ = true;
};

/// Pieces of one shape, and what stands in place of each constant: a table, or none where all are equal.
struct Group {
  std::vector<uint32_t> pieces;
  std::vector<uint32_t> entries;              // by piece; those with the same constants have the same
  std::vector<std::vector<NodeId>> constants; // by entry
  std::map<std::vector<NodeId>, uint32_t> known;
  std::vector<uint32_t> table; // by use
};

constexpr uint32_t no_table = ~0u;

uint32_t table_of(Kernel &k, const Group &g, size_t use) {
  const NodeId one = g.constants[0][use];
  bool differ = false;
  for (const auto &list : g.constants) differ |= list[use] != one;
  if (!differ) return no_table;
  Table t{is_half(k[one].type) ? DType::F32 : k[one].type, {}};
  for (const auto &list : g.constants) t.entries.push_back(k.constants[k[list[use]].a]);
  auto same = [&](const Table &o) {
    auto equal = [](const Constant &x, const Constant &y) {
      return x.integer == y.integer && std::bit_cast<uint64_t>(x.real) == std::bit_cast<uint64_t>(y.real);
    };
    return o.type == t.type &&
           std::equal(o.entries.begin(), o.entries.end(), t.entries.begin(), t.entries.end(), equal);
  };
  for (uint32_t at = 0; at < k.tables.size(); ++at)
    if (same(k.tables[at])) return at;
  k.tables.push_back(std::move(t));
  return uint32_t(k.tables.size() - 1);
}

// The first piece's values once more, in the order in which Walk met its constants.
class Remake {
public:
  Remake(Kernel &k, Builder &b, const std::vector<uint32_t> &tables) : k_(k), b_(b), tables_(tables) {}

  NodeId value(NodeId n, bool stays = false) {
    if (!stays && may_lift(k_, n)) {
      const uint32_t t = tables_[use_++];
      return t == no_table ? n : b_.cast(b_.entry(t), k_[n].type);
    }
    if (k_[n].stage != Stage::Element) return n;
    if (const auto at = made_.find(n); at != made_.end()) return at->second;
    const Inst i = k_[n];
    std::vector<NodeId> list = operands(k_, n);
    for (size_t o = 0; o < list.size(); ++o) list[o] = value(list[o], is_worth_knowing(i, o));
    return made_[n] = make(n, i, list);
  }

private:
  NodeId make(NodeId n, const Inst &i, const std::vector<NodeId> &o) {
    b_.at(k_.span(n));
    switch (i.op) {
    case Op::Unary:
      return b_.unary(UnaryOp(i.sub), o[0]);
    case Op::Binary:
      return b_.binary(BinaryOp(i.sub), o[0], o[1]);
    case Op::Compare:
      return b_.compare(CompareOp(i.sub), o[0], o[1], Exactness(i.c));
    case Op::Logic:
      return b_.logic(LogicOp(i.sub), o[0], o.size() > 1 ? o[1] : no_node);
    case Op::Where:
      return b_.where(o[0], o[1], o[2]);
    case Op::Cast:
      return b_.cast(o[0], i.type);
    case Op::Call:
      return b_.call(i.sub, i.type, o);
    default:
      return n; // leaves stay, and a Read is never here
    }
  }

  Kernel &k_;
  Builder &b_;
  const std::vector<uint32_t> &tables_;
  size_t use_ = 0;
  std::map<NodeId, NodeId> made_;
};

} // namespace

Kernel lift(const Kernel &from, const PassOptions &) {
  if (from.pieces.size() < fewest_alike || !from.tables.empty()) return from;
  std::map<std::vector<uint64_t>, Group> groups;
  Walk walk(from);
  for (uint32_t p = 0; p < from.pieces.size(); ++p) {
    if (from.pieces[p].guard != no_node) continue;
    std::optional<Shape> shape = walk.of(from.pieces[p]);
    if (!shape) continue;
    Group &g = groups[std::move(shape->words)];
    const auto [at, is_new] = g.known.insert({std::move(shape->constants), uint32_t(g.constants.size())});
    if (is_new) g.constants.push_back(at->first);
    g.pieces.push_back(p), g.entries.push_back(at->second);
  }
  Kernel k = from;
  Builder b(k);
  for (auto &[shape, g] : groups) {
    constexpr size_t most_entries = 65536; // an entry travels in two bytes
    if (g.pieces.size() < fewest_alike || g.constants.size() > most_entries || g.constants.size() == 1) continue;
    for (size_t use = 0; use < g.constants[0].size(); ++use) g.table.push_back(table_of(k, g, use));
    Remake remake(k, b, g.table);
    std::vector<NodeId> values;
    for (const NodeId v : from.pieces[g.pieces[0]].values) values.push_back(remake.value(v));
    for (uint32_t at = 0; at < g.pieces.size(); ++at)
      k.pieces[g.pieces[at]].values = values, k.pieces[g.pieces[at]].entry = g.entries[at];
  }
  return k;
}

} // namespace elsewise
