// SPDX-License-Identifier: Apache-2.0
// The host's evaluator: uniform nodes once a call, exactly (integers in 128 bits, floats as doubles). It never touches
// element data.
#pragma once
#include "compiler/ir/abi.h"
#include "compiler/ir/ir.h"
#include <span>

namespace elsewise {

union HostValue {
  __int128 integer; // Index, Bool, integers
  double real;      // floats, already rounded to the node's type
};

struct HostFault {
  // Far is a fault only as a value: an index beyond 128 bits, which a bound or a comparison on the host still takes
  // right. `values` then holds the end of 128 bits on its side.
  enum What : uint8_t { None, Overflow, ZeroDivision, NotANumber, OutOfBounds, Far } what = None;
  NodeId node = no_node;
  Span where;          // of the spec's text; empty: the node stands nowhere in it
  std::string message; // without the source, which only the caller has
};

/// The lengths of a call's domain, and the loop over its window.
struct HostDomain {
  HostDomain(int64_t count) : count(count), extent(count), span(count) {} // one row, all of the domain
  int64_t count;                                                          // positions of the domain
  std::span<const int64_t> axes = {};                                     // lengths, by Kernel::axes
  std::span<const std::span<const int64_t>> shapes = {};                  // by argument
  int64_t extent;                                                         // of the inner axis; 0: the loop is empty
  int64_t span;                          // row-major positions from the loop's first to its last, both included
  int64_t origin = 0;                    // the loop's first, of the domain's row-major positions
  std::span<const int64_t> origins = {}; // by Kernel::axes; of a window only
  int64_t in_list = 0;                   // the call's place in a list of calls
  int64_t inner_pitch = 1;
  std::span<const int64_t> row_lengths = {}, row_pitches = {}; // axis 0 the fastest
};

/// Values of Kernel::host in `values` (indexed by NodeId; sized by the caller to insts.size()). What leaves 128 bits
/// (Far; beyond 2000 of them, Overflow) or a zero divisor poisons a node
/// (`poisoned` then holds the HostFault::What, else 0); a poisoned node is a fault only if a check, a bound or a
/// uniform of a piece that has positions needs it: see faults.h. `where`, `and`, `or` look only at what they need.
class HostProgram {
public:
  explicit HostProgram(const Kernel &);
  /// params: by argument (Param nodes only).
  void run(std::span<const HostValue> params, const HostDomain &, std::vector<HostValue> &values,
           std::vector<uint8_t> &poisoned) const;

private:
  struct Node {
    NodeId id;
    DType from; // the first operand's type
    uint8_t count;
    NodeId operands[3];
  };
  const Kernel &kernel_;
  std::vector<Node> nodes_; // lengths of rows, then those of Kernel::host
};

/// A value of a node as arithmetic.h has it, and back.
Constant constant_of(DType, HostValue);
HostValue host_value(DType, const Constant &);

/// A bound as its slot holds it: within [0, n].
int64_t clamp_bound(HostValue, int64_t n);
/// A uniform as its slot holds it: F32 in `single`, F64 in `real`, Bool in `byte`, integers extended to 64 bits in
/// `integer`.
Slot uniform_slot(DType, HostValue);

} // namespace elsewise
