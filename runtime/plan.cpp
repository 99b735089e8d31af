// SPDX-License-Identifier: Apache-2.0
// Launch plans: all of a call that shapes, strides, dtypes and devices decide, worked out once and kept in the Spec. No
// value and no pointer is kept.
#include "compiler/ir/walk.h"
#include "runtime/launch_taker.h"
#include "runtime/spec.h"
#include "llvm/ADT/Hashing.h"
#include <algorithm>
#include <set>

namespace elsewise::api {

namespace {

constexpr size_t most_plans = 512; // of one spec; beyond them the unused ones go

Dims in_bytes(Dims stride, int64_t element) {
  for (int64_t &s : stride) s *= element;
  return stride;
}

bool same_walk(DimsRef domain, DimsRef a, DimsRef b) {
  for (size_t d = 0; d < domain.size(); ++d)
    if (domain[d] > 1 && a[d] != b[d]) return false;
  return true;
}

// Elements of a view must stay within 63 bits of bytes, so that no offset overflows.
bool too_far(DimsRef lengths, DimsRef stride, int64_t element) {
  __int128 reach = element;
  for (size_t d = 0; d < lengths.size(); ++d)
    reach +=
        (stride[d] < 0 ? -__int128(stride[d]) : __int128(stride[d])) * std::max<int64_t>(lengths[d] - 1, 0) * element;
  return reach > INT64_MAX / 2;
}

Result<std::shared_ptr<Plan>> refuse(const Spec &spec, Fault f, std::string message) {
  return fault<std::shared_ptr<Plan>>(f, std::move(message), spec);
}

// Axes that the rule reads at the element's own position: as long as the domain's, or repeated.
std::string wrong_own_axes(const Spec &spec, const Kernel &kernel, const Call &call, DimsRef domain) {
  for (const Inst &i : kernel.insts) {
    if (i.op != Op::Read) continue;
    const Reading &r = kernel.reads[i.c];
    const Arg &arg = call.args[r.argument];
    const std::string name = "`" + spec.names.arguments[r.argument] + "`",
                      shapes = ": " + name + " has shape " + show_shape(shape_of(arg)) + ", the domain " +
                               show_shape(domain);
    for (int32_t axis = 0; axis < arg.rank; ++axis) {
      if (!(r.own >> axis & 1)) continue;
      const int64_t at = int64_t(domain.size()) - arg.rank + axis; // aligned from the right
      if (arg.shape[axis] != 1 && arg.shape[axis] != domain[size_t(at)])
        return "`..` reads " + name + " at each element's own position, and lengths " +
               std::to_string(arg.shape[axis]) + " and " + std::to_string(domain[size_t(at)]) + " on axis " +
               std::to_string(axis) + " of it differ" + shapes;
    }
  }
  return "";
}

// True if some piece leaves memory alone that others touch: it does not read what they read, or, in place, it may be
// the element itself.
bool skips_memory(const Kernel &k, bool in_place) {
  std::set<uint32_t> all;
  auto loads = [&](NodeId root) {
    std::set<uint32_t> own;
    walk(k, root, [&](NodeId n) {
      if (k[n].op == Op::Load) own.insert(k[n].a);
    });
    all.insert(own.begin(), own.end());
    return own.size();
  };
  size_t fewest = k.arguments.size();
  for (const Piece &p : k.pieces) {
    if (in_place && k[p.values[0]].op == Op::Load) return true;
    if (p.guard != no_node) loads(p.guard);
    fewest = std::min(fewest, loads(p.values[0]));
  }
  return fewest < all.size();
}

Result<std::shared_ptr<Plan>> make_plan(const Spec &spec, const Call &call) {
  auto read = read_call(spec, call);
  if (!read) return pass_on<std::shared_ptr<Plan>>(std::move(read));
  Request &request = read.value;
  if (request.device.kind == DeviceKind::Cuda && !launch_taker()) {
    std::string why;
    if (!cuda_available(&why)) return refuse(spec, Fault::Environment, why);
  }
  auto typed = typing_for(spec, request.signature, request.host_scalar);
  // If only the store is wrong, the rule is right and the call is not.
  const bool store = std::all_of(typed.diagnostics.begin(), typed.diagnostics.end(),
                                 [](const Diagnostic &d) { return d.code == slug(Code::CannotStore); });
  if (typed.fault == Fault::Spec && store && request.signature.out)
    return refuse(spec, Fault::Type,
                  (call.has_dtype ? "`dtype=` " : "`out` is ") + std::string(spelling(*request.signature.out)) + ": " +
                      typed.diagnostics.front().message + "; cast it in the rule");
  if (!typed) return pass_on<std::shared_ptr<Plan>>(std::move(typed));

  auto made = std::make_shared<Plan>();
  Plan &plan = *made;
  plan.spec = &spec, plan.typing = typed.value;
  plan.machine = request.device.kind == DeviceKind::Cuda ? Machine::Cuda : Machine::Cpu;
  plan.device = request.device, plan.dtype = plan.typing->typed.result;
  plan.shape = request.domain, plan.count = request.count;
  plan.in_window = call.has_window, plan.whole = request.whole;
  plan.with_out = call.out != nullptr, plan.asked = request.signature.out;
  plan.serves_asking = serves_asking(plan.typing->typed);

  const DimsRef domain = ref(plan.shape);
  const DimsRef whole = plan.in_window ? ref(plan.whole) : domain;
  plan.axes = axes_in(plan.typing->kernel, domain.size());
  const DimsRef axes = ref(plan.axes);
  for (const int64_t axis : axes) {
    if (axis < 0 || axis >= int64_t(domain.size()) || std::count(axes.begin(), axes.end(), axis) != 1)
      return refuse(spec, Fault::Internal,
                    "internal error: an axis of the rule is none of the domain; please report it");
    plan.lengths.push_back(whole[size_t(axis)]);
  }
  plan.shapes.resize(call.args.size());
  llvm::SmallVector<StrideSource, 8> sources;
  for (size_t a = 0; a < call.args.size(); ++a) {
    const Arg &arg = call.args[a];
    PlannedOperand operand;
    operand.host_scalar = request.host_scalar[a];
    operand.table = spec.names.indexed[a];
    operand.measured = !spec.names.elementwise[a] && !operand.table;
    operand.tensor = arg.kind == ArgKind::Tensor && !operand.host_scalar && spec.names.elementwise[a];
    if (arg.kind == ArgKind::Tensor) plan.shapes[a].assign(arg.shape, arg.shape + arg.rank);
    if (arg.kind == ArgKind::Tensor &&
        spec.names.elementwise[a]) // the whole is as long as the domain, unless it repeats
      for (size_t r = 1; r <= std::min(plan.shapes[a].size(), whole.size()); ++r)
        if (int64_t &length = plan.shapes[a].end()[-int64_t(r)]; length != 1) length = whole[whole.size() - r];
    if (operand.tensor || operand.table)
      if (too_far(shape_of(arg), stride_of(arg), bytes(arg.dtype)))
        return refuse(spec, Fault::Value, "`" + spec.names.arguments[a] + "` spans more memory than there is");
    if (operand.table) {
      operand.bytes = bytes(arg.dtype);
      for (int32_t d = 0; d < arg.rank; ++d) operand.table_stride.push_back(arg.shape[d] == 1 ? 0 : arg.stride[d]);
      operand.table_extremes = extremes(shape_of(arg), ref(operand.table_stride), operand.bytes);
    }
    if (operand.tensor) {
      sources.push_back({shape_of(arg), stride_of(arg)});
      operand.bytes = bytes(arg.dtype);
      operand.stride = over_domain(shape_of(arg), stride_of(arg), domain);
    }
    plan.operands.push_back(std::move(operand));
  }
  if (call.out) plan.stride.assign(call.out->stride, call.out->stride + call.out->rank);
  else plan.stride = output_strides(domain, {sources.data(), sources.size()});
  const int64_t out_bytes = bytes(plan.dtype);
  if (too_far(domain, ref(plan.stride), out_bytes))
    return refuse(spec, Fault::Value, "`out` spans more memory than there is");
  if (call.out && overlaps_itself(domain, ref(plan.stride)))
    return refuse(spec, Fault::Value,
                  "`out` holds some elements more than once (strides " + show_shape(ref(plan.stride)) +
                      "); give a tensor of its own, as `out.clone()` makes");
  plan.out_stride = in_bytes(plan.stride, out_bytes);
  plan.out_extremes = extremes(domain, ref(plan.stride), out_bytes);

  const Positions used = positions_in(*plan.typing, axes, domain.size());
  if (plan.count > 0) {
    llvm::SmallVector<Dims, 8> strides;
    for (const PlannedOperand &o : plan.operands) strides.push_back(o.tensor ? o.stride : Dims(domain.size(), 0));
    plan.loop = make_loop(domain, ref(plan.stride), {strides.data(), strides.size()}, used, whole);
    if (plan.machine == Machine::Cuda) bring_tiled_axis(plan.loop, plan.typing->operands, form_limits());
  } else {
    plan.loop.inputs.resize(plan.operands.size());
    plan.loop.out.inner = 1;
  }
  if (std::string why = wrong_own_axes(spec, plan.typing->kernel, call, whole); !why.empty())
    return refuse(spec, Fault::Value, why);
  // A rule that asks for no position has the same code in a window, unless it asks how long the domain is.
  const bool windowed =
      plan.in_window && (used.flat || std::count(used.dims.begin(), used.dims.end(), true) != 0 ||
                         std::any_of(plan.typing->kernel.insts.begin(), plan.typing->kernel.insts.end(),
                                     [](const Inst &i) { return i.op == Op::Len; }));
  for (Form *form : {&plan.form, &plan.form_in_place}) {
    const bool skips = skips_memory(plan.typing->kernel, form == &plan.form_in_place);
    FormLimits limits = form_limits();
    if (skips) limits.longest_flat = std::min(limits.longest_flat, longest_flat_row_of_skipping);
    *form = make_form(plan.loop, plan.dtype, plan.typing->operands, plan.typing->positions.flat, plan.machine, axes,
                      limits);
    form->window = windowed;
    for (const PlannedOperand &o : plan.operands) // an axis of one element that is no element's own is read at 0
      form->dense.push_back(o.table && !o.table_stride.empty() && o.table_stride.back() == 1);
  }
  for (const Dims &shape : plan.shapes) plan.each.push_back(ref(shape));
  plan.host = HostDomain(*element_count(whole));
  plan.host.span = plan.count > 0 && used.flat ? flat_span(plan.loop) : plan.count;
  plan.host.axes = ref(plan.lengths), plan.host.shapes = plan.each;
  plan.host.extent = plan.count ? plan.loop.extent : 0, plan.host.inner_pitch = plan.loop.inner_pitch;
  plan.host.row_lengths = ref(plan.loop.lengths), plan.host.row_pitches = ref(plan.loop.pitches);
  plan.bytes_per_position = out_bytes;
  for (size_t a = 0; a < plan.operands.size(); ++a) {
    PlannedOperand &o = plan.operands[a];
    if (o.table) plan.bytes_per_position += o.bytes;
    if (!o.tensor) continue;
    o.may_alias = request.signature.args[a].dtype == plan.dtype && same_walk(domain, ref(o.stride), ref(plan.stride));
    o.extremes = extremes(domain, ref(o.stride), o.bytes);
    o.stride = in_bytes(std::move(o.stride), o.bytes);
    if (plan.typing->operands[a].read && plan.form.args[a] != Access::Broadcast) plan.bytes_per_position += o.bytes;
  }
  Result<std::shared_ptr<Plan>> result;
  result.value = std::move(made);
  return result;
}

uint64_t hash_of(const PlanKey &key) { return uint64_t(llvm::hash_combine_range(key.begin(), key.end())); }

// What a call's plan is found by.
struct Wanted {
  PlanKey key;
  size_t arguments_end;
  uint64_t hash;

