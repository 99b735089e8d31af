// SPDX-License-Identifier: Apache-2.0
// The printer of expressions. Every C operator it prints is total for the values it is given; what is not total in C
// goes through a helper.
#include "compiler/emit/cuda_expr.h"
#include "compiler/emit/cuda_index.h"
#include "compiler/ir/rows.h"
#include "compiler/ir/walk.h"
#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_map>

namespace elsewise::cuda {

std::string typed_name(std::string name, DType d) {
  if (name.back() != '_') name += '_'; // two in a row are reserved
  return name + spelling(d);
}

std::string KernelNames::fresh(std::string wish) {
  while (!taken.insert(wish).second) wish += '_';
  return wish;
}

namespace {

// C's precedences, highest binds tightest.
enum Precedence : int {
  Conditional = 2,
  LogicalOr,
  LogicalAnd,
  Or,
  Xor,
  And,
  Equality,
  Relation,
  Shift,
  Sum,
  Product,
  Prefix,
  Atom
};

struct Text {
  std::string s;
  int prec = Atom;
  bool exact = true; // its C type is the value type of the node, not an int that stands for a narrower or wider one
  bool is_unsigned = false;
};

bool uniform_index(const Kernel &k, NodeId n, uint32_t &index) {
  const auto at = std::find(k.uniforms.begin(), k.uniforms.end(), n);
  index = uint32_t(at - k.uniforms.begin());
  return at != k.uniforms.end();
}

// A whole number over a float that is the same everywhere: its quotient is made of the divisor's reciprocal.
bool divides_whole(const Kernel &k, NodeId n, uint32_t &divisor) {
  const Inst &i = k[n];
  return i.op == Op::Binary && BinaryOp(i.sub) == BinaryOp::Div && i.type == DType::F32 && i.stage == Stage::Element &&
         k[i.a].op == Op::Cast && is_integer(k[k[i.a].a].type) && !k.form.wide && uniform_index(k, i.b, divisor);
}

// A uniform that is passed as 64 bits and needs 32.
bool is_short(const Kernel &k, const Reaches &known, NodeId n) {
  return k[n].type == DType::Index && known[n] && known[n]->within(32);
}

// Leaves: nodes that a function is given, or that stand as literals.
bool is_leaf(const Kernel &k, const Given &given, NodeId n) {
  uint32_t index;
  return k[n].op == Op::Const || k[n].op == Op::Load || k[n].op == Op::Pos || k[n].op == Op::Entry ||
         uniform_index(k, n, index) || given.contains(n);
}

bool is_literal(const Kernel &k, NodeId n) {
  uint32_t index;
  return k[n].op == Op::Const && !uniform_index(k, n, index);
}

// A root's index arithmetic stays within 32 bits where the positions of axes do: they may be ints. What has an operand
// that C takes for 64 bits is worked in 64.
bool in_32_bits(const Kernel &k, const Given &given, const Reaches &known, NodeId root) {
  if (!k.form.narrow || k.form.wide) return false;
  std::vector<bool> needed(root + 1), longer(root + 1); // longer: its C type is i64 whatever the positions are
  needed[root] = true;
  for (NodeId n = root + 1; n-- > 0;)
    if (needed[n] && !is_leaf(k, given, n))
      for (const NodeId o : operands(k, n)) needed[o] = true;
  for (NodeId n = 0; n <= root; ++n) {
    if (!needed[n] || k[n].type != DType::Index) continue;
    const Inst &i = k[n];
    uint32_t index;
    if (uniform_index(k, n, index)) longer[n] = !is_short(k, known, n);
    else if (i.op == Op::Pos) longer[n] = !short_position(k.form, i.a);
    else if (i.op == Op::Const || (i.op == Op::Len && i.a == no_axis)) longer[n] = false;
    else if (is_leaf(k, given, n) || i.op == Op::Call || i.op == Op::Cast) longer[n] = true;
    else if (i.op == Op::Where) longer[n] = longer[i.b] || longer[i.c];
    else
      for (const NodeId o : operands(k, i)) longer[n] = longer[n] || longer[o];
    if (!longer[n] && (!known[n] || !known[n]->within(32))) return false;
  }
  return true;
}

bool wraps(const Inst &i) {
  return i.op == Op::Binary && dclass(i.type) != DClass::Float && i.type != DType::Bool && i.type != DType::Index &&
         (BinaryOp(i.sub) == BinaryOp::Add || BinaryOp(i.sub) == BinaryOp::Sub || BinaryOp(i.sub) == BinaryOp::Mul);
}

class Printer {
public:
  Printer(const Kernel &k, const KernelNames &names, Helpers &helpers)
      : k_(k), names_(names), helpers_(helpers), taken_(names.taken) {}

  // The returned expression; locals it needs are in `locals`.
  Text root(NodeId n, DType as) {
    count(n);
    // Moved as bits: a stored bool may hold any byte.
    if (const auto at = names_.given.find(n); at != names_.given.end() && k_[n].op == Op::Read && k_[n].type == as)
      return {at->second, Atom, true};
    if (k_[n].op == Op::Load && k_[n].type == as) return {names_.args[k_[n].a], Atom, true};
    if (k_[n].op == Op::Read && k_[n].type == as) return element(n);
    return text(n);
  }
  bool small = false;    // positions are ints where short_position() says so
  bool expanded = false; // no local may be made: nodes are spelt wherever they are used
  bool trusting = false; // a read under the arm of a `?:`, `&&` or `||` that says its condition does without it
  std::vector<std::string> locals;
  bool in_body = false; // of the kernel

