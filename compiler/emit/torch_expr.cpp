// SPDX-License-Identifier: Apache-2.0
// One Python expression an expression: operators where torch means the same, helper functions where it does not.
// Numbers without a tensor stay Python's.
#include "compiler/emit/torch_expr.h"
#include "compiler/check/composite.h"
#include "compiler/emit/torch_helpers.h"
#include "compiler/types/text.h"
#include <algorithm>
#include <cmath>
#include <functional>

namespace elsewise {
namespace {

Level level(Operator op) {
  switch (op) {
  case Operator::Or:
    return Level::Or;
  case Operator::And:
    return Level::And;
  case Operator::Not:
    return Level::Not;
  case Operator::BitOr:
    return Level::BitOr;
  case Operator::BitXor:
    return Level::BitXor;
  case Operator::BitAnd:
    return Level::BitAnd;
  case Operator::Shl:
  case Operator::Shr:
    return Level::Shift;
  case Operator::Add:
  case Operator::Sub:
    return Level::Sum;
  case Operator::Mul:
  case Operator::Div:
  case Operator::FloorDiv:
  case Operator::Mod:
    return Level::Product;
  case Operator::Neg:
  case Operator::Plus:
  case Operator::BitNot:
    return Level::Unary;
  case Operator::Pow:
    return Level::Power;
  default:
    return Level::Compare;
  }
}

/// Exponents for which torch multiplies and divides, as the language does.
bool plain_exponent(const Python &e) {
  return e.literal && (e.real == 0 || e.real == 1 || e.real == 2 || e.real == 3 || e.real == -1);
}

bool power_of_two(double v) {
  int exponent;
  return v != 0 && std::fabs(std::frexp(v, &exponent)) == 0.5;
}

/// torch's short word for a conversion, where it has one.
const char *method(DType d) {
  switch (d) {
  case DType::F16:
    return "half";
  case DType::BF16:
    return "bfloat16";
  case DType::F32:
    return "float";
  case DType::F64:
    return "double";
  case DType::I64:
  case DType::Index:
    return "long";
  case DType::Bool:
    return "bool";
  default:
    return nullptr;
  }
}

/// Those of which torch has a dtype and hardly more.
bool is_bare(DType d) { return dclass(d) == DClass::UInt && bytes(d) > 1; }

std::string filled(std::string_view text, const std::vector<std::string> &operands) {
  std::string out;
  for (size_t k = 0; k < text.size(); ++k) {
    const bool hole = text[k] == '{' && k + 2 < text.size() && text[k + 2] == '}';
    if (hole) out += operands[size_t(text[k + 1] - '0')], k += 2;
    else out += text[k];
  }
  return out;
}

} // namespace

TorchExpressions::TorchExpressions(const Ast &ast, const Names &names, const Signature &signature, const Typed &typed,
                                   bool window)
    : ast_(ast), names_(names), signature_(signature), typed_(typed), window_(window),
      reads_(holding_reads(ast, names)), extremes_(holding_extremes(ast, names)) {
  bool found = false;
  for (int pass = 0; pass < 2; ++pass) // a tensor with dimensions says the device, else a 0-d one
    for (size_t a = 0; a < signature.args.size() && !found; ++a)
      if (signature.args[a].kind == ArgKind::Tensor && signature.args[a].zero_dim == (pass == 1)) {
        device_ = names.arguments[a] + ".device";
        found = true;
      }
  // A header's names stay as they are; what the function needs besides goes by others then.
  taken_ = {"shape", "out", "device"};
  if (window) taken_.insert({"domain", "offset"});
  for (uint32_t k = 0; k < ast.header.axes.size(); ++k) axis_names_[k] = fresh(ast.header.axes[k]);
  i_ = fresh("i"), n_ = fresh("n"), at_ = fresh("at");
  for (uint32_t k = 0; k < ast.lets.size(); ++k) {
    const ExprKind kind = ast[ast.lets[k].value].kind;
    if (kind != ExprKind::Literal && kind != ExprKind::Name) lets_.try_emplace(ast.lets[k].value, k);
  }
}

/// A name for a variable of the function, that hides nothing it uses.
std::string TorchExpressions::fresh(const std::string &wanted) {
  static const std::set<std::string> globals = {"torch", "math", "itertools", "range", "tuple", "float"};
  const auto used = [&](const std::string &name) {
    if (taken_.count(name) || globals.count(name)) return true;
    for (const TorchHelper &h : torch_helpers)
      if (h.name == name) return true;
    return std::find(names_.arguments.begin(), names_.arguments.end(), name) != names_.arguments.end();
  };
  std::string name = wanted;
  while (used(name)) name += '_';
  taken_.insert(name);
  return name;
}

std::string TorchExpressions::dimension(uint32_t axis) const {
  const Header &h = ast_.header;
  const int count = int(h.axes.size()), k = int(axis);
  return std::to_string(h.dots < 0 || k < h.dots ? k : k - count);
}

std::string TorchExpressions::position_name(uint32_t axis) { return axis == flat_axis ? i_ : axis_names_[axis]; }

std::string TorchExpressions::positions(uint32_t axis) {
  if (axis != flat_axis) {
    const std::string own = helper("_axis") + "(shape, " + dimension(axis) + ", " + device_ + ")";
    return window_ ? own + " + offset[" + dimension(axis) + "]" : own;
  }
  if (window_) return helper("_flat_in") + "(shape, " + device_ + ", domain, offset)";
  return global("torch") + ".arange(" + n_ + ", device=" + device_ + ").reshape(shape)";
}

std::string TorchExpressions::global(const std::string &wanted) {
  std::string name = wanted;
  while (std::find(names_.arguments.begin(), names_.arguments.end(), name) != names_.arguments.end()) name += '_';
  return name;
}

std::string TorchExpressions::helper(const std::string &name) {
  helpers.insert(name);
  return global(name);
}

std::string TorchExpressions::dtype(DType d) { return global("torch") + "." + torch_name(d); }

std::string TorchExpressions::at(const Python &c, Level least) {
  return c.level >= least ? c.text : "(" + c.text + ")";
}

Python TorchExpressions::infix(const Python &a, Operator op, const Python &b, DType result) {
  const Level l = level(op);
  const bool power = op == Operator::Pow; // associates to the right, and takes a sign only there
  const Level tighter = Level(int(l) + 1);
  const Level left = power ? Level::Atom : l == Level::Compare ? tighter : l; // `a < b == c` is a chain
  const Level right = power ? Level::Unary : tighter;
  return {at(a, left) + " " + spelling(op) + " " + at(b, right), l, a.tensor || b.tensor, result};
}

Python TorchExpressions::unsigned_text(const std::string &op, const Python &a, const Python &b, DType d) {
  const bool compares = op[0] == '=' || op[0] == '!' || op == "<" || op == ">" || op == "<=" || op == ">=";
  return {helper("_unsigned") + "(\"" + op + "\", " + a.text + ", " + b.text + ", " + dtype(d) + ")", Level::Atom, true,
          compares ? DType::Bool : d};
}

/// Two operands in the type that they are worked in.
Python TorchExpressions::operated(const Python &a, Operator op, const Python &b, DType compute, DType result) {
  if (is_bare(compute) && (a.tensor || b.tensor)) return unsigned_text(spelling(op), a, b, compute);
  return infix(a, op, b, result);
}

Python TorchExpressions::value(ExprId e, Use use) {
  if (!lets_.count(e)) return make(e, use);
  constexpr size_t most = 4096; // so many paths to lets would double at each; without one a read has to be in bounds
  std::vector<std::string> path = holds_read(e) && known_.size() < most ? path_ : std::vector<std::string>{};
  const auto key = std::tuple(e, use, by_position_, path);
  if (const auto known = known_.find(key); known != known_.end()) return known->second;
  std::swap(path, path_);
  const Python c = named(e, make(e, use));
  std::swap(path, path_);
  known_[key] = c;
  return c;
}

/// A let as a variable, so that text does not grow with its uses.
Python TorchExpressions::named(ExprId e, Python c) {
  const auto letter = [](unsigned char b) { return isalnum(b) || b == '_'; };
  if (c.literal || (c.level == Level::Atom && std::all_of(c.text.begin(), c.text.end(), letter))) return c;
  const std::string variable = fresh(ast_.lets[lets_[e]].name);
  statements.push_back(variable + " = " + c.text);
  return {variable, Level::Atom, c.tensor, c.dtype};
}

Python TorchExpressions::make(ExprId e, Use use) {
  const Python c = make_plain(e, use);
  return use == Use::Index && c.tensor && is_integer(c.dtype) ? to(c, DType::I64) : c;
}

Python TorchExpressions::make_plain(ExprId e, Use use) {
  const ExprType &t = typed_.at(e, use);
  switch (ast_[e].kind) {
  case ExprKind::Literal:
    return literal(ast_.literal(e));
  case ExprKind::Name:
    return name(e);
  case ExprKind::Unary:
    return unary(e, t);
  case ExprKind::Binary:
    return binary(e, t);
  case ExprKind::Call:
    return call(e, t);
  case ExprKind::Read:
    return read(e);
  case ExprKind::Error:
    break;
  }
  return {};
}

void TorchExpressions::assume(const Python &c, bool holds) {
  const std::string text = holds      ? at(c, Level::Conditional)
                           : c.tensor ? "~" + at(c, Level::Unary)
                                      : "not " + at(c, Level::Not);
  path_.push_back(text);
}

void TorchExpressions::assume_rest(const Python &c) {
  assume(c, false);
  if (path_.size() == 1) return;
  std::string text;
  for (const std::string &one : path_) text += (text.empty() ? "" : " & ") + ("(" + one + ")");
  const std::string variable = fresh("left");
  statements.push_back(variable + " = " + text);
  path_ = {variable};
}

template <class Make> Python TorchExpressions::under(const Python &c, bool holds, Make make) {
  assume(c, holds);
  const Python made = make();
  path_.pop_back();
  return made;
}

Python TorchExpressions::condition(ExprId e, const std::string &wanted) {
  const Python c = value(e, Use::Value);
  const auto letter = [](unsigned char b) { return isalnum(b) || b == '_'; };
  if (c.literal || std::all_of(c.text.begin(), c.text.end(), letter)) return c;
  const std::string variable = fresh(wanted);
  statements.push_back(variable + " = " + c.text);
  return {variable, Level::Atom, c.tensor, c.dtype};
}

/// torch evaluates everything, so an index is looked at only where the read is reached.
Python TorchExpressions::read(ExprId e) {
  const Expr &x = ast_[e];
  const uint32_t argument = names_.of[e].index;
  std::string reached, before, behind;
  for (const std::string &c : path_) reached += (reached.empty() ? "" : ", ") + c;
  for (uint32_t k = 0; k < x.count; ++k) {
    std::string &list = x.dots >= 0 && int(k) >= x.dots ? behind : before;
    list += (list.empty() ? "" : ", ") + value(ast_.child(e, k), Use::Index).text;
  }
  std::string text =
      helper("_read") + "(" + names_.arguments[argument] + ", shape, [" + reached + "], [" + before + "]";
  if (x.dots >= 0) text += ", [" + behind + "]";
  return {text + ")", Level::Atom, true, signature_.args[argument].dtype};
}

Python TorchExpressions::literal(const Literal &l) {
  if (l.kind == LiteralKind::Bool)
    return {l.integer ? "True" : "False", Level::Atom, false, DType::Bool, true, double(l.integer)};
  if (l.kind == LiteralKind::Int)
    return {decimal(l.integer), Level::Atom, false, DType::Index, true, double(l.integer)};
  Python c{"", Level::Atom, false, DType::F64, true, l.real};
  if (std::isfinite(l.real)) {
    c.text = shortest_literal(DType::F64, l.real);
  } else {
    uses_math = true;
    c.text = global("math") + (std::isnan(l.real) ? ".nan" : ".inf");
  }
  return c;
}

Python TorchExpressions::name(ExprId e) {
  const Resolved r = names_.of[e];
  if (r.binding == Binding::Position) {
    if (by_position_ && r.index != flat_axis) {
      by_axis_ = true;
      return {at_ + "[" + dimension(r.index) + "]", Level::Atom, false, DType::Index};
    }
    if (!by_position_) r.index == flat_axis ? void(uses_position = true) : void(axes.insert(r.index));
    return {position_name(r.index), Level::Atom, !by_position_, DType::Index};
  }
  if (r.binding == Binding::Length) return measured(e);
  const ArgType &a = signature_.args[r.index];
  const DType d = a.kind == ArgKind::Tensor  ? a.dtype
                  : a.kind == ArgKind::Float ? DType::F64
                  : a.kind == ArgKind::Bool  ? DType::Bool
                                             : DType::Index;
  return {names_.arguments[r.index], Level::Atom, a.kind == ArgKind::Tensor, d};
}

/// A length, of the domain or of an argument.
Python TorchExpressions::measured(ExprId e) {
  const Resolved r = names_.of[e];
  std::string text;
  if (r.binding == Binding::ArgumentLength) {
    const std::string dim = std::to_string(r.dim), shape = names_.arguments[r.index] + ".shape";
    const bool part = window_ && names_.elementwise[r.index];
    text = part ? helper("_length_in") + "(" + shape + ", " + dim + ", domain)" : shape + "[" + dim + "]";
  } else if (r.index == flat_axis) {
    uses_length = true;
    text = n_;
  } else {
    text = std::string(whole()) + "[" + dimension(r.index) + "]";
  }
  return {text, Level::Atom, false, DType::Index};
}

Python TorchExpressions::border(ExprId e) {
  std::string dims;
  for (uint32_t k = 0; k < ast_[e].count; ++k) dims += dimension(names_.of[ast_.child(e, k)].index) + ", ";
  dims = ast_[e].count == 0 ? "None" : "(" + dims.substr(0, dims.size() - (ast_[e].count == 1 ? 1 : 2)) + ")";
  if (by_position_) {
    by_axis_ = true;
    return {helper("_border_at") + "(" + whole() + ", " + dims + ", " + at_ + ")", Level::Atom, false, DType::Index};
  }
  if (window_)
    return {helper("_border_in") + "(shape, " + dims + ", " + device_ + ", domain, offset)", Level::Atom, true,
            DType::Index};
  return {helper("_border") + "(shape, " + dims + ", " + device_ + ")", Level::Atom, true, DType::Index};
}

/// A Python number as a 0-d tensor, with the language's conversions.
Python TorchExpressions::as_tensor(const Python &c, DType d) {
  if (c.tensor) return to(c, d);
  if (d == DType::F32 || d == DType::F64) // which torch makes of a number as the language does
    return {global("torch") + ".tensor(" + c.text + ", dtype=" + dtype(d) + ", device=" + device_ + ")", Level::Atom,
            true, d};
  return {helper("_scalar") + "(" + c.text + ", " + dtype(d) + ", " + device_ + ")", Level::Atom, true, d};
}

/// A tensor of doubles that hold what the computing type holds.
Python TorchExpressions::in_double(const Python &c, DType d) {
  const bool exact = c.literal && double(float(c.real)) == c.real;
  return exact ? as_tensor(c, DType::F64) : cast(as_tensor(c, d), DType::F64);
}

/// What an operand is converted to before an operation. Numbers without a tensor stay as they are: torch takes them in
/// the tensor's dtype.
Python TorchExpressions::to(Python c, DType d) {
  if (!c.tensor || c.dtype == d) return c;
  const auto wide = [](DType t) { return t == DType::Index ? DType::I64 : t; };
  if (wide(c.dtype) == wide(d)) {
    c.dtype = d;
    return c;
  }
  return cast(c, d);
}

Python TorchExpressions::cast(Python c, DType d) {
  if (!c.tensor) return as_tensor(c, d);
  if (c.dtype == d) return c;
  const std::string operand = at(c, Level::Atom);
  Python r{"", Level::Atom, true, d};
  if (is_float(c.dtype) && is_integer(d)) r.text = helper("_to_int") + "(" + c.text + ", " + dtype(d) + ")";
  else if (c.dtype == DType::F64 && is_half(d)) r.text = helper("_to_half") + "(" + c.text + ", " + dtype(d) + ")";
  else if (const char *own = method(d)) r.text = operand + "." + own + "()";
  else r.text = operand + ".to(" + dtype(d) + ")";
  return r;
}

/// The least or greatest value of a dtype.
Python TorchExpressions::extreme(bool high, DType d) {
  if (d == DType::Bool) return {high ? "True" : "False", Level::Atom, false, d, true, double(high)};
  const std::string limits = is_float(d) ? ".finfo(" : ".iinfo(";
  const Python c{global("torch") + limits + dtype(d) + ")" + (high ? ".max" : ".min"), Level::Atom, false,
                 is_float(d) ? DType::F64 : DType::Index};
  return d == DType::U64 ? as_tensor(c, d) : c; // an int beyond 64 bits with a sign
}

/// A whole value of which an arm is an extreme, every arm in the dtype of the result; `through`: what the choices
/// around it are worked in.
Python TorchExpressions::stored_arm(ExprId e, DType d, std::vector<DType> &through) {
  if (ast_[e].kind == ExprKind::Literal && is_extreme(ast_.literal(e).kind))
    return as_tensor(extreme(ast_.literal(e).kind == LiteralKind::Highest, d), d);
  if (!extremes_[e]) {
    Python c = value(e, Use::Value);
    for (size_t k = through.size(); k-- > 0;)
      if (c.tensor || through[k] != DType::Index) c = as_tensor(c, through[k]);
    return as_tensor(c, d);
  }
  const ExprType &t = typed_.at(e, Use::Value);
  const Python condition = value(ast_.child(e, 0), Use::Value);
  const bool worked = t.type.kind != Kind::Extreme;
  if (worked) through.push_back(t.compute);
  const Python a = stored_arm(ast_.child(e, 1), d, through), b = stored_arm(ast_.child(e, 2), d, through);
  if (worked) through.pop_back();
  return chosen(builtins()[names_.of[e].index], condition, a, b, d, false);
}

Python TorchExpressions::stored(ExprId e, DType d) {
  if (ast_[e].kind == ExprKind::Literal && is_extreme(ast_.literal(e).kind))
    return extreme(ast_.literal(e).kind == LiteralKind::Highest, d);
  if (extremes_[e]) {
    std::vector<DType> through;
    return stored_arm(e, d, through);
  }
  const Python c = value(e, Use::Value);
  if (c.tensor) return cast(c, d);
  const bool whole = c.dtype != DType::F64;
  // Python ints and bools of a spec fit the promoted dtype; what does not fit another one wraps, which is a conversion.
  const bool wide = c.dtype == DType::Index && may_leave_64_bits(e);
  if (whole && !wide && (d == typed_.promoted || is_float(d))) return c;
  if (c.literal && is_float(d) && (std::fabs(c.real) < 6e4 || !std::isfinite(c.real))) return c;
  return as_tensor(c, d);
}

Python TorchExpressions::unary(ExprId e, const ExprType &t) {
  const Operator op = ast_[e].op;
  if (op == Operator::Not) return logic(e);
  const Python a = to(value(ast_.child(e, 0), t.operands), t.compute);
  if (op == Operator::Plus) return a;
  if (op == Operator::BitNot && a.dtype == DType::Bool && !a.tensor)
    return {"not " + at(a, Level::Not), Level::Not, false, DType::Bool};
  const DType d = a.tensor ? t.compute : a.dtype;
  if (a.tensor && is_bare(d)) { // minus is 0 - a, and ~a is -1 - a
    const Python from{op == Operator::Neg ? "0" : decimal(greatest(d))};
    return unsigned_text("-", from, a, d);
  }
  Python r{spelling(op) + at(a, Level::Unary), Level::Unary, a.tensor, d};
  if (a.literal && op == Operator::Neg) r.literal = true, r.real = -a.real;
  return r;
}

/// On tensors `&`, `|`, `~`; on Python's bools its own words.
Python TorchExpressions::logic(ExprId e) {
  const Operator op = ast_[e].op;
  if (op != Operator::Not && holds_read(ast_.child(e, 1))) {
    const Python left = condition(ast_.child(e, 0), "holds");
    const Python right = under(left, op == Operator::And, [&] { return value(ast_.child(e, 1), Use::Value); });
    return infix(left, op == Operator::And ? Operator::BitAnd : Operator::BitOr, right, DType::Bool);
  }
  const Python a = value(ast_.child(e, 0), Use::Value);
  if (op == Operator::Not) {
    if (a.tensor) return {"~" + at(a, Level::Unary), Level::Unary, true, DType::Bool};
    return {"not " + at(a, Level::Not), Level::Not, false, DType::Bool};
  }
  const Python b = value(ast_.child(e, 1), Use::Value);
  if (a.tensor || b.tensor) return infix(a, op == Operator::And ? Operator::BitAnd : Operator::BitOr, b, DType::Bool);
  return infix(a, op, b, DType::Bool);
}

Python TorchExpressions::binary(ExprId e, const ExprType &t) {
  const Operator op = ast_[e].op;
  if (op == Operator::And || op == Operator::Or) return logic(e);
  if (is_comparison(op)) return comparison(e, t);
  const DType c = t.compute;
  Python a = to(value(ast_.child(e, 0), t.operands), c), b = to(value(ast_.child(e, 1), t.operands), c);
  const bool tensor = a.tensor || b.tensor;
  for (uint32_t k = 0; k < 2 && tensor && !is_bare(c); ++k) { // torch takes no int beyond 64 bits
    Python &o = k ? b : a;
    const ExprId operand = ast_.child(e, k);
    if (o.tensor || o.dtype != DType::Index || ast_[operand].kind == ExprKind::Name || !may_leave_64_bits(operand))
      continue;
    o = is_float(c) ? as_tensor(o, c) : Python{helper("_index") + "(" + o.text + ")", Level::Atom, false, DType::Index};
  }
  if (!tensor && t.type.kind == Kind::Data) a = as_tensor(a, c); // data by what it means: two bools divided
  const DType result = a.tensor || b.tensor ? c : is_float(c) ? DType::F64 : c;
  if (c == DType::Bool) {
    const Operator logical = op == Operator::Add ? Operator::BitOr : op == Operator::Mul ? Operator::BitAnd : op;
    return infix(a, logical, b, DType::Bool);
  }
  if (is_bare(c) && (a.tensor || b.tensor)) return unsigned_text(spelling(op), a, b, c);
  if (op == Operator::Div || op == Operator::FloorDiv || op == Operator::Mod) return division(op, a, b, c);
  if (!a.tensor && !b.tensor) {
    if (is_float(c)) return op == Operator::Pow ? on_host(op, a, b) : infix(a, op, b, DType::F64);
    const char *own = op == Operator::Pow   ? "_power"
                      : op == Operator::Shl ? "_shift_left"
                      : op == Operator::Shr ? "_shift_right"
                                            : nullptr;
    const bool small = b.literal && b.real >= 0 && b.real < 128;
    if (own && !small) return {helper(own) + "(" + a.text + ", " + b.text + ")", Level::Atom, false, DType::Index};
    return infix(a, op, b, DType::Index);
  }
  if (op == Operator::Pow && is_integer(c)) { // torch refuses a negative Python exponent
    const bool small = b.literal && b.real >= 0;
    if (!b.tensor && !small) b = as_tensor(b, c);
    if (!a.tensor) a = as_tensor(a, c);
  }
  if (op == Operator::Pow && is_float(c)) {
    if (plain_exponent(b)) return infix(as_tensor(a, c), op, b, c);
    return to(infix(in_double(a, c), op, in_double(b, c), DType::F64),
              c); // torch's own powers of f32 are some units off
  }
  if ((op == Operator::Shl || op == Operator::Shr) && !a.tensor) a = as_tensor(a, c);
  if (c == DType::U8 && !a.tensor && a.dtype == DType::Bool) a = as_tensor(a, c);
  return infix(a, op, b, result);
}

Python TorchExpressions::division(Operator op, Python a, Python b, DType c) {
  if (is_bare(c) && (a.tensor || b.tensor)) return unsigned_text(spelling(op), a, b, c);
  const bool nonzero = b.literal && b.real != 0 && std::isfinite(b.real);
  if (is_float(c)) {
    if (!a.tensor && !b.tensor) {
      if (op == Operator::Div && nonzero) return infix(a, op, b, DType::F64);
      return on_host(op, a, b);
    }
    if (op == Operator::Mod && c == DType::F32) // exact in doubles; torch's own f32 is not where the quotient is large
      return to(infix(in_double(a, c), op, in_double(b, c), DType::F64), c);
    // By a Python number torch may multiply by its reciprocal, which is exact only for powers of two.
    if (!b.tensor && !(op == Operator::Div && nonzero && power_of_two(b.real))) b = as_tensor(b, c);
    if (!a.tensor) a = as_tensor(a, c);
    return infix(a, op, b, c);
  }
  const Operator whole = op == Operator::Div ? Operator::FloorDiv : op; // an index quotient
  const DType result = a.tensor || b.tensor ? c : DType::Index;
  if (nonzero && b.real != -1 && (a.tensor || c == DType::Index)) return infix(a, whole, b, result);
  if (!a.tensor && b.tensor) a = as_tensor(a, c);
  if (a.tensor && !b.tensor && c != DType::Index && !b.literal) b = as_tensor(b, c); // which may not fit
  const std::string name = helper(whole == Operator::Mod ? "_mod" : "_floordiv");
  return {name + "(" + a.text + ", " + b.text + ")", Level::Atom, a.tensor || b.tensor, result};
}

/// Doubles as torch works them, where Python's own float would raise.
Python TorchExpressions::on_host(Operator op, const Python &a, const Python &b) {
  const std::string real = helper("_real");
  const std::string right = op == Operator::Pow && plain_exponent(b) ? at(b, Level::Unary) : real + "(" + b.text + ")";
  return {"(" + real + "(" + a.text + ") " + spelling(op) + " " + right + ").item()", Level::Atom, false, DType::F64};
}

/// Bits that a whole number may need, if positions and lengths need as many as tensors in memory, or a domain, may
/// have, and a parameter `parameter`.
int TorchExpressions::bits(ExprId e, int parameter) const {
  const auto key = std::pair(e, parameter);
  if (const auto known = bits_.find(key); known != bits_.end()) return known->second;
  const int count = find_bits(e, parameter);
  bits_[key] = count;
  return count;
}

int TorchExpressions::find_bits(ExprId e, int parameter) const {
  const Binding binding = names_.of[e].binding;
  if (binding == Binding::Length || binding == Binding::ArgumentLength || binding == Binding::Border)
    return window_ ? 60 : 31;
  const Expr &x = ast_[e];
  constexpr int most = 200;
  const auto of = [&](uint32_t k) { return bits(ast_.child(e, k), parameter); };
  const auto literal = [&](ExprId c) {
    return ast_[c].kind == ExprKind::Literal ? int(std::min<__int128>(ast_.literal(c).integer, most)) : -1;
  };
  switch (x.kind) {
  case ExprKind::Literal: {
    int count = 0;
    for (__int128 v = ast_.literal(e).integer; v; v >>= 1) ++count;
    return count;
  }
  case ExprKind::Name:
    return names_.of[e].binding == Binding::Argument ? parameter : window_ ? 60 : 31;
  case ExprKind::Read:
    return parameter;
  case ExprKind::Unary:
    return of(0);
  case ExprKind::Binary:
    break;
  default: {
    int widest = x.count ? 0 : most;
    for (uint32_t k = 0; k < x.count; ++k) widest = std::max(widest, of(k));
    return x.kind == ExprKind::Call ? std::max(widest, parameter) : widest;
  }
  }
  const ExprId right = ast_.child(e, 1);
  switch (x.op) {
  case Operator::Mul:
    return std::min(of(0) + of(1), most);
  case Operator::Div:
  case Operator::FloorDiv:
  case Operator::Shr:
    return of(0);
  case Operator::Mod:
    return of(1);
  case Operator::Shl:
    return literal(right) >= 0 ? std::min(of(0) + literal(right), most) : most;
  case Operator::Pow:
    return literal(right) >= 0 ? std::min(of(0) * literal(right), most) : most;
  default:
    return std::min(std::max(of(0), of(1)) + 1, most);
  }
}

/// Whether a Python int may be one that torch cannot take.
bool TorchExpressions::may_leave_64_bits(ExprId e) const { return bits(e, 64) > 62; }

/// Whether an expression can be worked in Python's own numbers, a position at a time: no tensor is read, no dtype
/// named.
bool TorchExpressions::tensor_free(ExprId e) const {
  if (const auto known = tensor_free_.find(e); known != tensor_free_.end()) return known->second;
  const bool free = find_tensor_free(e);
  tensor_free_[e] = free;
  return free;
}

bool TorchExpressions::find_tensor_free(ExprId e) const {
  if (values(ast_, names_, e) != ast_[e].count || names_.of[e].binding == Binding::Border) return true;
  if (ast_[e].kind == ExprKind::Read) return false;
  if (ast_[e].kind == ExprKind::Name && names_.of[e].binding == Binding::Argument &&
      signature_.args[names_.of[e].index].kind == ArgKind::Tensor)
    return false;
  if (ast_[e].kind == ExprKind::Call) {
    const Rule rule = builtins()[names_.of[e].index].rule;
    if (rule == Rule::CastTo || rule == Rule::Noise) return false;
  }
  for (uint32_t k = 0; k < ast_[e].count; ++k)
    if (!tensor_free(ast_.child(e, k))) return false;
  return true;
}

/// An operand of a comparison.
Python TorchExpressions::compared(ExprId operand, const ExprType &t) {
  Python c = value(operand, t.operands);
  const Type &type = typed_.at(operand, t.operands).type;
  if (c.tensor || !is_half(t.nominal) || type.category != Category::Scalar) return c;
  if (c.literal && c.real == std::trunc(c.real) && std::fabs(c.real) <= 256) return c; // every half holds it
  return {helper("_rounded") + "(" + c.text + ", " + dtype(t.nominal) + ")", Level::Atom, false, DType::F64};
}

/// A comparison worked a position at a time.
Python TorchExpressions::by_position(ExprId e, const ExprType &t) {
  std::vector<std::string> outside;
  std::swap(outside, statements);
  by_position_ = true, by_axis_ = false;
  const Python one = comparison(e, t);
  by_position_ = false;
  std::swap(outside, statements); // `outside` are those of one position now
  std::erase_if(known_, [](const auto &k) { return std::get<2>(k.first); });
  std::string text = one.text;
  if (!outside.empty()) {
    const std::string name = fresh("holds");
    std::string function = "def " + name + "(" + i_ + (by_axis_ ? ", " + at_ : "") + "):\n";
    for (const std::string &line : outside) function += "        " + line + "\n";
    statements.push_back(function + "        return " + text);
    text = name + "(" + i_ + (by_axis_ ? ", " + at_ : "") + ")";
  }
  if (by_axis_ || window_) {
    text += " for " + i_ + ", " + at_ + " in " +
            (window_ ? helper("_positions_in") + "(shape, domain, offset)" : helper("_positions") + "(shape)");
  } else {
    uses_length = true;
    text += " for " + i_ + " in range(" + n_ + ")";
  }
  return {global("torch") + ".tensor([" + text + "], dtype=" + dtype(DType::Bool) + ", device=" + device_ +
              ").reshape(shape)",
          Level::Atom, true, DType::Bool};
}

Python TorchExpressions::comparison(ExprId e, const ExprType &t) {
  // Nothing overflows inside a comparison of indexes: where 64 bits may not do, Python's own integers do.
  if (t.operands == Use::Compare && t.type.stage != Stage::Host && !by_position_ && tensor_free(e)) {
    int least = 0, most = 0; // bits that a side may need, by parameters of 31 and of 64
    std::set<std::string> parameters;
    for (uint32_t k = 0; k < 2; ++k) {
      const ExprId side = ast_.child(e, k);
      least = std::max(least, bits(side, 31));
      // A uniform side is Python's own, and one that no position is compared with beyond 64 bits.
      if (typed_.at(side, t.operands).type.stage == Stage::Host || ast_[side].kind == ExprKind::Name) continue;
      most = std::max(most, bits(side, 64));
      parameters_of(side, parameters);
    }
    if (least > 62) return by_position(e, t);
    if (most > 62 && !parameters.empty()) {
      std::string list;
      for (const std::string &p : parameters) list += (list.empty() ? "" : ", ") + p;
      const Python small = compared_whole(e, t), any = by_position(e, t);
      return {at(small, Level::Or) + " if " + helper("_small") + "(" + list + ") else " + any.text, Level::Conditional,
              true, DType::Bool};
    }
  }
  return compared_whole(e, t);
}

/// The numbers that an expression takes from the call.
void TorchExpressions::parameters_of(ExprId whole, std::set<std::string> &names) const {
  std::set<ExprId, std::greater<>> parts = {whole}; // operands stand before users
  for (const ExprId e : parts) {
    if (ast_[e].kind == ExprKind::Name && names_.of[e].binding == Binding::Argument &&
        signature_.args[names_.of[e].index].kind != ArgKind::Tensor)
      names.insert(names_.arguments[names_.of[e].index]);
    for (uint32_t k = 0; k < values(ast_, names_, e); ++k) parts.insert(ast_.child(e, k));
  }
}

/// With tensors of all positions, or at one.
Python TorchExpressions::compared_whole(ExprId e, const ExprType &t) {
  const ExprId operand[2] = {ast_.child(e, 0), ast_.child(e, 1)};
  Python c[2] = {compared(operand[0], t), compared(operand[1], t)};
  const Operator op = ast_[e].op;
  if (!c[0].tensor && !c[1].tensor) {
    if (!by_position_ && t.type.stage != Stage::Host) c[0] = as_tensor(c[0], t.compute);
    else return infix(c[0], op, c[1], DType::Bool);
  }
  if (is_bare(t.compute)) return unsigned_text(spelling(op), to(c[0], t.compute), to(c[1], t.compute), t.compute);
  for (int k = 0; k < 2; ++k) // an exact integer, and what int64 does not hold
    if (t.compute == DType::Index && c[k].tensor && c[k].dtype == DType::U64) {
      const std::string as = spelling(k ? mirrored(op) : op);
      return {helper("_compare_uint64") + "(\"" + as + "\", " + c[k].text + ", " + c[1 - k].text + ")", Level::Atom,
              true, DType::Bool};
    }
  for (int k = 0; k < 2; ++k) {
    if (c[k].tensor) {
      // Whole numbers of different dtypes meet as int64; to torch 255 of uint8 equals -1.
      const Python &other = c[1 - k];
      const bool alone = !other.tensor && is_integer(c[k].dtype) && !is_bare(c[k].dtype) && t.compute == DType::Index &&
                         other.literal && other.real >= double(least(c[k].dtype)) &&
                         other.real <= double(greatest(c[k].dtype));
      if (!alone) c[k] = to(c[k], t.compute);
    } else if (c[k].dtype == DType::Index && may_leave_64_bits(operand[k])) {
      c[k] = {helper("_index") + "(" + c[k].text + ")", Level::Atom, false, DType::Index};
    }
  }
  return infix(c[0], op, c[1], DType::Bool);
}

Python TorchExpressions::call(ExprId e, const ExprType &t) {
  const Binding binding = names_.of[e].binding;
  if (binding == Binding::Length || binding == Binding::ArgumentLength) return measured(e);
  if (binding == Binding::Border) return border(e);
  const Builtin &row = builtins()[names_.of[e].index];
  const ExprId first = ast_.child(e, 0);
  switch (row.rule) {
  case Rule::Select:
    return select(e, t);
  case Rule::Ratio:
    return ratio(e, t);
  case Rule::CastTo:
    return cast(value(first, t.operands), t.type.dtype);
  case Rule::CastInt: {
    const Python a = value(first, t.operands);
    if (t.type.kind != Kind::Index) return cast(a, DType::I64);
    if (a.tensor) return is_float(a.dtype) ? to(cast(a, DType::I64), DType::Index) : a;
    if (a.dtype == DType::Index) return a;
    uses_math = true;
    return {helper("_whole") + "(" + a.text + ")", Level::Atom, false, DType::Index};
  }
  case Rule::CastFloat: {
    const Python a = value(first, t.operands);
    if (is_float(a.dtype)) return a;
    if (t.type.kind == Kind::Data) return cast(a, DType::F32);
    if (a.tensor) return cast(a, t.type.dtype);
    return {std::string(row.name) + "(" + a.text + ")", Level::Atom, false, DType::F64}; // Python's has the same name
  }
  case Rule::Noise: {
    std::string list = i_;
    uses_position = true;
    for (uint32_t k = 0; k < 2; ++k)
      list += ", " + (k < ast_[e].count ? to(value(ast_.child(e, k), t.operands), DType::I64).text : "0");
    const std::string text = filled(row.torch, {helper("_noise") + "(" + list + ")"});
    return to({helper(text.substr(0, text.find('('))) + text.substr(text.find('(')), Level::Atom, true, DType::F32},
              t.type.dtype);
  }
  default:
    break;
  }
  std::vector<Python> operands;
  for (uint32_t k = 0; k < ast_[e].count; ++k) operands.push_back(to(value(ast_.child(e, k), t.operands), t.compute));
  if (row.rule == Rule::Predicate && !is_float(t.compute)) {
    const double zero = 0;
    const bool truth = row.real(&zero) != 0;
    if (operands[0].tensor)
      return {global("torch") + (truth ? ".ones_like(" : ".zeros_like(") + operands[0].text +
                  ", dtype=" + dtype(DType::Bool) + ")",
              Level::Atom, true, DType::Bool};
    return {truth ? "True" : "False", Level::Atom, false, DType::Bool};
  }
  if (row.rule == Rule::Rounding && !is_float(t.compute)) return operands[0];
  Python r = apply(row, operands, t.compute);
  if (row.rule == Rule::Predicate || row.rule == Rule::WholeTest) r.dtype = DType::Bool;
  return r;
}

/// Operands as they are: the helper compares and subtracts them exactly.
Python TorchExpressions::ratio(ExprId e, const ExprType &t) {
  std::vector<Python> operands;
  for (uint32_t k = 0; k < ast_[e].count; ++k) operands.push_back(value(ast_.child(e, k), t.operands));
  return apply(builtins()[names_.of[e].index], operands, t.type.kind == Kind::Data ? t.compute : t.type.dtype);
}

Python TorchExpressions::select(ExprId e, const ExprType &t) {
  const Builtin &row = builtins()[names_.of[e].index];
  const bool reads = holds_read(ast_.child(e, 1)) || holds_read(ast_.child(e, 2));
  const Python c = reads ? condition(ast_.child(e, 0), "holds") : value(ast_.child(e, 0), Use::Value);
  const auto arm = [&](uint32_t k) { return to(value(ast_.child(e, k), t.operands), t.compute); };
  const Python a = reads ? under(c, true, [&] { return arm(1); }) : arm(1),
               b = reads ? under(c, false, [&] { return arm(2); }) : arm(2);
  return chosen(row, c, a, b, t.compute, by_position_ || t.type.stage == Stage::Host);
}

/// `plainly`: where nothing is a tensor, numbers give a number.
Python TorchExpressions::chosen(const Builtin &row, const Python &c, Python a, Python b, DType compute, bool plainly) {
  if (!c.tensor && !a.tensor && !b.tensor && plainly)
    return {at(a, Level::Or) + " if " + at(c, Level::Or) + " else " + at(b, Level::Conditional), Level::Conditional,
            false, is_float(compute) ? DType::F64 : compute};
  // Two Python numbers would come out in torch's default dtypes, and one beyond the dtype would raise.
  const auto plain = [&](const Python &x) {
    return x.tensor || (x.literal && std::fabs(x.real) < (is_float(compute) ? 6e4 : 0x1p62));
  };
  if (!c.tensor || !plain(a) || (!a.tensor && !b.tensor)) a = as_tensor(a, compute);
  if (!c.tensor || !plain(b)) b = as_tensor(b, compute);
  if (!c.tensor)
    return {at(a, Level::Or) + " if " + at(c, Level::Or) + " else " + at(b, Level::Conditional), Level::Conditional,
            true, compute};
  std::string text = filled(row.torch, {c.text, a.text, b.text});
  if (text.substr(0, 6) == "torch.") text = global("torch") + text.substr(5);
  return {text, Level::Atom, true, compute};
}

Python TorchExpressions::apply(const Builtin &row, std::vector<Python> operands, DType c) {
  bool tensor = false;
  for (const Python &o : operands) tensor |= o.tensor;
  const bool bare = tensor && is_bare(c) && !row.body.empty();
  const bool own = !row.torch.empty() && !bare && (tensor || is_float(c) || row.torch[0] == '_');
  if (!row.body.empty() && !own) return by_body(row, operands, c);
  if (row.max_arguments != 255) return primitive(row, operands, c);
  Python r = operands[0];
  for (size_t k = 1; k < operands.size(); ++k) r = primitive(row, {r, operands[k]}, c);
  return r;
}

/// A composite that torch has no function for, as its body says.
Python TorchExpressions::by_body(const Builtin &row, const std::vector<Python> &operands, DType c) {
  const Composite whole = composite(row);
  std::vector<Python> of(whole.ast.exprs.size());
  for (ExprId e = 0; e < whole.ast.exprs.size(); ++e) { // operands stand before users
    const Expr &x = whole.ast[e];
    std::vector<Python> parts;
    for (uint32_t k = 0; k < x.count; ++k) parts.push_back(of[whole.ast.child(e, k)]);
    switch (x.kind) {
    case ExprKind::Name:
      of[e] = operands[whole.parameter(e)];
      break;
    case ExprKind::Literal:
      of[e] = literal(whole.ast.literal(e));
      break;
    case ExprKind::Unary:
      if (parts[0].tensor && is_bare(c)) of[e] = unsigned_text("-", Python{"0"}, parts[0], c);
      else of[e] = {spelling(x.op) + at(parts[0], Level::Unary), Level::Unary, parts[0].tensor, parts[0].dtype};
      break;
    case ExprKind::Call: {
      const Builtin &called = builtins()[whole.names.of[e].index];
      of[e] =
          called.rule == Rule::Select ? chosen(called, parts[0], parts[1], parts[2], c, true) : apply(called, parts, c);
      break;
    }
    case ExprKind::Binary: {
      const bool divides = x.op == Operator::Div || x.op == Operator::FloorDiv || x.op == Operator::Mod;
      of[e] = divides                                          ? division(x.op, parts[0], parts[1], c)
              : is_comparison(x.op)                            ? operated(parts[0], x.op, parts[1], c, DType::Bool)
              : x.op == Operator::Shl || x.op == Operator::Shr ? operated(as_tensor(parts[0], c), x.op, parts[1], c, c)
                                                               : operated(parts[0], x.op, parts[1], c, c);
      break;
    }
    case ExprKind::Read: // no body of the table has one
    case ExprKind::Error:
      break;
    }
  }
  return of[whole.body];
}

Python TorchExpressions::primitive(const Builtin &row, std::vector<Python> operands, DType c) {
  bool tensor = false;
  for (const Python &o : operands) tensor |= o.tensor;
  std::vector<std::string> texts;
  if (row.torch[0] == '_') { // a function of its own, for numbers and tensors
    std::vector<std::string> list;
    for (const Python &o : operands) list.push_back(o.text);
    std::string text = filled(row.torch, list);
    text = helper(text.substr(0, text.find('('))) + text.substr(text.find('('));
    if (row.rule == Rule::Ratio) text = text.substr(0, text.size() - 1) + ", " + dtype(c) + ")";
    return {text, Level::Atom, tensor, tensor ? c : is_float(c) ? DType::F64 : DType::Index};
  }
  if (!tensor && !is_float(c)) { // exact integers
    const char *own = row.meaning == Meaning::Least      ? "_least"
                      : row.meaning == Meaning::Greatest ? "_greatest"
                                                         : "_magnitude";
    std::string text = helper(own) + "(" + operands[0].text;
    for (size_t k = 1; k < operands.size(); ++k) text += ", " + operands[k].text;
    return {text + ")", Level::Atom, false, DType::Index};
  }
  if (tensor && is_bare(c)) {
    if (row.meaning == Meaning::Magnitude) return operands[0];
    return unsigned_text(row.meaning == Meaning::Least ? "least" : "greatest", operands[0], operands[1], c);
  }
  // A root of a float is right if its double is rounded, whatever torch's own does.
  const bool in_double = tensor && c == DType::F32 && !row.torch_double.empty();
  for (const Python &o : operands) {
    if (!tensor) texts.push_back(helper("_real") + "(" + o.text + ")");
    else texts.push_back(in_double || !o.tensor ? as_tensor(o, in_double ? DType::F64 : c).text : o.text);
  }
  const bool own = !row.torch_double.empty() && !in_double;
  std::string text = filled(own ? row.torch_double : row.torch, texts);
  if (own) text = helper(text.substr(0, text.find('('))) + text.substr(text.find('('));
  if (text.substr(0, 6) == "torch.") text = global("torch") + text.substr(5);
  if (in_double) text += ".float()";
  if (!tensor) text += ".item()";
  return {text, Level::Atom, tensor, tensor ? c : row.rule == Rule::Predicate ? DType::Bool : DType::F64};
}

} // namespace elsewise
