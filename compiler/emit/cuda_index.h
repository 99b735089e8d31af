// SPDX-License-Identifier: Apache-2.0
// How large the indexes of a kernel can be on a device, whatever the call, so that 32 bits and plain division will do.
// It looks at no condition: what only a guard keeps small is not known here.
#pragma once
#include "compiler/ir/ir.h"
#include <optional>

namespace elsewise::cuda {

/// Every value of an index lies in [lo, hi], which is within 62 bits.
struct Reach {
  __int128 lo, hi;
  bool within(int bits) const { return lo >= -(__int128(1) << (bits - 1)) && hi < __int128(1) << (bits - 1); }
};

/// By node: of those of type Index about which something is known. Positions and lengths are less than 2^60, in
/// Form::narrow those that short_position() names less than 2^30.
using Reaches = std::vector<std::optional<Reach>>;
Reaches reaches(const Kernel &);

/// Whether the positions of an axis are ints in the kernel's body. Of row-major ones that is known where there is one
/// row.
inline bool short_position(const Form &f, uint32_t axis) { return f.narrow && (axis != flat_axis || f.rows == 0); }

/// A node's constant, if it is one.
std::optional<__int128> known_integer(const Kernel &, NodeId);
/// The k of 2^k, if `v` is that and k < 62.
std::optional<int> power_of_two(__int128 v);

} // namespace elsewise::cuda
