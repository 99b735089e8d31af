// SPDX-License-Identifier: Apache-2.0
// A spec under one signature: typed, lowered, and what its layout will depend on. It knows no shapes.
#include "compiler/lower/lower.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/rewrite.h"
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

Result<Typing *> typing_for(const Spec &spec, const Signature &signature, const std::vector<bool> &host_scalar) {
  Result<Typing *> result;
  for (Typing &t : spec.typings)
    if (t.signature == signature && t.host_scalar == host_scalar) {
      result.value = &t;
      return result;
    }
  Sink sink;
  Typing typing{signature, host_scalar, specialise(spec.source, spec.ast, spec.names, signature, sink), {}, {}, {}, {}};
  if (sink.failed()) return spec_fault<Typing *>(sink, spec.source);
  if (!typing.typed.complete) return fault<Typing *>(Fault::Internal, "the types of the rule are not complete", spec);
  typing.kernel = read_on_host(lower(spec.source, spec.ast, spec.names, signature, typing.typed), host_scalar);

  std::string error;
  const Kernel scheduled = run_passes(typing.kernel, PassOptions{}, &error);
  if (!error.empty())
    return fault<Typing *>(Fault::Internal, "internal error: the IR is malformed; please report this rule\n" + error,
                           spec);
  typing.positions = used_positions(scheduled);
  for (size_t a = 0; a < signature.args.size(); ++a) {
    const ArgType &type = signature.args[a];
    const bool tensor = type.kind == ArgKind::Tensor && !host_scalar[a];
    typing.operands.push_back({type.dtype, tensor && scheduled.form.args[a] != Access::Absent, type.zero_dim});
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
