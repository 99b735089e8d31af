// SPDX-License-Identifier: Apache-2.0
// Noise by position in LLVM IR: the same operations, in the same order, as the functions that the rows have in CUDA C.
// It knows nothing of where a position comes from.
#include "compiler/emit/llvm_value.h"

namespace elsewise::llvm_emit {
using namespace llvm;

std::array<Value *, 4> Arithmetic::philox(Value *counter, Value *seed, Value *stream) {
  llvm::Type *i32 = b.getInt32Ty(), *i64 = b.getInt64Ty();
  const auto low = [&](Value *v) { return b.CreateTrunc(v, i32); };
  const auto high = [&](Value *v) { return b.CreateTrunc(b.CreateLShr(v, 32), i32); };
  const auto product = [&](Value *v, uint64_t by) { return b.CreateMul(b.CreateZExt(v, i64), b.getInt64(by)); };
  std::array<Value *, 4> w = {low(counter), high(counter), low(stream), high(stream)};
  Value *k[2] = {low(seed), high(seed)};
  for (int round = 0; round < 10; ++round) {
    Value *x = product(w[0], 0xd2511f53), *y = product(w[2], 0xcd9e8d57);
    w = {b.CreateXor(b.CreateXor(high(y), w[1]), k[0]), low(y), b.CreateXor(b.CreateXor(high(x), w[3]), k[1]), low(x)};
    k[0] = b.CreateAdd(k[0], b.getInt32(0x9e3779b9)), k[1] = b.CreateAdd(k[1], b.getInt32(0xbb67ae85));
  }
  return w;
}

Value *Arithmetic::noise_word(ArrayRef<Value *> operands) {
  Value *position = operands[0];
  const std::array<Value *, 4> w = philox(b.CreateLShr(position, 2), operands[1], operands[2]);
  const auto bit = [&](uint64_t n) { return b.CreateIsNotNull(b.CreateAnd(position, b.getInt64(n))); };
  Value *odd = bit(1);
  return b.CreateSelect(bit(2), b.CreateSelect(odd, w[3], w[2]), b.CreateSelect(odd, w[1], w[0]));
}

// The point below which (word + 0.5) * 2^-32 of a normal distribution lies: quotients of polynomials (Wichura, AS 241)
// in how far that part is from one half, and in the root of its logarithm.
Value *Arithmetic::normal(Value *word) {
  llvm::Type *f32 = b.getFloatTy(), *i32 = b.getInt32Ty();
  const auto real = [&](float v) { return ConstantFP::get(f32, v); };
  const auto plus = [&](Value *v, float c) { return b.CreateFAdd(v, real(c)); };
  const auto times = [&](Value *v, float c) { return b.CreateFMul(v, real(c)); };
  const auto polynomial = [&](Value *v, std::initializer_list<float> c) { // highest first
    Value *sum = real(*c.begin());
    for (const float *next = c.begin() + 1; next != c.end(); ++next) sum = plus(b.CreateFMul(sum, v), *next);
    return sum;
  };
  const auto half_up = [&](Value *v) { return plus(b.CreateSIToFP(v, f32), 0.5f); };

  Value *rest = b.CreateXor(word, b.CreateAShr(word, 31)); // counted from the nearer end
  Value *off = times(half_up(b.CreateXor(rest, b.getInt32(0x7fffffff))), 0x1p-32f);
  Value *r = b.CreateFSub(real(0.180625f), b.CreateFMul(off, off));
  Value *middle = polynomial(r, {59.109375f, 159.29114f, 50.434273f, 3.3871326f});
  Value *under_middle = polynomial(r, {67.18756f, 78.75776f, 17.89517f, 1.0f});

  Value *bits = b.CreateBitCast(half_up(rest), i32);
  Value *m = b.CreateBitCast(b.CreateOr(b.CreateAnd(bits, b.getInt32(0x7fffff)), b.getInt32(0x3f800000)), f32);
  Value *s = b.CreateFDiv(plus(m, -1.4142135f), plus(m, 1.4142135f)), *z = b.CreateFMul(s, s);
  Value *log_m = plus(b.CreateFMul(s, polynomial(z, {0.2857143f, 0.4f, 0.6666667f, 2.0f})), 0.3465736f);
  Value *exponent = b.CreateSIToFP(b.CreateSub(b.getInt32(159), b.CreateAShr(bits, 23)), f32);
  Value *outside = b.CreateFSub(times(exponent, 0.6931472f), log_m);
  Value *t = plus(b.CreateUnaryIntrinsic(Intrinsic::sqrt, outside), -1.6f);
  Value *tail = polynomial(t, {0.17023821f, 1.3067285f, 2.7568154f, 1.4234372f});
  Value *under_tail = polynomial(t, {0.12021133f, 0.73700166f, 1.0f});

  Value *near = b.CreateFCmpOLE(off, real(0.425f)); // one division serves both
  Value *x = b.CreateFDiv(b.CreateSelect(near, b.CreateFMul(off, middle), tail),
                          b.CreateSelect(near, under_middle, under_tail));
  return b.CreateSelect(b.CreateIsNeg(word), x, b.CreateFNeg(x));
}

} // namespace elsewise::llvm_emit
