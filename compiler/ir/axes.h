// SPDX-License-Identifier: Apache-2.0
// Axes as a set, and how long they can be. It knows no kernel.
#pragma once
#include <cstdint>

namespace elsewise {

/// What a domain of a call, and an axis of a tensor, has at most. Proofs of bounds count on it, and calls refuse more.
inline constexpr int64_t most_positions = int64_t(1) << 60;

/// The axes of a tensor of that rank, at most 64, as a set.
inline uint64_t all_axes(uint32_t rank) { return rank < 64 ? (uint64_t(1) << rank) - 1 : ~uint64_t(0); }

} // namespace elsewise
