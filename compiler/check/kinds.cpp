// SPDX-License-Identifier: Apache-2.0
// Kinds from the leaves up, with every error that an operator's or a builtin's operands can make. A builtin is known by
// its Rule alone, never by its name.
#include "compiler/check/kinds.h"
#include "compiler/check/promote.h"
#include "compiler/types/text.h"
#include "grammar/builtins.h"
#include <algorithm>

namespace elsewise {

std::string describe(const Fact &f) {
  switch (f.kind) {
  case Kind::Index:
    return "a whole number";
  case Kind::WeakFloat:
    return "a float";
  case Kind::Bool:
    return "a condition";
  case Kind::Data:
    return std::string(spelling(f.dtype)) + " data";
  case Kind::Extreme:
    return "the end of a dtype's range";
  case Kind::Unknown:
    break;
  }
  return "unknown";
}

Fact join(llvm::ArrayRef<Fact> facts) {
  Fact r;
  bool unknown = false, data = false, weak = false, index = false, tensor_bool = false, wide_bool = false;
  Promotion promotion;
  bool extremes = !facts.empty();
  for (const Fact &f : facts) {
    extremes &= f.kind == Kind::Extreme;
    r.extreme |= f.extreme;
    r.open |= f.open || f.kind == Kind::Unknown;
    r.stage = std::max(r.stage, f.stage);
    if (f.kind == Kind::Extreme) continue;
    r.category = std::max(r.category, f.category);
    r.tensor |= f.tensor;
    unknown |= f.kind == Kind::Unknown;
    data |= f.kind == Kind::Data;
    weak |= f.kind == Kind::WeakFloat;
    index |= f.kind == Kind::Index;
    if (f.kind == Kind::Bool) tensor_bool |= f.tensor, wide_bool |= f.category != Category::Scalar;
    if (f.kind == Kind::WeakFloat) promotion.add(DType::F32, Category::Scalar);
    else if (f.kind != Kind::Unknown) promotion.add(f.dtype, f.category);
  }
  const DType promoted = promotion.result().value_or(DType::F32);
  const bool clash = data && promotion.clash();
  r.clash = clash && !unknown && !r.open;
  r.joint = extremes           ? Kind::Extreme
            : unknown || clash ? Kind::Unknown
            : data             ? Kind::Data
            : weak             ? (tensor_bool ? Kind::Data : Kind::WeakFloat)
            : index            ? (wide_bool ? Kind::Data : Kind::Index)
                               : Kind::Bool;
  r.kind = r.joint;
  r.dtype = r.kind == Kind::Index ? DType::Index : r.kind == Kind::WeakFloat ? DType::F32 : promoted;
  r.nominal = r.dtype;
  if (r.kind == Kind::WeakFloat) r.category = Category::Scalar;
  if (r.kind == Kind::Index) r.category = r.stage == Stage::Host ? Category::Scalar : Category::Dim;
  if (r.kind == Kind::Data) r.stage = Stage::Element, r.tensor = true;
  return r;
}

namespace {

bool is_bits(Operator op) {
  return op == Operator::BitAnd || op == Operator::BitOr || op == Operator::BitXor || op == Operator::BitNot;
}
bool is_shift(Operator op) { return op == Operator::Shl || op == Operator::Shr; }
bool floats(const Fact &f) { return f.kind == Kind::WeakFloat || (f.kind == Kind::Data && is_float(f.dtype)); }
bool whole(const Fact &f) { return f.kind == Kind::Index || (f.kind == Kind::Data && is_integer(f.dtype)); }

std::optional<__int128> fold(Operator op, __int128 a, __int128 b) {
  __int128 r;
  bool over = false;
  switch (op) {
  case Operator::Add:
    over = __builtin_add_overflow(a, b, &r);
    break;
  case Operator::Sub:
    over = __builtin_sub_overflow(a, b, &r);
    break;
  case Operator::Mul:
    over = __builtin_mul_overflow(a, b, &r);
    break;
  case Operator::FloorDiv:
  case Operator::Mod: {
    if (b == 0 || (b == -1 && a < 0 && a == -a)) return {};
    const __int128 q = a / b - (a % b != 0 && (a < 0) != (b < 0));
    r = op == Operator::FloorDiv ? q : a - q * b;
    break;
  }
  case Operator::Pow:
    if (b < 0 || b > 127) return {};
    r = 1;
    for (__int128 k = 0; k < b; ++k) over |= __builtin_mul_overflow(r, a, &r);
    break;
  case Operator::Shl:
    if (b < 0 || b > 126) return {};
    over = __builtin_mul_overflow(a, (__int128)1 << b, &r);
    break;
  case Operator::Shr:
    if (b < 0 || b > 126) return {};
    r = a >> b;
    break;
  case Operator::BitAnd:
    r = a & b;
    break;
  case Operator::BitOr:
    r = a | b;
    break;
  case Operator::BitXor:
    r = a ^ b;
    break;
  default:
    return {};
  }
  if (over) return {};
  return r;
}

class Walker {
public:
  Walker(const Source &source, const Ast &ast, const Names &names, const Signature &signature, Sink &sink)
      : source_(source), ast_(ast), names_(names), signature_(signature), sink_(sink) {}

