// SPDX-License-Identifier: Apache-2.0
// Overlap as a small bounded linear equation, searched from the largest stride down. The search has a budget; what it
// cannot settle counts as overlap.
#include "runtime/layout/overlap.h"
#include <algorithm>
#include <numeric>

namespace elsewise {

using Wide = __int128;

Extremes extremes(DimsRef lengths, DimsRef stride, int64_t element_bytes) {
  Extremes e{0, element_bytes};
  for (size_t d = 0; d < lengths.size(); ++d) {
    if (lengths[d] == 0) return {0, 0};
    const int64_t reach = (lengths[d] - 1) * stride[d] * element_bytes;
    (reach < 0 ? e.low : e.high) += reach;
  }
  return e;
}

namespace {

// One integer unknown: coefficient * t with 0 <= t <= count, coefficient > 0.
struct Term {
  Wide coefficient, count;
};

// Is there a sum of terms in [low, high]? Terms are sorted, the largest coefficient first.
class Search {
public:
  explicit Search(std::span<const Term> terms)
      : terms(terms), reach(terms.size() + 1, 0), divisor(terms.size() + 1, 0) {
    for (size_t k = terms.size(); k-- > 0;) {
      reach[k] = reach[k + 1] + terms[k].coefficient * terms[k].count;
      Wide a = divisor[k + 1], b = terms[k].coefficient;
      while (b) std::tie(a, b) = std::pair(b, a % b);
      divisor[k] = a;
    }
  }
  bool hits(Wide low, Wide high) { return from(0, low, high); }

private:
  bool from(size_t k, Wide low, Wide high) {
    if (high < 0 || low > reach[k]) return false;
    if (low <= 0) return true; // all the rest 0
    if (k == terms.size()) return false;
    if (const Wide g = divisor[k]; high / g * g < low) return false; // no multiple of what divides all of them
    if (--budget < 0) return true;
    const Wide c = terms[k].coefficient;
    // t must leave the rest within its reach.
    const Wide needed = low - reach[k + 1];
    Wide t = needed <= 0 ? 0 : (needed + c - 1) / c;
    for (const Wide last = std::min(terms[k].count, high / c); t <= last; ++t) {
      if (from(k + 1, low - c * t, high - c * t)) return true;
      if (budget < 0) return true;
    }
    return false;
  }
  std::span<const Term> terms;
  llvm::SmallVector<Wide, 16> reach, divisor; // of the terms from k on
  int budget = 2000;
};

void sort_terms(llvm::SmallVectorImpl<Term> &terms) {
  std::sort(terms.begin(), terms.end(), [](const Term &a, const Term &b) { return a.coefficient > b.coefficient; });
  size_t kept = 0; // equal coefficients are one unknown
  for (const Term &t : terms)
    if (kept && terms[kept - 1].coefficient == t.coefficient) terms[kept - 1].count += t.count;
    else terms[kept++] = t;
  terms.truncate(kept);
}

} // namespace

bool overlaps_itself(DimsRef lengths, DimsRef stride) {
  llvm::SmallVector<Term, 8> axes;
  if (std::find(lengths.begin(), lengths.end(), 0) != lengths.end())
    return false; // whatever the strides: NumPy's are 0
  for (size_t d = 0; d < lengths.size(); ++d) {
    if (lengths[d] == 1) continue;
    if (stride[d] == 0) return true;
    axes.push_back({stride[d] < 0 ? -Wide(stride[d]) : Wide(stride[d]), lengths[d] - 1});
  }
  std::sort(axes.begin(), axes.end(), [](const Term &a, const Term &b) { return a.coefficient > b.coefficient; });
  bool nested = true;
  Wide below = 0;
  for (size_t k = axes.size(); k-- > 0;) {
    nested &= axes[k].coefficient > below;
    below += axes[k].coefficient * axes[k].count;
  }
  if (nested) return false;
  // Two positions share an element if their difference is not zero and its offset is. One axis has the first difference
  // that is not zero: there it is positive, before it zero, after it anything.
  for (size_t first = 0; first < axes.size(); ++first) {
    llvm::SmallVector<Term, 8> terms{{axes[first].coefficient, axes[first].count - 1}};
    Wide offset = axes[first].coefficient; // of difference 1 there and the least elsewhere
    for (size_t k = first + 1; k < axes.size(); ++k) {
      offset -= axes[k].coefficient * axes[k].count;
      terms.push_back({axes[k].coefficient, 2 * axes[k].count});
    }
    sort_terms(terms);
    if (Search({terms.data(), terms.size()}).hits(-offset, -offset)) return true;
  }
  return false;
}

bool overlap(const ByteView &a, const ByteView &b, DimsRef lengths) {
  // a + sum(i * sa) and b + sum(j * sb) share a byte if  -(size of b) < a - b + sum(i * sa) - sum(j * sb) < size of a
  // ... seen from b's element.
  llvm::SmallVector<Term, 16> terms;
  Wide offset = Wide(a.data) - Wide(b.data);
  auto add = [&](Wide coefficient, Wide count) {
    if (coefficient == 0) return;
    if (coefficient < 0) offset += coefficient * count, coefficient = -coefficient;
    terms.push_back({coefficient, count});
  };
  for (size_t d = 0; d < lengths.size(); ++d) {
    if (lengths[d] <= 1) continue;
    add(a.stride[d], lengths[d] - 1);
    add(-Wide(b.stride[d]), lengths[d] - 1);
  }
  sort_terms(terms);
  return Search({terms.data(), terms.size()})
      .hits(Wide(1 - a.element_bytes) - offset, Wide(b.element_bytes - 1) - offset);
}

} // namespace elsewise