  explicit Wanted(const Call &call) {
    key.push_back(call.has_dtype ? 1 + int64_t(call.dtype) : 0);
    append_arguments(call, key);
    arguments_end = key.size();
    if (call.out) append_tensor(*call.out, key);
    hash = hash_of(key);
  }
  std::shared_ptr<Plan> in(const Spec &spec) const {
    const auto [first, last] = spec.plans.equal_range(hash);
    for (auto at = first; at != last; ++at)
      if (at->second->key == key) return at->second;
    return nullptr;
  }
};

} // namespace

Result<LookedAt> look_at_plan(const Spec &spec, const Call &call) {
  const Wanted wanted(call);
  Result<LookedAt> result;
  {
    const LibraryLock lock;
    if ((result.value.plan = wanted.in(spec))) {
      result.value.cached = true;
    } else {
      auto made = make_plan(spec, call);
      if (!made) return pass_on<LookedAt>(std::move(made));
      result.value.plan = std::move(made.value);
    }
  }
  if (std::string wrong = wrong_window(*result.value.plan, call); !wrong.empty())
    return fault<LookedAt>(Fault::Value, std::move(wrong), spec);
  return result;
}

Result<PlanRef> plan(const SpecRef &spec, const Call &call) noexcept try {
  const Wanted wanted(call);
  std::shared_ptr<Plan> found;
  std::vector<std::shared_ptr<Plan>> dropped; // dies after the lock
  {
    const LibraryLock lock;
    if ((found = wanted.in(*spec))) {
      ++counts.plan_hits;
    } else {
      auto made = make_plan(*spec, call);
      if (!made) return pass_on<PlanRef>(std::move(made));
      found = std::move(made.value);
      found->key = wanted.key, found->arguments_end = wanted.arguments_end;
      ++counts.plans;
      for (auto at = spec->plans.begin(); spec->plans.size() >= most_plans && at != spec->plans.end();) {
        const bool unused = at->second.use_count() == 1;
        if (unused) dropped.push_back(std::move(at->second));
        at = unused ? spec->plans.erase(at) : std::next(at);
      }
      spec->plans.emplace(wanted.hash, found);
    }
  }
  if (std::string wrong = wrong_window(*found, call); !wrong.empty())
    return fault<PlanRef>(Fault::Value, std::move(wrong), *spec);
  if (auto launch = launch_for(*found, call, false); !launch) return pass_on<PlanRef>(std::move(launch));
  Result<PlanRef> result;
  const auto held = std::make_shared<Held>(Held{spec, std::move(found)});
  result.value = PlanRef(held, held->plan.get());
  return result;
} catch (const std::exception &error) {
  return crashed<PlanRef>(error);
}

Output output(const Plan &plan) noexcept { return {plan.dtype, plan.device, ref(plan.shape), ref(plan.stride)}; }

bool matches(const Plan &plan, const Call &call) noexcept try {
  if (plan.with_out && !call.out) return false;
  if (const auto asked = asked_dtype(call); asked != plan.asked && !(asked == plan.dtype && plan.serves_asking))
    return false;
  PlanKey key;
  key.push_back(plan.key[0]); // what it asks for was looked at above
  append_arguments(call, key);
  if (key.size() != plan.arguments_end || !std::equal(key.begin(), key.end(), plan.key.begin())) return false;
  if (!call.out) return true;
  const Arg &out = *call.out;
  return out.dtype == plan.dtype && out.device == plan.device &&
         std::equal(plan.shape.begin(), plan.shape.end(), out.shape, out.shape + out.rank) &&
         same_walk(ref(plan.shape), ref(plan.stride), stride_of(out));
} catch (const std::exception &) { // no memory for the key: plan() will say so
  return false;
}

} // namespace elsewise::api