  Kinds run() {
    kinds_.of.resize(ast_.exprs.size());
    kinds_.value.resize(ast_.exprs.size());
    kinds_.index.resize(ast_.exprs.size());
    for (const SpecPiece &piece : ast_.pieces) {
      mark(piece.guard, false);
      mark(piece.value, false);
    }
    for (ExprId e = 0; e < ast_.exprs.size(); ++e) {
      if (!kinds_.of[e].used) continue;
      kinds_.of[e] = find(e);
      kinds_.of[e].used = true;
      kinds_.complete &= kinds_.of[e].kind != Kind::Unknown;
    }
    for (const SpecPiece &piece : ast_.pieces)
      if (piece.guard != no_expr)
        need_bool(piece.guard, ast_.bare(piece.guard, piece.guard_written), Code::GuardNotBool, {});
    find_working();
    return std::move(kinds_);
  }

private:
  void mark(ExprId e, bool index) {
    if (e == no_expr || (index ? kinds_.index : kinds_.value)[e]) return;
    kinds_.of[e].used = true;
    (index ? kinds_.index : kinds_.value)[e] = true;
    for (uint32_t k = 0; k < values(ast_, names_, e); ++k)
      mark(ast_.child(e, k), ast_[e].kind == ExprKind::Read || (index && passes_index(ast_, names_, e, k)));
  }

  /// Literals beside data of that dtype; an index is worked in 64 bits.
  void check_literals(ExprId e, DType nominal, uint32_t first = 0) {
    for (uint32_t k = first; k < ast_[e].count; ++k) {
      const ExprId o = ast_.child(e, k);
      if (kinds_.value[e]) check_fit(source_, kinds_, o, ast_.bare(e, k), nominal, sink_);
      else check_fit(source_, kinds_, o, ast_.bare(e, k), DType::I64, sink_);
    }
  }

  void find_working() {
    bool wide = signature_.out == DType::F64;
    for (const ArgType &a : signature_.args) wide |= a.kind == ArgKind::Tensor && !a.zero_dim && a.dtype == DType::F64;
    for (ExprId e = 0; e < ast_.exprs.size(); ++e)
      if (kinds_.of[e].used && calls(ast_, names_, e, Rule::CastTo))
        wide |= parse_dtype(called(ast_, names_, e)->name) == DType::F64;
    kinds_.working = wide ? DType::F64 : DType::F32;
  }

  std::string text(Span s) const { return std::string(source_.slice(s)); }
  Fact operand(ExprId e, uint32_t k) const { return kinds_.of[ast_.child(e, k)]; }
  Span outer(ExprId e, uint32_t k) const { return ast_.written_at(e, k).at; }

  Fact find(ExprId e) {
    switch (ast_[e].kind) {
    case ExprKind::Literal:
      return literal(ast_.literal(e));
    case ExprKind::Name:
      return name(e);
    case ExprKind::Unary:
      return unary(e);
    case ExprKind::Binary:
      return binary(e);
    case ExprKind::Call:
      return call(e);
    case ExprKind::Read:
      return read(e);
    case ExprKind::Error:
      break;
    }
    return unknown();
  }

  static std::string counted(size_t n, const char *one, const char *many) {
    return std::to_string(n) + " " + (n == 1 ? one : many);
  }

  Fact read(ExprId e) {
    if (names_.of[e].binding != Binding::Argument) return unknown();
    const uint32_t index = names_.of[e].index;
    const ArgType a = index < signature_.args.size() ? signature_.args[index] : ArgType{};
    const Expr &x = ast_[e];
    bool good = true;
    for (uint32_t k = 0; k < x.count; ++k) good &= need_index(e, k);
    if (a.kind == ArgKind::Unknown) return unknown();
    if (a.kind != ArgKind::Tensor || a.zero_dim) {
      sink_.report(Code::IndexedParameter, x.at, {names_.arguments[index], described(a)}).fixits = {
          {{x.at.end, x.where.end}, "", "drop the brackets"}};
      return unknown();
    }
    if (!good || !fits_rank(e, a)) return unknown();
    Fact f{.kind = a.dtype == DType::Bool ? Kind::Bool : Kind::Data,
           .dtype = a.dtype,
           .stage = Stage::Element,
           .category = Category::Dim,
           .tensor = true};
    f.joint = f.kind, f.nominal = f.dtype;
    return f;
  }

