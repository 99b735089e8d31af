// SPDX-License-Identifier: Apache-2.0
// Copies of a case's tensors next to memory that nobody may touch, so that a load or store beside a tensor stops the
// program at once, whatever it would have read. It judges no value.
#pragma once
#include "tests/fuzz/call.h"
#include <string>
#include <vector>

namespace elsewise::fuzz {

/// Each tensor ends where a page does, or begins where one begins (the seed says which, for all of a case, so that
/// addresses agree as they do elsewhere); gigabytes to both sides are not there. Under AddressSanitizer the rest of the
/// pages is poisoned as well.
class Guarded {
public:
  explicit Guarded(const Case &);
  ~Guarded();
  Guarded(const Guarded &) = delete;
  void move(CallOf &) const;
  /// What `out` holds with its guard zones; of these the one that was left out is as it was.
  std::vector<uint8_t> out() const;
  /// Empty, or which argument was written.
  std::string written() const;

private:
  struct Block {
    uint8_t *map = nullptr, *at = nullptr; // the pages, and the first byte of the copy
    size_t mapped = 0, size = 0;
  };
  Block place(const uint8_t *, size_t) const;

  const Case &c_;
  bool at_end_;
  std::vector<Block> blocks_; // by argument; the last is `out`
};

/// From now on a trap anywhere ends the program with a line that says so and what `running` was told last.
void catch_traps();
void running(const char *where, int programs, const std::string &text);

} // namespace elsewise::fuzz
