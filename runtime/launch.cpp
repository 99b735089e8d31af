// SPDX-License-Identifier: Apache-2.0
// A plan's launches: the variant for a class of pointers, its launch arguments, and what host values put into them. It
// starts nothing.
#include "compiler/ir/walk.h"
#include "runtime/cuda/geometry.h"
#include "runtime/spec.h"
#include <algorithm>
#include <cmath>

namespace elsewise::api {

namespace {

struct PointerClass {
  uint64_t alias = 0, scalar = 0;
};

const Form &planned_form(const Plan &plan, uint64_t alias) { return alias ? plan.form_in_place : plan.form; }

PointerClass classify(const Plan &plan, const Addresses &at) {
  PointerClass c;
  const uintptr_t out = at.has_out() ? at.out() : 0; // 0: as an allocator would align it
  for (size_t a = 0; a < plan.operands.size(); ++a)
    if (plan.operands[a].may_alias && at.has_out() && at[a] == out && plan.typing->operands[a].read)
      c.alias |= uint64_t(1) << a;
  if (plan.machine == Machine::Cpu) return c;
  const Form &form = planned_form(plan, c.alias);
  const int64_t phase = vector_phase(out, bytes(plan.dtype), form.vector);
  for (size_t a = 0; a < plan.operands.size(); ++a)
    if (form.args[a] == Access::Vector && plan.operands[a].tensor && !(c.alias >> a & 1) &&
        vector_phase(at[a], plan.operands[a].bytes, form.vector) != phase)
      c.scalar |= uint64_t(1) << a;
  return c;
}

Form form_of(const Plan &plan, PointerClass c, bool wide, bool many) {
  Form form = planned_form(plan, c.alias);
  form.wide = wide;
  form.many = many ? uint16_t(parameter_bytes(Machine::Cuda)) : 0;
  for (size_t a = 0; a < form.args.size(); ++a) {
    if (c.scalar >> a & 1) form.args[a] = Access::Scalar;
    form.same_view[a] = c.alias >> a & 1;
  }
  return form;
}

// Everything but pointers, uniforms, bounds and geometry.
void fill_layout(const Plan &plan, Launch &launch) {
  const Loop &loop = plan.loop;
  for (const SlotInfo &s : launch.variant->slots) {
    Slot slot{};
    int32_t pointer = no_pointer;
    const int32_t at = int32_t(launch.slots.size());
    switch (s.kind) {
    case SlotKind::Out:
      pointer = out_pointer;
      break;
    case SlotKind::In:
    case SlotKind::Table:
      pointer = int32_t(s.index);
      break;
    case SlotKind::TableStride:
      slot.integer = plan.operands[s.index].table_stride[s.box];
      break;
    case SlotKind::Shift:
      launch.shift = at;
      break;
    case SlotKind::Blocks:
      launch.blocks = at;
      break;
    case SlotKind::Inverse:
    case SlotKind::InverseShift:
      if (s.index == 0 && !launch.variant->kernel.form.flat)
        (s.kind == SlotKind::Inverse ? launch.blocks_inverse : launch.blocks_shift) = at;
      else slot.integer = loop_slot(loop, s).value_or(0);
      break;
    case SlotKind::Live:
      launch.live = at;
      break;
    case SlotKind::Segments:
      launch.table = at;
      break;
    default:
      slot.integer = loop_slot(loop, s).value_or(0);
      break;
    }
    launch.slots.push_back(slot);
    launch.pointers.push_back(pointer);
  }
}

std::string in_words(const Spec &spec, const HostFault &f) {
  const std::string_view source = f.where.end > f.where.begin ? spec.source.slice(f.where) : std::string_view();
  return (source.empty() ? "" : "`" + std::string(source) + "`: ") + f.message;
}

// The arguments that a bound is made of, those that are NaN first and alone if there are any.
std::string bound_of(const Spec &spec, const Kernel &k, NodeId bound, std::span<const HostValue> values) {
  std::string all, nans;
  walk(k, bound, [&](NodeId n) {
    if (k[n].op != Op::Param || k[n].type != DType::F64) return;
    const std::string name = "`" + spec.names.arguments[k[n].a] + "`";
    all += (all.empty() ? "" : ", ") + name;
    if (std::isnan(values[n].real)) nans += (nans.empty() ? "" : ", ") + name;
  });
  if (!nans.empty()) return ": " + nans + (nans.find(',') == std::string::npos ? " is NaN" : " are NaN");
  return all.empty() ? "" : "; it is made of " + all;
}

Fault kind_of(HostFault::What what) {
  switch (what) {
  case HostFault::Far:
  case HostFault::Overflow:
    return Fault::Overflow;
  case HostFault::ZeroDivision:
    return Fault::ZeroDivision;
  case HostFault::NotANumber:
    return Fault::Value;
  case HostFault::OutOfBounds:
    return Fault::Index;
  case HostFault::None:
    break;
  }
  return Fault::Internal;
}

} // namespace

void work_on_host(const Plan &plan, const Variant &variant, const Call &call, HostSide &host) {
  llvm::SmallVector<HostValue, 16> params(call.args.size());
  for (size_t a = 0; a < call.args.size(); ++a)
    if (!plan.operands[a].tensor && !plan.operands[a].measured && !plan.operands[a].table)
      params[a] = host_value_of(call.args[a]);
  host.domain = plan.host;
  host.domain.in_list = call.in_list;
  host.origins.clear();
  if (plan.in_window && !call.offset.empty()) {
    for (size_t d = 0; d < plan.whole.size(); ++d)
      host.domain.origin = host.domain.origin * plan.whole[d] + call.offset[d];
    for (const int64_t axis : plan.axes) host.origins.push_back(call.offset[size_t(axis)]);
  }
  host.origins.resize(plan.axes.size());
  host.domain.origins = ref(host.origins);
  variant.program.run({params.data(), params.size()}, host.domain, host.values, host.poisoned);
}

Result<bool> settle(const Plan &plan, const Launch &launch, const Call &call, std::span<Slot> slots, Cut &result) {
  const Variant &variant = *launch.variant;
  const Kernel &k = variant.kernel;
  // Kept between calls, so that a call allocates nothing; a call never runs inside another on one thread.
  thread_local HostSide host;
  work_on_host(plan, variant, call, host);
  const std::vector<HostValue> &values = host.values;
  const std::vector<uint8_t> &poisoned = host.poisoned;
  const HostDomain &domain = host.domain;

  if (variant.checks.needed()) {
    const CallCheck check = variant.checks.run(values, poisoned, launch.looks, domain);
    if (check.fault.what != HostFault::None) {
      std::string text = in_words(*plan.spec, check.fault);
      if (check.fault.what == HostFault::NotANumber) text += bound_of(*plan.spec, k, check.fault.node, values);
      return fault<bool>(kind_of(check.fault.what), std::move(text), *plan.spec);
    }
    if (check.wide && !k.form.wide) return {}; // false: the wide variant is needed
  }
  for (size_t s = 0; s < slots.size(); ++s) {
    const SlotInfo &info = variant.slots[s];
    if (info.kind == SlotKind::Uniform) {
      const NodeId node = k.uniforms[info.index];
      slots[s] = uniform_slot(k[node].type, values[node]);
    } else if (info.kind == SlotKind::Begin || info.kind == SlotKind::End) {
      const bool flat = bound_axis(k, info) == flat_axis;
      slots[s].integer = clamp_bound(values[bound_node(k, info)], flat ? domain.span : domain.extent);
    }
  }
  if (variant.cut && plan.count > 0) {
    thread_local std::vector<BoxBounds> boxes;
    boxes.clear();
    const int64_t extent = plan.loop.extent;
    for (const Piece &p : k.pieces)
      for (const auto &box : p.boxes) {
        BoxBounds b{0, extent}; // row-major positions too: then there is one row
        for (const Range &r : box) {
          if (r.lo != no_node) b.begin = std::max(b.begin, clamp_bound(values[r.lo], extent));
          if (r.hi != no_node) b.end = std::min(b.end, clamp_bound(values[r.hi], extent));
        }
        boxes.push_back(b);
      }
    cut(k, boxes, extent, result.segments);
    if (k.form.segments) segment_table(k, result.segments, result.table);
  }
  Result<bool> good;
  good.value = true;
  return good;
}

Result<std::shared_ptr<Launch>> look_at_launch(const Plan &plan, const Call &call) {
  Result<std::shared_ptr<Launch>> result;
  const PointerClass c = classify(plan, call);
  for (const bool wide : {false, true}) {
    auto made = std::make_shared<Launch>();
    made->alias = c.alias, made->scalar = c.scalar, made->wide = wide;
    const Form form = form_of(plan, c, wide, false);
    {
      const LibraryLock lock;
      made->variant = find_variant(*plan.typing, form, plan.machine);
    }
    if (!made->variant) {
      auto variant = make_variant(*plan.spec, *plan.typing, form, plan.machine);
      if (!variant) return pass_on<std::shared_ptr<Launch>>(std::move(variant));
      made->variant = std::move(variant.value);
    }
    fill_layout(plan, *made);
    made->looks = made->variant->checks.looks(plan.host);
    auto settled = settle(plan, *made, call, {made->slots.data(), made->slots.size()}, made->cut);
    if (!settled) return pass_on<std::shared_ptr<Launch>>(std::move(settled));
    result.value = std::move(made);
    if (settled.value) break;
  }
  return result;
}

// A launch is one of a class of pointers.
static bool is(const Launch &launch, PointerClass c, bool wide, bool many) {
  return launch.alias == c.alias && launch.scalar == c.scalar && launch.wide == wide && launch.many == many;
}

bool serves(const Plan &plan, const Launch &launch, const Addresses &addresses, bool many) {
  return is(launch, classify(plan, addresses), false, many);
}

Result<const Launch *> launch_for(const Plan &plan, const Call &call, bool wide, bool many) {
  Result<const Launch *> result;
  const PointerClass c = classify(plan, call);
  auto fits = [&](const Launch &l) { return is(l, c, wide, many); };
  if (const Launch *last = plan.last.load(std::memory_order_acquire); last && fits(*last)) {
    result.value = last;
    return result;
  }
  auto remember = [&](const Launch *launch) {
    plan.last.store(launch, std::memory_order_release);
    result.value = launch;
  };
  {
    const ForkGate gate;
    const std::lock_guard lock(plan.launching);
    for (const auto &l : plan.launches)
      if (fits(*l)) {
        remember(l.get());
        return result;
      }
  }

  auto made = std::make_unique<Launch>();
  made->alias = c.alias, made->scalar = c.scalar, made->wide = wide, made->many = many;
  for (bool with_128_bits = wide;; with_128_bits = true) {
    {
      const LibraryLock lock;
      auto variant = variant_for(*plan.spec, *plan.typing, form_of(plan, c, with_128_bits, many), plan.machine);
      if (!variant) return pass_on<const Launch *>(std::move(variant));
      made->variant = std::move(variant.value);
    }
    made->slots.clear(), made->pointers.clear();
    fill_layout(plan, *made);
    made->looks = made->variant->checks.looks(plan.host);
    if (made->variant->uses_parameters) break;
    auto settled = settle(plan, *made, call, {made->slots.data(), made->slots.size()}, made->cut);
    if (!settled) return pass_on<const Launch *>(std::move(settled));
    made->settled = settled.value;
    if (made->settled || with_128_bits) break;
  }
  if (plan.count > 0)
    if (auto compiled = prepare(*made->variant, plan.device, call.stream); !compiled)
      return fault<const Launch *>(compiled.fault, std::move(compiled.message), *plan.spec);

  const ForkGate gate;
  const std::lock_guard lock(plan.launching);
  for (const auto &l : plan.launches) // another thread was faster
    if (fits(*l)) {
      remember(l.get());
      return result;
    }
  plan.launches.push_back(std::move(made));
  remember(plan.launches.back().get());
  return result;
}

} // namespace elsewise::api