  bool need_index(ExprId e, uint32_t k) {
    const Fact f = operand(e, k);
    const Span where = outer(e, k), bare = ast_.bare(e, k);
    if (f.kind == Kind::Unknown) return false;
    if (f.kind == Kind::Bool || floats(f)) {
      Diagnostic &d = sink_.report(Code::IndexNotWhole, where, {text(where), describe(f)});
      const ExprId quotient = data_quotient(ast_.child(e, k), ast_.written_at(e, k));
      if (quotient != no_expr) d.fixits = {{ast_[quotient].at, spelling(Operator::FloorDiv), "the whole quotient"}};
      d.fixits.push_back({bare, cast(Rule::CastInt, e, k), "make it a whole number"});
      return false;
    }
    if (!f.constant || *f.constant >= 0) return true;
    const std::string axis = dimension(e, k);
    sink_.report(Code::NegativeIndex, where, {text(where)}).fixits = {
        {where,
         std::string(name_of(Rule::Length)) + "(" + ast_.name(e) + (axis == "0" ? "" : ", " + axis) + ")-" +
             decimal(-*f.constant),
         "count from the end"}};
    return false;
  }

  /// The axis that index `k` runs along, as a length asks for it: behind `..` it counts from the right.
  std::string dimension(ExprId e, uint32_t k) const {
    const bool behind = ast_[e].dots >= 0 && int(k) >= ast_[e].dots;
    return std::to_string(behind ? int(k) - int(ast_[e].count) : int(k));
  }

  /// `/` between whole numbers of which one is data, where an index came out as a float.
  ExprId data_quotient(ExprId e, const Written &written) const {
    const Expr &x = ast_[e];
    if (written.let != no_let || (x.kind != ExprKind::Binary && x.kind != ExprKind::Unary)) return no_expr;
    if (x.op == Operator::Div && whole(operand(e, 0)) && whole(operand(e, 1))) return e;
    if (x.op != Operator::Add && x.op != Operator::Sub && x.op != Operator::Mul && x.kind != ExprKind::Unary)
      return no_expr;
    ExprId found = no_expr;
    for (uint32_t k = 0; k < x.count; ++k) {
      if (!floats(operand(e, k))) continue;
      found = found == no_expr ? data_quotient(ast_.child(e, k), ast_.written_at(e, k)) : no_expr;
      if (found == no_expr) return no_expr;
    }
    return found;
  }

  bool fits_rank(ExprId e, const ArgType &a) {
    const Expr &x = ast_[e];
    if (a.rank < 0) return true; // not known yet
    const std::string &name = names_.arguments[names_.of[e].index];
    const std::string axes = counted(size_t(a.rank), "axis", "axes");
    if (x.dots < 0 ? x.count != uint32_t(a.rank) : x.count > uint32_t(a.rank)) {
      const std::string indices = x.count == 1 ? "one index stands" : counted(x.count, "index stands", "indices stand");
      Diagnostic &d = sink_.report(Code::IndexCount, x.where, {name, axes, indices});
      if (x.dots < 0 && x.count < uint32_t(a.rank)) { // behind the bracket
        const uint32_t begin = x.where.begin + uint32_t(text(x.where).find('[')) + 1;
        d.fixits = {{{begin, begin}, ".., ", "the element's own place along the axes before"}};
      }
      return false;
    }
    const int rank = domain_rank(ast_.header, signature_);
    if (x.dots < 0 || rank < 0 || own_axes_have_places(x, a.rank, rank)) return true;
    sink_.report(Code::OwnAxes, x.where, {name, axes, std::to_string(rank)}).note =
        "axes are aligned from the right, as torch broadcasts; an index reads any other axis";
    return false;
  }

  static const char *described(const ArgType &a) {
    return a.kind == ArgKind::Tensor  ? "a 0-d tensor"
           : a.kind == ArgKind::Int   ? "an int"
           : a.kind == ArgKind::Float ? "a float"
                                      : "a bool";
  }

  /// Not known, or wrong and reported: whatever holds it says nothing more.
  static Fact unknown() { return {.kind = Kind::Unknown, .stage = Stage::Element, .category = Category::Dim}; }

