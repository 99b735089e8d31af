// SPDX-License-Identifier: Apache-2.0
// Every stage of a spec as text, for a signature given by hand and contiguous operands. Nothing made here is kept or
// run.
#include "compiler/emit/emit.h"
#include "compiler/ir/read.h"
#include "compiler/lex/lex.h"
#include "compiler/lower/lower.h"
#include "compiler/parse/format.h"
#include "compiler/parse/parser.h"
#include "compiler/passes/passes.h"
#include "runtime/cuda/nvrtc.h"
#include "runtime/spec.h"
#include <algorithm>

namespace elsewise::api {

namespace {

using Text = Result<std::string>;

Text refuse(const Spec &spec, Fault f, std::string message) { return fault<std::string>(f, std::move(message), spec); }
// `spec`: null for a kernel that was given as IR.
Text refuse(const Spec *spec, Fault f, std::string message) {
  if (spec) return refuse(*spec, f, std::move(message));
  Text result;
  result.fault = f, result.message = std::move(message);
  return result;
}
Text good(std::string text) {
  Text result;
  result.value = std::move(text);
  return result;
}

// What stands below an expression.
struct Leaves {
  bool position = false, other_argument = false;
  std::vector<bool> arguments;
};

// True if a name is used with positions and lengths alone somewhere (`i < edge`): a tensor, an int and a float all make
// sense there and differ.
std::vector<bool> ambiguous_arguments(const Spec &spec) {
  const size_t count = spec.names.arguments.size();
  std::vector<Leaves> below(spec.ast.exprs.size());
  std::vector<bool> ambiguous(count), settled(spec.ast.exprs.size());
  for (ExprId e = 0; e < spec.ast.exprs.size(); ++e) {
    Leaves &at = below[e];
    at.arguments.resize(count);
    const Resolved name = e < spec.names.of.size() ? spec.names.of[e] : Resolved{};
    const Expr &expr = spec.ast[e];
    if (expr.kind == ExprKind::Name) {
      at.position = name.binding == Binding::Position || name.binding == Binding::Length;
      if (name.binding == Binding::Argument) at.arguments[name.index] = true;
    }
    if (expr.kind == ExprKind::Read) continue; // its element is neither, and what is read is a tensor
    for (uint32_t k = 0; k < expr.count; ++k) {
      const Leaves &from = below[spec.ast.child(e, k)];
      at.position |= from.position;
      for (size_t a = 0; a < count; ++a) at.arguments[a] = at.arguments[a] || from.arguments[a];
    }
    if (expr.kind != ExprKind::Binary || is_logic(expr.op)) continue;
    // The first operator that joins an argument with something else says what it is used with.
    for (uint32_t k = 0; k < expr.count; ++k) {
      const Leaves &side = below[spec.ast.child(e, k)], &other = below[spec.ast.child(e, 1 - k)];
      const bool sole = !side.position && std::count(side.arguments.begin(), side.arguments.end(), true) == 1;
      if (sole && other.position &&
          std::none_of(other.arguments.begin(), other.arguments.end(), [](bool b) { return b; }))
        for (size_t a = 0; a < count; ++a)
          if (side.arguments[a]) ambiguous[a] = true;
    }
  }
  return ambiguous;
}

// Arguments of unknown kind become f32 tensors; where that would be a guess, the user is asked.
std::string complete(const Spec &spec, Signature &signature) {
  const auto &names = spec.names.arguments;
  if (signature.args.size() > names.size()) return "the signature has more entries than the rule has arguments";
  signature.args.resize(names.size());
  const std::vector<bool> ambiguous = ambiguous_arguments(spec);
  for (size_t a = 0; a < names.size(); ++a) {
    ArgType &type = signature.args[a];
    if (type.kind != ArgKind::Unknown) continue;
    if (ambiguous[a] && names[a] != "x")
      return "the kind of argument `" + names[a] + "` is not known: give `" + names[a] +
             "` as int, float or bool, or a tensor's dtype";
    type = {ArgKind::Tensor, DType::F32, false};
  }
  return "";
}

int domain_rank(const Spec &spec, const EmitRequest &request) {
  int rank = request.rank;
  if (rank < 0) { // what is only asked for its lengths has no say, unless it is the only tensor
    const std::vector<bool> &read = spec.names.elementwise;
    size_t tensors = 0, shaping = 0;
    for (size_t a = 0; a < request.ranks.size() && a < read.size(); ++a) {
      const bool tensor = request.signature.args[a].kind == ArgKind::Tensor;
      tensors += tensor, shaping += tensor && read[a];
    }
    for (size_t a = 0; a < request.ranks.size() && a < read.size(); ++a)
      if (read[a] || (tensors == 1 && shaping == 0)) rank = std::max(rank, request.ranks[a]);
  }
  const int named = int(spec.ast.header.axes.size());
  if (spec.ast.header.present) return std::max(rank, named);
  return rank >= 0 ? rank : 1;
}

// How many axes the tensors read at indices have: as given, else as many as there are indices, and with `..` those of
// the domain too.
void count_axes(const Spec &spec, const EmitRequest &request, Signature &signature) {
  for (ExprId e = 0; e < spec.ast.exprs.size(); ++e) {
    const Expr &read = spec.ast[e];
    if (read.kind != ExprKind::Read || spec.names.of[e].binding != Binding::Argument) continue;
    const uint32_t a = spec.names.of[e].index;
    ArgType &type = signature.args[a];
    if (type.kind != ArgKind::Tensor || type.zero_dim) continue;
    const int given = a < request.ranks.size() ? request.ranks[a] : -1, indices = int(read.count);
    const int axes = given >= 0 ? given : read.dots >= 0 ? std::max(indices, domain_rank(spec, request)) : indices;
    type.rank = std::max(type.rank, int8_t(std::min(axes, 64)));
  }
}

// Contiguous operands; with axes as many rows as they need, else with `rows` as many row axes, each row starting
// anywhere.
std::string choose_form(const Typing &typing, size_t rank, const EmitRequest &request, Machine machine, Form &form) {
  if (request.rows < 0 || request.rows > 63) return "a launch has from 0 to 63 row axes";
  if (!typing.kernel.axes.empty()) {
    const Dims domain(rank, 2), stride = contiguous_strides(ref(domain));
    const Dims dims = axes_in(typing.kernel, rank);
    std::vector<Dims> inputs;
    for (const Operand &o : typing.operands) inputs.push_back(o.zero_dim ? Dims(rank, 0) : stride);
    const Loop loop = make_loop(ref(domain), ref(stride), inputs, positions_in(typing, ref(dims), rank));
    form = make_form(loop, typing.typed.result, typing.operands, typing.positions.flat, machine, ref(dims),
                     {.longest_flat = request.flat ? longest_flat_row : 0});
  } else {
    Loop loop;
    loop.out.inner = 1;
    loop.inputs.resize(typing.operands.size());
    for (size_t a = 0; a < typing.operands.size(); ++a) loop.inputs[a].inner = typing.operands[a].zero_dim ? 0 : 1;
    form = make_form(loop, typing.typed.result, typing.operands, typing.positions.flat, machine);
    form.rows = uint8_t(request.rows);
    form.flat = request.flat && request.rows > 0 && machine == Machine::Cuda;
    for (Access &how : form.args)
      if (form.flat && how == Access::Broadcast) how = Access::Column;
  }
  if (request.flat && !form.flat) return "the flat form is code for a GPU that has rows: name axes, or give --rows";
  form.window = request.window, form.narrow &= !request.any_length;
  for (const Argument &a : typing.kernel.arguments) form.dense.push_back(a.type.rank >= 0);
  if (!request.in_place) return "";
  for (size_t a = 0; a < typing.operands.size(); ++a) {
    if (!typing.operands[a].read || typing.operands[a].zero_dim) continue;
    if (typing.operands[a].dtype != typing.typed.result)
      return "in place, `" + typing.kernel.arguments[a].name + "` would have to be of the result's dtype " +
             spelling(typing.typed.result) + ", not " + spelling(typing.operands[a].dtype);
    if (typing.kernel.arguments[a].type.rank >= 0)
      return "in place, `" + typing.kernel.arguments[a].name + "` would be overwritten before it is read at indices";
    form.same_view[a] = true;
    return "";
  }
  return "in place, but the rule reads no tensor";
}

// "90" of "sm_90", "sm_90a"; empty: not an architecture.
bool is_arch(std::string_view arch) {
  const size_t at = arch.substr(0, 3) == "sm_" ? 3 : arch.substr(0, 8) == "compute_" ? 8 : 0;
  return at && arch.size() > at + 1 &&
         std::all_of(arch.begin() + at, arch.begin() + at + 2, [](char c) { return c >= '0' && c <= '9'; });
}

Text emit_cubin(const Spec *spec, const Kernel &kernel, const EmitRequest &request) {
  std::string arch = request.arch, why;
  if (arch.empty()) arch = device_arch(0, why);
  if (arch.empty()) arch = "sm_80";
  if (!is_arch(arch))
    return refuse(spec, Fault::Value, "`" + arch + "` is no CUDA architecture, which are written sm_90");
  NvrtcResult made = nvrtc_compile(emit_cuda(kernel), arch, request.stage == Stage::Ptx, cuda_options(kernel));
  if (!made.error.empty()) return refuse(spec, made.missing ? Fault::Environment : Fault::Internal, made.error);
  return good(std::move(made.code));
}

Machine machine_of(Stage stage) { return stage == Stage::Llvm || stage == Stage::Asm ? Machine::Cpu : Machine::Cuda; }

// Passes and everything after them.
Text emit_kernel(const Spec *spec, const Kernel &lowered, PassOptions options, const EmitRequest &request) {
  options.verify_each = request.verify_each;
  std::string printed;
  const bool all = request.print_after == "all";
  std::vector<std::string> named = options.only.value_or(std::vector<std::string>{});
  if (!request.print_after.empty() && !all) named.push_back(request.print_after);
  const auto known = pass_names();
  for (const std::string &name : named) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    std::string list;
    for (std::string_view pass : known) list += (list.empty() ? "" : ", ") + std::string(pass);
    return refuse(spec, Fault::Value, "there is no pass `" + name + "`; the passes are " + list);
  }
  if (!request.print_after.empty()) {
    if (all) printed = "# lowered\n" + print(lowered);
    options.observe = [&](std::string_view pass, const Kernel &k) {
      if (all || pass == request.print_after) printed += "# after " + std::string(pass) + "\n" + print(k);
    };
  }
  options.parameter_bytes = parameter_bytes(machine_of(request.stage));
  std::string error;
  const Kernel kernel = run_passes(lowered, options, &error);
  if (!error.empty())
    return refuse(spec, Fault::Internal, "internal error: the IR is malformed; please report this rule\n" + error);
  if (request.stage == Stage::Ir) return good(request.print_after.empty() ? print(kernel) : printed);
  if (kernel.bodies.empty())
    return refuse(spec, Fault::Value,
                  "the kernel has no schedule, which this stage is made from; run the pass "
                  "`schedule` too");
  if (kernel.outputs.size() != 1) return refuse(spec, Fault::Value, "this stage is made of kernels with one output");

