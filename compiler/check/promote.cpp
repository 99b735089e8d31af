// SPDX-License-Identifier: Apache-2.0
// torch.result_type and torch.can_cast for the dtypes of the language. It follows c10's promoteTypes and
// combine_categories, and adds no opinion.
#include "compiler/check/promote.h"
#include "compiler/check/typed.h"

namespace elsewise {
namespace {

// The common dtype of two tensors of one category.
DType common(DType a, DType b) {
  if (a == b) return a;
  if (a == DType::Bool) return b;
  if (b == DType::Bool) return a;
  if (is_float(a) != is_float(b)) return is_float(a) ? a : b;
  if (is_float(a)) // the two halves hold different numbers: only f32 holds both
    return bytes(a) == bytes(b) ? DType::F32 : bytes(a) > bytes(b) ? a : b;
  if (dclass(a) == dclass(b)) return bytes(a) > bytes(b) ? a : b;
  const DType wide = dclass(a) == DClass::Int ? a : b, unsigned_one = dclass(a) == DClass::Int ? b : a;
  if (bytes(wide) > bytes(unsigned_one)) return wide;
  switch (bytes(unsigned_one)) { // the least signed dtype that holds both
  case 1:
    return DType::I16;
  case 2:
    return DType::I32;
  default:
    return DType::I64;
  }
}

// `higher` decides unless `lower` is of a higher kind: bool < integer < float.
std::optional<DType> combine(std::optional<DType> higher, std::optional<DType> lower) {
  if (!higher || !lower) return higher ? higher : lower;
  if (is_float(*higher)) return higher;
  if (*higher == DType::Bool || is_float(*lower)) return common(*higher, *lower);
  return higher;
}

DType python_default(DType d) { return is_float(d) ? DType::F32 : d == DType::Bool ? DType::Bool : DType::I64; }

} // namespace

void Promotion::add(DType d, Category c) {
  if (d == DType::Index) d = DType::I64;
  if (c == Category::Scalar) d = python_default(d);
  std::optional<DType> &slot = by_category_[size_t(c)];
  slot = slot ? common(*slot, d) : d;
}

std::optional<DType> Promotion::result() const {
  const auto [scalar, zero_dim, dim] = by_category_;
  return combine(dim, combine(zero_dim, scalar));
}

Category Promotion::category() const {
  return by_category_[2] ? Category::Dim : by_category_[1] ? Category::ZeroDim : Category::Scalar;
}

std::optional<DType> promote(DType a, Category ca, DType b, Category cb) {
  Promotion p;
  p.add(a, ca);
  p.add(b, cb);
  return p.result();
}

bool can_cast(DType from, DType to) {
  if (from == DType::Index) from = DType::I64;
  if (is_float(from) && is_integer(to)) return false;
  return from == DType::Bool || to != DType::Bool;
}

} // namespace elsewise
