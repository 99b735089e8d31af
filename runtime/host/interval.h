// SPDX-License-Identifier: Apache-2.0
// What values an index can take over a run of positions: interval arithmetic that never leaves a value out. It
// allocates little and reads no element data.
#pragma once
#include "compiler/ir/ir.h"
#include "runtime/host/evaluate.h"
#include <span>

namespace elsewise {

/// Every value of an index lies in [lo, hi]. `overflow`: some may leave 128 bits; lo and hi then say nothing.
struct IndexRange {
  __int128 lo = 0, hi = 0;
  bool overflow = false;
};

/// What is known of one value of any type. Bool: lo, hi in {0, 1}. Floats: real_lo, real_hi, and whether NaN may occur
/// besides; nothing but NaN: real_lo is above real_hi.
struct Value {
  __int128 lo = 0, hi = 0;
  double real_lo = 0, real_hi = 0;
  bool nan = false, overflow = false;
};

/// A region of the domain: what each position can be in it, ends included.
struct Region {
  struct Ends {
    int64_t first, last;
  };
  Region(int64_t first, int64_t last) : flat{first, last} {} // of one row
  Ends flat;
  std::vector<Ends> axes = {}; // by Kernel::axes; those in no loop are not asked for
};

/// Evaluates a piece of a scheduled kernel over a region, only what they may reach: the other arm of a
/// `where` whose condition is settled there, the right side of `and`, `or` likewise, is not looked at. At a single
/// position it is exact, as far as no tensor is involved.
class Intervals {
public:
  /// What a call must see to for one Reading: whose axes' indices are looked at, and of which nothing can show that
  /// they are in bounds, so that to reach the read is a fault.
  struct Look {
    uint64_t axes = 0, never = 0;
  };
  /// values, poisoned: of HostProgram, which must outlive this. `looks`: by Kernel::reads, or none; `shapes`: by
  /// argument.
  Intervals(const Kernel &, std::span<const HostValue> values, std::span<const uint8_t> poisoned,
            std::span<const Look> looks = {}, std::span<const std::span<const int64_t>> shapes = {});

  struct Found {
    HostFault::What fault = HostFault::None; // index arithmetic that is not inside a tensor-free comparison leaves 64
                                             // bits, or a host node it needs is poisoned
    NodeId node = no_node;                   // which one
    uint8_t axis = 0;                        // OutOfBounds: of the tensor
    __int128 index = 0;                      // OutOfBounds: what the index would be
    bool wide = false; // a comparison, or a uniform that element code reads, leaves 64 bits: Form::wide
  };
  /// The residual guard, and unless it is false on all of them, the values.
  Found piece(uint32_t piece, const Region &);
  /// The residual guard of the piece on all of a region, whatever the tensors; Varies if that cannot be said.
  enum class Truth : uint8_t { Never, Always, Varies };
  Truth guard(uint32_t piece, const Region &);
  /// A range's end, which stands for comparisons that no tensor entered: only the conditions in it are values.
  Found bound(NodeId, const Region &);
  /// One node of any type, as a value.
  Found value(NodeId, const Region &);
  /// The values of one Index node.
  IndexRange range(NodeId, const Region &);
  /// Whether code that works a row's bound might leave 64 bits anywhere in it.
  bool is_far(NodeId, const Region &);

private:
  Value evaluate(NodeId, bool exact);
  Value work(NodeId, bool exact);
  bool compared_exactly(const Inst &compare, NodeId operand) const;
  Value host(NodeId, bool exact);
  void skip(NodeId operand);
  Value read(NodeId);
  void visit_bound(NodeId);
  bool at_point(NodeId, std::span<const Value>, Value &out) const;
  void trouble(HostFault::What, NodeId);
  void checked(NodeId, Value &, bool exact);
  void look_at_ends(const Value &real, const Value &other);

  const Kernel &k_;
  std::span<const HostValue> values_;
  std::span<const uint8_t> poisoned_;
  std::span<const Look> looks_;
  std::span<const std::span<const int64_t>> shapes_;
  std::vector<bool> holds_read_;   // by node: it is a read, or stands above one; empty without looks
  std::vector<Value> memo_[2];     // by exactness
  std::vector<uint32_t> known_[2]; // in which evaluation
  uint32_t round_ = 0;
  const Region *region_ = nullptr; // of the evaluation under way
  Found found_;
};

} // namespace elsewise
