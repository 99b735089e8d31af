// SPDX-License-Identifier: Apache-2.0
// Types by use, from the pieces down: what a float is worked in, where an index quotient may stand, the result's dtype.
// Kinds are found in kinds.cpp, proofs in coverage.cpp.
#include "compiler/check/coverage.h"
#include "compiler/check/kinds.h"
#include "grammar/builtins.h"
#include <map>
#include <set>

namespace elsewise {
namespace {

/// Whether `/` between indexes may mean floor here: under + and - of a comparison of which both sides are indexes (or
/// may turn out to be), and anywhere in the arithmetic of an index between brackets.
enum class Place : uint8_t { No, Maybe, Yes, Brackets };

class Specialiser {
public:
  Specialiser(const Source &source, const Ast &ast, const Names &names, const Signature &signature, Sink &sink)
      : source_(source), ast_(ast), names_(names), signature_(signature), sink_(sink) {}

  Typed run() {
    kinds_ = find_kinds(source_, ast_, names_, signature_, sink_);
    typed_.working = kinds_.working;
    for (auto &table : typed_.by_use) table.resize(ast_.exprs.size());
    for (const SpecPiece &piece : ast_.pieces) {
      if (piece.guard != no_expr) visit(piece.guard, piece.guard_written, Use::Value, Place::No);
      if (piece.value != no_expr) visit(piece.value, piece.value_written, Use::Value, Place::No);
    }
    check_coverage(source_, ast_, names_, kinds_, typed_, sink_);
    find_result();
    typed_.complete = kinds_.complete;
    return std::move(typed_);
  }

private:
  void visit(ExprId e, const Written &written, Use use, Place place) {
    if (!seen_.insert({e, use, place}).second) return;
    const bool through = written.let != no_let;
    if (through) uses_.push_back(written);
    visit_here(e, use, place);
    if (through) uses_.pop_back();
  }

  void visit_here(ExprId e, Use use, Place place) {
    const Fact &f = kinds_[e];
    const Expr &x = ast_[e];
    ExprType &t = typed_.by_use[int(use)][e];
    t.type = type(f, use);
    t.operands = operands_use(e, use);
    t.nominal = f.joint == Kind::WeakFloat ? weak(t.operands, f.stage) : f.nominal;
    t.compute = compute(e, t.operands);
    if (t.operands == Use::Index && x.kind != ExprKind::Read && whole(f)) t.compute = DType::I64;
    const bool index_quotient = x.kind == ExprKind::Binary && x.op == Operator::Div && f.kind == Kind::Index;
    if (index_quotient) {
      t.quotient = true;
      if (place == Place::No || (place != Place::Brackets && !may_be_quotient(e))) report_quotient(e);
    }
    for (uint32_t k = 0; k < values(ast_, names_, e); ++k)
      visit(ast_.child(e, k), ast_.written_at(e, k), use_of(e, k, t.operands), place_of(e, k, place));
  }

  /// A float that no tensor has entered: a double in comparisons and on the host, else the working float.
  DType weak(Use use, Stage stage) const {
    return use == Use::Compare || stage == Stage::Host ? DType::F64 : kinds_.working;
  }

  Type type(const Fact &f, Use use) const {
    Type t{f.kind, f.dtype, f.stage, f.category};
    if (f.kind == Kind::WeakFloat) t.dtype = use == Use::Compare ? DType::F64 : kinds_.working;
    if (use == Use::Index && whole(f)) t.dtype = DType::I64;
    return t;
  }

  static bool whole(const Fact &f) { return f.kind == Kind::Data && is_integer(f.dtype); }

  bool compares(ExprId e) const { return ast_[e].kind == ExprKind::Binary && is_comparison(ast_[e].op); }

  Use operands_use(ExprId e, Use use) const {
    const Fact &f = kinds_[e];
    if (ast_[e].kind == ExprKind::Read) return Use::Index;
    if (use == Use::Index) return ast_[e].count && passes_index(ast_, names_, e, ast_[e].count - 1) ? use : Use::Value;
    if (compares(e)) return f.joint == Kind::Index || f.joint == Kind::WeakFloat ? tensor_free(e) : Use::Value;
    if (calls(e, Rule::Noise)) return Use::Value; // seeds are numbers of their own, whatever the noise is compared with
    if (calls(e, Rule::Ratio) &&                  // it compares its operands as they are, for a result of another type
        (f.kind == Kind::WeakFloat || f.kind == Kind::Unknown))
      return Use::Compare;
    return f.kind == Kind::Index || f.kind == Kind::WeakFloat || f.kind == Kind::Unknown ? use : Use::Value;
  }