  static Fact literal(const Literal &l) {
    if (is_extreme(l.kind)) return {.kind = Kind::Extreme, .extreme = true, .joint = Kind::Extreme};
    if (l.kind == LiteralKind::Int) return {.kind = Kind::Index, .joint = Kind::Index, .constant = l.integer};
    if (l.kind == LiteralKind::Bool)
      return {.kind = Kind::Bool, .dtype = DType::Bool, .joint = Kind::Bool, .nominal = DType::Bool};
    return {.kind = Kind::WeakFloat, .dtype = DType::F32, .joint = Kind::WeakFloat, .nominal = DType::F32};
  }

  /// Not known, but one of its arms is an extreme.
  static Fact undecided(const Fact &f) {
    Fact r = unknown();
    r.extreme = f.extreme;
    return r;
  }

  Fact name(ExprId e) const {
    const Resolved &r = names_.of[e];
    switch (r.binding) {
    case Binding::Position:
      return position();
    case Binding::Length:
      return length();
    case Binding::Argument:
      break;
    default:
      return unknown();
    }
    const ArgType a = r.index < signature_.args.size() ? signature_.args[r.index] : ArgType{};
    Fact f;
    switch (a.kind) {
    case ArgKind::Unknown:
      return unknown();
    case ArgKind::Int:
      f.kind = Kind::Index;
      break;
    case ArgKind::Float:
      f.kind = Kind::WeakFloat, f.dtype = DType::F32;
      break;
    case ArgKind::Bool:
      f.kind = Kind::Bool, f.dtype = DType::Bool;
      break;
    case ArgKind::Tensor:
      f.kind = a.dtype == DType::Bool ? Kind::Bool : Kind::Data;
      f.dtype = a.dtype;
      f.stage = Stage::Element;
      f.category = a.zero_dim ? Category::ZeroDim : Category::Dim;
      f.tensor = true;
      break;
    }
    f.joint = f.kind, f.nominal = f.dtype;
    return f;
  }

  /// A number that is meant as a condition; `where` is how it is written, with its parentheses or without.
  std::string compared_with_zero(ExprId e, Span where) const {
    const Expr &x = ast_[e];
    const bool in_place = where.begin <= x.where.begin && x.where.end <= where.end; // no let's name
    if (in_place && x.kind == ExprKind::Unary && x.op == Operator::BitNot) return text(outer(e, 0)) + " == 0";
    const bool loose = where == x.where && x.kind == ExprKind::Binary && is_bits(x.op);
    return (loose ? "(" + text(where) + ")" : text(where)) + " != 0";
  }

  bool need_bool(ExprId e, Span where, Code code, std::vector<std::string> arguments) {
    const Fact &f = kinds_.of[e];
    if (f.extreme) {
      report_extreme(e, where, nullptr);
      return false;
    }
    if (f.kind == Kind::Bool || f.kind == Kind::Unknown) return true;
    arguments.insert(arguments.end(), {text(where), describe(f)});
    sink_.report(code, where, arguments).fixits = {{where, compared_with_zero(e, where), "compare with zero"}};
    return false;
  }

  /// `beside`: what it is worked with, if anything.
  void report_extreme(ExprId e, Span where, const Fact *beside) {
    Diagnostic &d = sink_.report(Code::ExtremeInside, where, {text(where), std::string(name_of(Rule::Select))});
    if (ast_[e].kind != ExprKind::Literal || !beside) return;
    const bool low = ast_.literal(e).kind == LiteralKind::Lowest;
    if (whole(*beside) || beside->kind == Kind::Bool) {
      const DType of = beside->kind == Kind::Data ? beside->dtype : DType::I64;
      d.fixits = {{where, decimal(low ? least(of) : greatest(of)), "that of " + std::string(spelling(of))}};
    } else {
      d.fixits = {{where, low ? "-inf" : "inf", "an infinity"}};
    }
  }

  /// No operand is an extreme, which is a number only where it is stored.
  bool no_extreme(ExprId e) {
    std::vector<Fact> others;
    for (uint32_t k = 0; k < ast_[e].count; ++k)
      if (!operand(e, k).extreme) others.push_back(operand(e, k));
    for (uint32_t k = 0; k < ast_[e].count; ++k)
      if (operand(e, k).extreme) {
        const Fact beside = join(others);
        report_extreme(ast_.child(e, k), ast_.bare(e, k), others.empty() ? nullptr : &beside);
        return false;
      }
    return true;
  }

  /// What the operands from `first` on are together; where they have no dtype in common that is reported.
  Fact joined(ExprId e, llvm::ArrayRef<Fact> facts, uint32_t first = 0) {
    const Fact f = join(facts);
    if (!f.clash) return f;
    std::vector<Span> at;
    for (uint32_t k = 0; k < facts.size(); ++k) at.push_back(ast_.bare(e, first + k));
    report_clash(source_, facts, at, ast_[e].at, sink_);
    return unknown();
  }

