// SPDX-License-Identifier: Apache-2.0
// Places nodes. It makes none but those that carry a uniform to the device.
#include "compiler/passes/schedule.h"
#include "compiler/passes/rewrite.h"

namespace elsewise {
namespace {

NodeId push(Kernel &k, Inst i) {
  k.insts.push_back(i);
  k.spans.resize(k.insts.size());
  return NodeId(k.insts.size() - 1);
}

// A half on the host goes over as F32, which holds it exactly, and becomes a half again on the device.
void carry_halves(Kernel &k) {
  Builder b(k);
  for (Piece &p : k.pieces)
    for (NodeId &v : p.values) {
      if (k[v].stage != Stage::Host || k[v].op == Op::Const || !is_half(k[v].type)) continue;
      const NodeId wide = b.cast(v, DType::F32);
      v = push(k, {.op = Op::Cast, .type = k[v].type, .stage = Stage::Element, .a = wide});
    }
}

// The slots of index uniforms have 64 bits. In the wide form one travels as three words, put together on the device.
Kernel carry_wide(const Kernel &from) {
  Kernel k = from;
  k.insts.clear(), k.spans.clear(), k.operands.clear();
  Builder b(k);
  std::vector<NodeId> now(from.insts.size()), carried(from.insts.size(), no_node);
  auto element = [&](NodeId n) {
    const Inst &i = from[n];
    if (i.stage != Stage::Host || i.type != DType::Index || i.op == Op::Const || i.op == Op::Len || i.op == Op::Origin)
      return now[n]; // none of these leaves 64 bits
    if (carried[n] != no_node) return carried[n];
    auto integer = [&](__int128 v) { return b.integer(DType::Index, v); };
    auto above = [&](int bits) { return b.binary(BinaryOp::Shr, now[n], integer(bits)); };
    auto low = [&](NodeId word) { return b.binary(BinaryOp::BitAnd, word, integer(0xffffffff)); };
    const Stage stage = k.form.row_axes.empty() ? Stage::Element : Stage::Row; // a row's bounds may need it
    auto work = [&](BinaryOp op, NodeId x, NodeId y) {
      return push(k, {Op::Binary, uint8_t(op), DType::Index, stage, x, y});
    };
    const NodeId top = work(BinaryOp::Shl, above(64), integer(64));
    const NodeId middle = work(BinaryOp::Shl, low(above(32)), integer(32));
    return carried[n] = work(BinaryOp::Add, work(BinaryOp::Add, top, middle), low(now[n]));
  };
  for (NodeId n = 0; n < from.insts.size(); ++n) {
    Inst i = from[n];
    auto use = [&](NodeId o) { return i.stage == Stage::Host ? now[o] : element(o); };
    switch (i.op) {
    case Op::Unary:
    case Op::Cast:
      i.a = use(i.a);
      break;
    case Op::Binary:
    case Op::Compare:
      i.a = use(i.a), i.b = use(i.b);
      break;
    case Op::Logic:
      i.a = use(i.a), i.b = LogicOp(i.sub) == LogicOp::Not ? 0 : use(i.b);
      break;
    case Op::Where:
      i.a = use(i.a), i.b = use(i.b), i.c = use(i.c);
      break;
    case Op::Call:
    case Op::Read: {
      const uint32_t first = uint32_t(k.operands.size());
      for (const NodeId o : operands(from, n)) {
        const NodeId mine = use(o);
        k.operands.push_back(mine);
      }
      i.a = first;
      break;
    }
    default:
      break;
    }
    now[n] = push(k, i);
    k.spans.back() = from.span(n);
  }
  auto move = [&](NodeId &n) {
    if (n != no_node) n = now[n];
  };
  for (Piece &p : k.pieces) {
    for (auto &box : p.boxes)
      for (Range &r : box) move(r.lo), move(r.hi);
    move(p.guard);
    for (NodeId &v : p.values) move(v);
  }
  for (Check &c : k.checks) move(c.node);
  return k;
}

/// The arm of a where, and, or that protects a node; nested ones lead outward.
struct Arm {
  NodeId chooser;
  int arm;
  uint32_t outer, depth;
};

class Placement {
public:
  Placement(const Kernel &k) : k(k) {}