  bool calls(ExprId e, Rule rule) const { return elsewise::calls(ast_, names_, e, rule); }

  Use tensor_free(ExprId e) const {
    for (uint32_t k = 0; k < 2; ++k)
      if (kinds_[ast_.child(e, k)].kind == Kind::Data) return Use::Value;
    return Use::Compare;
  }

  /// A condition inside an arithmetic expression is a value, whatever that expression is compared with.
  Use use_of(ExprId e, uint32_t k, Use operands) const {
    return calls(e, Rule::Select) && k == 0 ? Use::Value : operands;
  }

  DType compute(ExprId e, Use operands) const {
    const Fact &f = kinds_[e];
    switch (f.joint) {
    case Kind::Index:
      return DType::Index;
    case Kind::Bool:
      return DType::Bool;
    case Kind::Data:
      return opmath(f.nominal);
    case Kind::WeakFloat:
      return weak(operands, f.stage);
    case Kind::Unknown:
    case Kind::Extreme: // worked in nothing: stored
      break;
    }
    return DType::Index;
  }

  Place place_of(ExprId e, uint32_t k, Place place) const {
    const Expr &x = ast_[e];
    if (x.kind == ExprKind::Read) return Place::Brackets;
    if (place == Place::Brackets) return index_arithmetic(e, k) ? place : Place::No;
    if (compares(e)) {
      const Kind a = kinds_[ast_.child(e, 0)].kind, b = kinds_[ast_.child(e, 1)].kind;
      if (a == Kind::Index && b == Kind::Index) return Place::Yes;
      const bool may = (a == Kind::Index || a == Kind::Unknown) && (b == Kind::Index || b == Kind::Unknown);
      return may ? Place::Maybe : Place::No;
    }
    const bool sum =
        (x.kind == ExprKind::Binary || x.kind == ExprKind::Unary) &&
        (x.op == Operator::Add || x.op == Operator::Sub || x.op == Operator::Neg || x.op == Operator::Plus);
    return sum ? place : Place::No;
  }

  /// Under `+ - * / // %` and what chooses or maps whole numbers.
  bool index_arithmetic(ExprId e, uint32_t k) const {
    const Operator op = ast_[e].op;
    const bool sum = op == Operator::Add || op == Operator::Sub || op == Operator::Mul || op == Operator::Div ||
                     op == Operator::FloorDiv || op == Operator::Mod || op == Operator::Neg || op == Operator::Plus;
    return passes_index(ast_, names_, e, k) && (ast_[e].kind == ExprKind::Call || sum);
  }

  /// E / literal, E of positions, lengths and literals, and not of literals alone.
  bool may_be_quotient(ExprId e) {
    const ExprId dividend = ast_.child(e, 0), divisor = ast_.child(e, 1);
    return ast_[divisor].kind == ExprKind::Literal && !kinds_[dividend].constant && !holds_argument(dividend);
  }

  /// Whether `is` says so of `e` or anything in it; `known`: of expressions that it was asked of.
  template <class F> bool any_in(ExprId e, std::map<ExprId, bool> &known, F is) {
    if (const auto at = known.find(e); at != known.end()) return at->second;
    bool found = is(e);
    for (uint32_t k = 0; k < values(ast_, names_, e) && !found; ++k) found = any_in(ast_.child(e, k), known, is);
    return known[e] = found;
  }

  bool holds_argument(ExprId e) {
    return any_in(e, holds_argument_, [&](ExprId at) {
      return ast_[at].kind == ExprKind::Name && names_.of[at].binding == Binding::Argument;
    });
  }

