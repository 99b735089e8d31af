// SPDX-License-Identifier: Apache-2.0
// Random programs with arguments to run them on, the same for the same seed on every machine. It knows the grammar, not
// the types: what the compiler refuses is drawn again.
#pragma once
#include "compiler/types/types.h"
#include <string>
#include <vector>

namespace elsewise::fuzz {

/// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014): small, seedable, equal
/// everywhere.
class Random {
public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next();
  uint64_t below(uint64_t n) { return next() % n; }
  bool chance(int percent) { return below(100) < uint64_t(percent); }
  template <class T> const T &pick(const std::vector<T> &v) { return v[below(v.size())]; }

private:
  uint64_t state_;
};

struct Input {
  std::string name;
  ArgType type;
  std::vector<int64_t> shape, stride; // elements
  std::vector<uint8_t> buffer;        // the storage
  int64_t offset = 0;                 // elements from the storage's start to element 0
  __int128 integer = 0;
  double real = 0;
  const uint8_t *data() const { return buffer.data() + offset * bytes(type.dtype); }
};

struct Program {
  uint64_t seed = 0;
  std::string text;
  std::vector<Input> inputs; // every argument that the text may name
  std::vector<int64_t> domain;
  bool in_place = false; // out is input 0's view, if its dtype and shape allow
  int out_layout = 0;    // 0 contiguous, 1 as planned, 2 strided with gaps, 3 offset by one element
};

/// `far`: how many of a hundred are of index arithmetic over many positions; the others stay what they are without.
Program generate(uint64_t seed, int far = 0);

} // namespace elsewise::fuzz