  static Fact condition(const Fact &operands) {
    Fact f = operands;
    f.kind = Kind::Bool, f.dtype = DType::Bool;
    if (f.category == Category::Scalar && f.stage != Stage::Host)
      f.category = Category::Dim; // of a float made of positions
    return f;
  }

  bool need_bits(ExprId e, uint32_t k, Operator op) {
    const Fact f = operand(e, k);
    if (!floats(f)) return true;
    Diagnostic &d = sink_.report(Code::FloatBits, ast_[e].at, {spelling(op), text(outer(e, k)), describe(f)});
    if (op == Operator::BitXor) d.fixits = {{ast_[e].at, spelling(Operator::Pow), "write a power"}};
    else d.fixits = {{outer(e, k), cast(Rule::CastInt, e, k), "make it a whole number"}};
    return false;
  }

  /// `int(e)` of an operand, by the rule of the row that does it.
  std::string cast(Rule rule, ExprId e, uint32_t k) const {
    return std::string(name_of(rule)) + "(" + text(ast_.bare(e, k)) + ")";
  }

  Fact unary(ExprId e) {
    const Operator op = ast_[e].op;
    const Fact a = operand(e, 0);
    if (!no_extreme(e)) return unknown();
    if (op == Operator::Not) {
      if (!need_bool(ast_.child(e, 0), outer(e, 0), Code::OperandNotBool, {spelling(op)})) return unknown();
      return condition(join({a}));
    }
    if (op == Operator::Neg && a.kind == Kind::Bool) return bool_minus(e, 0);
    if (op == Operator::BitNot && !need_bits(e, 0, op)) return unknown();
    if (a.kind == Kind::Unknown) return unknown();
    Fact f = join({a});
    if (a.constant)
      f.constant = op == Operator::Plus ? a.constant : fold(Operator::Sub, op == Operator::Neg ? 0 : -1, *a.constant);
    return f;
  }

  Fact bool_minus(ExprId e, uint32_t k) {
    sink_.report(Code::BoolMinus, ast_[e].at, {text(outer(e, k))}).fixits = {
        {outer(e, k), cast(Rule::CastInt, e, k), "make it a whole number"}};
    return unknown();
  }

  Fact binary(ExprId e) {
    const Operator op = ast_[e].op;
    const Fact a = operand(e, 0), b = operand(e, 1);
    if (!no_extreme(e)) return unknown();
    if (is_logic(op)) {
      bool good = true;
      for (uint32_t k = 0; k < 2; ++k)
        good &= need_bool(ast_.child(e, k), outer(e, k), Code::OperandNotBool, {spelling(op)});
      return good ? condition(join({a, b})) : unknown();
    }
    if (is_comparison(op)) return comparison(e, a, b);
    if (op == Operator::Sub && (a.kind == Kind::Bool || b.kind == Kind::Bool))
      return bool_minus(e, a.kind != Kind::Bool);
    if (is_bits(op) || is_shift(op))
      for (uint32_t k = 0; k < 2; ++k)
        if (!need_bits(e, k, op)) return unknown();
    const bool logical = op == Operator::Add || op == Operator::Mul || op == Operator::Div || is_bits(op);
    if (a.kind == Kind::Bool && b.kind == Kind::Bool && !logical) {
      std::string mended = cast(Rule::CastInt, e, 0) + " " + spelling(op) + " " + cast(Rule::CastInt, e, 1);
      sink_.report(Code::BoolArithmetic, ast_[e].at, {spelling(op), text(ast_[e].where)}).fixits = {
          {ast_[e].where, mended, "make them whole numbers"}};
      return unknown();
    }
    Fact f = joined(e, {a, b});
    if (f.kind == Kind::Unknown) return unknown();
    if (op == Operator::Div) return quotient(e, f, b);
    if (f.kind == Kind::Index || f.kind == Kind::Data) {
      if (op == Operator::Pow && whole(f) && b.constant && *b.constant < 0) return negative_exponent(e);
      if (f.kind == Kind::Data) check_literals(e, f.nominal);
    }
    if (f.kind == Kind::Index) {
      if ((op == Operator::FloorDiv || op == Operator::Mod) && b.constant == 0) return zero_divisor(e);
      if (a.constant && b.constant) f.constant = fold(op, *a.constant, *b.constant);
    }
    return f;
  }