  switch (request.stage) {
  case Stage::Cuda:
    return good(printed + emit_cuda(kernel));
  case Stage::Ptx:
  case Stage::Cubin: {
    Text text = emit_cubin(spec, kernel, request);
    if (text && request.stage == Stage::Ptx) text.value = printed + text.value;
    return text;
  }
  default: {
    std::string text = cpu_text(kernel, request.stage == Stage::Asm, request.arch, error);
    if (!error.empty()) return refuse(spec, request.arch.empty() ? Fault::Internal : Fault::Value, error);
    return good(printed + text);
  }
  }
}

// What of a kernel decides its layout, as typing_for() has it of a rule.
Typing typing_of(const Kernel &kernel) {
  Typing typing;
  typing.kernel = kernel;
  typing.typed.result = kernel.outputs[0];
  typing.positions = used_positions(kernel);
  std::vector<bool> read(kernel.arguments.size());
  for (const Inst &i : kernel.insts)
    if (i.op == Op::Load) read[i.a] = true;
  for (size_t a = 0; a < kernel.arguments.size(); ++a)
    typing.operands.push_back({kernel.arguments[a].type.dtype, read[a], kernel.arguments[a].type.zero_dim});
  return typing;
}

// The least rank that has the kernel's axes.
size_t least_rank(const Kernel &kernel) {
  int left = 0, right = 0;
  for (const Axis &axis : kernel.axes) left = std::max(left, axis.dim + 1), right = std::max(right, -axis.dim);
  return size_t(std::max(left + right, 1));
}

} // namespace

