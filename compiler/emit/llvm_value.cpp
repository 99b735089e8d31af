// SPDX-License-Identifier: Apache-2.0
// Arithmetic, comparisons and builtins in LLVM IR, total and exact as ir.h says. Conversions between types stand in
// llvm_convert.cpp.
#include "compiler/emit/llvm_value.h"
#include "compiler/ir/rows.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/IR/Intrinsics.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/ErrorHandling.h"
#include <optional>

namespace elsewise::llvm_emit {
using namespace llvm;

static bool is_signed(DType d) { return dclass(d) == DClass::Int; }

llvm::Type *Arithmetic::type(DType d) const {
  if (d == DType::Index) return wide ? b.getInt128Ty() : b.getInt64Ty();
  if (d == DType::Bool) return b.getInt1Ty();
  if (d == DType::F32) return b.getFloatTy();
  if (d == DType::F64) return b.getDoubleTy();
  return b.getIntNTy(8 * bytes(d)); // halves too: as bits, so that a copy keeps them
}

llvm::Type *Arithmetic::memory_type(DType d) const {
  if (d == DType::Bool) return b.getInt8Ty();
  return d == DType::Index ? b.getInt64Ty() : type(d);
}

Value *Arithmetic::from_memory(DType d, Value *v) {
  if (d == DType::Bool) return b.CreateIsNotNull(v);
  return d == DType::Index ? b.CreateSExt(v, type(d)) : v;
}

Value *Arithmetic::to_memory(DType d, Value *v) { return d == DType::Bool ? b.CreateZExt(v, b.getInt8Ty()) : v; }

Value *Arithmetic::constant(DType d, const Constant &c) {
  if (!is_float(d)) {
    const auto bits = (unsigned __int128)c.integer;
    return ConstantInt::get(b.getContext(),
                            APInt(128, {uint64_t(bits), uint64_t(bits >> 64)}).trunc(type(d)->getIntegerBitWidth()));
  }
  APFloat value(c.real);
  if (is_half(d)) {
    bool lost;
    value.convert(d == DType::F16 ? APFloat::IEEEhalf() : APFloat::BFloat(), APFloat::rmNearestTiesToEven, &lost);
    return ConstantInt::get(b.getContext(), value.bitcastToAPInt());
  }
  if (d == DType::F64) return ConstantFP::get(b.getContext(), value);
  bool lost;
  value.convert(APFloat::IEEEsingle(), APFloat::rmNearestTiesToEven, &lost);
  return ConstantFP::get(b.getContext(), value);
}

Value *Arithmetic::unary(UnaryOp op, DType d, Value *v) {
  if (op == UnaryOp::BitNot) return b.CreateNot(v);
  return is_float(d) ? b.CreateFNeg(v) : b.CreateNeg(v);
}

Value *Arithmetic::compare(CompareOp op, DType d, Value *l, Value *r) {
  if (is_float(d)) {
    static constexpr CmpInst::Predicate ordered[] = {CmpInst::FCMP_OLT, CmpInst::FCMP_OLE, CmpInst::FCMP_OGT,
                                                     CmpInst::FCMP_OGE, CmpInst::FCMP_OEQ, CmpInst::FCMP_UNE};
    return b.CreateFCmp(ordered[int(op)], l, r);
  }
  static constexpr CmpInst::Predicate with_sign[] = {CmpInst::ICMP_SLT, CmpInst::ICMP_SLE, CmpInst::ICMP_SGT,
                                                     CmpInst::ICMP_SGE, CmpInst::ICMP_EQ,  CmpInst::ICMP_NE};
  static constexpr CmpInst::Predicate without[] = {CmpInst::ICMP_ULT, CmpInst::ICMP_ULE, CmpInst::ICMP_UGT,
                                                   CmpInst::ICMP_UGE, CmpInst::ICMP_EQ,  CmpInst::ICMP_NE};
  return b.CreateICmp((is_signed(d) ? with_sign : without)[int(op)], l, r);
}

Value *Arithmetic::binary(BinaryOp op, DType d, Value *l, Value *r) {
  if (is_float(d)) return float_binary(op, l, r);
  if (d == DType::Bool) { // + is or, * is and, as torch does
    if (op == BinaryOp::Add) op = BinaryOp::BitOr;
    if (op == BinaryOp::Mul) op = BinaryOp::BitAnd;
  }
  return integer_binary(op, is_signed(d), l, r);
}

Value *Arithmetic::integer_binary(BinaryOp op, bool is_signed, Value *l, Value *r) {
  // What is 0 whatever the other side is must be known to be when floats are made of it: see quotient().
  const auto is_zero = [](Value *v) {
    const auto *c = dyn_cast<ConstantInt>(v);
    return c && c->isZero();
  };
  const bool vanishes = (op == BinaryOp::Sub && l == r) ||
                        ((op == BinaryOp::Mul || op == BinaryOp::BitAnd) && (is_zero(l) || is_zero(r)));
  if (vanishes) return ConstantInt::get(l->getType(), 0);
  switch (op) {
  case BinaryOp::Add:
    return b.CreateAdd(l, r);
  case BinaryOp::Sub:
    return b.CreateSub(l, r);
  case BinaryOp::Mul:
    return b.CreateMul(l, r);
  case BinaryOp::BitAnd:
    return b.CreateAnd(l, r);
  case BinaryOp::BitOr:
    return b.CreateOr(l, r);
  case BinaryOp::BitXor:
    return b.CreateXor(l, r);
  case BinaryOp::FloorDiv:
    return divide(is_signed, false, l, r);
  case BinaryOp::Mod:
    return divide(is_signed, true, l, r);
  case BinaryOp::Shl:
  case BinaryOp::Shr:
    return shift(op, is_signed, l, r);
  case BinaryOp::Pow:
    return integer_power(is_signed, l, r);
  case BinaryOp::Div:
    break;
  }
  llvm_unreachable("true division of integers is worked in floats");
}

// x//0 and x%0 are 0, MIN//-1 wraps, and both have Python's signs.
Value *Arithmetic::divide(bool is_signed, bool remainder, Value *l, Value *r) {
  const auto *known = dyn_cast<ConstantInt>(r);
  const unsigned width = l->getType()->getIntegerBitWidth();
  Value *zero = ConstantInt::get(l->getType(), 0), *one = ConstantInt::get(l->getType(), 1);
  if (known && known->isZero()) return zero;
  if (!is_signed) {
    Value *safe = known ? r : b.CreateSelect(b.CreateIsNull(r), one, r);
    Value *result = remainder ? b.CreateURem(l, safe) : b.CreateUDiv(l, safe);
    return known ? result : b.CreateSelect(b.CreateIsNull(r), zero, result);
  }
  if (known && known->isMinusOne()) return remainder ? zero : b.CreateNeg(l);
  if (known && known->getValue().isStrictlyPositive() && known->getValue().isPowerOf2()) { // rounds down as it is
    const APInt by = known->getValue();
    return remainder ? b.CreateAnd(l, ConstantInt::get(b.getContext(), by - 1)) : b.CreateAShr(l, by.logBase2());
  }
  Value *safe = r; // a divisor that cannot trap: 1 in place of 0, and of -1 under the least integer, where 1 gives what
                   // wrapping gives
  if (!known) {
    Value *least = ConstantInt::get(b.getContext(), APInt::getSignedMinValue(width));
    Value *overflow =
        b.CreateAnd(b.CreateICmpEQ(l, least), b.CreateICmpEQ(r, llvm::Constant::getAllOnesValue(r->getType())));
    safe = b.CreateSelect(b.CreateOr(b.CreateIsNull(r), overflow), one, r);
  }
  Value *rest = b.CreateSRem(l, safe);
  Value *adjust = b.CreateAnd(b.CreateIsNotNull(rest), b.CreateIsNeg(b.CreateXor(rest, safe)));
  Value *result = remainder ? b.CreateSelect(adjust, b.CreateAdd(rest, safe), rest)
                            : b.CreateSub(b.CreateSDiv(l, safe), b.CreateZExt(adjust, l->getType()));
  return known ? result : b.CreateSelect(b.CreateIsNull(r), zero, result);
}

// By the width or more, or by less than 0: 0, or the sign for an arithmetic right shift.
Value *Arithmetic::shift(BinaryOp op, bool is_signed, Value *l, Value *r) {
  const unsigned width = l->getType()->getIntegerBitWidth();
  if (op == BinaryOp::Shr && is_signed)
    return b.CreateAShr(l, b.CreateBinaryIntrinsic(Intrinsic::umin, r, ConstantInt::get(r->getType(), width - 1)));
  Value *inside = b.CreateICmpULT(r, ConstantInt::get(r->getType(), width));
  // Beyond the width it is poison that nobody asks for. Frozen, for LLVM concludes from `31 << r` that it is not 0, and
  // moves a division by what the select gives to where r may be anything.
  Value *shifted = b.CreateFreeze(op == BinaryOp::Shl ? b.CreateShl(l, r) : b.CreateLShr(l, r));
  return b.CreateSelect(inside, shifted, ConstantInt::get(l->getType(), 0));
}

Value *Arithmetic::integer_power(bool is_signed, Value *base, Value *exponent) {
  if (const auto *known = dyn_cast<ConstantInt>(exponent); known && !(is_signed && known->isNegative())) {
    APInt left = known->getValue();
    Value *result = nullptr, *square = base;
    for (; !left.isZero(); left.lshrInPlace(1)) {
      if (left[0]) result = result ? b.CreateMul(result, square) : square;
      if (left.ugt(1)) square = b.CreateMul(square, square);
    }
    return result ? result : ConstantInt::get(base->getType(), 1);
  }
  return b.CreateCall(power_function(is_signed, base->getType()), {base, exponent});
}

// i32 power.i32(i32 base, i32 exponent): by squaring, wrapping. A negative exponent keeps 1 and -1 and takes everything
// else to 0.
Function *Arithmetic::power_function(bool is_signed, llvm::Type *t) {
  Module &module = *b.GetInsertBlock()->getModule();
  const std::string name = (is_signed ? "power.i" : "power.u") + std::to_string(t->getIntegerBitWidth());
  if (Function *f = module.getFunction(name)) return f;
  IRBuilderBase::InsertPointGuard guard(b);
  Function *f = Function::Create(FunctionType::get(t, {t, t}, false), GlobalValue::InternalLinkage, name, module);
  f->setDoesNotThrow(), f->setDoesNotAccessMemory(), f->setWillReturn(), f->addFnAttr(Attribute::NoInline);
  llvm::Argument *base = f->getArg(0), *exponent = f->getArg(1);
  base->setName("base"), exponent->setName("exponent");
  LLVMContext &context = b.getContext();
  BasicBlock *entry = BasicBlock::Create(context, "entry", f), *loop = BasicBlock::Create(context, "loop", f),
             *done = BasicBlock::Create(context, "done", f);
  Value *zero = ConstantInt::get(t, 0), *one = ConstantInt::get(t, 1);

  b.SetInsertPoint(entry);
  Value *odd_exponent = b.CreateIsNotNull(b.CreateAnd(exponent, one));
  Value *truncated = zero, *negative = b.getFalse();
  if (is_signed) {
    negative = b.CreateIsNeg(exponent);
    Value *minus = llvm::Constant::getAllOnesValue(t);
    truncated = b.CreateSelect(b.CreateICmpEQ(base, one), one, zero);
    truncated = b.CreateSelect(b.CreateICmpEQ(base, minus), b.CreateSelect(odd_exponent, minus, one), truncated);
  }
  b.CreateCondBr(b.CreateOr(negative, b.CreateIsNull(exponent)), done, loop);

  b.SetInsertPoint(loop);
  PHINode *result = b.CreatePHI(t, 2, "result"), *square = b.CreatePHI(t, 2, "square"),
          *left = b.CreatePHI(t, 2, "left");
  Value *next = b.CreateSelect(b.CreateIsNotNull(b.CreateAnd(left, one)), b.CreateMul(result, square), result);
  Value *rest = b.CreateLShr(left, one);
  result->addIncoming(one, entry), result->addIncoming(next, loop);
  square->addIncoming(base, entry), square->addIncoming(b.CreateMul(square, square), loop);
  left->addIncoming(exponent, entry), left->addIncoming(rest, loop);
  b.CreateCondBr(b.CreateIsNull(rest), done, loop);

  b.SetInsertPoint(done);
  PHINode *value = b.CreatePHI(t, 2);
  value->addIncoming(next, loop);
  b.SetInsertPoint(entry->getTerminator());
  value->addIncoming(b.CreateSelect(negative, truncated, one), entry);
  b.SetInsertPoint(done);
  b.CreateRet(value);
  return f;
}

// LLVM 23 takes `0 / float(i)`, multiplied, for a zero with the sign of i, also where i is 0 and the quotient NaN. So a
// zero by anything says itself what it is.
Value *Arithmetic::quotient(Value *l, Value *r) {
  const auto *known = dyn_cast<ConstantFP>(l);
  if (!known || !known->isZero()) return b.CreateFDiv(l, r);
  Value *number = b.CreateFCmpONE(r, ConstantFP::get(r->getType(), 0)); // neither zero nor NaN
  Value *zero = b.CreateBinaryIntrinsic(Intrinsic::copysign, ConstantFP::get(l->getType(), 0), r);
  return b.CreateSelect(number, known->isNegative() ? b.CreateFNeg(zero) : zero, ConstantFP::getNaN(l->getType()));
}

Value *Arithmetic::float_binary(BinaryOp op, Value *l, Value *r) {
  switch (op) {
  case BinaryOp::Add:
    return b.CreateFAdd(l, r);
  case BinaryOp::Sub:
    return b.CreateFSub(l, r);
  case BinaryOp::Mul:
    return b.CreateFMul(l, r);
  case BinaryOp::Div:
    return quotient(l, r);
  case BinaryOp::Mod:
    return float_remainder(l, r);
  case BinaryOp::FloorDiv:
    return float_floor_divide(l, r);
  case BinaryOp::Pow:
    return float_power(l, r);
  default:
    break;
  }
  llvm_unreachable("bit operations on floats are refused by typing");
}

// torch.remainder: fmod, then the divisor's sign.
Value *Arithmetic::float_remainder(Value *l, Value *r) {
  Value *zero = ConstantFP::get(l->getType(), 0);
  Value *rest = b.CreateFRem(l, r);
  Value *other_sign = b.CreateXor(b.CreateFCmpOLT(r, zero), b.CreateFCmpOLT(rest, zero));
  return b.CreateSelect(b.CreateAnd(b.CreateFCmpUNE(rest, zero), other_sign), b.CreateFAdd(rest, r), rest);
}

// torch's div_floor_floating, operation by operation.
Value *Arithmetic::float_floor_divide(Value *l, Value *r) {
  llvm::Type *t = l->getType();
  Value *zero = ConstantFP::get(t, 0), *one = ConstantFP::get(t, 1);
  Value *plain = b.CreateFDiv(l, r);
  Value *rest = b.CreateFRem(l, r);
  Value *quotient = b.CreateFDiv(b.CreateFSub(l, rest), r);
  Value *other_sign = b.CreateXor(b.CreateFCmpOLT(r, zero), b.CreateFCmpOLT(rest, zero));
  quotient =
      b.CreateSelect(b.CreateAnd(b.CreateFCmpUNE(rest, zero), other_sign), b.CreateFSub(quotient, one), quotient);
  Value *floor = b.CreateUnaryIntrinsic(Intrinsic::floor, quotient);
  Value *short_by_one = b.CreateFCmpOGT(b.CreateFSub(quotient, floor), ConstantFP::get(t, 0.5));
  floor = b.CreateSelect(short_by_one, b.CreateFAdd(floor, one), floor);
  Value *signed_zero = b.CreateBinaryIntrinsic(Intrinsic::copysign, zero, plain);
  Value *result = b.CreateSelect(b.CreateFCmpUNE(quotient, zero), floor, signed_zero);
  return b.CreateSelect(b.CreateFCmpOEQ(r, zero), plain, result);
}

// The exponents for which torch has exact forms take them; the rest is the table's function.
Value *Arithmetic::float_power(Value *base, Value *exponent) {
  if (const auto *known = dyn_cast<ConstantFP>(exponent)) {
    if (known->isExactlyValue(0.0)) return ConstantFP::get(base->getType(), 1);
    if (known->isExactlyValue(1.0)) return base;
    if (known->isExactlyValue(2.0)) return b.CreateFMul(base, base);
    if (known->isExactlyValue(3.0)) return b.CreateFMul(b.CreateFMul(base, base), base);
    if (known->isExactlyValue(0.5)) return b.CreateUnaryIntrinsic(Intrinsic::sqrt, base);
    if (known->isExactlyValue(-1.0)) return b.CreateFDiv(ConstantFP::get(base->getType(), 1), base);
  }
  return function(builtins()[power_row()], base->getType()->isFloatTy() ? DType::F32 : DType::F64, {base, exponent});
}

static std::optional<CmpInst::Predicate> comparison(StringRef spelling) {
  if (!spelling.consume_front("fcmp ")) return std::nullopt;
  for (int p = int(CmpInst::FIRST_FCMP_PREDICATE); p <= int(CmpInst::LAST_FCMP_PREDICATE); ++p)
    if (CmpInst::getPredicateName(CmpInst::Predicate(p)) == spelling) return CmpInst::Predicate(p);
  return std::nullopt;
}

// A row says what it is in LLVM: an intrinsic ("llvm.floor"), a comparison of its operand with itself ("fcmp uno") or
// of its magnitude with infinity ("fcmp oeq inf"), the remainder; or that it is a function of the library.
Value *Arithmetic::call(const Builtin &row, DType d, ArrayRef<Value *> operands) {
  if (row.rule == Rule::Noise) return row.meaning == Meaning::Normal ? normal(operands[0]) : noise_word(operands);
  if (is_float(d) && !row.cpu.empty()) return function(row, d, operands);
  StringRef text = is_float(d) ? row.llvm : is_signed(d) ? row.llvm_signed : row.llvm_unsigned;
  if (text.empty()) return operands[0]; // integers are whole, and unsigned ones their own magnitude
  const bool with_infinity = text.consume_back(" inf");
  if (const auto predicate = comparison(text)) {
    if (!with_infinity) return b.CreateFCmp(*predicate, operands[0], operands.back());
    Value *magnitude = b.CreateUnaryIntrinsic(Intrinsic::fabs, operands[0]);
    return b.CreateFCmp(*predicate, magnitude, ConstantFP::getInfinity(magnitude->getType()));
  }
  if (text == "frem") return b.CreateFRem(operands[0], operands[1]);
  const Intrinsic::ID id = Intrinsic::lookupIntrinsicID(text);
  if (id == Intrinsic::not_intrinsic) report_fatal_error("the builtin table names an unknown intrinsic");
  Function *f = Intrinsic::getOrInsertDeclaration(b.GetInsertBlock()->getModule(), id, {operands[0]->getType()});
  if (f->arg_size() == operands.size() + 1) { // a flag that says which inputs are poison: none
    SmallVector<Value *> all(operands);
    all.push_back(b.getFalse());
    return b.CreateCall(f, all);
  }
  Value *result = operands[0]; // a row of any number of arguments folds from the left, two at a time
  if (f->arg_size() == 1) return b.CreateCall(f, {result});
  for (Value *next : operands.drop_front()) result = b.CreateCall(f, {result, next});
  return result;
}

} // namespace elsewise::llvm_emit
