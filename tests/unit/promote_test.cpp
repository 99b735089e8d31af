// SPDX-License-Identifier: Apache-2.0
// promote() and can_cast() against torch's own answers, and what Promotion adds: any number of operands in any order.
#include "compiler/check/promote.h"
#include "compiler/check/typed.h"
#include <algorithm>
#include <gtest/gtest.h>

using namespace elsewise;

namespace {

std::string show(std::optional<DType> d) { return d ? spelling(*d) : "none"; }

TEST(Promote, IsTorchsForEveryPairAndCategory) {
  int rows = 0;
#define PROMOTE(a, ca, b, cb, result)                                                                                  \
  EXPECT_EQ(show(promote(DType::a, Category::ca, DType::b, Category::cb)), spelling(DType::result))                    \
      << #a " " #ca " with " #b " " #cb;                                                                               \
  ++rows;
#define NO_PROMOTE(a, ca, b, cb)                                                                                       \
  EXPECT_EQ(show(promote(DType::a, Category::ca, DType::b, Category::cb)), "none") << #a " " #ca " with " #b " " #cb;  \
  ++rows;
#define CAN_CAST(from, to, whether) EXPECT_EQ(can_cast(DType::from, DType::to), whether) << #from " to " #to;
#include "tests/unit/promote_table.inc"
  EXPECT_EQ(rows, 29 * 29 - 9); // thirteen dtypes in two categories and three scalars, without pairs of scalars
}

TEST(Promote, AnIndexIsAnI64) {
  EXPECT_EQ(promote(DType::Index, Category::Dim, DType::I32, Category::Dim), DType::I64);
  EXPECT_EQ(promote(DType::Index, Category::Scalar, DType::U8, Category::Dim), DType::U8);
  EXPECT_TRUE(can_cast(DType::Index, DType::I8));
  EXPECT_FALSE(can_cast(DType::F16, DType::Index));
}

TEST(Promote, OrderOfManyOperandsDoesNotMatter) {
  struct One {
    DType dtype;
    Category category;
  };
  std::vector<One> all = {{DType::F16, Category::Dim},
                          {DType::I32, Category::Dim},
                          {DType::F32, Category::ZeroDim},
                          {DType::F64, Category::Scalar}};
  std::vector<int> order = {0, 1, 2, 3};
  do {
    Promotion p;
    for (int k : order) p.add(all[k].dtype, all[k].category);
    EXPECT_EQ(show(p.result()), "f16");
    EXPECT_EQ(p.category(), Category::Dim);
  } while (std::next_permutation(order.begin(), order.end()));
  EXPECT_EQ(Promotion().result(), std::nullopt);
}

TEST(Promote, AFloatSettlesWhatHasNoDtypeInCommon) {
  Promotion p;
  p.add(DType::U16, Category::Dim);
  p.add(DType::I32, Category::Dim);
  EXPECT_TRUE(p.clash());
  EXPECT_EQ(show(p.result()), "none");
  EXPECT_EQ(p.category(), Category::Dim);
  p.add(DType::F16, Category::Dim);
  EXPECT_FALSE(p.clash());
  EXPECT_EQ(show(p.result()), "f16");

  Promotion of_points; // what an integer with dimensions decides, points have no say in
  of_points.add(DType::U16, Category::ZeroDim);
  of_points.add(DType::I64, Category::ZeroDim);
  EXPECT_TRUE(of_points.clash());
  of_points.add(DType::I8, Category::Dim);
  EXPECT_EQ(show(of_points.result()), "i8");
}

TEST(DTypes, NamesOfThreeLibraries) {
  EXPECT_EQ(parse_dtype("f32"), DType::F32);
  EXPECT_EQ(parse_dtype("float32"), DType::F32);
  EXPECT_EQ(parse_dtype("torch.bfloat16"), DType::BF16);
  EXPECT_EQ(parse_dtype("half"), DType::F16);
  EXPECT_EQ(parse_dtype("float"), std::nullopt); // 32 bits to torch, 64 to NumPy
  EXPECT_EQ(parse_dtype("index"), std::nullopt); // never stored
}

} // namespace
