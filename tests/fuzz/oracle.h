// SPDX-License-Identifier: Apache-2.0
// The reference of the differential tests: it walks syntax and types one element at a time. It never sees the IR, so
// that it cannot inherit its bugs.
#pragma once
#include "compiler/check/typed.h"
#include "grammar/builtins.h"
#include <optional>
#include <string>
#include <vector>

namespace elsewise::fuzz {

/// A tensor or a parameter as the oracle reads it. Strides are in elements.
struct Operand {
  ArgType type;
  std::vector<int64_t> shape, stride;
  const uint8_t *data = nullptr;
  __int128 integer = 0; // Int, Bool
  double real = 0;      // Float
};

enum class Outcome : uint8_t { Value, Overflow, ZeroDivision, OutOfBounds };

/// One computed value. `type` says which member holds it: floats in `real` (exact in that type), everything else in
/// `integer`.
struct Scalar {
  DType type = DType::Index;
  __int128 integer = 0;
  double real = 0;
  bool made = false; // a NaN of arithmetic or a literal, whose sign the language leaves open
};

class Oracle {
public:
  Oracle(const Ast &ast, const Names &names, const Typed &typed, std::vector<Operand> operands,
         std::vector<int64_t> domain);
  /// The element at row-major index `position`: its stored bytes, or the fault that it must raise.
  Outcome element(int64_t position, uint8_t *bytes);
  /// Index of the piece that gave the last element.
  uint32_t piece() const { return piece_; }
  /// Some index left 128 bits, which is as far as this goes.
  bool beyond() const { return beyond_; }
  /// Something took the sign of a NaN of arithmetic or a literal.
  bool open() const { return open_; }

private:
  struct Known {
    uint64_t element = 0;
    Scalar value;
  };
  size_t dimension(uint32_t axis) const;
  Scalar measure(ExprId) const;
  Scalar border(ExprId) const;
  Scalar evaluate(ExprId, Use);
  Scalar find(ExprId, Use);
  Scalar operand(ExprId, Use, DType to);
  bool holds_extreme(ExprId) const;
  Scalar stored(ExprId, std::vector<DType> &through);
  Scalar operate(ExprId, Use);
  Scalar call(ExprId, Use);
  bool is_constant(ExprId) const;
  std::optional<Scalar> exact_power(DType, const Scalar &base, const Scalar &by, ExprId exponent);
  Scalar whole_power(DType, const Scalar &, const Scalar &);
  Scalar ratio(ExprId, const ExprType &);
  Scalar apply(const Builtin &, std::vector<Scalar>, DType);
  Scalar primitive(const Builtin &, const std::vector<Scalar> &, DType);
  Scalar body(const Builtin &, const std::vector<Scalar> &, DType);
  Scalar arithmetic(Operator, DType, const Scalar &, const Scalar &);
  bool compare(ExprId, const ExprType &);
  Scalar index_result(__int128, bool overflow);
  Scalar load(const Operand &) const;
  Scalar read(ExprId);

  const Ast &ast_;
  const Names &names_;
  const Typed &typed_;
  std::vector<Operand> operands_;
  std::vector<int64_t> domain_, where_; // where_: this element's position along each axis
  int64_t position_ = 0, count_ = 0;
  uint32_t piece_ = 0;
  Outcome fault_ = Outcome::Value;
  std::vector<Known> known_; // by expression, use and exactness: the last element's
  uint64_t element_ = 0;     // how many elements so far
  bool beyond_ = false, open_ = false;
  bool exact_ = false; // inside a comparison that no tensor has entered: nothing overflows
};

/// Conversions of the language: float to int truncates and saturates, NaN is 0; int to int wraps; to half rounds to
/// nearest even.
Scalar convert(const Scalar &, DType to);
/// The value of stored bytes, and back.
Scalar decode(DType, const uint8_t *);
void encode(const Scalar &, uint8_t *bytes);

} // namespace elsewise::fuzz
