// SPDX-License-Identifier: Apache-2.0
// torch's promotion of any number of operands. It knows dtypes and categories, and neither kinds nor syntax.
#pragma once
#include "compiler/types/types.h"
#include <array>

namespace elsewise {

/// torch.result_type of many operands: the order in which they are added does not matter.
class Promotion {
public:
  /// A Python scalar counts as torch's default dtype of its kind, so its own width never shows.
  void add(DType, Category);
  /// The common dtype; nullopt if nothing was added, or where torch raises.
  std::optional<DType> result() const;
  Category category() const;

private:
  std::array<std::optional<DType>, 3> by_category_;
};

} // namespace elsewise