  Fact zero_divisor(ExprId e) {
    sink_.report(Code::ZeroDivisor, ast_[e].at, {text(ast_[e].where)});
    return unknown();
  }

  Fact quotient(ExprId e, Fact f, const Fact &divisor) {
    if (f.kind == Kind::Index)
      return divisor.constant == 0 ? zero_divisor(e) : f; // where it stands is specialise's business
    if (f.kind == Kind::Bool)
      f.kind = f.joint = f.tensor ? Kind::Data : Kind::WeakFloat, f.dtype = f.nominal = DType::F32;
    if (f.kind == Kind::Data && !is_float(f.dtype)) f.dtype = f.nominal = DType::F32;
    if (f.kind == Kind::Data) f.stage = Stage::Element, f.tensor = true;
    if (f.kind == Kind::WeakFloat) f.category = Category::Scalar;
    return f;
  }

  Fact comparison(ExprId e, const Fact &a, const Fact &b) {
    // Whole numbers of any kind are compared exactly.
    const bool exact = (whole(a) || a.kind == Kind::Bool) && (whole(b) || b.kind == Kind::Bool) &&
                       (a.kind == Kind::Index || b.kind == Kind::Index);
    Fact f = exact ? join({a, b}) : joined(e, {a, b});
    if (f.clash) f.joint = Kind::Data, f.clash = false;
    if (f.joint == Kind::Data) {
      if (exact) f.joint = Kind::Index, f.nominal = DType::Index;
      else if (a.kind != Kind::Data && b.kind != Kind::Data)
        f.joint = Kind::WeakFloat; // a bool beside a float: doubles hold both
    }
    return condition(f);
  }

  /// A number of the host, exact.
  static Fact length() { return {.kind = Kind::Index, .joint = Kind::Index}; }
  static Fact position() {
    return {.kind = Kind::Index, .stage = Stage::Element, .category = Category::Dim, .joint = Kind::Index};
  }

  Fact length_of(ExprId e) {
    const uint32_t index = names_.of[e].index;
    const ArgType a = index < signature_.args.size() ? signature_.args[index] : ArgType{};
    const bool tensor = a.kind == ArgKind::Unknown || (a.kind == ArgKind::Tensor && !a.zero_dim);
    if (tensor) return length();
    sink_.report(Code::LengthOfParameter, ast_.bare(e, 0), {names_.arguments[index], described(a)});
    return unknown();
  }

  Fact border(ExprId e) {
    if (ast_[e].count == 0 && signature_.rank == 0) {
      sink_.report(Code::BorderOfPoint, ast_[e].where, {ast_.name(e)});
      return unknown();
    }
    return position();
  }

  Fact call(ExprId e) {
    const Binding binding = names_.of[e].binding;
    if (binding == Binding::Length) return length();
    if (binding == Binding::ArgumentLength) return length_of(e);
    if (binding == Binding::Border) return border(e);
    if (binding != Binding::Builtin) return unknown();
    const Builtin &row = builtins()[names_.of[e].index];
    const uint32_t count = ast_[e].count;
    std::vector<Fact> facts;
    for (uint32_t k = 0; k < count; ++k) facts.push_back(operand(e, k));
    if (row.rule != Rule::Select && !no_extreme(e)) return unknown();
    switch (row.rule) {
    case Rule::CastTo:
      return cast_to(facts, *parse_dtype(row.name));
    case Rule::CastInt:
      return cast_int(facts);
    case Rule::CastFloat:
      return cast_float(facts);
    case Rule::Predicate:
      return facts.empty() ? unknown() : condition(join(facts));
    case Rule::Select:
      return facts.size() == 3 ? select(e, row, facts) : unknown();
    case Rule::Noise:
      return noise(e, row, facts);
    case Rule::Whole:
    case Rule::WholeTest:
      if (!need_whole(e, row, facts)) return unknown();
      break;
    default:
      break;
    }
    if (facts.empty()) return unknown();
    Fact f = joined(e, facts);
    if (f.kind == Kind::Unknown) return unknown();
    if (row.rule == Rule::Ratio && f.dtype == DType::U64) // compared and subtracted as such
      for (uint32_t k = 0; k < count; ++k)
        check_fit(source_, kinds_, ast_.child(e, k), ast_.bare(e, k), f.dtype, sink_);
    if (row.rule == Rule::Float || row.rule == Rule::Ratio) {
      if (f.kind == Kind::Index || (f.kind == Kind::Bool && !f.tensor))
        f.kind = f.joint = Kind::WeakFloat, f.category = Category::Scalar;
      if (f.kind == Kind::Bool) f.kind = f.joint = Kind::Data, f.stage = Stage::Element;
      if (!is_float(f.dtype)) f.dtype = f.nominal = DType::F32;
      return f;
    }
    if (f.kind == Kind::Bool) return bool_number(e, row, 0); // conditions are combined with `and` and `or`
    if (f.kind == Kind::Data) check_literals(e, f.nominal);
    if (row.meaning == Meaning::Power && whole(f) && facts[1].constant && *facts[1].constant < 0)
      return negative_exponent(e);
    return row.rule == Rule::WholeTest ? condition(f) : f;
  }