  // Several roots, which share locals. What a condition empties reads `condition ? bound : 0`.
  std::vector<std::string> roots(const std::vector<NodeId> &all) {
    for (NodeId n : all) count(n);
    std::vector<std::string> texts;
    for (NodeId n : all) {
      const Inst &i = k_[n];
      const bool empties = i.op == Op::Where && i.type == DType::Index && is_literal(k_, i.c) &&
                           k_.constants[k_[i.c].a].integer == 0; // a bound where there is none
      const Text t = empties && uses_[n] == 1
                         ? Text{wrap(text(i.a), LogicalOr) + " ? " + wrap(text(i.b), LogicalOr) + " : 0", Conditional}
                     : i.op == Op::Read ? element(n) // as it lies in memory
                                        : text(n);
      texts.push_back(i.op == Op::Read ? t.s : wrap(t, Sum));
    }
    return texts;
  }

  std::string body(NodeId n) { return wrap(k_[n].op == Op::Read ? element(n) : text(n), Shift); }

private:
  static constexpr size_t line_room = 88; // longer expressions are cut into locals

  void count(NodeId n) {
    if (uses_[n]++ || leaf(n)) return;
    const std::vector<NodeId> list = operands(k_, n);
    if (folds_to_zero(n))
      for (const NodeId o : list)
        if (!is_literal(k_, o) && is_float(k_[o].type) && !is_half(k_[o].type) && is_of_few(o)) opaque_.insert(o);
    const bool condition = k_[n].op == Op::Read && k_[n].sub && trusting; // where the read stands, it is said already
    for (size_t o = condition; o < list.size(); ++o) count(list[o]);
  }

  bool leaf(NodeId n) const { return is_leaf(k_, names_.given, n); }
  std::string_view type(NodeId n) const { return value(k_[n].type, k_.form.wide); }

  static std::string wrap(const Text &t, int least) { return t.prec < least ? "(" + t.s + ")" : t.s; }

  // `(i8)(~x)`, but `(i8)x` and `(i8)-1`: a cast before a prefix operator is hard to read.
  static std::string under_cast(const Text &t) {
    const bool operation = t.s[0] == '!' || t.s[0] == '~' || (t.s[0] == '-' && !(t.s[1] >= '0' && t.s[1] <= '9'));
    return t.prec < Prefix || operation ? "(" + t.s + ")" : t.s;
  }

  // An argument of an overloaded function: its C type must be the node's.
  std::string argument(NodeId n) {
    if (is_literal(k_, n)) return constant(n, true);
    const Text t = text(n);
    return t.exact ? t.s : "(" + std::string(type(n)) + ")" + under_cast(t);
  }

  // A literal. A zero below zero is out of NVRTC's sight, see `opaque`.
  std::string constant(NodeId n, bool exact) {
    const DType d = k_[n].type;
    const Constant &c = k_.constants[k_[n].a];
    std::string s = literal(d, c, k_.form.wide, exact);
    if (!is_float(d) || c.real != 0 || !std::signbit(c.real)) return s;
    const DType worked = is_half(d) ? DType::F32 : d;
    helpers_.use("opaque", worked);
    const std::string zero = literal(worked, c, k_.form.wide, exact);
    return replace(std::move(s), zero, "opaque(" + zero + ")");
  }

  // Whether the value is one of a few constants, whatever the elements are.
  bool is_of_few(NodeId n) {
    const auto [at, fresh] = of_few_.try_emplace(n, false);
    if (!fresh) return at->second;
    const Inst &i = k_[n];
    bool few = i.type == DType::Bool || is_literal(k_, n);
    if (i.op == Op::Where) few = is_of_few(i.b) && is_of_few(i.c);
    else if (!few && !leaf(n) && i.op != Op::Read && i.op != Op::Len) {
      few = true;
      for (const NodeId o : operands(k_, n)) few = few && is_of_few(o);
    }
    return of_few_[n] = few;
  }

  // Whether one of few constants, or what is made of them, may be no zero and become one in a narrower type.
  bool may_vanish(NodeId n) {
    const Inst &i = k_[n];
    if (i.op == Op::Where) return may_vanish(i.b) || may_vanish(i.c);
    return !is_literal(k_, n) || (k_.constants[i.a].real != 0 && float(k_.constants[i.a].real) == 0);
  }

  // What NVRTC can work out for each of a few constants, so that a zero below zero may be among the results. Into the
  // constants of a product or quotient it also moves the sign of the whole.
  bool folds_to_zero(NodeId n) {
    const Inst &i = k_[n];
    if (!is_float(i.type)) return false;
    switch (i.op) {
    case Op::Binary:
      if (BinaryOp(i.sub) == BinaryOp::Mul || BinaryOp(i.sub) == BinaryOp::Div) return true;
      return BinaryOp(i.sub) != BinaryOp::Add && BinaryOp(i.sub) != BinaryOp::Sub && is_of_few(n);
    case Op::Call:
      return i.sub != least_row() && i.sub != greatest_row() && i.sub != magnitude_row() && is_of_few(n);
    case Op::Cast:
      return is_float(k_[i.a].type) && bytes(k_[i.a].type) > bytes(i.type) && may_vanish(i.a);
    default:
      return i.op == Op::Unary;
    }
  }

  std::string local_name(NodeId n) {
    const Inst &i = k_[n];
    std::string base;
    switch (i.op) {
    case Op::Cast:
      base = k_[i.a].op == Op::Load ? typed_name(names_.args[k_[i.a].a], i.type) : "converted";
      break;
    case Op::Load:
      base = typed_name(names_.args[i.a], i.type);
      break;
    case Op::Unary:
      base = "inverse";
      break;
    case Op::Read:
      base = "element";
      break;
    case Op::Compare:
    case Op::Logic:
      base = "holds";
      break;
    case Op::Where:
      base = "chosen";
      break;
    case Op::Binary:
      switch (BinaryOp(i.sub)) {
      case BinaryOp::Add:
        base = "sum";
        break;
      case BinaryOp::Sub:
        base = "difference";
        break;
      case BinaryOp::Mul:
        base = "product";
        break;
      case BinaryOp::Div:
      case BinaryOp::FloorDiv:
        base = "quotient";
        break;
      case BinaryOp::Mod:
        base = "remainder";
        break;
      case BinaryOp::Pow:
        base = "raised";
        break;
      case BinaryOp::Shl:
      case BinaryOp::Shr:
        base = "shifted";
        break;
      default:
        base = "bits";
      }
      break;
    default:
      base = "result";
    }
    std::string name = base;
    for (int k = 2; taken_.contains(name); ++k) name = base + std::to_string(k);
    taken_.insert(name);
    return name;
  }

