// SPDX-License-Identifier: Apache-2.0
// The host's evaluator: uniform nodes once a call, exactly (integers in 128 bits, floats as doubles). It never touches element data.
#pragma once
#include "compiler/ir/ir.h"
#include <span>

namespace elsewise {

union HostValue {
  __int128 integer; // Index, Bool, integers
  double real;      // floats, already rounded to the node's type
};

struct HostFault {
  enum What : uint8_t { None, Overflow, ZeroDivision, NotANumber } what = None;
  NodeId node = no_node;
  Span where;
  std::string message;
};

/// Values of Kernel::host in `values` (indexed by NodeId; sized by the caller to insts.size()). An overflow of 128 bits or a zero divisor poisons a node;
/// a poisoned node is a fault only if a check, a bound or a uniform of a piece that has positions needs it.
class HostProgram {
public:
  explicit HostProgram(const Kernel &);
  /// params: by argument (Param nodes only). count: the domain's number of elements.
  void run(std::span<const HostValue> params, int64_t count, std::vector<HostValue> &values, std::vector<uint8_t> &poisoned) const;

private:
  const Kernel &kernel_;
};

} // namespace elsewise
