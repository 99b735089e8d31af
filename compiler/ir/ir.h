// SPDX-License-Identifier: Apache-2.0
// The typed IR. Nodes are position-free recipes, hash-consed, operands before users; roots are pieces. It holds no
// CUDA, LLVM or torch spelling.
//
// Semantics of every operation, the same on each backend and in the host's evaluator:
// clang-format off
//   Index     exact integers. The host works in 128 bits, and in more for bounds alone; a device in 64 (128: Form::wide).
//   iN uN     wrap. x//0 and x%0 are 0; MIN//-1 wraps; // and % have Python's signs; a shift by the width or more, or by
//             less than 0, gives 0 (an arithmetic right shift of a negative number: -1); ** wraps, a negative exponent
//             truncates as torch does (1 and -1 stay, others 0; 0**-1 is 0).
//   F32 F64   IEEE, to nearest even, no contraction, no flush to zero. // is floor(a/b) as torch computes it (from fmod),
//             % has the divisor's sign (torch.remainder). F16 and BF16 occur only in Load, Read, Const, Cast and as
//             stored values: arithmetic on them is F32.
//   Bool      Load and Read take a byte, non-zero is true.
//   Cast      float -> int truncates, saturates, NaN is 0; int -> int wraps; -> Bool is != 0; Bool -> number is 0 or 1;
//             float -> half rounds to nearest even. Index -> Data: as from i64. Float -> Index: exact on the host, where
//             it saturates short of 128 bits, so that a bound can be moved by one.
// clang-format on
#pragma once
#include "compiler/source/source.h"
#include "compiler/types/types.h"
#include <string>
#include <unordered_map>
#include <vector>