  Text make_local(NodeId n, const Text &t) {
    const std::string name = local_name(n);
    locals.push_back("const " + std::string(type(n)) + " " + name + " = " + t.s + ";");
    return done_[n] = {name, Atom, true};
  }

  // Text of a node as an operand. Shared nodes become locals when first met: their operands are printed before them.
  Text text(NodeId n) {
    if (auto at = done_.find(n); at != done_.end()) return at->second;
    uint32_t index;
    if (uniform_index(k_, n, index)) return {names_.uniforms[index], Atom, has_own_type(n)};
    if (const auto at = names_.given.find(n); at != names_.given.end()) {
      if (k_[n].op == Op::Read && k_[n].type == DType::Bool) return {at->second + " != 0", Equality, true};
      return {at->second, Atom, k_[n].type != DType::Index || !k_.form.wide};
    }
    if (auto at = inline_.find(n); at != inline_.end()) return at->second;
    Text t = shielded(n);
    if (expanded) return inline_[n] = t;
    // Long lines: the longest operand that is not a name yet gets one.
    while (t.s.size() > line_room) {
      NodeId longest = no_node;
      size_t length = 24;
      for (NodeId o : operands(k_, n))
        if (!done_.contains(o) && !leaf(o) && text(o).s.size() > length) longest = o, length = text(o).s.size();
      if (longest == no_node) break;
      make_local(longest, text(longest));
      t = shielded(n);
    }
    const bool is_name = t.prec == Atom && t.s.find_first_of("([") == std::string::npos;
    if (uses_[n] > 1 && !leaf(n) && !is_name) return make_local(n, t);
    return inline_[n] = t;
  }

  Text shielded(NodeId n) {
    const Text t = fresh_text(n);
    if (!opaque_.contains(n)) return t;
    helpers_.use("opaque", k_[n].type);
    return {"opaque(" + t.s + ")", Atom, true};
  }

  Text fresh_text(NodeId n) {
    const Inst &i = k_[n];
    switch (i.op) {
    case Op::Const: {
      const std::string s = constant(n, false);
      if (is_half(i.type)) helpers_.use(i.type == DType::F16 ? "to_f16" : "to_bf16", DType::F32);
      const bool of_float = i.type == DType::F64 && !std::isfinite(k_.constants[i.a].real); // inf and nan are floats
      const bool exact = (is_float(i.type) && !of_float) || i.type == DType::Bool || i.type == DType::I32;
      return {s, s[0] == '-' ? Prefix : Atom, exact};
    }
    case Op::Entry:
      return {"constants" + std::to_string(i.a + 1) + "[entry]", Atom, true};
    case Op::Load:
      if (i.type == DType::Bool) return {names_.args[i.a] + " != 0", Equality, true};
      return {names_.args[i.a], Atom, true};
    case Op::Pos:
      return position(i.a);
    case Op::Unary:
      return unary(n);
    case Op::Binary:
      return binary(n);
    case Op::Compare:
      return compare(n);
    case Op::Logic: {
      if (LogicOp(i.sub) == LogicOp::Not) return {"!" + wrap(text(i.a), Prefix), Prefix, true};
      const bool is_and = LogicOp(i.sub) == LogicOp::And;
      const int prec = is_and ? LogicalAnd : LogicalOr;
      auto side = [&](NodeId o) {
        const Text t = text(o);
        return wrap(t, t.prec == LogicalAnd && !is_and ? Atom : prec); // `a && b || c` is clearer with parentheses
      };
      const std::string a = side(i.a);
      known_.push_back({i.a, is_and});
      const std::string b = side(i.b);
      known_.pop_back();
      return {a + (is_and ? " && " : " || ") + b, prec, true};
    }
    case Op::Where: {
      const std::string c = wrap(text(i.a), LogicalOr);
      auto arm = [&](NodeId o) {
        const bool wide_literal = is_literal(k_, o) && bytes(i.type) == 8 && !is_float(i.type);
        return wide_literal ? Text{literal(i.type, k_.constants[k_[o].a], k_.form.wide, true), Prefix, true} : text(o);
      };
      known_.push_back({i.a, true});
      const Text a = arm(i.b);
      known_.back().second = false;
      const Text b = arm(i.c);
      known_.pop_back();
      return {c + " ? " + wrap(a, LogicalOr) + " : " + wrap(b, Conditional), Conditional, a.exact && b.exact};
    }
    case Op::Read: {
      const Text bits = element(n);
      if (i.type == DType::Bool) return {wrap(bits, Relation) + " != 0", Equality, true};
      return bits;
    }
    case Op::Cast:
      return cast(n);
    case Op::Call:
      return call(n);
    case Op::Len:
      if (i.a == no_axis) return {"extent", Atom, !k_.form.wide};
      break;
    case Op::Param:
    case Op::ArgLen:
    case Op::Origin:
      break; // host nodes come as uniforms
    }
    return {"/* no uniform for a host node */", Atom, false};
  }

