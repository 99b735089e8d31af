// SPDX-License-Identifier: Apache-2.0
// The one list of launch arguments, for both backends: the emitters name them, the host fills them. Order here is order
// there.
#pragma once
#include "compiler/ir/ir.h"

namespace elsewise {

/// Eight bytes: CUDA is given pointers to slots, CPU code the array.
union Slot {
  void *pointer;
  int64_t integer;
  double real;
  float single;
  uint8_t byte; // Bool
};
static_assert(sizeof(Slot) == 8);

enum class SlotKind : uint8_t {
  Out,         // pointer of output `index`
  In,          // pointer of argument `index` (absent if it is the same view as `out`)
  Table,       // pointer of argument `index` as it is read at indices: never moved, never the same view as `out`
  Uniform,     // Kernel::uniforms[index], in its node's type
  Rows,        // i64: number of rows                                         (form.rows > 0)
  Extent,      // i64: positions along the inner axis
  End,         // i64: box bound hi that the host knows, clamped to [0, n]; `index` piece, `box`, `range` in it (flat
               // positions: in row form the code subtracts rowbase; of the inner axis: clamped to [0, extent])
  Begin,       // i64: box bound lo, likewise
  RowLength,   // i64: length of row axis `index`; axis 0 is the fastest; the slowest needs none
  RowPitch,    // i64: how much one step of row axis `index` adds to the flat position (only if positions are used)
  InnerPitch,  // i64: the same for the inner axis                            (!unit_pitch, positions used)
  OutStride,   // i64, elements: output's stride along row axis `index`
  InStride,    // i64, elements: argument `index`'s stride along row axis `box`
  OutInner,    // i64, elements: output's inner stride                        (out access Strided)
  InInner,     // i64, elements: argument `index`'s inner stride              (access Strided or Tiled)
  TableStride, // i64, elements: argument `index`'s own stride along its axis `box`, for reads at indices (the last axis
               // of a Form::dense one has none); 0 for an axis of length 1 that every read takes at the own position
  Inverse, // uint32, uint64 (`box`: its bits): n / length as a product, of row axis `index` - 1, or with `index` 0 of
           // the extent (form.flat), else of Blocks; in the type's high half        (see divides_by_products)
  InverseShift, // int32: how far that half goes right then
  Shift,        // int32: (out's address / size) mod V                          (GPU only)
  Blocks,       // uint32: blocks along the inner axis                          (GPU only, form.rows > 0, !form.flat)
  Live,         // LiveRanges by value: 48 bytes                                (GPU only, see has_live)
  Segments,     // a table by value, see SegmentLayout; there is no Begin or End then (GPU only, form.segments)
};

struct SlotInfo {
  SlotKind kind;
  uint32_t index = 0, box = 0;
  DType type = DType::Index;
  uint8_t range = 0; // Begin, End: which range of the box
};

/// Blocks of an in-place launch that have work: blocks from begin[r] on are the domain's first[r], first[r]+1, …;
/// unused begins are all ones.
struct LiveRanges {
  int64_t first[4];
  uint32_t begin[4];
};

/// How the table of segments lies in memory: `count` places where a segment begins, ascending, of `begin_bytes` (4 in
/// the narrow form, else 8); for each its piece, a number from 1 on, the first of those with the same values; where
/// some value needs it, Piece::entry in two bytes. The first begins at 0; what is not used begins at the most that the
/// type holds, and at least one is not.
struct SegmentLayout {
  uint32_t count = 0, begin_bytes = 8, piece_bytes = 1;
  bool entries = false;
  size_t piece_at = 0, entry_at = 0, size = 0;
};
SegmentLayout segment_layout(const Kernel &);
/// Every range is the host's and cuts each row at the same places, and no element decides its piece: so a table can
/// tell it.
bool can_have_segments(const Kernel &);
/// By piece: the first one with the same values, whose body it shares.
std::vector<uint32_t> bodies(const Kernel &);

/// Bytes of a slot: eight but for tables.
size_t slot_bytes(const Kernel &, const SlotInfo &);

/// True if some piece reads or bounds a flat position.
bool uses_flat(const Kernel &);
/// True if the flat form's code needs to know its row: a position of it is used, or an operand lies otherwise in rows
/// than `out` does.
bool uses_rows(const Kernel &);
/// True for a piece whose value is the element itself of an argument that is the same view as `out`: nothing to do
/// there.
bool is_identity(const Kernel &, uint32_t piece);
/// The argument is read at indices, and where it is, its last axis is contiguous.
bool is_dense(const Kernel &, uint32_t argument);
/// A read that may stand before the guards that lead to it: nothing but its own condition, or the type of the call,
/// keeps its indices in bounds.
bool reads_anywhere(const Kernel &, NodeId read);
/// One row, in place, an identity piece, no residual guards: whole blocks can be left out of the launch.
bool skips_blocks(const Kernel &);
/// Its launch takes their ranges. (One over a list of tensors takes a range as a tensor of its own.)
bool has_live(const Kernel &);

/// What a launch over a list takes (Form::many), as one argument by value:
///     struct Items { int count; unsigned begin[N]; struct { slots, each of eight bytes; i64 block; } of[N]; }
/// From block begin[k] of the grid on it is the turn of item k, whose own first block is that of the grid plus `block`.
struct ItemLayout {
  size_t capacity, item_bytes, items_at, bytes; // N, of one item, where `of` is, of all
};
ItemLayout item_layout(const Kernel &);

enum class Backend : uint8_t { Cpu, Cuda };
/// The slots of a scheduled kernel.
std::vector<SlotInfo> slots(const Kernel &, Backend);
/// The host node behind a Begin or End slot; no_node for the other kinds.
NodeId bound_node(const Kernel &, const SlotInfo &);
/// The axis that a Begin or End slot bounds: flat_axis, or the inner one.
uint8_t bound_axis(const Kernel &, const SlotInfo &);
/// Where `bound`, a range's lo or hi, is passed: index into slots(). Equal bounds of one axis share the slot of the
/// first, whichever end that was. ~0u: nowhere, as a row's own bound is.
uint32_t bound_slot(const Kernel &, const std::vector<SlotInfo> &, NodeId bound, uint8_t axis);

inline constexpr int block_threads = 256; // threads a block in one-row form: a block covers 256 * V positions

/// Whether a kernel is given inverses of lengths: 64-bit rows divide.
bool divides_by_products(const Form &, bool gpu);
/// With Form::tile: threads along the inner axis, and positions that a tile has there. Eight vectors of `out` are a
/// line of memory.
int tile_threads(const Form &);
int tile_width(const Form &);
/// Elements of `bytes` from one position of a tile to the next in shared memory: its rows, and a few more, so that the
/// threads of a warp read from different banks.
int tile_pitch(const Form &, int bytes);
/// Shared memory that a Tiled argument of `bytes` an element takes; all of a block may have `most_tile_bytes`.
int64_t tile_bytes(const Form &, int bytes);
inline constexpr int64_t most_tile_bytes = 48 * 1024;

} // namespace elsewise
