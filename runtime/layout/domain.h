// SPDX-License-Identifier: Apache-2.0
// Shapes: what a call's domain is, how operands lie over it, and which strides torch would give the result. It looks at
// no pointer.
#pragma once
#include "llvm/ADT/SmallVector.h"
#include <cstdint>
#include <optional>
#include <span>

namespace elsewise {

using Dims = llvm::SmallVector<int64_t, 8>;
using DimsRef = std::span<const int64_t>;
inline DimsRef ref(const Dims &d) { return {d.data(), d.size()}; }

/// Two shapes that do not broadcast: which ones, and the axis counted from the right (1: the last).
struct ShapeConflict {
  size_t first = 0, second = 0;
  size_t from_right = 0;
};
/// torch.broadcast_shapes. nullopt: `conflict` says why.
std::optional<Dims> broadcast(std::span<const DimsRef> shapes, ShapeConflict &conflict);
/// True if `shape` broadcasts to exactly `domain`; else `from_right` is the first axis from the right that does not.
bool broadcasts_to(DimsRef shape, DimsRef domain, size_t &from_right);

/// Strides of an operand over the domain: 0 on axes that it lacks or that it repeats.
Dims over_domain(DimsRef shape, DimsRef stride, DimsRef domain);

/// The number of elements; nullopt beyond 63 bits.
std::optional<int64_t> element_count(DimsRef shape);

/// An input of the call, as torch's TensorIterator sees it.
struct StrideSource {
  DimsRef shape, stride; // its own
};
/// The strides that torch's TensorIterator gives a new result: those of a dense input if all agree, else the
/// permutation that the inputs' strides ask for.
Dims output_strides(DimsRef domain, std::span<const StrideSource> inputs);

/// Row-major strides, as torch.empty has them.
Dims contiguous_strides(DimsRef shape);

} // namespace elsewise