  // What is in memory at the indices: `lut[k]`, and `c ? lut[k] : 0` where it is not always read.
  Text element(NodeId n) {
    const Inst &i = k_[n];
    const uint32_t a = k_.reads[i.c].argument;
    const std::vector<NodeId> list = operands(k_, n);
    const NodeId condition = i.sub ? list[0] : no_node;
    const std::string guard =
        condition == no_node || (trusting && is_known(condition)) ? "" : wrap(text(condition), LogicalOr) + " ? ";
    std::string place;
    for (size_t axis = 0; axis + i.sub < list.size(); ++axis) {
      const std::string &step = names_.steps[a][axis];
      const NodeId index = list[i.sub + axis];
      if (is_literal(k_, index) && !k_.constants[k_[index].a].integer && list.size() - i.sub > 1) continue;
      Text at = chosen_in_32_bits(index) ? as_int(index) : text(index);
      if (k_.form.wide) at = c_cast("i64", at);
      const bool alone = list.size() - i.sub == 1;
      place += (place.empty() ? "" : " + ") +
               (step.empty() ? alone ? at.s : wrap(at, Sum) : wrap(at, Product) + " * " + step);
    }
    const std::string read = names_.tables[a] + "[" + (place.empty() ? "0" : place) + "]";
    return guard.empty() ? Text{read, Atom, true} : Text{guard + read + " : 0", Conditional, bytes(i.type) >= 4};
  }

  bool is_known(NodeId condition) const {
    if (std::find(known_.begin(), known_.end(), std::pair(condition, true)) != known_.end()) return true;
    const Inst &i = k_[condition];
    if (i.op != Op::Logic) return false;
    if (LogicOp(i.sub) == LogicOp::And) return is_known(i.a) && is_known(i.b);
    return LogicOp(i.sub) == LogicOp::Not &&
           std::find(known_.begin(), known_.end(), std::pair(i.a, false)) != known_.end();
  }

  // A parameter of the function; in the kernel's body a name, a cast of one, or a sum.
  Text position(uint32_t axis) const {
    const std::string &s = axis == flat_axis ? names_.flat : names_.axes[axis];
    const bool long_ = !short_position(k_.form, axis) || s.starts_with("i64(") || !(small || in_body);
    return {s, s.find(" + ") != std::string::npos && !s.starts_with("i64(") ? Sum : Atom,
            long_ && !(in_body && k_.form.wide)};
  }

  Text unary(NodeId n) {
    const Inst &i = k_[n];
    if (UnaryOp(i.sub) == UnaryOp::Neg) {
      if (is_float(i.type) || i.type == DType::Index) return {"-" + wrap(text(i.a), Atom), Prefix, text(i.a).exact};
      helpers_.use("negate", i.type);
      return {"negate(" + argument(i.a) + ")", Atom, true};
    }
    if (i.type == DType::Bool) return {"!" + wrap(text(i.a), Prefix), Prefix, true};
    const std::string s = "~" + wrap(text(i.a), Prefix);
    if (dclass(i.type) == DClass::UInt && bytes(i.type) < 4)
      return {"(" + std::string(stored(i.type)) + ")(" + s + ")", Prefix, true};
    return {s, Prefix, bytes(i.type) >= 4 && text(i.a).exact};
  }

  Text infix(NodeId n, const char *op, int prec, int left, int right) {
    Text a = text(k_[n].a);
    const Text b = text(k_[n].b);
    const DType d = k_[n].type;
    if (d == DType::Index && k_.form.wide && !a.exact && !b.exact) a = c_cast("i128", a);
    // C works 8 and 16 bits in int; wider types stay themselves if one side is exact.
    return {wrap(a, left) + op + wrap(b, right), prec,
            is_float(d) || d == DType::Bool || (bytes(d) >= 4 && (a.exact || b.exact))};
  }

  // Sums and products that wrap are worked unsigned and in the rule's order. C takes two ints of a longer sum as ints,
  // literals and positions among them, so each pair has a side that is unsigned. `most`: of the result, if in int.
  Text unsigned_text(NodeId n, double &most) {
    const Inst &i = k_[n];
    const BinaryOp op = BinaryOp(i.sub);
    const int prec = op == BinaryOp::Mul ? Product : Sum;
    auto side = [&](NodeId o, double &most) {
      const bool nested = wraps(k_[o]) && k_[o].type == i.type && uses_[o] == 1 && !done_.contains(o) && !leaf(o);
      if (nested) return unsigned_text(o, most);
      most = std::ldexp(1, 8 * bytes(i.type) - (dclass(i.type) == DClass::UInt ? 0 : 1));
      return text(o);
    };
    double left = 0, right = 0;
    Text a = side(i.a, left);
    const Text b = side(i.b, right);
    most = prec == Product ? left * right : left + right;
    // C works 8 and 16 bits in int.
    const bool in_int = bytes(i.type) < 4 && most < 0x1p31;
    const bool own = bytes(i.type) >= 4 && dclass(i.type) == DClass::UInt; // then exact text is unsigned
    if (!in_int && !a.is_unsigned && !b.is_unsigned && !(own && (a.exact || b.exact)))
      a = {(bytes(i.type) == 8 ? "(u64)" : "(unsigned)") + under_cast(a), Prefix, false, true};
    const char *spelt = op == BinaryOp::Add ? " + " : op == BinaryOp::Sub ? " - " : " * ";
    return {wrap(a, prec) + spelt + wrap(b, prec + 1), prec, false, !in_int};
  }