  Fact bool_number(ExprId e, const Builtin &row, uint32_t k) {
    const Span where = ast_.bare(e, k);
    sink_.report(Code::BoolNumber, ast_[e].at, {std::string(row.name), text(where)}).fixits = {
        {where, cast(Rule::CastInt, e, k), "make it a whole number"}};
    return unknown();
  }

  /// A weak float of the position, whatever its seed and stream are made of: they choose among numbers, and enter none.
  Fact noise(ExprId e, const Builtin &row, llvm::ArrayRef<Fact> facts) {
    if (!need_whole(e, row, facts)) return unknown();
    for (uint32_t k = 0; k < facts.size(); ++k)
      if (facts[k].kind == Kind::Bool) return bool_number(e, row, k);
    return {.kind = Kind::WeakFloat, .dtype = DType::F32, .stage = Stage::Element, .joint = Kind::Index};
  }

  bool need_whole(ExprId e, const Builtin &row, llvm::ArrayRef<Fact> facts) {
    for (uint32_t k = 0; k < facts.size(); ++k) {
      if (!floats(facts[k])) continue;
      const Span where = ast_.bare(e, k);
      sink_.report(Code::NotWhole, where, {std::string(row.name), text(where), describe(facts[k])}).fixits = {
          {where, cast(Rule::CastInt, e, k), "make it a whole number"}};
      return false;
    }
    return true;
  }

  Fact negative_exponent(ExprId e) {
    sink_.report(Code::NegativeExponent, outer(e, 1), {text(outer(e, 1))}).fixits = {
        {outer(e, 0), cast(Rule::CastFloat, e, 0), "make it a float"}};
    return unknown();
  }

  Fact cast_to(llvm::ArrayRef<Fact> facts, DType to) {
    if (facts.empty()) return unknown();
    const Fact &a = facts[0];
    Fact f{.kind = to == DType::Bool ? Kind::Bool : Kind::Data, .dtype = to, .stage = a.stage, .tensor = true};
    if (a.kind == Kind::Data || a.kind == Kind::Unknown) f.stage = Stage::Element;
    f.category = a.category == Category::ZeroDim ? Category::ZeroDim : Category::Dim;
    f.joint = a.kind, f.nominal = a.dtype;
    f.open = a.open || a.kind == Kind::Unknown; // it may turn out to have no dimension, or be a number
    return f;
  }

  Fact cast_int(llvm::ArrayRef<Fact> facts) {
    if (facts.empty() || facts[0].kind == Kind::Unknown) return unknown();
    const Fact &a = facts[0];
    if (a.kind == Kind::Bool || a.kind == Kind::Data) return cast_to(facts, DType::I64);
    Fact f = a;
    f.kind = Kind::Index, f.dtype = DType::Index;
    f.category = f.stage == Stage::Host ? Category::Scalar : Category::Dim;
    f.joint = a.kind, f.nominal = a.dtype;
    return f;
  }

  Fact cast_float(llvm::ArrayRef<Fact> facts) {
    if (facts.empty() || facts[0].kind == Kind::Unknown) return unknown();
    const Fact &a = facts[0];
    if (floats(a)) {
      Fact f = a;
      f.joint = a.kind, f.nominal = a.dtype;
      return f;
    }
    if (a.kind == Kind::Data || a.tensor) return cast_to(facts, DType::F32);
    Fact f = a;
    f.kind = Kind::WeakFloat, f.dtype = DType::F32, f.category = Category::Scalar,
    f.constant.reset(); // `= {}` would make it 0: __int128 is no scalar to the library
    f.joint = a.kind, f.nominal = a.dtype;
    return f;
  }

