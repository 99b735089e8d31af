// SPDX-License-Identifier: Apache-2.0
// torch.result_type and torch.can_cast for the dtypes of the language. It follows c10's promoteTypes and
// combine_categories, and adds no opinion.
#include "compiler/check/promote.h"
#include "compiler/check/typed.h"

namespace elsewise {
namespace {

// torch promotes them with nothing whole but themselves.
bool stands_alone(DType d) { return d == DType::U16 || d == DType::U32 || d == DType::U64; }

// The common dtype of two tensors of one category; nullopt where torch raises.
std::optional<DType> common_dtype(DType a, DType b) {
  if (a == b) return a;
  if (!is_float(a) && !is_float(b) && (stands_alone(a) || stands_alone(b))) return std::nullopt;
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

DType python_default(DType d) { return is_float(d) ? DType::F32 : d == DType::Bool ? DType::Bool : DType::I64; }

} // namespace

/// A float settles a clash: it holds whole numbers of every dtype alike.
Promotion::Slot Promotion::common(Slot a, Slot b) {
  if (a.clash || b.clash) {
    const Slot &other = a.clash ? b : a;
    return other.dtype && is_float(*other.dtype) ? other : Slot{{}, true};
  }
  if (!a.dtype || !b.dtype) return a.dtype ? a : b;
  const std::optional<DType> d = common_dtype(*a.dtype, *b.dtype);
  return {d, !d};
}

/// `higher` decides unless `lower` is of a higher kind: bool < integer < float.
Promotion::Slot Promotion::combine(Slot higher, Slot lower) {
  const bool lower_float = lower.dtype && is_float(*lower.dtype);
  if (higher.clash) return lower_float ? lower : higher;
  if (!higher.dtype) return lower;
  if (is_float(*higher.dtype)) return higher;
  if (*higher.dtype == DType::Bool || lower_float) return common(higher, lower);
  return higher;
}

void Promotion::add(DType d, Category c) {
  if (d == DType::Index) d = DType::I64;
  if (c == Category::Scalar) d = python_default(d);
  Slot &slot = by_category_[size_t(c)];
  slot = common(slot, {d});
}

std::optional<DType> Promotion::result() const {
  const auto &[scalar, zero_dim, dim] = by_category_;
  return combine(dim, combine(zero_dim, scalar)).dtype;
}

bool Promotion::clash() const {
  const auto &[scalar, zero_dim, dim] = by_category_;
  return combine(dim, combine(zero_dim, scalar)).clash;
}

Category Promotion::category() const {
  const auto given = [&](Category c) { return by_category_[size_t(c)].dtype || by_category_[size_t(c)].clash; };
  return given(Category::Dim) ? Category::Dim : given(Category::ZeroDim) ? Category::ZeroDim : Category::Scalar;
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
