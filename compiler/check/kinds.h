// SPDX-License-Identifier: Apache-2.0
// What an expression is whatever it is used for: kind, promoted dtype, stage, literal value. It reports every wrong
// operand, and leaves quotients and uses alone.
#pragma once
#include "compiler/check/typed.h"
#include <llvm/ADT/ArrayRef.h>

namespace elsewise {

struct Fact {
  Kind kind = Kind::Unknown;
  DType dtype = DType::Index; // of the result: Data its nominal dtype, a weak float F32 until its use is known
  Stage stage = Stage::Host;
  Category category = Category::Scalar;
  bool tensor = false;                             // a tensor has entered, or a cast that names a dtype
  bool extreme = false;                            // may be `lowest` or `highest`, by itself or in an arm
  bool clash = false;                              // operands that torch promotes to nothing: joint is Unknown
  bool open = false;                               // of what is not known yet: stage or category say nothing
  bool used = false;                               // some piece holds it
  Kind joint = Kind::Unknown;                      // the kind the operands are brought to
  DType nominal = DType::Index;                    // Data: what they are promoted to
  std::optional<__int128> constant = std::nullopt; // an index made of literals alone
};

struct Kinds {
  std::vector<Fact> of;           // parallel to Ast::exprs
  std::vector<bool> value, index; // likewise: used outside the brackets of a read, and worked for an index (see
                                  // passes_index)
  DType working = DType::F32;
  bool complete = true; // no Unknown in any piece
  const Fact &operator[](ExprId e) const { return of[e]; }
};

/// Whether an index is worked out of this operand of `e` as an index too: through arithmetic and what chooses or maps
/// whole numbers, and not through conversions, comparisons and conditions.
bool passes_index(const Ast &, const Names &, ExprId e, uint32_t operand);

Kinds find_kinds(const Source &, const Ast &, const Names &, const Signature &, Sink &);

/// What several values are together, as operands or as pieces: kind, dtype, category, tensor; joint and nominal
/// likewise. What is an extreme alone has no say, unless all are.
Fact join(llvm::ArrayRef<Fact>);
/// "a whole number", "f32 data": for messages.
std::string describe(const Fact &);
/// Reports values that have no dtype in common (Fact::clash of their join), written at `at`.
void report_clash(const Source &, llvm::ArrayRef<Fact>, llvm::ArrayRef<Span> at, Span caret, Sink &);
/// Reports an index literal, written at `where`, that an integer dtype cannot hold.
void check_fit(const Source &, const Kinds &, ExprId, Span where, DType, Sink &);

} // namespace elsewise