Result<std::string> emit_syntax(std::string_view text, std::string_view file, Stage stage) noexcept try {
  const Source source{std::string(text), std::string(file)};
  Sink sink;
  const Tokens tokens = lex(source, sink);
  std::string shown;
  if (stage == Stage::Tokens) {
    shown = print_tokens(source, tokens);
  } else {
    const Ast ast = parse(source, tokens, sink);
    (void)resolve(ast, sink);
    shown = print_ast(source, ast);
  }
  return sink.failed() ? spec_fault<std::string>(sink, source) : good(std::move(shown));
} catch (const std::exception &error) {
  return crashed<std::string>(error);
}

Result<std::string> format(std::string_view text, std::string_view file) noexcept try {
  const Source source{std::string(text), std::string(file)};
  Sink sink;
  const Tokens tokens = lex(source, sink);
  (void)parse(source, tokens, sink);
  return sink.failed() ? spec_fault<std::string>(sink, source) : good(elsewise::format(source, tokens));
} catch (const std::exception &error) {
  return crashed<std::string>(error);
}

Result<std::string> emit(const Spec &spec, const EmitRequest &request) noexcept try {
  if (request.stage == Stage::Tokens || request.stage == Stage::Ast)
    return emit_syntax(spec.source.text(), spec.source.name(), request.stage);
  Signature signature = request.signature;
  if (std::string why = complete(spec, signature); !why.empty()) return refuse(spec, Fault::Type, why);
  if (std::string why = wrong_rank(spec.ast.header, size_t(domain_rank(spec, request))); !why.empty())
    return refuse(spec, Fault::Value, why);
  if (spec.names.needs_rank) signature.rank = domain_rank(spec, request);
  count_axes(spec, request, signature);
  const std::vector<bool> none(signature.args.size());
  Typing *typing = nullptr;
  {
    const LibraryLock lock;
    auto typed = typing_for(spec, signature, none);
    if (!typed) return pass_on<std::string>(std::move(typed));
    typing = typed.value; // stays as long as the spec
  }
  if (request.stage == Stage::Torch)
    return good(emit_torch(spec.source, spec.ast, spec.names, signature, typing->typed, request.window));
  PassOptions options;
  options.has_form = true, options.only = request.passes;
  if (std::string why =
          choose_form(*typing, size_t(domain_rank(spec, request)), request, machine_of(request.stage), options.form);
      !why.empty())
    return refuse(spec, Fault::Value, why);
  return emit_kernel(&spec, typing->kernel, std::move(options), request);
} catch (const std::exception &error) {
  return crashed<std::string>(error);
}

