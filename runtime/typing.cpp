// SPDX-License-Identifier: Apache-2.0
// A spec under one signature: typed, lowered, and what its layout will depend on. It knows no shapes.
#include "compiler/ir/rows.h"
#include "compiler/ir/walk.h"
#include "compiler/lower/lower.h"
#include "compiler/passes/bounds.h"
#include "compiler/passes/fold.h"
#include "compiler/passes/form.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/rewrite.h"
#include "grammar/builtins.h"
#include "runtime/spec.h"
#include <algorithm>

namespace elsewise::api {

// Loads of 0-d tensors that live on the host become parameters of the same dtype: types were settled before, so
// promotion is a tensor's still.
static Kernel read_on_host(Kernel kernel, const std::vector<bool> &host_scalar) {
  if (std::find(host_scalar.begin(), host_scalar.end(), true) == host_scalar.end()) return kernel;
  for (size_t a = 0; a < host_scalar.size(); ++a)
    if (host_scalar[a]) {
      const DType d = kernel.arguments[a].type.dtype;
      kernel.arguments[a].type.kind = is_float(d) ? ArgKind::Float : d == DType::Bool ? ArgKind::Bool : ArgKind::Int;
    }
  kernel = rewrite(kernel, [&](Kernel &to, Builder &b, NodeId made) {
    const Inst node = to[made];
    if (node.op != Op::Load || !host_scalar[node.a]) return made;
    const DType as = is_float(node.type) ? DType::F64 : node.type == DType::Bool ? DType::Bool : DType::Index;
    const NodeId param = b.param(node.a, as);
    return as == node.type ? param : b.cast(param, node.type);
  });
  return prune(kernel); // without the loads that nothing uses now
}

// Where a read stands in the text; no_expr: nowhere, which cannot be.
static ExprId expression_of(const Ast &ast, Span where) {
  for (ExprId e = 0; e < ast.exprs.size(); ++e)
    if (ast[e].kind == ExprKind::Read && ast[e].where == where) return e;
  return no_expr;
}

// Whether an index is nothing but u64 data, of which what i64 does not hold counts as negative between the brackets.
static bool is_u64(const Kernel &kernel, NodeId index) {
  while (kernel[index].op == Op::Cast && kernel[index].type != DType::U64) index = kernel[index].a;
  return kernel[index].type == DType::U64;
}

// The index kept in bounds: u64 data before it becomes an i64.
static std::string clipped(bool u64, const std::string &index, const std::string &length) {
  const auto name = [](uint8_t row) { return std::string(builtins()[row].name); };
  if (u64) return std::string(name_of(Rule::CastInt)) + "(" + name(least_row()) + "(" + index + ", " + length + "-1))";
  const uint8_t between = row_where([](const Builtin &r) { return r.meaning == Meaning::Between; });
  return name(between) + "(" + index + ", 0, " + length + "-1)";
}

// Says what each index would need, and offers to clip it.
static void refuse_unproved(const Spec &spec, const Kernel &kernel, Sink &sink) {
  std::vector<std::pair<Span, uint32_t>> told; // of several nodes that stand in one place
  for (const Unproved &u : unproved(kernel)) {
    const Span where = kernel.span(u.node);
    const std::pair<Span, uint32_t> place{where, u.axis};
    if (std::find(told.begin(), told.end(), place) != told.end()) continue;
    told.push_back(place);
    const ExprId e = expression_of(spec.ast, where);
    if (e == no_expr) {
      sink.report(Code::IndexUnproved, where, {std::string(spec.source.slice(where)), "its index stays in bounds"});
      continue;
    }
    const Expr &read = spec.ast[e];
    const Argument &of = kernel.arguments[kernel.reads[kernel[u.node].c].argument];
    // Axes behind `..` are counted from the right.
    const bool behind = read.dots >= 0 && u.axis >= uint32_t(read.dots);
    const uint32_t k = behind ? u.axis - (uint32_t(of.type.rank) - read.count) : u.axis;
    const Span index = spec.ast.bare(e, k);
    const std::string text(spec.source.slice(index)),
        length = std::string(name_of(Rule::Length)) + "(" + of.name +
                 (u.axis ? ", " + std::to_string(behind ? int(k) - int(read.count) : int(u.axis)) : "") + ")",
        lower = "`" + text + "` is 0 or more", upper = "`" + text + "` is below `" + length + "`";
    elsewise::Diagnostic &d =
        sink.report(Code::IndexUnproved, index,
                    {std::string(spec.source.slice(where)), u.below && u.above ? lower + " and below `" + length + "`"
                                                            : u.below          ? lower
                                                                               : upper});
    const ExprId written = spec.ast.child(e, k);
    const bool cast = calls(spec.ast, spec.names, written, Rule::CastTo) ||
                      calls(spec.ast, spec.names, written, Rule::CastInt),
               u64 = !cast && is_u64(kernel, operands(kernel, u.node)[kernel[u.node].sub + u.axis]);
    d.fixits.push_back({index, clipped(u64, text, length), "keep the index in bounds"});
    d.note = "guards and `where` conditions that lead to the read count, as `0 <= k < " + length + "` does";
  }
}

static Typing *known_typing(const Spec &spec, const Signature &signature, const std::vector<bool> &host_scalar) {
  for (Typing &t : spec.typings)
    if (t.signature == signature && t.host_scalar == host_scalar) return &t;
  return nullptr;
}

bool serves_asking(const Typed &typed) {
  return typed.complete && (typed.result != DType::F64 || typed.working == DType::F64);
}

Result<Typing *> typing_for(const Spec &spec, const Signature &signature, const std::vector<bool> &host_scalar) {
  Result<Typing *> result;
  result.value = known_typing(spec, signature, host_scalar);
  if (result.value) return result;
  Sink sink;
  if (signature.out) { // what comes out anyway has the code that it has when nobody asks
    Signature plain = signature;
    plain.out.reset();
    const Typing *const known = known_typing(spec, plain, host_scalar);
    Sink quiet; // what is told is told of what was asked for
    const Typed typed = known ? known->typed : specialise(spec.source, spec.ast, spec.names, plain, quiet);
    if (!quiet.failed() && serves_asking(typed) && typed.result == *signature.out)
      return typing_for(spec, plain, host_scalar);
  }
  Typing typing{signature, host_scalar, specialise(spec.source, spec.ast, spec.names, signature, sink), {}, {}, {}, {}};
  if (sink.failed()) return spec_fault<Typing *>(sink, spec.source);
  if (!typing.typed.complete) return fault<Typing *>(Fault::Internal, "the types of the rule are not complete", spec);
  typing.kernel = read_on_host(lower(spec.source, spec.ast, spec.names, signature, typing.typed), host_scalar);
  if (!typing.kernel.reads.empty()) {
    typing.kernel = bounds(fold(typing.kernel, {}), {});
    refuse_unproved(spec, typing.kernel, sink);
    if (sink.failed()) return spec_fault<Typing *>(sink, spec.source);
  }

  std::string error;
  const Kernel scheduled = run_passes(typing.kernel, PassOptions{}, &error);
  if (!error.empty())
    return fault<Typing *>(Fault::Internal, "internal error: the IR is malformed; please report this rule\n" + error,
                           spec);
  typing.positions = used_positions(scheduled);
  // Not as scheduled: a form without an axis may keep a piece that this one drops.
  const Form whole = contiguous_form(fold(typing.kernel, {}));
  for (size_t a = 0; a < signature.args.size(); ++a) {
    const ArgType &type = signature.args[a];
    const bool tensor = type.kind == ArgKind::Tensor && !host_scalar[a];
    typing.operands.push_back({type.dtype, tensor && whole.args[a] != Access::Absent, type.zero_dim});
  }
  spec.typings.push_back(std::move(typing));
  result.value = &spec.typings.back();
  return result;
}

Dims axes_in(const Kernel &kernel, size_t rank) {
  Dims dims;
  for (const Axis &axis : kernel.axes) dims.push_back(from_left(axis.dim, rank));
  return dims;
}

Positions positions_in(const Typing &typing, DimsRef dims, size_t rank) {
  Positions used{typing.positions.flat};
  used.dims.assign(rank, false);
  for (size_t a = 0; a < dims.size(); ++a)
    if (typing.positions.axes[a]) used.dims[size_t(dims[a])] = true;
  return used;
}

} // namespace elsewise::api
