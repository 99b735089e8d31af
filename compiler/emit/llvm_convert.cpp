// SPDX-License-Identifier: Apache-2.0
// Conversions between dtypes in LLVM IR, each with one rounding. It calls no library: what the CPU cannot convert is
// spelt in integers.
#include "compiler/emit/llvm_value.h"
#include "llvm/IR/Intrinsics.h"

namespace elsewise::llvm_emit {
using namespace llvm;

Value *Arithmetic::cast(Value *v, DType from, DType to) {
  if (from == to) return v;
  if (is_half(from)) return cast(half_to_float(from, v), DType::F32, to);
  const bool from_signed = dclass(from) == DClass::Int;
  if (is_half(to)) return float_to_half(to, from == DType::F64 ? round_to_odd(v) : cast(v, from, DType::F32));
  if (is_float(from)) {
    if (is_float(to)) return to == DType::F64 ? b.CreateFPExt(v, type(to)) : b.CreateFPTrunc(v, type(to));
    if (to == DType::Bool) return b.CreateFCmpUNE(v, ConstantFP::get(v->getType(), 0));
    if (to == DType::Index && wide) return double_to_i128(cast(v, from, DType::F64));
    return float_to_integer(v, memory_type(to), dclass(to) == DClass::Int);
  }
  if (from == DType::Index && is_float(to) && wide) return i128_to_float(v, type(to));
  if (to == DType::F64 && from_signed && bytes(from) == 8 && !target.avx512dq) return i64_to_double(v);
  if (is_float(to)) return from_signed ? b.CreateSIToFP(v, type(to)) : b.CreateUIToFP(v, type(to));
  if (to == DType::Bool) return b.CreateIsNotNull(v);
  return b.CreateIntCast(v, type(to), from_signed);
}

// Truncates, saturates, NaN is 0. LLVM has an intrinsic for it, which x86 works one element at a time; compares and
// selects make vectors.
Value *Arithmetic::float_to_integer(Value *v, llvm::Type *result, bool is_signed) {
  llvm::Type *t = v->getType();
  const unsigned width = result->getIntegerBitWidth();
  const APInt least = is_signed ? APInt::getSignedMinValue(width) : APInt::getZero(width);
  const APInt greatest = is_signed ? APInt::getSignedMaxValue(width) : APInt::getMaxValue(width);
  auto real = [&](const APInt &i) {
    return ConstantFP::get(t, is_signed ? i.signedRoundToDouble() : i.roundToDouble());
  };
  Value *zero = ConstantFP::get(t, 0), *low = real(least), *high = real(greatest);
  if (width < 32 ||
      (width == 32 && is_signed && t->isDoubleTy())) { // both ends are floats and fit the CPU's own conversion
    v = b.CreateSelect(b.CreateFCmpORD(v, v), v, zero);
    v = b.CreateSelect(b.CreateFCmpOLT(v, low), low, v);
    v = b.CreateSelect(b.CreateFCmpOGT(v, high), high, v);
    return b.CreateTrunc(b.CreateFPToSI(v, b.getInt32Ty()), result);
  }
  // The greatest is no float, but the next power of two is (`high`, rounded up).
  Value *below = b.CreateFCmpOLT(v, low), *above = b.CreateFCmpOGE(v, high);
  Value *inside = b.CreateAnd(b.CreateFCmpOGE(v, low), b.CreateFCmpOLT(v, high)); // false for NaN
  Value *safe = b.CreateSelect(inside, v, zero);
  Value *converted = is_signed ? b.CreateFPToSI(safe, result) : b.CreateFPToUI(safe, result);
  converted = b.CreateSelect(below, ConstantInt::get(b.getContext(), least), converted);
  return b.CreateSelect(above, ConstantInt::get(b.getContext(), greatest), converted);
}

// An i64 as the sum of its halves, each placed into a double's fraction by its bits: one rounding, and AVX2 has all of
// it in vectors.
Value *Arithmetic::i64_to_double(Value *v) {
  llvm::Type *f64 = b.getDoubleTy();
  Value *low = b.CreateOr(b.CreateAnd(v, 0xffffffffull), 0x4330000000000000ull); // 2^52 + low
  Value *high = b.CreateXor(b.CreateLShr(v, 32), 0x80000000ull);
  high = b.CreateOr(high, 0x4530000000000000ull); // 2^84 + 2^63 + high * 2^32
  Value *rest = b.CreateFSub(b.CreateBitCast(high, f64), ConstantFP::get(f64, 0x1.0p84 + 0x1.0p63 + 0x1.0p52));
  return b.CreateFAdd(rest, b.CreateBitCast(low, f64));
}

// The nearest f32 or f64, ties to even: the leading 64 bits, the last of which stands for all behind it too, are
// rounded once and moved to their place.
Value *Arithmetic::i128_to_float(Value *v, llvm::Type *result) {
  llvm::Type *i64 = b.getInt64Ty(), *i128 = v->getType();
  Value *negative = b.CreateICmpSLT(v, ConstantInt::get(i128, 0));
  Value *magnitude = b.CreateSelect(negative, b.CreateNeg(v), v);
  Value *zeros = b.CreateBinaryIntrinsic(Intrinsic::ctlz, b.CreateOr(magnitude, 1), b.getFalse()); // 127 of 0 too
  Value *leading = b.CreateShl(magnitude, zeros);
  Value *rest = b.CreateIsNotNull(b.CreateTrunc(leading, i64));
  Value *top = b.CreateOr(b.CreateTrunc(b.CreateLShr(leading, 64), i64), b.CreateZExt(rest, i64));
  const int fraction = result->isDoubleTy() ? 52 : 23, bias = result->isDoubleTy() ? 1023 : 127;
  llvm::Type *bits = b.getIntNTy(result->isDoubleTy() ? 64 : 32);
  Value *exponent = b.CreateSub(ConstantInt::get(bits, bias + 64), b.CreateTrunc(zeros, bits));
  Value *place = b.CreateBitCast(b.CreateShl(exponent, fraction), result);
  Value *value = b.CreateFMul(b.CreateUIToFP(top, result), place);
  return b.CreateSelect(negative, b.CreateFNeg(value), value);
}

// Truncates; NaN is 0. It ends where a double does as a host's index (arithmetic.cpp).
Value *Arithmetic::double_to_i128(Value *v) {
  llvm::Type *i64 = b.getInt64Ty(), *i128 = b.getInt128Ty();
  Value *bits = b.CreateBitCast(v, i64);
  Value *exponent = b.CreateAnd(b.CreateLShr(bits, 52), 2047);
  Value *digits = b.CreateZExt(b.CreateOr(b.CreateAnd(bits, (1ull << 52) - 1), 1ull << 52), i128);
  auto within = [&](Value *shift, uint64_t most) { // of 64 bits, signed
    shift = b.CreateSelect(b.CreateICmpSLT(shift, b.getInt64(0)), b.getInt64(0), shift);
    shift = b.CreateSelect(b.CreateICmpSGT(shift, b.getInt64(most)), b.getInt64(most), shift);
    return b.CreateZExt(shift, i128);
  };
  Value *left = within(b.CreateSub(exponent, b.getInt64(1075)), 74);
  Value *right = within(b.CreateSub(b.getInt64(1075), exponent), 63);
  Value *magnitude = b.CreateLShr(b.CreateShl(digits, left), right);
  Value *end = ConstantInt::get(i128, APInt::getSignedMaxValue(128) - (APInt(128, 1) << 100));
  Value *far = b.CreateOr(b.CreateICmpUGE(exponent, b.getInt64(1023 + 127)), b.CreateICmpUGT(magnitude, end));
  magnitude = b.CreateSelect(far, end, magnitude);
  Value *value = b.CreateSelect(b.CreateICmpSLT(bits, b.getInt64(0)), b.CreateNeg(magnitude), magnitude);
  return b.CreateSelect(b.CreateFCmpORD(v, v), value, ConstantInt::get(i128, 0));
}

// f64 -> f32 such that a second rounding to a half is as good as one: inexact results end in an odd bit.
Value *Arithmetic::round_to_odd(Value *v) {
  llvm::Type *i32 = b.getInt32Ty();
  Value *narrow = b.CreateFPTrunc(v, b.getFloatTy());
  Value *back = b.CreateFPExt(narrow, b.getDoubleTy());
  Value *bits = b.CreateBitCast(narrow, i32);
  Value *inexact = b.CreateFCmpONE(back, v); // false for NaN
  Value *even = b.CreateIsNull(b.CreateAnd(bits, b.getInt32(1)));
  Value *too_far =
      b.CreateFCmpOGT(b.CreateUnaryIntrinsic(Intrinsic::fabs, back), b.CreateUnaryIntrinsic(Intrinsic::fabs, v));
  Value *neighbour = b.CreateAdd(bits, b.CreateSelect(too_far, b.getInt32(-1), b.getInt32(1)));
  return b.CreateBitCast(b.CreateSelect(b.CreateAnd(inexact, even), neighbour, bits), b.getFloatTy());
}

// Where a value is rounded to F16 or comes from it, InstCombine of LLVM 23 works what lies between in F16 too: of a
// whole number it looks at the digits alone, so that `x * (y << 31)` is worked with an infinity, and of `x < 0 ? 0 : x`
// it makes `x > 0 ? x : 0`, which loses the sign of a zero. So it may not look through the conversions. The intrinsic
// is one that vectors have as well; optimise() takes it away when the passes are done.
Value *Arithmetic::opaque(Value *v) { return b.CreateUnaryIntrinsic(Intrinsic::canonicalize, v); }

Value *Arithmetic::half_to_float(DType d, Value *v) {
  llvm::Type *i32 = b.getInt32Ty(), *f32 = b.getFloatTy();
  if (d == DType::BF16) return b.CreateBitCast(b.CreateShl(b.CreateZExt(v, i32), 16), f32);
  if (target.f16c) return opaque(b.CreateFPExt(b.CreateBitCast(v, b.getHalfTy()), f32));
  // Normal numbers: exponent moved by 112 through a product. Subnormal ones: the fraction placed behind 0.5, and 0.5
  // taken off. Both exact.
  Value *high = b.CreateShl(b.CreateZExt(v, i32), 16);
  Value *sign = b.CreateAnd(high, 0x80000000u), *twice = b.CreateShl(high, 1);
  Value *normal = b.CreateFMul(b.CreateBitCast(b.CreateAdd(b.CreateLShr(twice, 4), b.getInt32(0xE0u << 23)), f32),
                               ConstantFP::get(f32, 0x1.0p-112));
  Value *subnormal = b.CreateFSub(b.CreateBitCast(b.CreateOr(b.CreateLShr(twice, 17), b.getInt32(126u << 23)), f32),
                                  ConstantFP::get(f32, 0.5));
  Value *magnitude = b.CreateSelect(b.CreateICmpULT(twice, b.getInt32(1u << 27)), b.CreateBitCast(subnormal, i32),
                                    b.CreateBitCast(normal, i32));
  return b.CreateBitCast(b.CreateOr(sign, magnitude), f32);
}

Value *Arithmetic::float_to_half(DType d, Value *v) {
  llvm::Type *i16 = b.getInt16Ty(), *i32 = b.getInt32Ty(), *f32 = b.getFloatTy();
  if (d == DType::F16 && target.f16c) return b.CreateBitCast(b.CreateFPTrunc(opaque(v), b.getHalfTy()), i16);
  Value *bits = b.CreateBitCast(v, i32);
  if (d == DType::BF16) {
    Value *last = b.CreateAnd(b.CreateLShr(bits, 16), 1);
    Value *rounded = b.CreateLShr(b.CreateAdd(bits, b.CreateAdd(last, b.getInt32(0x7fff))), 16);
    Value *quiet = b.CreateOr(b.CreateLShr(bits, 16), 0x40);
    return b.CreateTrunc(b.CreateSelect(b.CreateFCmpUNO(v, v), quiet, rounded), i16);
  }
  // The sum with a power of two 13 binary places above the half's last place rounds there, to nearest even; two
  // products make what is too large infinite first.
  Value *magnitude = b.CreateUnaryIntrinsic(Intrinsic::fabs, v);
  Value *limited =
      b.CreateFMul(b.CreateFMul(magnitude, ConstantFP::get(f32, 0x1.0p+112)), ConstantFP::get(f32, 0x1.0p-110));
  Value *twice = b.CreateShl(bits, 1);
  Value *exponent = b.CreateBinaryIntrinsic(Intrinsic::umax, b.CreateAnd(twice, 0xFF000000u), b.getInt32(0x71000000u));
  Value *shifted =
      b.CreateFAdd(b.CreateBitCast(b.CreateAdd(b.CreateLShr(exponent, 1), b.getInt32(0x07800000u)), f32), limited);
  Value *sum = b.CreateBitCast(shifted, i32);
  Value *number = b.CreateAdd(b.CreateAnd(b.CreateLShr(sum, 13), 0x7C00), b.CreateAnd(sum, 0x0FFF));
  Value *half = b.CreateSelect(b.CreateFCmpUNO(v, v), b.getInt32(0x7E00), number);
  return b.CreateTrunc(b.CreateOr(b.CreateLShr(b.CreateAnd(bits, 0x80000000u), 16), half), i16);
}

} // namespace elsewise::llvm_emit
