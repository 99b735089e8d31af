// SPDX-License-Identifier: Apache-2.0
// The side table of types that one walker fills: what lowering, the oracle and the torch source read. It is the only
// place where promotion is decided.
#pragma once
#include "compiler/diagnostics/diagnostic.h"
#include "compiler/names/names.h"
#include "compiler/types/types.h"
#include <array>

namespace elsewise {

/// A float that no tensor has entered is a double inside a comparison and the working float as a value, and integer
/// data is i64 first between the brackets of a read, so types are kept by use.
enum class Use : uint8_t { Value, Compare, Index };

/// What a proof relied on and a call must check, so that a promise made from the text is never broken by a value.
struct Assumption {
  enum What : uint8_t {
    IsNumber,
    NotNaN
  } what;                // IsNumber: the argument is a parameter, not a tensor (settled by the signature)
  uint32_t argument;     // NotNaN: a float parameter in `expr`
  ExprId expr = no_expr; // NotNaN: the float of the host stage (typed for Use::Compare) that must be a number: `edge`,
                         // or `rate*n`, which may be inf*0
};

/// How one expression is worked, in one use.
struct ExprType {
  Type type;                    // of the result
  DType compute = DType::Index; // what the operands are converted to before the operation: opmath of the promoted dtype
                                // (f16 -> F32), or Index
  DType nominal = DType::Index; // comparisons, min, max, clip: the promoted dtype before opmath. A comparison rounds
                                // uniform scalar operands to a half `nominal` first
  Use operands = Use::Value; // the use in which the operands are typed: Compare inside a comparison that no tensor has
                             // entered, Index for the indices of a read and what is worked for one
  bool quotient = false;     // `/` between indexes: means floor
};

struct Typed {
  std::array<std::vector<ExprType>, 3> by_use; // [Use][ExprId]
  DType working = DType::F32;  // F64 if a tensor with dimensions, `dtype=`, `out` or a cast in the spec is f64
  DType result = DType::F32;   // the stored dtype (after `dtype=`/`out`)
  DType promoted = DType::F32; // the pieces' promotion, before that conversion
  std::vector<bool> reachable; // by piece: false only if proved from text and kinds
  std::vector<Assumption> assumed;
  bool complete = false; // no Unknown left: only then may lowering run

  const ExprType &at(ExprId e, Use u) const { return by_use[int(u)][e]; }
};

/// The one walker: kinds, index quotients, promotion, literal fit, coverage, reachability. With Unknown arguments it
/// reports only what is wrong for every kind.
Typed specialise(const Source &, const Ast &, const Names &, const Signature &, Sink &);

/// torch.result_type of two operands that are tensors or Python scalars; nullopt where torch raises.
std::optional<DType> promote(DType a, Category ca, DType b, Category cb);
/// torch.can_cast(from, to).
bool can_cast(DType from, DType to);

} // namespace elsewise
