// SPDX-License-Identifier: Apache-2.0
// The list of launch arguments of a scheduled kernel, in order. It knows what is passed and not how.
#include "compiler/ir/abi.h"
#include "compiler/ir/axes.h"
#include <algorithm>
#include <map>
#include <set>

namespace elsewise {

static bool reads_position(const Kernel &k, const std::vector<std::vector<Step>> &lists) {
  for (const auto &steps : lists)
    for (const Step &s : steps)
      if (k[s.node].op == Op::Pos && k[s.node].a == flat_axis) return true;
  return false;
}

bool uses_flat(const Kernel &k) {
  for (const Piece &p : k.pieces)
    for (const auto &box : p.boxes)
      for (const Range &r : box)
        if (r.axis == flat_axis) return true;
  return reads_position(k, k.guards) || reads_position(k, k.bodies);
}

bool uses_rows(const Kernel &k) {
  if (!k.row.empty() || uses_flat(k)) return true;
  for (size_t a = 0; a < k.form.args.size(); ++a)
    if (!k.form.same_view[a] && (k.form.args[a] == Access::Broadcast || k.form.args[a] == Access::Strided)) return true;
  const std::vector<uint8_t> &axes = k.form.row_axes;
  for (const auto *lists : {&k.guards, &k.bodies})
    for (const auto &steps : *lists)
      for (const Step &s : steps)
        if (k[s.node].op == Op::Pos && std::find(axes.begin(), axes.end(), k[s.node].a) != axes.end()) return true;
  return false;
}

bool is_identity(const Kernel &k, uint32_t piece) {
  const Piece &p = k.pieces[piece];
  return std::all_of(p.values.begin(), p.values.end(), [&](NodeId v) {
    return k[v].op == Op::Load && k[v].a < k.form.same_view.size() && k.form.same_view[k[v].a];
  });
}

bool skips_blocks(const Kernel &k) {
  if (k.form.rows != 0 || !k.form.unit_pitch) return false;
  bool identity = false;
  for (uint32_t p = 0; p < k.pieces.size(); ++p) {
    if (k.pieces[p].guard != no_node) return false;
    identity |= is_identity(k, p);
  }
  return identity;
}

bool has_live(const Kernel &k) { return skips_blocks(k) && !k.form.many; }

ItemLayout item_layout(const Kernel &k) {
  ItemLayout l{};
  l.item_bytes = sizeof(Slot) * (slots(k, Backend::Cuda).size() + 1);
  l.capacity =
      k.form.many > 2 * sizeof(Slot) ? (k.form.many - 2 * sizeof(Slot)) / (l.item_bytes + sizeof(uint32_t)) : 0;
  l.items_at = (sizeof(uint32_t) * (1 + l.capacity) + sizeof(Slot) - 1) / sizeof(Slot) * sizeof(Slot);
  l.bytes = l.items_at + l.capacity * l.item_bytes;
  return l;
}

bool can_have_segments(const Kernel &k) {
  if (k.pieces.size() > 65535) return false; // their numbers have two bytes
  for (const Piece &p : k.pieces) {
    if (p.guard != no_node) return false;
    for (const auto &box : p.boxes)
      for (const Range &r : box) {
        if (r.axis == flat_axis && (k.form.rows != 0 || !k.form.unit_pitch)) return false;
        for (const NodeId bound : {r.lo, r.hi})
          if (bound != no_node && k[bound].stage != Stage::Host) return false;
      }
  }
  return true;
}

std::vector<uint32_t> bodies(const Kernel &k) {
  std::map<std::vector<NodeId>, uint32_t> first;
  std::vector<uint32_t> of;
  for (uint32_t p = 0; p < k.pieces.size(); ++p) of.push_back(first.insert({k.pieces[p].values, p}).first->second);
  return of;
}

SegmentLayout segment_layout(const Kernel &k) {
  SegmentLayout at;
  at.count = k.form.segments;
  at.begin_bytes = k.form.narrow ? 4 : 8;
  at.piece_bytes = k.pieces.size() < 256 ? 1 : 2;
  at.entries = !k.tables.empty();
  auto up = [](size_t n, size_t to) { return (n + to - 1) / to * to; };
  at.piece_at = size_t(at.count) * at.begin_bytes;
  at.entry_at = up(at.piece_at + size_t(at.count) * at.piece_bytes, at.entries ? 2 : 1);
  at.size = up(at.entry_at + (at.entries ? size_t(at.count) * 2 : 0), at.begin_bytes);
  return at;
}

size_t slot_bytes(const Kernel &k, const SlotInfo &s) {
  return s.kind == SlotKind::Live       ? sizeof(LiveRanges)
         : s.kind == SlotKind::Segments ? segment_layout(k).size
                                        : sizeof(Slot);
}

NodeId bound_node(const Kernel &k, const SlotInfo &s) {
  if (s.kind != SlotKind::Begin && s.kind != SlotKind::End) return no_node;
  const Range &r = k.pieces[s.index].boxes[s.box][s.range];
  return s.kind == SlotKind::Begin ? r.lo : r.hi;
}

uint8_t bound_axis(const Kernel &k, const SlotInfo &s) { return k.pieces[s.index].boxes[s.box][s.range].axis; }

uint32_t bound_slot(const Kernel &k, const std::vector<SlotInfo> &list, NodeId bound, uint8_t axis) {
  for (uint32_t s = 0; s < list.size(); ++s)
    if ((list[s].kind == SlotKind::Begin || list[s].kind == SlotKind::End) && bound_node(k, list[s]) == bound &&
        bound_axis(k, list[s]) == axis)
      return s;
  return ~0u;
}

bool is_dense(const Kernel &k, uint32_t argument) { return argument < k.form.dense.size() && k.form.dense[argument]; }

bool reads_anywhere(const Kernel &k, NodeId read) {
  const Reading &r = k.reads[k[read].c];
  if (r.tested != Reading::No) return true;
  const uint64_t all = all_axes(k[read].b - k[read].sub);
  return (r.own | r.proved) == all && (r.free || r.own == all) && r.premises.empty();
}

std::vector<SlotInfo> slots(const Kernel &k, Backend backend) {
  const Form &f = k.form;
  const uint32_t arguments = uint32_t(k.arguments.size()), rows = f.rows;
  const bool gpu = backend == Backend::Cuda, positions = uses_flat(k);
  std::set<std::pair<NodeId, uint8_t>> passed; // bounds: equal ones share a slot
  auto read = [&](uint32_t a) { return f.args[a] != Access::Absent && !f.same_view[a]; };
  std::set<uint32_t> tables;
  for (const Inst &i : k.insts)
    if (i.op == Op::Read) tables.insert(k.reads[i.c].argument);
  std::vector<SlotInfo> list;
  auto add = [&](SlotKind kind, uint32_t index = 0, uint32_t box = 0, DType type = DType::Index, uint8_t range = 0) {
    list.push_back({kind, index, box, type, range});
  };

  for (uint32_t o = 0; o < k.outputs.size(); ++o) add(SlotKind::Out, o, 0, k.outputs[o]);
  for (uint32_t a = 0; a < arguments; ++a)
    if (read(a)) add(SlotKind::In, a, 0, k.arguments[a].type.dtype);
  for (const uint32_t a : tables) add(SlotKind::Table, a, 0, k.arguments[a].type.dtype);
  for (uint32_t u = 0; u < k.uniforms.size(); ++u) add(SlotKind::Uniform, u, 0, k[k.uniforms[u]].type);
  if (rows) add(SlotKind::Rows);
  add(SlotKind::Extent);
  const bool segments = gpu && f.segments;
  for (uint32_t p = 0; !segments && p < k.pieces.size(); ++p)
    for (uint32_t b = 0; b < k.pieces[p].boxes.size(); ++b) {
      const auto &box = k.pieces[p].boxes[b];
      for (uint8_t i = 0; i < box.size(); ++i)
        for (const SlotKind kind : {SlotKind::Begin, SlotKind::End}) {
          const NodeId bound = kind == SlotKind::Begin ? box[i].lo : box[i].hi;
          if (bound == no_node || k[bound].stage != Stage::Host) continue; // a row works its own bounds out
          if (passed.insert({bound, box[i].axis}).second) add(kind, p, b, DType::Index, i);
        }
    }
  const bool flat = gpu && f.flat, in_rows = !flat || uses_rows(k);
  for (uint32_t r = 0; in_rows && r + 1 < rows; ++r) add(SlotKind::RowLength, r);
  if (positions) {
    for (uint32_t r = 0; r < rows; ++r) add(SlotKind::RowPitch, r);
    if (!f.unit_pitch) add(SlotKind::InnerPitch);
  }
  auto moved = [&](uint32_t a) { // by its own strides, along rows
    return read(a) && (!flat || f.args[a] == Access::Broadcast || f.args[a] == Access::Strided);
  };
  for (uint32_t o = 0; !flat && o < k.outputs.size(); ++o)
    for (uint32_t r = 0; r < rows; ++r) add(SlotKind::OutStride, r);
  for (uint32_t a = 0; a < arguments; ++a)
    for (uint32_t r = 0; moved(a) && r < rows; ++r) add(SlotKind::InStride, a, r);
  if (f.out == Access::Strided) add(SlotKind::OutInner);
  for (uint32_t a = 0; a < arguments; ++a)
    if (read(a) && (f.args[a] == Access::Strided || f.args[a] == Access::Column || f.args[a] == Access::Tiled))
      add(SlotKind::InInner, a);
  for (const uint32_t a : tables)
    for (uint32_t axis = 0, rank = uint32_t(k.arguments[a].type.rank); axis < rank; ++axis)
      if (axis + 1 < rank || !is_dense(k, a)) add(SlotKind::TableStride, a, axis);
  for (uint32_t length = 0; divides_by_products(f, gpu) && length < (in_rows ? rows : 1); ++length)
    for (const SlotKind kind : {SlotKind::Inverse, SlotKind::InverseShift}) add(kind, length, f.narrow ? 32 : 64);
  if (gpu) add(SlotKind::Shift);
  if (gpu && rows && !flat) add(SlotKind::Blocks);
  if (gpu && has_live(k)) add(SlotKind::Live);
  if (segments) add(SlotKind::Segments);
  return list;
}

bool divides_by_products(const Form &f, bool gpu) { return gpu && (f.flat || (f.rows > 0 && f.narrow && !f.tile)); }

int tile_threads(const Form &f) { return f.vector > 1 ? 8 : 32; }
int tile_width(const Form &f) { return tile_threads(f) * f.vector; }

int tile_pitch(const Form &f, int bytes) {
  // A warp reads at 8 places that are V positions apart, in 4 rows of the tile; where V is 1 at 32 places, in one row.
  // The former should be 16 bytes apart modulo the 128 of all banks, the latter 4.
  const int apart = f.vector > 1 ? 16 : 4;
  return f.tile + std::max(1, apart / (f.vector * bytes));
}

int64_t tile_bytes(const Form &f, int bytes) { return int64_t(tile_width(f)) * tile_pitch(f, bytes) * bytes; }

} // namespace elsewise
