// SPDX-License-Identifier: Apache-2.0
// Whether two strided views share a byte, and whether one shares a byte with itself. Exact where that is cheap,
// otherwise it says yes; it knows no names.
#pragma once
#include "runtime/layout/domain.h"

namespace elsewise {

/// Bytes that a view spans relative to its data pointer: [low, high). Empty views: {0, 0}.
struct Extremes {
  int64_t low = 0, high = 0;
};
Extremes extremes(DimsRef lengths, DimsRef stride, int64_t element_bytes);

/// True if two different positions share an element (an expanded tensor, as_strided windows).
bool overlaps_itself(DimsRef lengths, DimsRef stride);

/// A view over the domain, strides in bytes.
struct ByteView {
  uintptr_t data;
  DimsRef stride; // by axis of the domain
  int64_t element_bytes;
};
/// True if a byte of `a` is a byte of `b` (or that could not be ruled out). `lengths`: of the domain, none 0.
bool overlap(const ByteView &a, const ByteView &b, DimsRef lengths);

} // namespace elsewise
