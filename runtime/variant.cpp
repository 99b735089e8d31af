// SPDX-License-Identifier: Apache-2.0
// Variants: a typing's kernel in one form, scheduled, and compiled when a call needs it. Where its launch arguments
// come from is not its business.
#include "compiler/emit/emit.h"
#include "compiler/passes/passes.h"
#include "runtime/cuda/nvrtc.h"
#include "runtime/launch_taker.h"
#include "runtime/spec.h"
#include <algorithm>

namespace elsewise::api {

Variant::Variant(Kernel scheduled, Form asked, Machine machine)
    : kernel(std::move(scheduled)), asked(std::move(asked)), machine(machine),
      slots(elsewise::slots(kernel, machine == Machine::Cuda ? Backend::Cuda : Backend::Cpu)), program(kernel),
      checks(kernel), cut(machine == Machine::Cuda && (skips_blocks(kernel) || kernel.form.segments)) {
  for (NodeId n : kernel.host) {
    uses_parameters |= kernel[n].op == Op::Param || kernel[n].op == Op::Origin;
    uses_list |= kernel[n].op == Op::Origin && kernel[n].a == list_axis;
  }
}

size_t parameter_bytes(Machine machine) {
  if (machine == Machine::Cpu) return 0;
  std::string why;
  const CudaDriver *driver = cuda_driver(why);
  if (driver && (driver->driver_version < 12010 || nvrtc_version() < 12010)) return 4096;
  return 32764;
}

Result<std::shared_ptr<Variant>> variant_for(const Spec &spec, Typing &typing, const Form &form, Machine machine) {
  Result<std::shared_ptr<Variant>> result;
  if ((result.value = find_variant(typing, form, machine))) {
    ++counts.variant_hits;
    return result;
  }
  result = make_variant(spec, typing, form, machine);
  if (!result) return result;
  typing.variants.push_back(result.value);
  ++counts.variants;
  return result;
}

std::shared_ptr<Variant> find_variant(const Typing &typing, const Form &form, Machine machine) {
  for (const auto &v : typing.variants)
    if (v->machine == machine && v->asked == form) return v;
  return nullptr;
}

Result<std::shared_ptr<Variant>> make_variant(const Spec &spec, const Typing &typing, const Form &form,
                                              Machine machine) {
  Result<std::shared_ptr<Variant>> result;
  std::string error;
  Kernel scheduled = run_passes(
      typing.kernel, PassOptions{.form = form, .has_form = true, .parameter_bytes = parameter_bytes(machine)}, &error);
  if (!error.empty())
    return fault<std::shared_ptr<Variant>>(
        Fault::Internal, "internal error: the IR is malformed; please report this rule\n" + error, spec);
  result.value = std::make_shared<Variant>(std::move(scheduled), form, machine);
  return result;
}

static Result<bool> compile_cuda(Variant &variant, Device device, void *stream) {
  Result<bool> result{true, {}, {}, {}};
  if (variant.cuda.loaded(device.ordinal)) return result;
  auto failed = [&](Fault fault, std::string message) {
    result.value = false, result.fault = fault, result.message = std::move(message);
    return result;
  };
  std::string error;
  if (stream_is_capturing(device.ordinal, stream))
    return failed(Fault::Environment, "the stream is being captured and this kernel is not compiled yet; call it once "
                                      "before the capture");
  const std::string arch = device_arch(device.ordinal, error);
  if (arch.empty()) return failed(Fault::Environment, error);
  std::string code = variant.cuda.cubin(arch);
  if (code.empty()) {
    const std::string text = emit_cuda(variant.kernel);
    NvrtcResult made = nvrtc_compile(text, arch, false, cuda_options(variant.kernel));
    if (!made.error.empty()) return failed(made.missing ? Fault::Environment : Fault::Internal, made.error);
    code = std::move(made.code);
  }
  if (!variant.cuda.load(device.ordinal, arch, code, error)) return failed(Fault::Environment, error);
  return result;
}

Result<bool> prepare(Variant &variant, Device device, void *stream) {
  Result<bool> result{true, {}, {}, {}};
  if (variant.machine == Machine::Cpu && variant.compiled.load(std::memory_order_acquire)) return result;
  if (variant.machine == Machine::Cuda && (launch_taker() || variant.cuda.loaded(device.ordinal))) return result;
  const ForkGate gate;
  std::lock_guard lock(variant.compiling);
  if (variant.machine == Machine::Cuda) return compile_cuda(variant, device, stream);
  if (variant.compiled) return result;
  std::string error;
  variant.cpu = compile_cpu(variant.kernel, error);
  if (!variant.cpu) {
    result = {false, Fault::Internal, error, {}};
    return result;
  }
  variant.compiled.store(true, std::memory_order_release);
  return result;
}

} // namespace elsewise::api
