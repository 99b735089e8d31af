// SPDX-License-Identifier: Apache-2.0
// Whether a call must be refused, before anything is written, and whether its indexes need 128 bits. It looks only at
// pieces that have a position.
#pragma once
#include "runtime/host/evaluate.h"
#include "runtime/host/interval.h"

namespace elsewise {

struct CallCheck {
  HostFault fault;   // of the first piece that has one
  bool wide = false; // comparisons or uniforms leave 64 bits: the call needs the kernel with Form::wide
};

/// What is known of a scheduled kernel's calls before any; it must outlive this. Calls may run at once.
class CallChecks {
public:
  explicit CallChecks(const Kernel &scheduled);
  /// False if no call can be refused: no checks, no poison, no index arithmetic but bounds.
  bool needed() const { return needed_; }
  /// values, poisoned: what HostProgram::run gave for the domain. A piece has positions if its boxes hold some
  /// that no earlier piece without a residual guard took. Each piece that a position can reach has its bounds, its
  /// checks and its index arithmetic looked at, in that order.
  /// `looks`: looks() for that domain.
  CallCheck run(std::span<const HostValue> values, std::span<const uint8_t> poisoned,
                std::span<const Intervals::Look> looks, const HostDomain &domain) const;
  /// Which indices a call has to look at. Lengths alone decide: it is the same for every window of a domain.
  std::vector<Intervals::Look> looks(const HostDomain &) const;

private:
  const Kernel &kernel_;
  std::vector<bool> indexes_; // by piece: its guard or value has index arithmetic, or reads a uniform index
  std::vector<bool> bounds_;  // by piece: a bound has a condition or a cast in it, or may leave 62 bits along the rows
  bool flat_;                 // uses_flat()
  bool reads_ = false;        // some read depends on the call: it is checked, or has premises
  bool needed_ = false;
};

} // namespace elsewise