  Text binary(NodeId n) {
    const Inst &i = k_[n];
    const BinaryOp op = BinaryOp(i.sub);
    const DType d = i.type;
    if (wraps(i) && op == BinaryOp::Sub && dclass(d) != DClass::UInt && k_[i.a].op == Op::Const &&
        k_.constants[k_[i.a].a].integer == 0) { // out of NVRTC's sight, as -x is
      helpers_.use("negate", d);
      return {"negate(" + argument(i.b) + ")", Atom, true};
    }
    if (wraps(i)) {
      double most = 0;
      const Text t = unsigned_text(n, most);
      return {"(" + std::string(type(n)) + ")(" + t.s + ")", Prefix, true};
    }
    auto helper = [&](const char *name) -> Text {
      helpers_.use(name, d);
      const std::string a = argument(i.a), b = argument(i.b);
      return {std::string(name) + "(" + a + ", " + b + ")", Atom, true};
    };
    switch (op) { // in the rule's order: `a * (b * c)` is no `a * b * c` where a and b are ints, and c is longer
    case BinaryOp::Add:
      return d == DType::Bool ? infix(n, " || ", LogicalOr, LogicalOr, LogicalOr) : infix(n, " + ", Sum, Sum, Product);
    case BinaryOp::Sub:
      return infix(n, " - ", Sum, Sum, Product);
    case BinaryOp::Mul:
      if (d == DType::Bool) return infix(n, " && ", LogicalAnd, LogicalAnd, LogicalAnd);
      return infix(n, " * ", Product, Product, Prefix);
    case BinaryOp::Div: {
      uint32_t by;
      if (in_body || !divides_whole(k_, n, by)) return infix(n, " / ", Product, Product, Prefix);
      helpers_.use("divide", d);
      return {"divide(" + argument(i.a) + ", " + argument(i.b) + ", " + names_.reciprocals.at(by) + ")", Atom, true};
    }
    case BinaryOp::FloorDiv:
      if (const auto by = known_integer(k_, i.b); by && *by > 0 && d == DType::Index) {
        if (const auto bits = power_of_two(*by)) return shifted_right(i.a, *bits, d);
        if (not_negative(i.a)) return infix(n, " / ", Product, Product, Prefix);
      }
      return helper("floor_div");
    case BinaryOp::Mod:
      if (const auto by = known_integer(k_, i.b); by && *by > 0 && d == DType::Index) {
        if (power_of_two(*by)) {
          const Text a = text(i.a);
          return {wrap(a, Prefix) + " & " + literal(d, {*by - 1, 0}, k_.form.wide, false), And, a.exact};
        }
        if (not_negative(i.a)) return infix(n, " % ", Product, Product, Prefix);
      }
      return helper("floor_mod");
    case BinaryOp::Pow:
      if (is_float(d)) return call(builtins()[power_row()], d, {i.a, i.b});
      return helper("power");
    case BinaryOp::Shl:
      return helper("shift_left");
    case BinaryOp::Shr:
      if (is_literal(k_, i.b)) {
        const __int128 by = k_.constants[k_[i.b].a].integer;
        if (by >= 0 && by < 8 * bytes(d)) return shifted_right(i.a, int(by), d);
      }
      return helper("shift_right");
    // Mixed bit operators and shifts get parentheses, as compilers ask for.
    case BinaryOp::BitAnd:
      return infix(n, d == DType::Bool ? " && " : " & ", d == DType::Bool ? LogicalAnd : And, bit_operand(i.a, d, op),
                   bit_operand(i.b, d, op));
    case BinaryOp::BitOr:
      return infix(n, d == DType::Bool ? " || " : " | ", d == DType::Bool ? LogicalOr : Or, bit_operand(i.a, d, op),
                   bit_operand(i.b, d, op));
    case BinaryOp::BitXor:
      return infix(n, d == DType::Bool ? " != " : " ^ ", d == DType::Bool ? Equality : Xor, bit_operand(i.a, d, op),
                   bit_operand(i.b, d, op));
    }
    return {};
  }

  // Towards minus infinity, as C++ shifts.
  Text shifted_right(NodeId n, int by, DType d) {
    Text a = text(n);
    if (by == 0) return a;
    if (by >= 31 && bytes(d) == 8 && !a.exact) a = c_cast(type(n), a); // it may be an int
    return {wrap(a, Sum + 1) + " >> " + std::to_string(by), Shift, a.exact && bytes(d) >= 4};
  }

  const Reaches &known() const { return *names_.reaches; }
  bool not_negative(NodeId n) const { return known()[n] && known()[n]->lo >= 0; }

  // Whether a uniform's C type is that of the node's values.
  bool has_own_type(NodeId n) const {
    return k_[n].type != DType::Index || (!k_.form.wide && !(small && is_short(k_, known(), n)));
  }

  // The least precedence that an operand of a bit operator may have without parentheses: its own operator's, else
  // anything tighter than arithmetic.
  int bit_operand(NodeId o, DType d, BinaryOp op) const {
    if (d == DType::Bool) return op == BinaryOp::BitXor ? Relation : op == BinaryOp::BitAnd ? Equality : Prefix;
    const Inst &i = k_[o];
    if (i.op == Op::Binary && BinaryOp(i.sub) == op && i.type == d)
      return op == BinaryOp::BitAnd ? And : op == BinaryOp::BitXor ? Xor : Or;
    return Prefix;
  }

  Text compare(NodeId n) {
    static constexpr const char *spelt[] = {" < ", " <= ", " > ", " >= ", " == ", " != "};
    const Inst &i = k_[n];
    const CompareOp op = CompareOp(i.sub);
    const int prec = op == CompareOp::Eq || op == CompareOp::Ne ? Equality : Relation;
    // C's own conversions keep every value of what is signed or narrower than int: a cast of it to Index says nothing
    // here.
    auto side = [&](NodeId o) {
      const Inst &c = k_[o];
      const bool bare = c.op == Op::Cast && c.type == DType::Index && is_integer(k_[c.a].type) &&
                        k_[c.a].type != DType::U32 && !done_.contains(o) && uses_[o] == 1 && !leaf(o);
      return wrap(text(bare ? c.a : o), Shift);
    };
    const std::string a = side(i.a), b = side(i.b);
    return {a + spelt[int(op)] + b, prec, true};
  }

  Text c_cast(std::string_view to, const Text &t) {
    return {"(" + std::string(to) + ")" + under_cast(t), Prefix, true};
  }

