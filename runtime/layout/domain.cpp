// SPDX-License-Identifier: Apache-2.0
// Broadcasting and output strides by torch's rules. Nothing here knows dtypes, devices or addresses.
#include "runtime/layout/domain.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <numeric>
#include <utility>

namespace elsewise {

std::optional<Dims> broadcast(std::span<const DimsRef> shapes, ShapeConflict &conflict) {
  size_t rank = 0;
  for (DimsRef s : shapes) rank = std::max(rank, s.size());
  Dims domain(rank, 1);
  llvm::SmallVector<size_t, 8> from(rank, 0); // the shape that decided an axis
  for (size_t k = 0; k < shapes.size(); ++k)
    for (size_t r = 1; r <= shapes[k].size(); ++r) {
      const int64_t length = shapes[k][shapes[k].size() - r];
      int64_t &have = domain[rank - r];
      if (length == have || length == 1) continue;
      if (have != 1) {
        conflict = {from[rank - r], k, r};
        return std::nullopt;
      }
      have = length, from[rank - r] = k;
    }
  return domain;
}

bool broadcasts_to(DimsRef shape, DimsRef domain, size_t &from_right) {
  for (size_t r = 1; r <= shape.size(); ++r) {
    const int64_t length = shape[shape.size() - r];
    from_right = r;
    if (r > domain.size() ? length != 1 : length != 1 && length != domain[domain.size() - r]) return false;
  }
  return true;
}

Dims over_domain(DimsRef shape, DimsRef stride, DimsRef domain) {
  Dims result(domain.size(), 0);
  for (size_t r = 1; r <= std::min(shape.size(), domain.size()); ++r) {
    const size_t own = shape.size() - r, axis = domain.size() - r;
    result[axis] = shape[own] == 1 && domain[axis] != 1 ? 0 : stride[own];
  }
  return result;
}

std::optional<int64_t> element_count(DimsRef shape) {
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  int64_t count = 1;
  for (int64_t length : shape)
    if (llvm::MulOverflow(count, length, count)) return std::nullopt;
  return count;
}

Dims contiguous_strides(DimsRef shape) {
  Dims stride(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;) stride[d - 1] = stride[d] * std::max<int64_t>(shape[d], 1);
  return stride;
}

// Dense in the given order of axes, fastest first; axes of length 1 say nothing.
static bool dense_in_order(DimsRef shape, DimsRef stride, std::span<const size_t> order) {
  int64_t expected = 1;
  for (size_t d : order) {
    if (shape[d] != 1 && stride[d] != expected) return false;
    expected *= shape[d];
  }
  return true;
}

static bool contiguous(DimsRef shape, DimsRef stride) {
  Dims order;
  llvm::SmallVector<size_t, 8> axes(shape.size());
  std::iota(axes.rbegin(), axes.rend(), size_t(0));
  return std::find(shape.begin(), shape.end(), 0) != shape.end() ||
         dense_in_order(shape, stride, {axes.data(), axes.size()});
}

static bool non_overlapping_and_dense(DimsRef shape, DimsRef stride) {
  llvm::SmallVector<size_t, 8> axes(shape.size());
  std::iota(axes.begin(), axes.end(), size_t(0));
  // torch sorts by stride with lengths 0 and 1 last.
  std::stable_sort(axes.begin(), axes.end(), [&](size_t a, size_t b) {
    if (shape[a] < 2) return false;
    return shape[b] < 2 || stride[a] < stride[b];
  });
  int64_t expected = 1;
  for (size_t d : axes) {
    if (shape[d] < 2) return true;
    if (stride[d] != expected) return false;
    expected *= shape[d];
  }
  return true;
}

// The axes in the order in which torch would store a result, fastest first.
static llvm::SmallVector<size_t, 8> memory_order(DimsRef domain, std::span<const Dims> strides) {
  const size_t rank = domain.size();
  llvm::SmallVector<size_t, 8> order(rank);
  std::iota(order.rbegin(), order.rend(), size_t(0));
  // > 0: `a` should come after `b`, though it stands before it.
  auto compare = [&](size_t a, size_t b) {
    for (const Dims &s : strides) {
      if (s[a] == 0 || s[b] == 0) continue; // a repeated axis says nothing
      if (s[a] != s[b]) return s[a] < s[b] ? -1 : 1;
      if (domain[a] > domain[b]) return 1;
    }
    return 0;
  };
  for (size_t i = 1; i < rank; ++i) {
    size_t moving = i;
    for (size_t at = i; at-- > 0;) {
      const int c = compare(order[at], order[moving]);
      if (c > 0) std::swap(order[at], order[moving]), moving = at;
      else if (c < 0) break;
    }
  }
  return order;
}

Dims output_strides(DimsRef domain, std::span<const StrideSource> inputs) {
  if (inputs.empty()) return contiguous_strides(domain);
  auto all = [&](auto &&holds) { return std::all_of(inputs.begin(), inputs.end(), holds); };
  if (all([&](const StrideSource &s) {
        return std::equal(s.shape.begin(), s.shape.end(), domain.begin(), domain.end());
      })) {
    if (all([](const StrideSource &s) { return contiguous(s.shape, s.stride); })) return contiguous_strides(domain);
    static constexpr size_t channels_last[] = {1, 3, 2, 0};
    if (domain.size() == 4 &&
        all([](const StrideSource &s) { return dense_in_order(s.shape, s.stride, channels_last); })) {
      Dims stride(4);
      int64_t next = 1;
      for (size_t d : channels_last) stride[d] = next, next *= std::max<int64_t>(domain[d], 1);
      return stride;
    }
    const StrideSource &last = inputs.back();
    if (all([&](const StrideSource &s) {
          return std::equal(s.stride.begin(), s.stride.end(), last.stride.begin()) &&
                 non_overlapping_and_dense(s.shape, s.stride);
        }))
      return Dims(last.stride.begin(), last.stride.end());
  }
  llvm::SmallVector<Dims, 4> strides;
  for (const StrideSource &s : inputs) strides.push_back(over_domain(s.shape, s.stride, domain));
  const auto order = memory_order(domain, {strides.data(), strides.size()});
  bool inverted = true;
  for (size_t d = 0; d < order.size(); ++d) inverted &= order[d] == order.size() - 1 - d;
  if (inverted) return contiguous_strides(domain);
  Dims result(domain.size());
  int64_t next = 1;
  for (size_t d : order) result[d] = next, next *= domain[d];
  return result;
}

} // namespace elsewise
