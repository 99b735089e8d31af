// SPDX-License-Identifier: Apache-2.0
// Rows that are functions of the deterministic library: scalar calls that tell the vectoriser of their vector variants,
// and the bodies around them. It knows no function by name.
#include "compiler/check/composite.h"
#include "compiler/emit/llvm_value.h"
#include "compiler/ir/functions.h"
#include "llvm/IR/Module.h"

namespace elsewise::llvm_emit {
using namespace llvm;

// The call stands for one element. What it may become in a vector loop is written on it as an attribute, since LLVM's
// own tables know other libraries only.
Value *Arithmetic::library_function(const Builtin &row, DType d, ArrayRef<Value *> operands) {
  Module &module = *b.GetInsertBlock()->getModule();
  llvm::Type *t = type(d);
  auto declare = [&](unsigned lanes) {
    llvm::Type *each = lanes == 1 ? t : FixedVectorType::get(t, lanes);
    const SmallVector<llvm::Type *> parameters(operands.size(), each);
    FunctionCallee f =
        module.getOrInsertFunction(functions::symbol(row.cpu, d, lanes), FunctionType::get(each, parameters, false));
    auto *function = llvm::cast<Function>(f.getCallee());
    function->setDoesNotAccessMemory(), function->setDoesNotThrow(), function->setWillReturn();
    function->addFnAttr(Attribute::NoFree), function->addFnAttr(Attribute::Speculatable);
    return function;
  };
  CallInst *call = b.CreateCall(declare(1), operands);
  std::string variants;
  for (unsigned width = 128; width <= target.function_bits; width *= 2) {
    const unsigned lanes = width / 8 / unsigned(bytes(d));
    variants += (variants.empty() ? "_ZGV_LLVM_N" : ",_ZGV_LLVM_N") + std::to_string(lanes) +
                std::string(operands.size(), 'v') + "_" + functions::symbol(row.cpu, d, 1) + "(" +
                std::string(declare(lanes)->getName()) + ")";
  }
  if (!variants.empty()) call->addFnAttr(Attribute::get(b.getContext(), "vector-function-abi-variant", variants));
  return call;
}

namespace {

/// A row's body for the CPU, an expression at a time.
struct FunctionBody {
  Arithmetic &arithmetic;
  IRBuilder<> &b;
  const Composite &body;
  const Builtin &row;
  DType d;
  ArrayRef<Value *> operands;

  Value *value(ExprId e) {
    const Expr &x = body.ast[e];
    SmallVector<Value *> parts;
    for (uint32_t k = 0; k < x.count; ++k) parts.push_back(value(body.ast.child(e, k)));
    switch (x.kind) {
    case ExprKind::Literal: {
      const Literal &l = body.ast.literal(e);
      return arithmetic.constant(d, {0, l.kind == LiteralKind::Float ? l.real : double(l.integer)});
    }
    case ExprKind::Name:
      return operands[body.parameter(e)];
    case ExprKind::Unary:
      return arithmetic.unary(UnaryOp::Neg, d, parts[0]);
    case ExprKind::Binary:
      if (x.op == Operator::Gt) return arithmetic.compare(CompareOp::Gt, d, parts[0], parts[1]);
      return arithmetic.binary(x.op == Operator::Add   ? BinaryOp::Add
                               : x.op == Operator::Sub ? BinaryOp::Sub
                               : x.op == Operator::Mul ? BinaryOp::Mul
                                                       : BinaryOp::Div,
                               d, parts[0], parts[1]);
    default:
      break;
    }
    const Builtin &called = builtins()[body.names.of[e].index];
    if (called.rule == Rule::Select) return b.CreateSelect(parts[0], parts[1], parts[2]);
    return &called == &row ? arithmetic.library_function(row, d, parts) : arithmetic.call(called, d, parts);
  }
};

} // namespace

Value *Arithmetic::function(const Builtin &row, DType d, ArrayRef<Value *> operands) {
  const std::string_view text = row.cpu_body[d == DType::F64];
  if (text.empty()) return library_function(row, d, operands);
  const Composite body = composite(row, text);
  return FunctionBody{*this, b, body, row, d, operands}.value(body.body);
}

} // namespace elsewise::llvm_emit
