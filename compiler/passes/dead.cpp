// SPDX-License-Identifier: Apache-2.0
// Drops pieces by constants alone. It proves nothing: the checker's warnings come from elsewhere.
#include "compiler/passes/dead.h"
#include "compiler/passes/rewrite.h"
#include <algorithm>

namespace elsewise {
namespace {

bool empty(const Kernel &k, const std::vector<Range> &box) {
  auto constant = [&](NodeId n) { return n != no_node && k[n].op == Op::Const; };
  auto value = [&](NodeId n) { return k.constants[k[n].a].integer; };
  return std::any_of(box.begin(), box.end(), [&](const Range &r) {
    if (r.lo != no_node && r.lo == r.hi) return true;
    const __int128 lo = constant(r.lo) ? value(r.lo) : 0; // positions start at 0
    return constant(r.hi) && value(r.hi) <= (r.lo == no_node || constant(r.lo) ? std::max<__int128>(lo, 0) : 0);
  });
}

} // namespace

Kernel dead(const Kernel &from, const PassOptions &) {
  Kernel k = from;
  std::vector<uint32_t> now(from.pieces.size(), ~0u); // where each piece went
  k.pieces.clear();
  for (size_t p = 0; p < from.pieces.size(); ++p) {
    Piece piece = from.pieces[p];
    const bool bounded = !piece.boxes.empty();
    std::erase_if(piece.boxes, [&](const auto &box) { return empty(k, box); });
    const bool constant = piece.guard != no_node && k[piece.guard].op == Op::Const;
    const bool never = (bounded && piece.boxes.empty()) || (constant && !k.constants[k[piece.guard].a].integer);
    if (constant) piece.guard = no_node;
    const bool only = p + 1 == from.pieces.size() && k.pieces.empty(); // a kernel keeps one piece, should none hold
    if (never && !only) continue;
    if (never) piece.boxes = from.pieces[p].boxes, piece.guard = from.pieces[p].guard;
    now[p] = uint32_t(k.pieces.size());
    k.pieces.push_back(piece);
    if (piece.boxes.empty() && piece.guard == no_node) break; // it takes every position that is left
  }
  std::erase_if(k.checks, [&](const Check &c) { return c.piece != ~0u && now[c.piece] == ~0u; });
  for (Check &c : k.checks)
    if (c.piece != ~0u) c.piece = now[c.piece];
  return prune(k);
}

} // namespace elsewise