namespace elsewise {

using NodeId = uint32_t;
inline constexpr NodeId no_node = ~0u;

enum class Op : uint8_t {
  Const,   // a: index into constants
  Param,   // a: argument; Index, F64 or Bool
  Len,     // a: axis, an index into Kernel::axes (flat_axis: the number of elements; no_axis: the positions of a row)
  Pos,     // a: likewise (flat_axis: the row-major index); after the window pass, counted from the window's Origin
  ArgLen,  // a: argument, b: which of its axes; as a signed number, negative from the right. Host
  Load,    // a: argument, read at this element
  Unary,   // sub: UnaryOp
  Binary,  // sub: BinaryOp
  Compare, // sub: CompareOp; operands a, b of one type, result Bool; c: Exactness
  Logic,   // sub: LogicOp; Bool operands
  Where,   // a ? b : c; b and c of the node's type
  Cast,    // of a to the node's type
  Call,    // sub: row of the builtin table; operands [a, a + b) in Kernel::operands
  Read,   // an argument's element at indices; operands [a, a + b) in Kernel::operands, c: index into Kernel::reads. The
          // operands are one Index node an axis of the argument; if sub is 1, a Bool node stands before them, and where
          // it is false nothing is read and the element is 0
  Origin, // a: as Pos: the domain's position at which the window begins, only where Form::window; list_axis: the call's
          // place in a list. Host
  Entry,  // a: index into Kernel::tables; the constant at Piece::entry of the piece whose value this is. Element; in no
          // guard and no bound
};
enum class UnaryOp : uint8_t { Neg, BitNot };
enum class BinaryOp : uint8_t { Add, Sub, Mul, Div, FloorDiv, Mod, Pow, Shl, Shr, BitAnd, BitOr, BitXor };
enum class CompareOp : uint8_t { Lt, Le, Gt, Ge, Eq, Ne };
enum class LogicOp : uint8_t { And, Or, Not };
/// Below which operands of a comparison index arithmetic may leave 64 bits: those that the host knows beside data, all
/// where no tensor has entered, and none of what a builtin compares, which are values.
enum class Exactness : uint8_t { Data, Exact, Value };
const char *spelling(Op);
const char *spelling(UnaryOp);
const char *spelling(BinaryOp); // "add", "floordiv"
const char *spelling(CompareOp);
const char *spelling(LogicOp);
const char *spelling(Exactness);
/// A comparison with its operands exchanged: `a < b` is `b > a`.
CompareOp mirrored(CompareOp);

struct Inst {
  Op op;
  uint8_t sub = 0;
  DType type = DType::Index;
  Stage stage = Stage::Host;
  uint32_t a = 0, b = 0, c = 0;
  bool operator==(const Inst &) const = default;
};

/// A constant by type: `integer` for Index, Bool and integers; `real` for floats (exact in the type it has). Floats
/// compare by bits.
struct Constant {
  __int128 integer = 0;
  double real = 0;
};

/// lo <= position(axis) < hi; no_node is open. axis: flat_axis; Form::inner_axis; or no_axis, positions in the row that
/// only conditions bound. Host or Row nodes of type Index; they are clamped to the axis.
struct Range {
  uint8_t axis;
  NodeId lo = no_node, hi = no_node;
};

/// What a proof that an index is in bounds took from the shapes of a call, for the host to look at.
struct Premise {
  enum What : uint8_t {
    NotEmpty, // axis `axis` of the argument has an element
    AsLong,   // it is at least as long as the domain's `of`, an index into Kernel::axes, or flat_axis
  } what;
  uint8_t axis;
  uint8_t of = 0;
  bool operator==(const Premise &) const = default;
};

/// What is read at indices, and why each index is in bounds. Sets of axes are bits, axis 0 the lowest.
struct Reading {
  uint32_t argument;
  uint64_t own = 0;     // axes read at the element's own position: `..`. A call sees to it that such an axis is
                        // as long as the domain's, or has length 1 and stride 0
  bool settled = false; // the bounds pass has looked at it; until then the rest says nothing
  uint64_t proved = 0;  // axes whose index is in bounds wherever the read is reached, given the premises
  uint64_t checked = 0; // axes whose index the host works out at a call for the positions that reach the read:
                        // those not proved, and those proved whose premises fail
  std::vector<Premise> premises; // of what is proved
  bool free = false;             // what is proved needs no guard of a piece, only the read's own condition: so it holds
                                 // wherever the read stands
  // By the ranges pass, of a read that stands in a row, ahead of what leads to it: the code compares the indices too,
  // as the condition says, or its right side where the read has a condition of its own. Where they are out of bounds,
  // no position of the row reaches it: the host looks at the read by its own condition alone.
  enum Tested : uint8_t { No, Alone, Behind } tested = No;
  bool operator==(const Reading &) const = default;
};

struct Piece {
  std::vector<std::vector<Range>> boxes; // or of ands, at most 4; none: every position. Filled by the ranges pass. One
                                         // range an axis in a box
  NodeId guard = no_node; // Bool; before the ranges pass the whole guard, afterwards the residual that no range can say
  std::vector<NodeId> values; // one an output, of Kernel::outputs' type
  uint32_t entry = 0;         // which constant of a table its values take
  Span where;
  std::string text;              // the piece's source on one line, for comments
  uint32_t line = 1, column = 1; // where it starts, in characters
};

/// An axis of the domain that the kernel knows: one of the header, or one that `border()` takes.
struct Axis {
  std::string name; // of the header; else `axis0`, …
  int dim = 0;      // from the left, or, where negative, from the right (-1: the last): so code serves any rank
};

/// An axis counted from the left, of one that is counted from the right where it is negative.
inline int64_t from_left(int64_t dim, size_t rank) { return dim < 0 ? dim + int64_t(rank) : dim; }

/// Constants in which pieces of one shape differ, so that one body serves them all.
struct Table {
  DType type;
  std::vector<Constant> entries;
};

struct Argument {
  std::string name;
  ArgType type;
};

/// What the host must find true at a call before anything is written, each only if its piece has a position (piece ==
/// none: always).
struct Check {
  enum What : uint8_t {
    NotNaN,   // node (F64): a coverage proof assumed a number -> ValueError
    NonZero,  // node (Index): a uniform divisor -> ZeroDivisionError
    Fits,     // node (Index): must fit `dtype` -> OverflowError
    InBounds, // node (a Read, of any stage): its indices are in bounds wherever its own condition holds, since the
              // guard's right side reads it there; the code's read is another, which a row makes -> IndexError
  } what;
  NodeId node;
  DType dtype = DType::Index;
  uint32_t piece = ~0u;
  Span where;
  bool in_guard = false; // the piece's guard needs it, so that even a position that the guard refuses does
};

/// One placed node. `under`: the step of the where, and, or whose arm protects it (none: ~0u).
struct Step {
  NodeId node;
  uint32_t under = ~0u;
};

/// How an operand is reached along the inner axis.
enum class Access : uint8_t {
  Absent,    // not read elementwise
  Vector,    // contiguous, and at the same place modulo V in every row as `out`
  Scalar,    // contiguous, anywhere: V scalar loads
  Broadcast, // inner stride 0: read once a row
  Strided,   // any other inner stride; in the flat form also any other rows
  Column,    // Form::flat alone: any inner stride, and the same in every row
  Tiled,     // Form::tile alone: any other inner stride, and along row axis 0 the elements are neighbours
};

/// Layout class: what of shapes, strides and alignment decides code. Everything else of them is a launch argument.
struct Form {
  uint8_t rows = 0;            // row axes left after merging; 0: one row
  bool unit_pitch = true;      // the inner axis is the logical innermost one: flat position = rowbase + c
  bool wide = false;           // index arithmetic on the device needs 128 bits
  bool narrow = false;         // GPU: rows, lengths, offsets and the positions of the whole fit 32 bits
  bool window = false;         // the loop is over a part of the domain, which begins at its Origin
  bool flat = false;           // rows > 0, GPU: `out` is dense over rows x inner axis, and a thread takes V consecutive
                               // positions of it across the ends of rows. Vector and Scalar: dense as `out` is; a
                               // position in a row fits 32 bits
  uint16_t segments = 0;       // room in the table that finds a position's piece (GPU only, see Segments in abi.h); 0:
                               // there is none
  Access out = Access::Vector; // Vector or Strided
  std::vector<Access> args;    // by argument; parameters: Absent
  std::vector<bool> same_view; // by argument: the identical view as `out`: no restrict, one pointer
  std::vector<bool> dense;     // by argument: read at indices, and its last axis is contiguous; may be shorter
  uint8_t vector = 4;          // V: positions a thread (GPU)
  uint8_t tile = 0; // rows > 0, GPU: a block takes this many rows along row axis 0, tile_width() positions of each, and
                    // brings its part of Tiled arguments to shared memory first; 0: no argument is Tiled
  uint16_t many = 0; // rows == 0: a launch takes a list of tensors, in this many bytes of launch arguments (GPU)
  // Where the kernel's axes went: an index into Kernel::axes, or no_axis where the loop's axis holds no position that a
  // node uses. An axis of length 1 is in no loop: its position is 0.
  uint8_t inner_axis = no_axis;
  std::vector<uint8_t> row_axes; // by row axis, axis 0 the fastest; may be shorter than `rows`: no_axis
  bool operator==(const Form &) const = default;
};

struct Kernel {
  std::vector<Inst> insts;
  std::vector<Span> spans; // by node, outside the hash: where index arithmetic or a read was written first (empty:
                           // nowhere); may be shorter than insts
  std::vector<NodeId> operands;
  std::vector<Constant> constants;
  std::vector<Table> tables;
  std::vector<Reading> reads; // equal ones are one
  std::vector<Argument> arguments;
  std::vector<Axis> axes;
  std::vector<DType> outputs; // k outputs; one today
  std::vector<Piece> pieces;
  std::vector<Check> checks;
  std::string source; // the whole spec, for the head comment
  Form form;          // set by the axes and form passes
  // Filled by the schedule pass, empty until then.
  std::vector<NodeId> host;              // host nodes that anything needs, in order
  std::vector<NodeId> uniforms;          // host nodes that row and element code reads as launch arguments (not bounds)
  std::vector<NodeId> row;               // row nodes that bounds need, in order
  std::vector<std::vector<Step>> guards; // by piece: element nodes of the residual guard, in order
  std::vector<std::vector<Step>> bodies; // by piece: element nodes of the values, in order (Load included, once)

