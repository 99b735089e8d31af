// SPDX-License-Identifier: Apache-2.0
// Specs to kernels, and kernels run one element at a time on the host, for tests of the IR. It shares arithmetic with
// the compiler and nothing with the emitters.
#pragma once
#include "compiler/ir/arithmetic.h"
#include "compiler/lower/lower.h"
#include "compiler/passes/passes.h"
#include "runtime/host/faults.h"
#include <functional>
#include <string>
#include <vector>

namespace elsewise::test {

/// Arguments as "x: f32", "m: int", "g: float", "k: bool" (a parameter), "z: f32[]" (0-d), "s: f32[2]" (with the rank
/// that a read at indices needs), "rank: 3" of the domain, in any order; "-> f64" is
/// what `dtype=` asks for. A spec that does not compile fails the test.
Kernel lowered(const std::string &spec, const std::vector<std::string> &arguments = {});
/// lowered(), then every pass with the verifier after each.
Kernel scheduled(const std::string &spec, const std::vector<std::string> &arguments = {}, Form form = {});
/// The kernel after the pass.
Kernel after(const std::string &pass, const std::string &spec, const std::vector<std::string> &arguments = {});

/// print() without its places and quoted text, to compare with goldens.
std::string nodes(const Kernel &);

/// A call of a scheduled kernel with everything that the host works out.
struct HostCall {
  std::vector<HostValue> values;
  std::vector<uint8_t> poisoned;
  CallCheck check;
};
/// `shapes`: by argument, for what is read at indices.
HostCall host_call(const Kernel &, const std::vector<HostValue> &parameters, int64_t count,
                   const std::vector<std::vector<int64_t>> &shapes = {});

/// The value of output 0 at `position`, by the kernel's own schedule: bounds, guards, bodies, uniforms from their
/// slots. `load` reads an argument there, `read` at indices. Fails the test if index arithmetic leaves the 64 bits (128
/// where Form::wide) that a device has.
Constant interpret(const Kernel &, const HostCall &, int64_t position, int64_t count,
                   const std::function<Constant(uint32_t argument)> &load,
                   const std::function<Constant(uint32_t argument, const std::vector<Constant> &indices)> &read = {});

} // namespace elsewise::test