Result<std::string> emit_ir(std::string_view text, std::string_view file, const EmitRequest &request) noexcept try {
  if (request.stage == Stage::Tokens || request.stage == Stage::Ast || request.stage == Stage::Torch)
    return refuse(nullptr, Fault::Value, "that stage comes before the IR, which cannot be turned back into it");
  const Source source{std::string(text), std::string(file)};
  Sink sink;
  const Kernel kernel = read(source, sink);
  if (sink.failed()) return spec_fault<std::string>(sink, source);
  PassOptions options;
  options.has_form = true, options.only = request.passes;
  if (!options.only && !kernel.bodies.empty()) options.only.emplace();
  if (kernel.form != Form{} || !kernel.bodies.empty()) {
    if (request.in_place || request.rows || request.flat || request.any_length)
      return refuse(nullptr, Fault::Value, "the kernel has its own form");
    options.form = kernel.form;
  } else {
    const size_t rank = std::max(least_rank(kernel), size_t(std::max(request.rank, 0)));
    std::string why = choose_form(typing_of(kernel), rank, request, machine_of(request.stage), options.form);
    if (!why.empty()) return refuse(nullptr, Fault::Value, why);
  }
  return emit_kernel(nullptr, kernel, std::move(options), request);
} catch (const std::exception &error) {
  return crashed<std::string>(error);
}

} // namespace elsewise::api