  const Inst &operator[](NodeId n) const { return insts[n]; }
  Span span(NodeId n) const { return n < spans.size() ? spans[n] : Span{}; }
};

/// The stage of a node by its operands, and of a position by the form. Host holds only Index, F64 and Bool nodes, and
/// casts of host nodes to any type; constants are Host everywhere. A scheduled kernel may hold a node later than this,
/// never earlier.
Stage natural_stage(const Kernel &, const Inst &);

/// Makes nodes of a Kernel; equal nodes are one. Folds only what is exact in every case (cast of cast that widened,
/// `and` with true, …).
class Builder {
public:
  explicit Builder(Kernel &);
  /// Where the nodes made from now on were written; kept for index arithmetic and reads.
  void at(Span where) { where_ = where; }
  NodeId constant(DType, Constant);
  NodeId integer(DType, __int128);
  NodeId real(DType, double);
  NodeId param(uint32_t argument, DType);
  NodeId len(uint32_t axis);
  NodeId pos(uint32_t axis);
  NodeId origin(uint32_t axis);
  NodeId arg_len(uint32_t argument, int32_t dim);
  NodeId entry(uint32_t table);
  NodeId load(uint32_t argument);
  NodeId unary(UnaryOp, NodeId);
  NodeId binary(BinaryOp, NodeId, NodeId);
  NodeId compare(CompareOp, NodeId, NodeId, Exactness = Exactness::Exact);
  NodeId logic(LogicOp, NodeId, NodeId = no_node);
  NodeId where(NodeId, NodeId, NodeId);
  NodeId cast(NodeId, DType);
  NodeId call(uint8_t row, DType, std::vector<NodeId>);
  /// `condition`: no_node if it is read always. One index an axis of the argument.
  NodeId read(const Reading &, NodeId condition, std::vector<NodeId> indices);

private:
  NodeId intern(Inst);
  NodeId find(const Inst &, uint64_t hash) const;
  Kernel &kernel_;
  Span where_;
  std::unordered_multimap<uint64_t, NodeId> seen_;
};

/// A word of the text that may follow the arguments in the line of a form: no name is printed so without quotes.
bool is_form_word(std::string_view);
/// The IR as text, a node a line (`%2 = floordiv %0, %1 : index host`); read.h takes it back.
std::string print(const Kernel &);
/// Empty if the IR is well formed, else what is wrong.
std::string verify(const Kernel &);
/// Operands of a node, in order.
std::vector<NodeId> operands(const Kernel &, NodeId);
std::vector<NodeId> operands(const Kernel &, const Inst &);

} // namespace elsewise
