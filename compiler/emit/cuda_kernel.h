// SPDX-License-Identifier: Apache-2.0
// The printer of CUDA kernels, shared by the files that print its parts. It is no interface: emit.h is.
#pragma once
#include "compiler/emit/cuda_expr.h"
#include "compiler/ir/abi.h"
#include <algorithm>

namespace elsewise::cuda {

inline std::string num(int64_t v) { return std::to_string(v); }
/// `a && b`, or the one that is not empty.
inline std::string conjunction(const std::string &a, const std::string &b) {
  return a.empty() ? b : b.empty() ? a : a + " && " + b;
}

/// No range says where this piece holds.
inline bool unbounded(const Piece &piece) {
  return piece.boxes.empty() ||
         std::any_of(piece.boxes.begin(), piece.boxes.end(), [](const auto &box) { return box.empty(); });
}

/// Prints one kernel. The parts stand in cuda.cpp (the whole and its signature), cuda_names.cpp, cuda_classify.cpp,
/// cuda_values.cpp, cuda_bodies.cpp, cuda_packed.cpp, cuda_flat.cpp, cuda_segments.cpp, cuda_tiles.cpp and
/// cuda_list.cpp.
class KernelPrinter {
public:
  explicit KernelPrinter(const Kernel &k)
      : k_(k), form_(k.form), v_(std::max<int>(k.form.vector, 1)), helpers_(k.form.wide) {
    names_.reaches = std::make_shared<const Reaches>(reaches(k));
  }
  std::string run();

private:
  // The bounds of a box, by their places relative to the block: all of them hold.
  struct Bound {
    std::vector<std::string> lo, hi; // "b2", "e1"
  };
  // The place of a bound relative to the block, and what it is the place of: a parameter, or a row's own expression.
  struct Local {
    std::string name, parameter;
    NodeId row = no_node;
    bool flat = true; // on the row-major position: in row form seen from the row's first
  };

