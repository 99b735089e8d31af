// SPDX-License-Identifier: Apache-2.0
// The meaning of each operation of the IR in LLVM IR, one value at a time. It knows no loop, slot or pointer.
#pragma once
#include "compiler/emit/llvm.h"
#include "grammar/builtins.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/IR/IRBuilder.h"
#include <array>

namespace elsewise::llvm_emit {

/// Emits at the builder's insertion point. Every operation is total and free of side effects, so that either arm of a
/// select may be computed. Value types: Bool i1, integers iN, Index i64 (i128 where wide), f16 and bf16 their bits in
/// an i16, float, double.
class Arithmetic {
public:
  Arithmetic(llvm::IRBuilder<> &builder, bool wide, const CpuTarget &target) : b(builder), wide(wide), target(target) {}

  llvm::Type *type(DType) const;
  llvm::Type *memory_type(DType) const; // as stored: Bool is a byte, Index 64 bits
  llvm::Value *constant(DType, const Constant &);
  llvm::Value *from_memory(DType, llvm::Value *);
  llvm::Value *to_memory(DType, llvm::Value *);

  llvm::Value *unary(UnaryOp, DType, llvm::Value *);
  llvm::Value *binary(BinaryOp, DType, llvm::Value *, llvm::Value *);
  llvm::Value *compare(CompareOp, DType operands, llvm::Value *, llvm::Value *);
  llvm::Value *cast(llvm::Value *, DType from, DType to);
  llvm::Value *call(const Builtin &, DType operands, llvm::ArrayRef<llvm::Value *>);
  /// A row that is a function of the deterministic library, with and without its own body.
  llvm::Value *function(const Builtin &, DType, llvm::ArrayRef<llvm::Value *>);
  llvm::Value *library_function(const Builtin &, DType, llvm::ArrayRef<llvm::Value *>);
  /// Philox 4x32-10: the four words at a counter of which the lower half is given, of 64 bits each.
  std::array<llvm::Value *, 4> philox(llvm::Value *counter, llvm::Value *seed, llvm::Value *stream);

private:
  llvm::Value *integer_binary(BinaryOp, bool is_signed, llvm::Value *, llvm::Value *);
  llvm::Value *float_binary(BinaryOp, llvm::Value *, llvm::Value *);
  llvm::Value *quotient(llvm::Value *, llvm::Value *);
  llvm::Value *divide(bool is_signed, bool remainder, llvm::Value *, llvm::Value *);
  llvm::Value *shift(BinaryOp, bool is_signed, llvm::Value *, llvm::Value *);
  llvm::Value *integer_power(bool is_signed, llvm::Value *, llvm::Value *);
  llvm::Function *power_function(bool is_signed, llvm::Type *);
  llvm::Value *float_power(llvm::Value *, llvm::Value *);
  llvm::Value *float_remainder(llvm::Value *, llvm::Value *);
  llvm::Value *float_floor_divide(llvm::Value *, llvm::Value *);
  llvm::Value *noise_word(llvm::ArrayRef<llvm::Value *>);
  llvm::Value *normal(llvm::Value *word);
  llvm::Value *half_to_float(DType, llvm::Value *);
  llvm::Value *float_to_half(DType, llvm::Value *);
  llvm::Value *opaque(llvm::Value *); // out of sight of the passes
  llvm::Value *i64_to_double(llvm::Value *);
  llvm::Value *i128_to_float(llvm::Value *, llvm::Type *);
  llvm::Value *double_to_i128(llvm::Value *);
  llvm::Value *round_to_odd(llvm::Value *);
  llvm::Value *float_to_integer(llvm::Value *, llvm::Type *, bool is_signed);

  llvm::IRBuilder<> &b;
  bool wide;
  CpuTarget target;
};

} // namespace elsewise::llvm_emit
