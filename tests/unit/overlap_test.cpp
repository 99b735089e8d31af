// SPDX-License-Identifier: Apache-2.0
// Overlap of strided views: the cases that people write, and random small views against all of their bytes. It runs no
// kernel.
#include "runtime/layout/overlap.h"
#include <algorithm>
#include <gtest/gtest.h>
#include <random>
#include <set>

namespace elsewise {
namespace {

constexpr uintptr_t base = 1 << 20;

bool overlaps(int64_t at_a, Dims a, int64_t at_b, Dims b, Dims lengths, int64_t size = 4) {
  for (int64_t &s : a) s *= size;
  for (int64_t &s : b) s *= size;
  return overlap({base + uintptr_t(at_a * size), ref(a), size}, {base + uintptr_t(at_b * size), ref(b), size},
                 ref(lengths));
}

TEST(Overlap, ViewsThatPeopleWrite) {
  EXPECT_TRUE(overlaps(0, {1}, 1, {1}, {10}));            // x[:-1], x[1:]
  EXPECT_FALSE(overlaps(0, {1}, 10, {1}, {10}));          // halves
  EXPECT_FALSE(overlaps(0, {2}, 1, {2}, {10}));           // x[::2], x[1::2]
  EXPECT_FALSE(overlaps(0, {8, 2}, 1, {8, 2}, {4, 4}));   // columns, even width
  EXPECT_TRUE(overlaps(0, {7, 2}, 1, {7, 2}, {4, 4}));    // as_strided with rows that run into each other
  EXPECT_FALSE(overlaps(0, {9, 2}, 1, {9, 2}, {4, 4}));   // columns, odd width
  EXPECT_FALSE(overlaps(0, {10, 1}, 5, {10, 1}, {6, 5})); // left and right half
  EXPECT_TRUE(overlaps(0, {10, 1}, 4, {10, 1}, {6, 5}));  // one column in common
  EXPECT_TRUE(overlaps(0, {4, 1}, 0, {1, 4}, {4, 4}));    // x and x.T
  EXPECT_TRUE(overlaps(0, {4, 1}, 0, {0, 1}, {3, 4}));    // x and its first row
  EXPECT_FALSE(overlaps(4, {4, 1}, 0, {0, 1}, {3, 4}));   // the other rows and the first
  EXPECT_TRUE(overlaps(9, {-1}, 0, {1}, {10}));           // reversed
  EXPECT_FALSE(overlaps(19, {-1}, 0, {1}, {10}));
}

TEST(Overlap, LargeViewsAreSettledExactly) {
  const int64_t n = 1 << 20;
  EXPECT_FALSE(overlaps(0, {2 * n, 1}, n, {2 * n, 1}, {n, n}));         // halves of columns
  EXPECT_FALSE(overlaps(0, {2 * n + 1, 2}, 1, {2 * n + 1, 2}, {n, n})); // odd width
  EXPECT_FALSE(overlaps(0, {n * 9, n, 3}, 1, {n * 9, n, 3}, {64, 9, n / 3}));
}

TEST(Overlap, PartsOfAnElement) {
  const Dims one{8}, lengths{4};
  EXPECT_TRUE(overlap({base, ref(one), 4}, {base + 3, ref(one), 1}, ref(lengths)));
  EXPECT_FALSE(overlap({base, ref(one), 4}, {base + 4, ref(one), 4}, ref(lengths)));
  EXPECT_TRUE(overlap({base, ref(one), 4}, {base + 4, ref(one), 5}, ref(lengths)));
}

TEST(Overlap, WithItself) {
  auto itself = [](Dims lengths, Dims stride) { return overlaps_itself(ref(lengths), ref(stride)); };
  EXPECT_FALSE(itself({4, 5}, {5, 1}));
  EXPECT_FALSE(itself({4, 5}, {1, 4}));
  EXPECT_TRUE(itself({4, 5}, {0, 1}));
  EXPECT_FALSE(itself({1, 5}, {0, 1}));
  EXPECT_FALSE(itself({0, 5}, {0, 0}));
  EXPECT_FALSE(itself({5, 0}, {0, 0}));
  EXPECT_TRUE(itself({4, 5}, {4, 1}));
  EXPECT_FALSE(itself({2, 2}, {2, 3})); // 0 2 3 5
  EXPECT_TRUE(itself({4, 4}, {2, 3}));  // 6 twice
  EXPECT_FALSE(itself({4, 5}, {-5, 1}));
  EXPECT_FALSE(itself({}, {}));
}

// All bytes of a view.
std::set<int64_t> bytes_of(int64_t at, const Dims &lengths, const Dims &stride, int64_t size, bool *twice = nullptr) {
  std::set<int64_t> bytes;
  int64_t count = 1;
  for (int64_t l : lengths) count *= l;
  for (int64_t e = 0; e < count; ++e) {
    int64_t rest = e, offset = at;
    for (size_t d = lengths.size(); d-- > 0;) offset += rest % lengths[d] * stride[d], rest /= lengths[d];
    for (int64_t b = 0; b < size; ++b)
      if (!bytes.insert(offset + b).second && twice) *twice = true;
  }
  return bytes;
}

TEST(Overlap, RandomViewsAgainstAllTheirBytes) {
  std::mt19937_64 random(7);
  auto draw = [&](int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random); };
  int shared = 0, apart = 0, dense = 0, folded = 0;
  for (int round = 0; round < 20000; ++round) {
    const size_t rank = size_t(draw(1, 3));
    Dims lengths, a, b;
    for (size_t d = 0; d < rank; ++d)
      lengths.push_back(draw(1, 5)), a.push_back(draw(-12, 12)), b.push_back(draw(-12, 12));
    if (draw(0, 1)) b = a;
    const int64_t size_a = draw(1, 4), size_b = draw(1, 4), at = draw(-60, 60);
    bool twice = false;
    const auto of_a = bytes_of(0, lengths, a, 1, &twice), whole_a = bytes_of(0, lengths, a, size_a),
               of_b = bytes_of(at, lengths, b, size_b);
    bool expected = false;
    for (int64_t byte : of_b) expected |= whole_a.count(byte) != 0;
    (expected ? shared : apart)++, (twice ? folded : dense)++;
    ASSERT_EQ(overlap({base, ref(a), size_a}, {base + uintptr_t(at), ref(b), size_b}, ref(lengths)), expected) << round;
    ASSERT_EQ(overlaps_itself(ref(lengths), ref(a)), twice) << round;
  }
  EXPECT_GT(std::min({shared, apart, dense, folded}), 1000);
}

} // namespace
} // namespace elsewise