  // cuda_names.cpp
  void choose_names();
  // cuda_classify.cpp
  void choose_pieces();
  std::string row_offset(SlotKind, uint32_t argument, const std::string &step, const std::string &first = "") const;
  void print_origin(Lines &);
  void print_row_operand(Lines &, uint32_t a);
  void print_row_base(Lines &);
  void print_ends(Lines &);   // of the row
  void print_bounds(Lines &); // of the pieces
  void print_vectors(Lines &);
  void print_mask(Lines &);
  struct Words { // around a bound where a range begins, and before one where it ends
    const char *lo, *after_lo, *hi;
  };
  std::string any_box(size_t p, const Words &) const;
  std::string holds_everywhere(size_t p) const; // on all of [c, z)
  std::string meets(size_t p) const;            // on some of [c, z)
  std::string matches(size_t p) const;          // at p
  void print_reciprocals(Lines &);
  // cuda_values.cpp
  void choose_values();
  bool varies_slowly(NodeId) const;
  void name_values();
  std::vector<std::string> row_positions() const;
  KernelNames body_names(const std::string &place) const;
  std::string given(NodeId, bool lanes) const;
  std::vector<NodeId> slow(const Reads &) const;
  // An argument that is read beside the own element, a constant distance along the loop; ~0u: the node is no such read.
  uint32_t neighbour(NodeId, int64_t &distance) const;
  std::vector<uint32_t> arguments(const Reads &) const; // those whose vectors a body needs
  void print_slow(Lines &, int indent, size_t piece, const std::vector<NodeId> &slow);
  // cuda_bodies.cpp
  void print_straight(Lines &, int indent, size_t piece, bool have = false); // have: vectors are loaded
  void print_lanes(Lines &, int indent);
  void print_loads(Lines &, int indent); // of every operand that whole vectors hold; sets shared_
  void print_chain(Lines &, int indent);
  void print_loop(Lines &, int indent, const std::string &head, bool lanes);
  void print_body(Lines &);
  void print_single(Lines &);
  void choose_early();
  void print_early(Lines &) const;
  void print_matches(Lines &, int indent, bool lanes);
  std::string loaded(uint32_t a);
  std::string element(uint32_t a, bool lanes) const;
  std::string position(bool lanes) const;
  // `named`: given nodes that have a variable where the call stands.
  std::string call(const std::string &name, const Reads &, bool lanes, size_t piece,
                   const std::vector<NodeId> &named = {}) const;
  // The operand that shares the output's vector variable, no_node if none.
  uint32_t shared(const std::vector<uint32_t> &args) const;
  std::string vector_name(uint32_t a) const { return a == shared_ ? "v" : vectors_[a]; }
  void conditional(Lines &, int indent, const std::string &head, const std::string &body) const;
  // cuda_flat.cpp
  void print_flat(Lines &);
  void print_flat_body(Lines &);
  void print_row_entry(Lines &);
  void print_lane(Lines &, int indent, bool lanes);
  std::string flat_element(uint32_t a, bool lanes) const;
  std::string flat_matches(size_t p) const;
  std::string quotient(const std::string &of, int length) const; // of the extent (0), of row axis `length` - 1
  // The loads of every vector that some piece reads; a body's vector is the output's where it can be: sets shared_.
  // What no whole vector holds is taken by lane: `gathered`, of the flat form.
  std::vector<std::string> vector_loads(std::vector<std::string> *gathered = nullptr);
  // cuda_segments.cpp
  void print_segments(Lines &);
  void print_segment_body(Lines &, bool loaded);
  void print_segment_tools(Lines &) const;
  void print_search(Lines &, const std::string &own) const;
  void print_segment_value(Lines &, int indent, const std::string &segment, bool lanes);
  void print_segment_lanes(Lines &, int indent, bool loaded);
  void print_segment_chain(Lines &, int indent);
  std::vector<size_t> segment_bodies() const;
  bool loads_early() const;
  // cuda_list.cpp
  void print_list_tools(Lines &) const;
  void print_item(Lines &) const;
  // cuda_packed.cpp
  class Bytes;
  void print_byte_vector(Lines &, DType) const;
  bool in_words(DType d) const { return bytes(d) == 1 && v_ % 4 == 0; } // how vectors of the dtype are kept
  bool whole_bytes(uint32_t a) const;
  std::string packed(size_t piece) const; // its value four bytes at a time; empty: that cannot be
  void print_packed(size_t piece, Lines &) const;
  std::string packed_call(size_t piece) const;
  // cuda_tiles.cpp
  void print_tile_place(Lines &);
  void print_tile_loads(Lines &);
  void print_tile_row(Lines &);
  void print_tiles(Lines &);
  // cuda.cpp
  void print_variables(Lines &, const std::string &body);
  void print_pieces(Lines &);
  struct Parameter {
    std::string type, name; // "const float *__restrict__ ", "x"
  };
  std::vector<Parameter> parameters() const;
  void print_shared(size_t p, Lines &);
  void print_tables(Lines &) const;
  bool asks_for_few_registers() const;
  void print_signature(Lines &);
  void print_whole(Lines &, DType) const;
  void print_tools(Lines &);
  void print_head(Lines &) const;

