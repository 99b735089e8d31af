// SPDX-License-Identifier: Apache-2.0
// An interpreter of scheduled kernels, as plain as can be. It looks for no speed and corrects no mistake of a pass.
#include "tests/unit/interpret.h"
#include "compiler/parse/parser.h"
#include <gtest/gtest.h>

namespace elsewise::test {
namespace {

ArgType argument(std::string text) {
  ArgType t;
  if (text == "int") t.kind = ArgKind::Int;
  else if (text == "float") t.kind = ArgKind::Float;
  else if (text == "bool") t.kind = ArgKind::Bool;
  else {
    t.kind = ArgKind::Tensor;
    if (text.ends_with("[]")) t.zero_dim = true, text.resize(text.size() - 2);
    if (text.ends_with("]")) t.rank = int8_t(text[text.size() - 2] - '0'), text.resize(text.size() - 3);
    if (text == "bools") text = "bool"; // a tensor of them
    t.dtype = parse_dtype(text).value();
  }
  return t;
}

} // namespace

Kernel lowered(const std::string &spec, const std::vector<std::string> &arguments) {
  const Source source(spec, "<spec>");
  Sink sink;
  const Ast ast = parse(source, lex(source, sink), sink);
  const Names names = resolve(ast, sink);
  Signature signature;
  for (const std::string &name : names.arguments) {
    signature.args.push_back({});
    for (const std::string &a : arguments)
      if (a.starts_with(name + ": ")) signature.args.back() = argument(a.substr(name.size() + 2));
  }
  for (const std::string &a : arguments)
    if (a.starts_with("-> ")) signature.out = parse_dtype(a.substr(3));
  for (const std::string &a : arguments)
    if (a.starts_with("rank: ") && names.needs_rank) signature.rank = a[6] - '0';
  const Typed typed = specialise(source, ast, names, signature, sink);
  for (const Diagnostic &d : sink.take())
    if (d.severity == Severity::Error) ADD_FAILURE() << render(d, source);
  EXPECT_TRUE(typed.complete) << spec;
  if (!typed.complete) return {};
  Kernel k = lower(source, ast, names, signature, typed);
  EXPECT_EQ(verify(k), "") << print(k);
  return k;
}

Kernel scheduled(const std::string &spec, const std::vector<std::string> &arguments, Form form) {
  std::string error;
  Kernel k = run_passes(lowered(spec, arguments),
                        {.form = form, .has_form = form != Form{}, .verify_each = true, .observe = {}}, &error);
  EXPECT_EQ(error, "");
  return k;
}

Kernel after(const std::string &pass, const std::string &spec, const std::vector<std::string> &arguments) {
  Kernel found;
  PassOptions options{
      .form = {}, .has_form = false, .verify_each = true, .observe = [&](std::string_view name, const Kernel &k) {
        if (name == pass) found = k;
      }};
  std::string error;
  run_passes(lowered(spec, arguments), options, &error);
  EXPECT_EQ(error, "");
  return found;
}

std::string nodes(const Kernel &k) {
  std::string text = print(k), out;
  for (size_t at = 0; at < text.size();) {
    size_t end = text.find('\n', at);
    std::string line = text.substr(at, end - at);
    if (const size_t quote = line.find(" \""); quote != std::string::npos) line.resize(quote);
    for (size_t place; (place = line.find(" @")) != std::string::npos;)
      line.erase(place, line.find_first_of(" \n", place + 1) - place);
    out += line + "\n";
    at = end + 1;
  }
  return out;
}

HostCall host_call(const Kernel &k, const std::vector<HostValue> &parameters, int64_t count,
                   const std::vector<std::vector<int64_t>> &shapes) {
  HostCall c;
  const std::vector<std::span<const int64_t>> given(shapes.begin(), shapes.end());
  HostDomain domain(count);
  domain.shapes = given;
  c.values.resize(k.insts.size());
  HostProgram(k).run(parameters, domain, c.values, c.poisoned);
  const CallChecks checks(k);
  c.check = checks.run(c.values, c.poisoned, checks.looks(domain), domain);
  if (!checks.needed()) {
    EXPECT_EQ(c.check.fault.what, HostFault::None) << "needed() promised that no call is refused";
    EXPECT_FALSE(c.check.wide);
  }
  return c;
}

Constant interpret(const Kernel &k, const HostCall &call, int64_t position, int64_t count,
                   const std::function<Constant(uint32_t)> &load,
                   const std::function<Constant(uint32_t, const std::vector<Constant> &)> &read) {
  std::vector<Constant> at(k.insts.size());
  for (NodeId n = 0; n < k.insts.size(); ++n)
    if (k[n].op == Op::Const) at[n] = k.constants[k[n].a];
  for (const NodeId u : k.uniforms) { // as it comes out of its slot
    const DType d = k[u].type;
    const Slot s = uniform_slot(d, call.values[u]);
    if (d == DType::F32) at[u].real = s.single;
    else if (d == DType::F64) at[u].real = s.real;
    else if (d == DType::Bool) at[u].integer = s.byte;
    else at[u].integer = s.integer;
  }
  uint32_t entry = 0;
  auto run = [&](const std::vector<Step> &steps) {
    for (const Step &s : steps) {
      const Inst &i = k[s.node];
      if (i.op == Op::Pos) at[s.node].integer = position;
      else if (i.op == Op::Load) at[s.node] = load(i.a);
      else if (i.op == Op::Entry) at[s.node] = k.tables[i.a].entries[entry];
      else if (i.op == Op::Read) {
        std::vector<Constant> list;
        for (const NodeId o : operands(k, s.node)) list.push_back(at[o]);
        const bool reached = !i.sub || list[0].integer;
        if (i.sub) list.erase(list.begin());
        at[s.node] = reached ? read(k.reads[i.c].argument, list) : Constant{};
      } else {
        std::vector<Constant> list;
        for (const NodeId o : operands(k, s.node)) list.push_back(at[o]);
        const DType from = k[operands(k, s.node)[0]].type;
        apply(i, from, list, at[s.node]);
        if (i.type != DType::Index || k.form.wide) continue;
        // A device has 64 bits: casts saturate there, arithmetic wraps, and what wraps must not reach the result.
        if (i.op == Op::Cast && is_float(from)) at[s.node] = convert(list[0], from, DType::I64);
        at[s.node].integer = wrap(DType::I64, at[s.node].integer);
      }
    }
  };
  auto inside = [&](const Piece &p) {
    for (const auto &box : p.boxes) {
      bool in = true;
      for (const Range &r : box) {
        if (r.lo != no_node) in = in && position >= clamp_bound(call.values[r.lo], count);
        if (r.hi != no_node) in = in && position < clamp_bound(call.values[r.hi], count);
      }
      if (in) return true;
    }
    return p.boxes.empty();
  };
  for (size_t p = 0; p < k.pieces.size(); ++p) {
    const Piece &piece = k.pieces[p];
    if (!inside(piece)) continue;
    run(k.guards[p]);
    if (piece.guard != no_node && !at[piece.guard].integer) continue;
    entry = piece.entry;
    run(k.bodies[p]);
    return at[piece.values[0]];
  }
  ADD_FAILURE() << "no piece holds at position " << position;
  return {};
}

} // namespace elsewise::test
