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
  /// torch raises: u16, u32 and u64 have a dtype in common with themselves and with floats alone.
  bool clash() const;
  Category category() const;

private:
  /// The common dtype of what one category has, if there is one. `clash`: there is none, as of u16 and i64.
  struct Slot {
    std::optional<DType> dtype = {};
    bool clash = false;
  };
  static Slot common(Slot, Slot);
  static Slot combine(Slot higher, Slot lower);
  std::array<Slot, 3> by_category_;
};

} // namespace elsewise