  std::string position_of_axis(uint32_t axis, bool lanes) const;
  bool small(NodeId) const;
  bool holds_small(NodeId) const;
  // The name of a row's position, where 32 bits may be too few for what is made of it; and the type of bounds: 128 bits
  // if a row's own bound may need them.
  std::string row_position(size_t d) const {
    return form_.narrow && !small_rows_ ? "i64(" + row_names_[d] + ")" : row_names_[d];
  }
  std::string_view bound_type() const {
    const bool rows = !k_.row.empty();
    return rows && form_.wide ? "i128" : rows && !small_rows_ ? "i64" : integer();
  }
  // In the flat form every lane compares a row's bound of the position in it, so that it is brought down to 32 bits.
  // Rows bring theirs down once, to compare in 32 bits too.
  bool clamps_bounds() const { return (form_.flat || (form_.narrow && !form_.wide)) && bound_type() != "int"; }
  bool clamps(const Local &l) const { return clamps_bounds() && l.row != no_node && !l.flat; }
  std::string_view integer() const { return form_.narrow ? "int" : "i64"; }
  bool same_view(uint32_t a) const { return a < form_.same_view.size() && form_.same_view[a]; }
  Access access(uint32_t a) const {
    return same_view(a) ? form_.out : a < form_.args.size() ? form_.args[a] : Access::Absent;
  }
  DType dtype(uint32_t a) const { return k_.arguments[a].type.dtype; }
  std::string vector_type(DType d) const { return std::string(spelling(d)) + "x" + num(v_); }
  bool identity(size_t p) const { return is_identity(k_, uint32_t(p)); }
  bool has(SlotKind kind, uint32_t index = 0) const {
    return std::any_of(slots_.begin(), slots_.end(),
                       [&](const SlotInfo &s) { return s.kind == kind && s.index == index; });
  }
  bool has_step(uint32_t argument, int axis) const {
    return std::any_of(slots_.begin(), slots_.end(), [&](const SlotInfo &s) {
      return s.kind == SlotKind::TableStride && s.index == argument && int(s.box) == axis;
    });
  }
  static std::string inverse_name(uint32_t length) { return length ? "inverse" + num(length - 1) : "inverse"; }
  static std::string box_suffix(size_t box, size_t range = 0) {
    return (box ? std::string(1, char('a' + box)) : "") + (range ? "x" : "");
  }
  // The device function of a piece: pieces of one value share it where a table tells them apart.
  std::string function(size_t p) const { return "piece" + num(int64_t(shares(p) ? bodies_[p] : p) + 1); }
  bool shares(size_t p) const { return form_.segments || values_read_[p].entry; }
  bool always(size_t p) const { return unbounded(k_.pieces[p]); }
  bool residual(size_t p) const { return k_.pieces[p].guard != no_node; }

  const Kernel &k_;
  const Form &form_;
  const int v_;
  std::vector<SlotInfo> slots_;
  KernelNames names_;
  mutable Helpers helpers_;                     // what any text needed
  std::set<uint32_t> beside_;                   // arguments read as neighbours: their vectors stay as they were read
  std::set<uint32_t> early_;                    // arguments that every piece reads: loaded ahead of the mask
  std::vector<NodeId> row_values_;              // of names_.given: those that the row works out
  std::string out_;                             // name of the output pointer
  std::vector<std::string> vectors_, pointers_; // by argument: its vector variable and vector pointer
  std::vector<std::string> values_;             // by argument: a Broadcast operand's value; flat: where a row begins
  std::string column_;                          // flat: the position in a row
  bool enters_ = false;                         // flat: a row has values of its own
  std::vector<std::string> tiles_;              // by argument: a Tiled operand's shared memory
  std::string outs_;                            // name of its vector pointer
  std::vector<std::string> strides_;            // by argument: what its stride parameters' names begin with
  std::vector<std::vector<Bound>> bounds_;      // by piece, by box
  std::vector<Local> locals_;                   // of the bounds: "e1" of "end1"
  std::vector<std::string> row_names_;          // by row axis: its position in the kernel's body
  bool small_rows_ = true;                      // no row's bound leaves 32 bits where form.narrow says so
  std::vector<Reads> values_read_, guards_read_;
  std::vector<uint32_t> bodies_; // by piece: the first with its value
  std::string entry_;            // while calls are printed: which constant of a table they take; empty: the piece's
  size_t count_ = 0;             // pieces that can be reached: a piece that always holds ends the list
  size_t masked_ = 0;            // pieces with a bit in the mask; 0: no mask
  bool lanes_ = false;           // vectors inside the row that no sole piece covers choose by lane
  bool byte_lanes_ = false;      // the kernel takes single bytes out of vectors, or puts them there
  bool nothing_ = true;          // every piece is the element itself
  bool position_ = false;        // some piece or guard reads the position as a value
  uint32_t shared_ = ~0u;        // while a body is printed: see shared()
  std::set<DType> vector_types_; // that the text used
  std::set<DType> whole_types_;  // whose vectors it loads by whole()
  std::set<uint32_t> vector_operands_; // arguments whose vector variable the text used
  std::set<uint32_t> vector_pointers_;
};

} // namespace elsewise::cuda