  void report_quotient(ExprId e) {
    if (!reported_.insert(e).second) return;
    const Expr &x = ast_[e];
    const std::string name(name_of(Rule::CastFloat));
    const Span left = ast_.written_at(e, 0).at;
    const std::string dividend(source_.slice(ast_.bare(e, 0)));
    Diagnostic &d = sink_.report(Code::IndexDivision, x.at, {std::string(source_.slice(x.where))});
    d.fixits = {{left, name + "(" + dividend + ")", "the true quotient"},
                {x.at, spelling(Operator::FloorDiv), "the whole quotient"}};
    d.note =
        "`/` between whole numbers means the whole quotient only in a comparison of positions, as in `i < n/4`, and "
        "between the brackets of a read";
    if (uses_.empty()) return;
    const LineColumn at = source_.position(uses_.front().at.begin); // where a piece's own text comes to it
    d.note += "; here `" + std::string(source_.slice(uses_.front().at)) + "` is used at " + std::to_string(at.line) +
              ":" + std::to_string(at.column);
  }

  void find_result() {
    std::vector<Fact> values;
    for (size_t p = 0; p < ast_.pieces.size(); ++p)
      if (ast_.pieces[p].value != no_expr && typed_.reachable[p]) values.push_back(kinds_[ast_.pieces[p].value]);
    if (values.empty()) return;
    Fact all = join(values);
    for (const SpecPiece &piece : ast_.pieces) // it may turn out that a piece is never reached, which has no say then
      all.open |= piece.guard != no_expr && unsettled(piece.guard);
    if (all.clash && !all.open) return report_pieces(values);
    if (all.kind == Kind::Unknown) return;
    if (all.kind == Kind::Extreme && !signature_.out) {
      for (size_t p = ast_.pieces.size(); p-- > 0 && signature_.of_call;)
        if (typed_.reachable[p] && ast_.pieces[p].value != no_expr) {
          sink_.report(Code::ExtremeAlone, shown(p), {std::string(source_.slice(shown(p)))});
          break;
        }
      return;
    }
    typed_.promoted = all.kind == Kind::Extreme     ? *signature_.out
                      : all.kind == Kind::Index     ? DType::I64
                      : all.kind == Kind::WeakFloat ? kinds_.working
                                                    : all.dtype;
    typed_.result = signature_.out.value_or(typed_.promoted);
    if (sink_.failed() || all.open) return; // what is not known yet may make the result another
    for (size_t p = 0; p < ast_.pieces.size(); ++p)
      if (typed_.reachable[p]) check_fit(source_, kinds_, ast_.pieces[p].value, shown(p), typed_.promoted, sink_);
    if (!can_cast(typed_.promoted, typed_.result)) report_store();
  }

  /// Whether anything in `e` has a kind that is not known yet.
  bool unsettled(ExprId e) {
    return any_in(e, unsettled_, [&](ExprId at) { return kinds_[at].kind == Kind::Unknown; });
  }

  void report_pieces(const std::vector<Fact> &values) {
    std::vector<Span> at;
    for (size_t p = 0; p < ast_.pieces.size(); ++p)
      if (ast_.pieces[p].value != no_expr && typed_.reachable[p]) at.push_back(shown(p));
    if (!sink_.failed()) report_clash(source_, values, at, at.back(), sink_);
  }

  Span shown(size_t p) const { return ast_.bare(ast_.pieces[p].value, ast_.pieces[p].value_written); }

  void report_store() {
    const std::string to = spelling(typed_.result);
    for (size_t p = 0; p < ast_.pieces.size(); ++p) {
      const ExprId value = ast_.pieces[p].value;
      const Fact &f = kinds_[value];
      const DType d = f.kind == Kind::WeakFloat ? kinds_.working : f.dtype;
      if (!typed_.reachable[p] || f.kind == Kind::Extreme || can_cast(d, typed_.result)) continue;
      const Span where = shown(p);
      sink_.report(Code::CannotStore, where, {spelling(typed_.promoted), to}).fixits = {
          {where, to + "(" + std::string(source_.slice(where)) + ")", "convert it"}};
      return;
    }
  }

  const Source &source_;
  const Ast &ast_;
  const Names &names_;
  const Signature &signature_;
  Sink &sink_;
  Kinds kinds_;
  Typed typed_;
  std::set<std::tuple<ExprId, Use, Place>> seen_;
  std::set<ExprId> reported_;
  std::map<ExprId, bool> holds_argument_, unsettled_;
  std::vector<Written> uses_; // lets that lead to where the walk is
};

} // namespace

Typed specialise(const Source &source, const Ast &ast, const Names &names, const Signature &signature, Sink &sink) {
  return Specialiser(source, ast, names, signature, sink).run();
}

} // namespace elsewise
