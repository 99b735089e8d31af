// SPDX-License-Identifier: Apache-2.0
// Random programs lowered, run through every pass, and interpreted at every element against the oracle, which reads
// syntax. No backend runs here.
#include "grammar/builtins.h"
#include "tests/fuzz/differential.h"
#include "tests/unit/interpret.h"
#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>

namespace elsewise::test {
namespace {

Constant read(const fuzz::Input &in, const std::vector<int64_t> &domain, int64_t position) {
  int64_t at = 0;
  for (size_t d = domain.size(); d-- > 0; position /= std::max<int64_t>(domain[d], 1)) {
    const int64_t own = int64_t(d) - int64_t(domain.size() - in.shape.size());
    if (own >= 0 && in.shape[own] != 1) at += position % domain[d] * in.stride[own];
  }
  const fuzz::Scalar s = fuzz::decode(in.type.dtype, in.data() + at * bytes(in.type.dtype));
  return {s.integer, s.real};
}

/// At indices, of which no bounds pass has said anything here: an element that is not used may be out of bounds.
Constant read_at(const fuzz::Input &in, const std::vector<Constant> &indices) {
  int64_t at = 0;
  for (size_t d = 0; d < indices.size(); ++d) {
    const __int128 index = indices[d].integer;
    if (index < 0 || index >= in.shape[d]) return {};
    at += int64_t(index) * in.stride[d];
  }
  const fuzz::Scalar s = fuzz::decode(in.type.dtype, in.data() + at * bytes(in.type.dtype));
  return {s.integer, s.real};
}

bool equal(DType d, const Constant &a, const fuzz::Scalar &b, bool power) {
  if (!is_float(d)) return a.integer == b.integer;
  if (power) return true; // of floats promises no bits
  return (std::isnan(a.real) && std::isnan(b.real)) ||
         (a.real == b.real && std::signbit(a.real) == std::signbit(b.real));
}

/// Some where, and, or, or some guard, depends on a tensor.
bool chooses_by_data(const Kernel &k) {
  std::vector<bool> tensor(k.insts.size());
  bool chooses = false;
  for (NodeId n = 0; n < k.insts.size(); ++n) {
    tensor[n] = k[n].op == Op::Load || k[n].op == Op::Read;
    for (const NodeId o : operands(k, n)) tensor[n] = tensor[n] || tensor[o];
    if (k[n].op == Op::Where || k[n].op == Op::Logic) chooses = chooses || tensor[k[n].a];
  }
  for (const Piece &p : k.pieces) chooses = chooses || (p.guard != no_node && tensor[p.guard]);
  return chooses;
}

void compare(uint64_t seed, int &ran) {
  std::map<std::string, int> refused;
  const auto c = fuzz::prepare(fuzz::generate(seed), refused);
  if (!c || c->window) return; // what is interpreted here is the whole
  SCOPED_TRACE(fuzz::describe(*c));
  const Source source(c->program.text, "<spec>");
  const Kernel first = lower(source, c->ast, c->names, c->signature, c->typed);
  // One flat row is interpreted here; named axes and lengths are the backends' own differential.
  const bool flat_alone = first.axes.empty() && std::none_of(first.insts.begin(), first.insts.end(),
                                                             [](const Inst &i) { return i.op == Op::ArgLen; });
  const bool noise = std::any_of(first.insts.begin(), first.insts.end(), [](const Inst &i) {
    return i.op == Op::Call && builtins()[i.sub].rule == Rule::Noise; // made by each backend, never folded
  });
  if (!flat_alone || noise) return;
  ASSERT_EQ(verify(first), "") << print(first);
  std::string error;
  Kernel k = run_passes(first, {.form = {}, .has_form = false, .verify_each = true, .observe = {}}, &error);
  ASSERT_EQ(error, "");

  const bool power = c->program.text.find("**") != std::string::npos;
  int64_t n = 1;
  for (const int64_t d : c->domain) n *= d;
  std::vector<HostValue> parameters;
  std::vector<std::vector<int64_t>> shapes;
  for (const fuzz::Input *in : c->arguments) {
    HostValue v{.integer = in->integer};
    if (in->type.kind == ArgKind::Float) v.real = in->real;
    parameters.push_back(v);
    shapes.push_back(in->shape);
  }
  HostCall call = host_call(k, parameters, n, shapes);
  if (call.check.fault.what == HostFault::NotANumber) return; // the oracle knows nothing of a call's assumptions
  if (call.check.wide) {
    Form wide = k.form;
    wide.wide = true;
    k = run_passes(first, {.form = wide, .has_form = true, .verify_each = true, .observe = {}}, &error);
    ASSERT_EQ(error, "");
    call = host_call(k, parameters, n, shapes);
  }
  if (call.check.fault.message.find("does not fit") != std::string::npos)
    return; // nor of parameters that must fit the data
  ++ran;
  const bool faults = call.check.fault.what != HostFault::None, must = c->outcome != fuzz::Outcome::Value;
  if (faults && !must && chooses_by_data(k)) return; // the host cannot know which arm no element takes
  if (must && !faults && std::count(c->typed.reachable.begin(), c->typed.reachable.end(), false))
    return; // a guard that never holds is not evaluated at all
  ASSERT_EQ(faults, must) << "at position " << c->fault_position << "\n"
                          << call.check.fault.message << "\n"
                          << print(k);
  if (c->outcome != fuzz::Outcome::Value) return;
  for (int64_t i = 0; i < n; ++i) {
    const Constant got = interpret(
        k, call, i, n, [&](uint32_t a) { return read(*c->arguments[a], c->domain, i); },
        [&](uint32_t a, const std::vector<Constant> &indices) { return read_at(*c->arguments[a], indices); });
    const fuzz::Scalar want = fuzz::decode(c->typed.result, c->expected.data() + i * bytes(c->typed.result));
    ASSERT_TRUE(equal(c->typed.result, got, want, power))
        << "position " << i << ": got " << got.real << " " << (long long)got.integer << ", want " << want.real << " "
        << (long long)want.integer << "\n"
        << print(k);
  }
}

constexpr uint64_t seeds = 2500;

TEST(LowerRandom, AgreesWithTheOracle) {
  int ran = 0;
  for (uint64_t seed = 1; seed <= seeds && !HasFatalFailure(); ++seed) compare(seed, ran);
  EXPECT_GT(ran, 300);
}

} // namespace
} // namespace elsewise::test
