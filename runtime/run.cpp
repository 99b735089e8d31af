// SPDX-License-Identifier: Apache-2.0
// One call of a plan: what only pointers and values can tell is checked, then the code is started. On a fault nothing
// was written.
#include "runtime/launch_taker.h"
#include "runtime/spec.h"
#include <algorithm>

namespace elsewise::api {

namespace {

std::string name_of(const Plan &plan, size_t argument) { return "`" + plan.spec->names.arguments[argument] + "`"; }

bool apart(uintptr_t a, const Extremes &of_a, uintptr_t b, const Extremes &of_b) {
  return a + uintptr_t(of_a.high) <= b + uintptr_t(of_b.low) || b + uintptr_t(of_b.high) <= a + uintptr_t(of_a.low);
}

// No address has bits below its dtype's size, which is a power of two.
bool misaligned(uintptr_t address, int bytes) { return address & uintptr_t(bytes - 1); }

std::string wrong_address(const Plan &plan, size_t a, const Addresses &addresses) {
  if (!addresses[a]) return name_of(plan, a) + " has no memory";
  if (!misaligned(addresses[a], plan.operands[a].bytes)) return "";
  return name_of(plan, a) + " is not aligned to its dtype " + spelling(addresses.call().args[a].dtype) +
         "; pass a copy";
}

// A tensor that is read at indices: any of its elements may be wanted after any element of `out` was written.
std::string wrong_table(const Plan &plan, size_t a, const Addresses &addresses) {
  const PlannedOperand &o = plan.operands[a];
  const Dims &shape = plan.shapes[a];
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return ""; // nothing can be read of it
  const uintptr_t at = addresses[a], out = addresses.out();
  if (std::string wrong = wrong_address(plan, a, addresses); !wrong.empty()) return wrong;
  if (plan.count == 0 || apart(at, o.table_extremes, out, plan.out_extremes)) return "";
  // Both views over the axes of the one, then those of the other.
  Dims lengths(shape), table(shape.size() + plan.shape.size(), 0), own(shape.size(), 0);
  for (size_t d = 0; d < shape.size(); ++d) table[d] = o.table_stride[d] * o.bytes;
  lengths.append(plan.shape.begin(), plan.shape.end()), own.append(plan.out_stride.begin(), plan.out_stride.end());
  if (!overlap({at, ref(table), o.bytes}, {out, ref(own), bytes(plan.dtype)}, ref(lengths))) return "";
  return "`out` overlaps " + name_of(plan, a) +
         ", which the rule reads at indices, so elements would be overwritten before they are read; pass `" +
         plan.spec->names.arguments[a] + ".clone()`";
}

} // namespace

static std::string wrong_place(const Plan &plan, const Addresses &);

std::string wrong_memory(const Plan &plan, const Launch &launch, const Addresses &addresses) {
  if (plan.count == 0) return "";
  const uintptr_t out = addresses.out();
  if (!out) return "`out` has no memory";
  if (misaligned(out, bytes(plan.dtype)))
    return std::string("`out` is not aligned to its dtype ") + spelling(plan.dtype) + "; give a fresh one";
  for (size_t a = 0; a < plan.operands.size(); ++a) {
    const PlannedOperand &o = plan.operands[a];
    if (o.table)
      if (std::string wrong = wrong_table(plan, a, addresses); !wrong.empty()) return wrong;
    if (!o.tensor) {
      if (o.host_scalar && !addresses[a]) return name_of(plan, a) + " has no memory";
      continue;
    }
    if (std::string wrong = wrong_address(plan, a, addresses); !wrong.empty()) return wrong;
    const uintptr_t at = addresses[a];
    if (launch.alias >> a & 1 || apart(at, o.extremes, out, plan.out_extremes)) continue;
    if (at == out && o.may_alias) continue; // the identical view of an argument that no piece reads
    if (overlap({at, ref(o.stride), o.bytes}, {out, ref(plan.out_stride), bytes(plan.dtype)}, ref(plan.shape)))
      return "`out` overlaps " + name_of(plan, a) +
             " without being the same view, so elements would be overwritten before they are read; pass `" +
             plan.spec->names.arguments[a] + ".clone()`";
  }
  return addresses.call().raw_pointers ? wrong_place(plan, addresses) : "";
}

// Raw addresses: is each where the call says it is?
static std::string wrong_place(const Plan &plan, const Addresses &addresses) {
  std::string why;
  const CudaDriver *driver = cuda_driver(why);
  if (!driver) return ""; // then all memory is the host's
  auto look = [&](const std::string &name, const Arg &arg, void *address) -> std::string {
    const PointerKind kind = pointer_kind(*driver, address);
    if (arg.device.kind == DeviceKind::Cpu)
      return kind.device && !kind.host
                 ? name + " is memory of " + show_device({DeviceKind::Cuda, kind.ordinal}) + ", not of the host"
                 : "";
    if (!kind.known || !kind.device)
      return name + " is not CUDA memory: a host address was given as one of " + show_device(arg.device);
    if (kind.ordinal != arg.device.ordinal && !kind.host)
      return name + " is memory of " + show_device({DeviceKind::Cuda, kind.ordinal}) + ", not of " +
             show_device(arg.device);
    return "";
  };
  const Call &call = addresses.call();
  std::string wrong = look("`out`", *call.out, addresses.out_pointer());
  for (size_t a = 0; a < plan.operands.size() && wrong.empty(); ++a)
    if (plan.operands[a].tensor || plan.operands[a].host_scalar || plan.operands[a].table)
      wrong = look(name_of(plan, a), call.args[a], addresses.pointer(a));
  return wrong;
}

namespace {

std::string start_cuda(const Plan &plan, uintptr_t out, void *stream, Ready &ready) {
  const Launch &launch = *ready.launch;
  const Kernel &k = launch.variant->kernel;
  Geometry g =
      geometry(k, k.form, plan.loop.rows, plan.loop.extent, out, ref(plan.loop.out.rows), ref(plan.loop.lengths));
  LiveRanges live;
  if (launch.shift >= 0) ready.slots[launch.shift].integer = g.shift;
  if (launch.blocks >= 0) ready.slots[launch.blocks].integer = g.blocks;
  if (launch.blocks_inverse >= 0) {
    const Inverse i = inverse(g.blocks, 32);
    ready.slots[launch.blocks_inverse].integer = int64_t(i.multiplier);
    ready.slots[launch.blocks_shift].integer = i.shift;
  }
  if (launch.live >= 0) live = live_ranges(k, ready.cut->segments, plan.loop.extent, g.shift, g.grid);
  if (g.grid == 0) return "";
  llvm::SmallVector<void *, 48> parameters;
  for (Slot &s : ready.slots) parameters.push_back(&s);
  if (launch.live >= 0) parameters[launch.live] = &live;
  if (launch.table >= 0) parameters[launch.table] = const_cast<uint8_t *>(ready.cut->table.data());
  return launch_cuda(*launch.variant, plan.device, g, stream, {parameters.data(), parameters.size()});
}

thread_local const LaunchTaker *taker_of_thread = nullptr;
thread_local FormLimits limits_of_thread;

} // namespace

TakeLaunches::TakeLaunches(const LaunchTaker &taker) { taker_of_thread = &taker; }
TakeLaunches::~TakeLaunches() { taker_of_thread = nullptr; }
const LaunchTaker *launch_taker() { return taker_of_thread; }
MoveLimits::MoveLimits(const FormLimits &limits) { limits_of_thread = limits; }
MoveLimits::~MoveLimits() { limits_of_thread = {}; }
const FormLimits &form_limits() { return limits_of_thread; }

std::string launch_cuda(const Variant &variant, Device device, const Geometry &g, void *stream,
                        std::span<void *const> parameters) {
  if (const LaunchTaker *taker = launch_taker()) {
    (*taker)(variant.kernel, g, parameters);
    return "";
  }
  std::string error;
  variant.cuda.launch(device.ordinal, g, stream, const_cast<void **>(parameters.data()), error);
  return error;
}

Result<bool> get_ready(const Plan &plan, const Call &call, bool many, Ready &ready) {
  for (const bool wide : {false, true}) {
    auto found = launch_for(plan, call, wide, many && !wide);
    if (!found) return pass_on<bool>(std::move(found));
    ready.launch = found.value;
    if (!wide)
      if (std::string wrong = wrong_memory(plan, *ready.launch, call); !wrong.empty())
        return fault<bool>(Fault::Value, std::move(wrong), *plan.spec);
    ready.slots.assign(ready.launch->slots.begin(), ready.launch->slots.end());
    ready.cut = ready.launch->settled ? &ready.launch->cut : &ready.own;
    if (ready.launch->settled) break;
    auto settled = settle(plan, *ready.launch, call, {ready.slots.data(), ready.slots.size()}, ready.own);
    if (!settled) return settled;
    if (settled.value) break; // else this call's indexes need 128 bits
  }
  Result<bool> good;
  good.value = true;
  return good;
}

void put_pointers(const Addresses &addresses, const Launch &launch, Slot *slots) {
  for (size_t s = 0; s < launch.pointers.size(); ++s)
    if (const int32_t of = launch.pointers[s]; of != no_pointer)
      slots[s].pointer = of == out_pointer ? addresses.out_pointer() : addresses.pointer(size_t(of));
}

Result<bool> start(const Plan &plan, const Addresses &addresses, void *stream, Ready &ready) {
  Result<bool> good;
  good.value = true;
  if (plan.count == 0) return good;
  put_pointers(addresses, *ready.launch, ready.slots.data());
  if (plan.machine == Machine::Cpu) {
    run_cpu(*ready.launch->variant->cpu, ready.slots.data(), plan.loop.rows, plan.loop.extent, plan.bytes_per_position);
    return good;
  }
  if (std::string error = start_cuda(plan, addresses.out(), stream, ready); !error.empty())
    return fault<bool>(Fault::Environment, std::move(error), *plan.spec);
  return good;
}

Result<bool> run(const Plan &plan, const Call &call) noexcept try {
  if (!call.out) return fault<bool>(Fault::Type, "run() needs an `out`", *plan.spec);
  if (std::string wrong = wrong_window(plan, call); !wrong.empty())
    return fault<bool>(Fault::Value, std::move(wrong), *plan.spec);
  thread_local Ready ready; // kept between calls, so that a call allocates nothing; no call runs inside another
  if (auto good = get_ready(plan, call, false, ready); !good) return good;
  return start(plan, call, call.stream, ready);
} catch (const std::exception &error) {
  return crashed<bool>(error);
}

} // namespace elsewise::api