  // Halves come in as bits; everything is worked on what this gives.
  Text widened(NodeId n) {
    const DType d = k_[n].type;
    if (!is_half(d)) return text(n);
    const char *name = d == DType::F16 ? "from_f16" : "from_bf16";
    helpers_.use(name, DType::F32);
    return {std::string(name) + "(" + text(n).s + ")", Atom, true};
  }

  Text cast(NodeId n) {
    const Inst &i = k_[n];
    const DType to = i.type, from = k_[i.a].type;
    if (to == from) return text(i.a);
    const DType seen = is_half(from) ? DType::F32 : from; // the type of widened()
    const Text t = widened(i.a);
    if (to == DType::Bool) {
      if (is_float(seen)) return {wrap(t, Relation) + (seen == DType::F64 ? " != 0.0" : " != 0.0f"), Equality, true};
      return {wrap(t, Relation) + " != 0", Equality, true};
    }
    if (is_half(to)) {
      const char *name = to == DType::F16 ? "to_f16" : "to_bf16";
      helpers_.use(name, DType::F32);
      std::string s = t.s;
      // A double is rounded once; integers come through float, as everywhere.
      if (seen == DType::F64) helpers_.use("to_odd", DType::F64), s = "to_odd(" + s + ")";
      else if (!is_float(seen)) s = "(float)" + under_cast(t);
      return {std::string(name) + "(" + s + ")", Atom, true};
    }
    if (is_float(seen) && !is_float(to)) {
      const std::string name = std::string("to_") + (to != DType::Index ? spelling(to) : k_.form.wide ? "i128" : "i64");
      helpers_.use(name, seen);
      return {name + "(" + t.s + ")", Atom, true};
    }
    if (seen == to) return t;
    if ((to == DType::I64 && seen == DType::Index) || (to == DType::Index && seen == DType::I64)) {
      if (!k_.form.wide) return t;
    }
    return c_cast(value(to, k_.form.wide), t);
  }

  // The least or greatest of indexes of which 32 bits hold each, which nobody has given a name yet.
  bool chosen_in_32_bits(NodeId n) const {
    const Inst &i = k_[n];
    if (i.op != Op::Call || i.type != DType::Index || i.b != 2 || k_.form.wide || leaf(n) || done_.contains(n))
      return false;
    if (i.sub != least_row() && i.sub != greatest_row()) return false;
    const std::vector<NodeId> args = operands(k_, n);
    return is_short(k_, known(), n) && std::all_of(args.begin(), args.end(), [&](NodeId a) {
             return k_[a].type == DType::Index && is_short(k_, known(), a);
           });
  }

  // Such an index, worked in 32 bits as well where it is one of those.
  Text as_int(NodeId n) {
    const Inst &i = k_[n];
    if (is_literal(k_, n)) return {literal(DType::I32, k_.constants[i.a], false, true), Atom, true};
    if (chosen_in_32_bits(n)) {
      const Builtin &row = builtins()[i.sub];
      helpers_.use_text(row.cuda_helper_int, DType::I32);
      std::vector<std::string> spelt;
      for (const NodeId a : operands(k_, n)) spelt.push_back(as_int(a).s);
      return filled(row.cuda[ClassInt], spelt);
    }
    const bool bare = i.op == Op::Cast && is_integer(k_[i.a].type) && !done_.contains(n) && uses_[n] == 1 && !leaf(n);
    const Text t = text(bare ? i.a : n);
    return bare && k_[i.a].type == DType::I32 && t.exact ? t : c_cast("int", t);
  }

  Text call(NodeId n) {
    if (chosen_in_32_bits(n)) return c_cast("i64", as_int(n));
    const std::vector<NodeId> args = operands(k_, n);
    return call(builtins()[k_[n].sub], k_[args[0]].type, args);
  }

  Text call(const Builtin &row, DType d, const std::vector<NodeId> &args) {
    const Class which = d == DType::F64 ? ClassF64 : is_float(d) ? ClassF32 : ClassInt;
    const std::string_view pattern = row.cuda[which];
    if (pattern.empty()) return text(args[0]); // integers pass through
    const std::string_view helper = is_float(d) ? row.cuda_helper : row.cuda_helper_int;
    if (!helper.empty()) helpers_.use_text(helper, d);
    if (is_float(d)) helpers_.need(pattern, d);
    size_t arity = 0;
    while (pattern.find("{" + std::to_string(arity) + "}") != std::string_view::npos) ++arity;
    if (row.meaning == Meaning::CopySign) return filled(pattern, {argument(args[0]), sign_of(args[1], d)});
    Text result = fill(pattern, {args.begin(), args.begin() + std::min(arity, args.size())}, "");
    for (size_t at = arity; at < args.size(); ++at)
      result = fill(pattern, {args[at]}, result.s); // variadic: two at a time, from the left
    return result;
  }

  // Operands put into a row's text; `first`, if given, is operand 0.
  Text fill(std::string_view pattern, const std::vector<NodeId> &args, const std::string &first) {
    std::vector<std::string> spelt;
    if (!first.empty()) spelt.push_back(first);
    for (NodeId a : args) spelt.push_back(argument(a));
    return filled(pattern, spelt);
  }