  std::vector<Step> place(const std::vector<NodeId> &roots) {
    arms = {{no_node, 0, 0, 0}};
    std::vector<uint32_t> arm(k.insts.size(), none);
    for (const NodeId r : roots) arm[r] = 0;
    std::vector<NodeId> order;
    for (NodeId n = NodeId(k.insts.size()); n-- > 0;) {
      if (arm[n] == none || k[n].stage == Stage::Host) continue;
      order.push_back(n);
      const std::vector<NodeId> list = operands(k, n);
      for (size_t o = 0; o < list.size(); ++o) {
        const bool lazy = o > 0 && (k[n].op == Op::Where || k[n].op == Op::Logic);
        const uint32_t in = lazy ? inside(n, int(o), arm[n]) : arm[n];
        arm[list[o]] = arm[list[o]] == none ? in : common(arm[list[o]], in);
      }
    }
    std::vector<Step> steps;
    std::vector<uint32_t> at(k.insts.size(), ~0u);
    for (auto n = order.rbegin(); n != order.rend(); ++n) at[*n] = uint32_t(steps.size()), steps.push_back({*n});
    for (Step &s : steps)
      if (const NodeId chooser = arms[arm[s.node]].chooser; chooser != no_node) s.under = at[chooser];
    return steps;
  }

private:
  static constexpr uint32_t none = ~0u;

  uint32_t inside(NodeId chooser, int arm, uint32_t outer) {
    for (uint32_t a = uint32_t(arms.size()); a-- > 1;)
      if (arms[a].chooser == chooser && arms[a].arm == arm) return a;
    arms.push_back({chooser, arm, outer, arms[outer].depth + 1});
    return uint32_t(arms.size() - 1);
  }
  uint32_t common(uint32_t a, uint32_t b) const {
    while (a != b) (arms[a].depth < arms[b].depth ? b : a) = arms[arms[a].depth < arms[b].depth ? b : a].outer;
    return a;
  }

  const Kernel &k;
  std::vector<Arm> arms;
};

} // namespace

Kernel schedule(const Kernel &from, const PassOptions &) {
  Kernel k = prune(from);
  carry_halves(k);
  if (k.form.wide) k = carry_wide(k);

  Placement placement(k);
  for (const Piece &p : k.pieces) {
    k.guards.push_back(p.guard == no_node ? std::vector<Step>{} : placement.place({p.guard}));
    k.bodies.push_back(placement.place(p.values));
  }

  std::vector<bool> uniform(k.insts.size()), host(k.insts.size());
  auto passed = [&](NodeId n) {
    if (n == no_node || k[n].stage != Stage::Host || k[n].op == Op::Const) return;
    host[n] = true;
    uniform[n] = k[n].op != Op::Len || k[n].a != no_axis; // that one is passed anyway
  };
  auto steps = [&](const std::vector<Step> &list) {
    for (const Step &s : list)
      for (const NodeId o : operands(k, s.node)) passed(o);
  };
  std::vector<bool> row(k.insts.size());
  auto computed = [&](NodeId n) {
    if (n != no_node) (k[n].stage == Stage::Host ? host : row)[n] = true;
  };
  for (size_t p = 0; p < k.pieces.size(); ++p) {
    steps(k.guards[p]), steps(k.bodies[p]);
    passed(k.pieces[p].guard);
    for (const NodeId v : k.pieces[p].values) passed(v);
    for (const auto &box : k.pieces[p].boxes)
      for (const Range &r : box) computed(r.lo), computed(r.hi);
  }
  std::vector<bool> looked(k.insts.size()); // no code works these out: the host looks at where they may lie
  for (const Check &c : k.checks)
    if (c.what == Check::InBounds) looked[c.node] = true;
    else computed(c.node);
  for (NodeId n = NodeId(k.insts.size()); n-- > 0;)
    if (looked[n])
      for (const NodeId o : operands(k, n)) (k[o].stage == Stage::Host ? host : looked)[o] = true;
  for (NodeId n = NodeId(k.insts.size()); n-- > 0;)
    if (row[n])
      for (const NodeId o : operands(k, n)) {
        if (k[o].stage == Stage::Host) passed(o);
        else row[o] = true;
      }
  for (NodeId n = NodeId(k.insts.size()); n-- > 0;)
    if (host[n])
      for (const NodeId o : operands(k, n)) host[o] = true;
  for (NodeId n = 0; n < k.insts.size(); ++n) {
    if (host[n]) k.host.push_back(n);
    if (uniform[n]) k.uniforms.push_back(n);
    if (row[n]) k.row.push_back(n);
  }
  return k;
}

} // namespace elsewise