  Fact select(ExprId e, const Builtin &row, llvm::ArrayRef<Fact> facts) {
    if (!need_bool(ast_.child(e, 0), ast_.bare(e, 0), Code::OperandNotBool, {std::string(row.name)})) return unknown();
    Fact f = joined(e, facts.drop_front(), 1);
    if (f.kind == Kind::Unknown) return f.extreme ? undecided(f) : unknown();
    const bool open = facts[0].open || facts[0].kind == Kind::Unknown; // it may turn out to be the same everywhere
    f.open |= open;
    if (!open || f.kind != Kind::Index) f.stage = std::max(f.stage, facts[0].stage);
    if (f.kind == Kind::Index) f.category = f.stage == Stage::Host ? Category::Scalar : Category::Dim;
    if (f.kind == Kind::Data || f.kind == Kind::Bool) f.category = std::max(f.category, facts[0].category);
    if (f.kind == Kind::Bool) f.tensor |= facts[0].tensor;
    if (f.kind == Kind::Data) check_literals(e, f.nominal, 1);
    return f;
  }

  const Source &source_;
  const Ast &ast_;
  const Names &names_;
  const Signature &signature_;
  Sink &sink_;
  Kinds kinds_;
};

} // namespace

bool passes_index(const Ast &ast, const Names &names, ExprId e, uint32_t operand) {
  const Expr &x = ast[e];
  if (x.kind == ExprKind::Unary) return x.op != Operator::Not;
  if (x.kind == ExprKind::Binary) return !is_logic(x.op) && !is_comparison(x.op);
  const Builtin *const row = called(ast, names, e);
  if (!row) return false;
  switch (row->rule) {
  case Rule::Numeric:
  case Rule::Rounding:
    return true;
  case Rule::Whole: // one of no body looks at the bits of its operand's own dtype
    return !row->body.empty();
  case Rule::Select:
    return operand != 0;
  default:
    return false;
  }
}

void check_fit(const Source &source, const Kinds &kinds, ExprId e, Span where, DType d, Sink &sink) {
  const Fact &f = kinds[e];
  if (f.kind != Kind::Index || !f.constant || !is_integer(d)) return;
  if (*f.constant >= least(d) && *f.constant <= greatest(d)) return;
  const std::string seen(source.slice(where));
  Diagnostic &diagnostic =
      sink.report(Code::DoesNotFit, where, {seen, spelling(d), decimal(least(d)), decimal(greatest(d))});
  for (DType wide : {DType::I16, DType::I32, DType::I64, DType::U64})
    if (bytes(wide) > bytes(d) && *f.constant >= least(wide) && *f.constant <= greatest(wide)) {
      diagnostic.fixits = {
          {where, std::string(spelling(wide)) + "(" + seen + ")", "work in " + std::string(spelling(wide))}};
      break;
    }
}

void report_clash(const Source &source, llvm::ArrayRef<Fact> facts, llvm::ArrayRef<Span> at, Span caret, Sink &sink) {
  uint32_t a = 0, b = 1;
  for (uint32_t k = 0; k < facts.size(); ++k)
    for (uint32_t l = k + 1; l < facts.size(); ++l)
      if (facts[k].kind != Kind::Extreme && facts[l].kind != Kind::Extreme && join({facts[k], facts[l]}).clash) {
        a = k, b = l;
        k = uint32_t(facts.size()) - 1;
        break;
      }
  const auto text = [&](uint32_t k) { return std::string(source.slice(at[k])); };
  const auto of = [&](uint32_t k) { return facts[k].kind == Kind::Index ? DType::I64 : facts[k].dtype; };
  const auto seen = [&](uint32_t k) {
    return facts[k].kind == Kind::Index ? std::string("i64, as whole numbers that vary are") : describe(facts[k]);
  };
  Diagnostic &d = sink.report(Code::NoCommonDtype, caret, {text(a), seen(a), text(b), seen(b)});
  const auto mend = [&](uint32_t k, DType to) {
    const std::string name = spelling(to);
    d.fixits.push_back({at[k], name + "(" + text(k) + ")", "work in " + name});
  };
  const DType x = of(a), y = of(b);
  if (x == DType::Bool || y == DType::Bool) mend(x == DType::Bool ? a : b, x == DType::Bool ? y : x);
  else if (dclass(x) == dclass(y)) mend(bytes(x) < bytes(y) ? a : b, bytes(x) < bytes(y) ? y : x);
  else { // the least signed dtype that holds both; none does for u64
    const uint32_t plain = dclass(x) == DClass::UInt ? a : b, with_sign = plain == a ? b : a;
    const DType wide = bytes(of(plain)) == 2 ? DType::I32 : DType::I64;
    mend(plain, bytes(of(with_sign)) > bytes(wide) ? of(with_sign) : wide);
    if (of(plain) == DType::U64) mend(with_sign, DType::U64);
  }
}

Kinds find_kinds(const Source &source, const Ast &ast, const Names &names, const Signature &signature, Sink &sink) {
  return Walker(source, ast, names, signature, sink).run();
}

} // namespace elsewise