  // What has the sign of a float, and may be another number: that of NaN too, which conversions and C's minus lose on a
  // GPU. `as`: F64 gives a double, anything else a float.
  std::string sign_of(NodeId n, DType as) {
    const Inst &i = k_[n];
    int budget = 16;
    const bool given = leaf(n) || (done_.contains(n) && !spells_sign(n, budget)), is_double = i.type == DType::F64;
    if (i.op == Op::Cast && is_float(k_[i.a].type) && !given) return sign_of(i.a, as); // rounding keeps a sign
    if (i.op == Op::Where && !given) {
      const std::string condition = wrap(text(i.a), LogicalOr);
      return "(" + condition + " ? " + sign_of(i.b, as) + " : " + sign_of(i.c, as) + ")";
    }
    if (is_double != (as == DType::F64)) { // of 1, which every conversion keeps
      if (!is_double) helpers_.use("with_sign", DType::F32);
      return is_double ? "(float)copysign(1.0, " + sign_of(n, DType::F64) + ")"
                       : "(double)with_sign(1.0f, " + sign_of(n, DType::F32) + ")";
    }
    if (i.op == Op::Unary && !given) { // a minus: floats have no other
      if (is_double) return "-copysign(1.0, " + sign_of(i.a, as) + ")";
      helpers_.use("negated", DType::F32);
      return "negated(" + sign_of(i.a, as) + ")";
    }
    return is_half(i.type) ? "__int_as_float(" + wrap(text(n), Shift + 1) + " << 16)" : argument(n);
  }

  // Whether the sign of what has a name can be spelt from other names: what a conversion or a minus made has lost it.
  bool spells_sign(NodeId n, int &budget) const {
    const Inst &i = k_[n];
    if (leaf(n) || --budget < 0) return leaf(n);
    if (i.op == Op::Unary || (i.op == Op::Cast && is_float(k_[i.a].type))) return spells_sign(i.a, budget);
    if (i.op == Op::Where) return spells_sign(i.b, budget) && spells_sign(i.c, budget);
    return done_.contains(n);
  }

  // Operands need parentheses unless commas or parentheses stand around them.
  static Text filled(std::string_view pattern, const std::vector<std::string> &spelt) {
    std::string out;
    for (size_t at = 0; at < pattern.size(); ++at) {
      if (pattern[at] != '{' || at + 2 >= pattern.size() || pattern[at + 2] != '}') {
        out += pattern[at];
        continue;
      }
      const std::string &s = spelt[pattern[at + 1] - '0'];
      const size_t before = pattern.find_last_not_of(' ', at ? at - 1 : 0);
      const size_t after = pattern.find_first_not_of(' ', at + 3);
      const bool fenced = at > 0 && (pattern[before] == '(' || pattern[before] == ',') &&
                          after != std::string_view::npos && (pattern[after] == ')' || pattern[after] == ',');
      const bool name = std::all_of(s.begin(), s.end(), [](unsigned char c) { return std::isalnum(c) || c == '_'; });
      out += fenced || name ? s : "(" + s + ")";
      at += 2;
    }
    // One call is an atom; anything else a row may spell is fenced by its users.
    int depth = 0;
    size_t closed = std::string::npos;
    for (size_t at = 0; at < out.size() && closed == std::string::npos; ++at)
      if (out[at] == '(') ++depth;
      else if (out[at] == ')' && --depth == 0) closed = at;
    return {out, closed + 1 == out.size() ? int(Atom) : int(Conditional), true};
  }

