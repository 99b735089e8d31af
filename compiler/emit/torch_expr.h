// SPDX-License-Identifier: Apache-2.0
// Expressions as Python text in plain torch. It decides no type: every conversion is the one that typing decided.
#pragma once
#include "compiler/check/typed.h"
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace elsewise {

/// Python's precedence, loosest first.
enum class Level : uint8_t {
  Conditional,
  Or,
  And,
  Not,
  Compare,
  BitOr,
  BitXor,
  BitAnd,
  Shift,
  Sum,
  Product,
  Unary,
  Power,
  Atom
};

/// Python text, and what it evaluates to: a tensor of `dtype` (Index: int64), or a Python int (Index), float (F64) or
/// bool.
struct Python {
  std::string text;
  Level level = Level::Atom;
  bool tensor = false;
  DType dtype = DType::Index;
  bool literal = false; // a number as written
  double real = 0;      // its value
};

class TorchExpressions {
public:
  /// `window`: `shape` is a part's, `domain` the whole's, and `offset` where the part begins in it.
  TorchExpressions(const Ast &, const Names &, const Signature &, const Typed &, bool window);

  Python value(ExprId, Use);
  bool holds_read(ExprId e) const { return reads_[e]; }
  /// What a read made from here on stands under, besides what stands in the text between: nothing is read elsewhere.
  void assume(const Python &condition, bool holds);
  void forget() { path_.pop_back(); } // what was assumed last
  /// Where what was assumed holds and this does not, as the only thing that is assumed.
  void assume_rest(const Python &condition);
  /// A condition that reads stand under, as a variable.
  Python condition(ExprId, const std::string &wanted);
  /// In the dtype of the result, as a tensor or as a number that torch.where takes as it is.
  Python stored(ExprId, DType);
  /// In parentheses if it binds looser than `least`.
  static std::string at(const Python &, Level least);
  /// A tensor in any case.
  Python as_tensor(const Python &, DType);
  std::string dtype(DType);
  /// A global name that no argument hides.
  std::string global(const std::string &);
  /// A function of torch_helpers.h, by the name that it has here.
  std::string helper(const std::string &name);
  const std::string &device() const { return device_; }

  bool uses_position = false, uses_length = false, uses_math = false;
  std::set<uint32_t> axes; // of the header, whose positions are used
  std::set<std::string> helpers;
  /// Statements that expressions made so far stand on: lets, each once a use, and functions of one position.
  std::vector<std::string> statements;
  std::string position_name(uint32_t axis);
  /// The expression of all positions, of the domain or along an axis of the header.
  std::string positions(uint32_t axis);
  /// The shape that positions and lengths are of.
  const char *whole() const { return window_ ? "domain" : "shape"; }
  const std::string &length_name() const { return n_; }
  /// The dimension of a header's axis, for Python's indexing.
  std::string dimension(uint32_t axis) const;

private:
  Python make(ExprId, Use);
  Python make_plain(ExprId, Use);
  Python named(ExprId, Python);
  Python measured(ExprId);
  Python read(ExprId);
  template <class Make> Python under(const Python &condition, bool holds, Make make);
  Python border(ExprId);
  Python by_position(ExprId, const ExprType &);
  std::string fresh(const std::string &);
  Python literal(const Literal &);
  Python name(ExprId);
  Python unary(ExprId, const ExprType &);
  Python binary(ExprId, const ExprType &);
  Python division(Operator, Python, Python, DType);
  Python logic(ExprId);
  Python comparison(ExprId, const ExprType &);
  Python call(ExprId, const ExprType &);
  Python select(ExprId, const ExprType &);
  Python chosen(const struct Builtin &, const Python &, Python, Python, DType, bool plainly);
  Python ratio(ExprId, const ExprType &);
  Python cast(Python, DType);
  Python apply(const Builtin &, std::vector<Python>, DType);
  Python by_body(const Builtin &, const std::vector<Python> &, DType);
  Python primitive(const Builtin &, std::vector<Python>, DType);
  Python on_host(Operator, const Python &, const Python &);
  Python to(Python, DType);
  Python in_double(const Python &, DType);
  Python compared_whole(ExprId, const ExprType &);
  void parameters_of(ExprId, std::set<std::string> &) const;
  Python compared(ExprId operand, const ExprType &);
  int bits(ExprId, int parameter) const;
  int find_bits(ExprId, int parameter) const;
  bool may_leave_64_bits(ExprId) const;
  bool tensor_free(ExprId) const;
  bool find_tensor_free(ExprId) const;
  Python unsigned_text(const std::string &op, const Python &, const Python &, DType);
  Python operated(const Python &, Operator, const Python &, DType compute, DType result);
  Python stored_arm(ExprId, DType, std::vector<DType> &through);
  Python extreme(bool high, DType);
  Python infix(const Python &, Operator, const Python &, DType);

  const Ast &ast_;
  const Names &names_;
  const Signature &signature_;
  const Typed &typed_;
  const bool window_;
  std::string device_ = "device";
  bool by_position_ = false; // positions are Python ints, not the tensors of all of them
  bool by_axis_ = false;     // while by_position_: an axis was asked for
  std::string i_, n_, at_;
  std::set<std::string> taken_; // names of the function's own
  std::map<uint32_t, std::string> axis_names_;
  std::map<ExprId, uint32_t> lets_; // values that stand in a let: which
  std::vector<std::string> path_;   // conditions that reads made now stand under
  std::map<std::tuple<ExprId, Use, bool, std::vector<std::string>>, Python> known_;
  const std::vector<bool> reads_, extremes_; // by expression: one stands below it, one may be its value
  mutable std::map<std::pair<ExprId, int>, int> bits_;
  mutable std::map<ExprId, bool> tensor_free_;
};

} // namespace elsewise