  const Kernel &k_;
  const KernelNames &names_;
  Helpers &helpers_;
  std::set<std::string, std::less<>> taken_;
  std::vector<std::pair<NodeId, bool>> known_; // conditions that hold, or fail, where the text at hand stands
  std::unordered_map<NodeId, uint32_t> uses_;
  std::unordered_map<NodeId, bool> of_few_; // what is_of_few() found
  std::set<NodeId> opaque_;                 // operands that NVRTC must not see
  std::unordered_map<NodeId, Text> done_;   // nodes that have a name
  std::unordered_map<NodeId, Text> inline_; // nodes that are spelt where they are used
};

} // namespace

Reads reads(const Kernel &k, NodeId root, const Given &given) {
  Reads r;
  walk(k, root, [&](NodeId n) {
    uint32_t index;
    if (uniform_index(k, n, index)) r.uniforms.push_back(index);
    else if (given.contains(n)) r.given.push_back(n);
    else if (divides_whole(k, n, index)) return r.divisors.push_back(index), true;
    else if (k[n].op == Op::Load) r.args.push_back(k[n].a);
    else if (k[n].op == Op::Pos && k[n].a == flat_axis) r.position = true;
    else if (k[n].op == Op::Pos) r.axes.push_back(k[n].a);
    else if (k[n].op == Op::Entry) r.entry = true;
    else {
      if (k[n].op == Op::Read) r.tables.push_back(k.reads[k[n].c].argument);
      return true;
    }
    return false;
  });
  std::sort(r.tables.begin(), r.tables.end());
  r.tables.erase(std::unique(r.tables.begin(), r.tables.end()), r.tables.end());
  std::sort(r.args.begin(), r.args.end());
  r.args.erase(std::unique(r.args.begin(), r.args.end()), r.args.end());
  std::sort(r.uniforms.begin(), r.uniforms.end());
  std::sort(r.divisors.begin(), r.divisors.end());
  r.divisors.erase(std::unique(r.divisors.begin(), r.divisors.end()), r.divisors.end());
  std::sort(r.given.begin(), r.given.end());
  std::sort(r.axes.begin(), r.axes.end());
  return r;
}

std::string_view given_type(const Kernel &k, NodeId n) {
  return k[n].op == Op::Read ? stored(k[n].type) : value(k[n].type, k.form.wide);
}

void print_function(const Kernel &k, const KernelNames &names, Helpers &helpers, std::string_view name,
                    std::string_view type, NodeId root, std::string_view note, Lines &out) {
  const Reads r = reads(k, root, names.given);
  const Reaches &known = *names.reaches;
  const bool small = in_32_bits(k, names.given, known, root);
  std::vector<std::string> parameters;
  auto dtype_of = [&](uint32_t a) { return k.arguments[a].type.dtype; };
  for (uint32_t a : r.args) parameters.push_back(std::string(stored(dtype_of(a))) + " " + names.args[a]);
  for (uint32_t a : r.tables) {
    parameters.push_back("const " + std::string(stored(dtype_of(a))) + " *__restrict__ " + names.tables[a]);
    for (const std::string &step : names.steps[a])
      if (!step.empty()) parameters.push_back("i64 " + step);
  }
  for (uint32_t u : r.uniforms) {
    const DType d = k[k.uniforms[u]].type;
    const bool brief = small && is_short(k, known, k.uniforms[u]);
    parameters.push_back(std::string(brief               ? "int"
                                     : d == DType::Index ? "i64"
                                                         : value(d, false)) +
                         " " + names.uniforms[u]);
  }
  for (uint32_t u : r.divisors) parameters.push_back("float " + names.reciprocals.at(u));
  for (NodeId n : r.given) parameters.push_back(std::string(given_type(k, n)) + " " + names.given.at(n));
  const std::string position = k.form.wide ? "i128 " : "i64 ";
  if (r.position) parameters.push_back((small && short_position(k.form, flat_axis) ? "int " : position) + "i");
  for (uint32_t a : r.axes) parameters.push_back((small ? "int " : position) + names.axes[a]);
  if (r.entry) parameters.push_back("int entry");

  const bool guard = type == "bool";
  const DType as = guard ? DType::Bool : k.outputs[0];
  std::optional<Printer> at(std::in_place, k, names, helpers);
  at->trusting = !r.tables.empty(), at->small = small;
  Text body = at->root(root, as);
  if (!at->locals.empty() && at->trusting) { // a local is worked out ahead of the conditions that it stood under
    at.emplace(k, names, helpers);
    at->small = small;
    body = at->root(root, as);
  }
  const Printer &printer = *at;
  std::string open = "__device__ " + std::string(type) + " " + std::string(name) + "(", line = open;
  for (size_t p = 0; p < parameters.size(); ++p) line += (p ? ", " : "") + parameters[p];
  line += ") { return " + body.s + "; }";
  if (printer.locals.empty() && line.size() <= columns) {
    out.add(0, line, std::string(note));
    return;
  }
  out.comment(0, note);
  out.list(0, open, parameters, ") {");
  for (const std::string &local : printer.locals) out.add(2, local);
  out.add(2, "return " + body.s + ";");
  out.add(0, "}");
}

std::vector<std::string> row_expressions(const Kernel &k, KernelNames names, Helpers &helpers,
                                         const std::vector<std::string> &positions, const std::vector<NodeId> &roots,
                                         std::vector<std::string> &locals) {
  names.axes = positions, names.given.clear();
  Printer printer(k, names, helpers);
  printer.in_body = true;
  std::vector<std::string> texts = printer.roots(roots);
  locals = printer.locals;
  return texts;
}

std::string body_expression(const Kernel &k, KernelNames names, Helpers &helpers, NodeId n) {
  auto lengthen = [&](uint32_t axis, std::string &position) {
    if (short_position(k.form, axis) && !position.empty() && !position.starts_with("i64("))
      position = "i64(" + position + ")";
  };
  if (!k.form.wide && !in_32_bits(k, names.given, *names.reaches, n)) {
    for (uint32_t axis = 0; axis < names.axes.size(); ++axis) lengthen(axis, names.axes[axis]);
    lengthen(flat_axis, names.flat);
  }
  Printer printer(k, names, helpers);
  printer.in_body = printer.expanded = true;
  return printer.body(n);
}

std::string describe(const Kernel &k, NodeId n) {
  const Inst &i = k[n];
  switch (i.op) {
  case Op::Const:
    if (is_float(i.type)) return literal(DType::F64, k.constants[i.a], false, false);
    return literal(i.type, k.constants[i.a], false, false);
  case Op::Param:
    return k.arguments[i.a].name;
  case Op::Len:
    return i.a < k.axes.size() ? "len(" + k.axes[i.a].name + ")" : i.a == no_axis ? "extent" : "n";
  case Op::Origin:
    if (i.a == list_axis) return "the call's place in its list";
    return i.a < k.axes.size() ? "where the window begins along " + k.axes[i.a].name : "where the window begins";
  case Op::ArgLen:
    return "len(" + k.arguments[i.a].name + (int32_t(i.b) ? ", " + std::to_string(int32_t(i.b)) : "") + ")";
  case Op::Cast:
    if (i.type == DType::Index) return describe(k, i.a);
    return std::string(spelling(i.type)) + "(" + describe(k, i.a) + ")";
  case Op::Unary:
    return std::string(UnaryOp(i.sub) == UnaryOp::Neg ? "-" : "~") + "(" + describe(k, i.a) + ")";
  case Op::Binary: {
    static constexpr const char *spelt[] = {" + ",  " - ",  " * ",  " / ", " // ", " % ",
                                            " ** ", " << ", " >> ", " & ", " | ",  " ^ "};
    auto side = [&](NodeId o) { return k[o].op == Op::Binary ? "(" + describe(k, o) + ")" : describe(k, o); };
    return side(i.a) + spelt[i.sub] + side(i.b);
  }
  case Op::Compare: {
    static constexpr const char *spelt[] = {" < ", " <= ", " > ", " >= ", " == ", " != "};
    return "(" + describe(k, i.a) + spelt[i.sub] + describe(k, i.b) + ")";
  }
  case Op::Logic:
    if (LogicOp(i.sub) == LogicOp::Not) return "not (" + describe(k, i.a) + ")";
    return "(" + describe(k, i.a) + (LogicOp(i.sub) == LogicOp::And ? " and " : " or ") + describe(k, i.b) + ")";
  default: {
    std::string s = i.op == Op::Call ? std::string(builtins()[i.sub].name) : spelling(i.op);
    s += "(";
    bool first = true;
    for (NodeId o : operands(k, n)) s += (first ? "" : ", ") + describe(k, o), first = false;
    return s + ")";
  }
  }
}

} // namespace elsewise::cuda
