// SPDX-License-Identifier: Apache-2.0
// What stands behind the facade's handles: a spec with its typings, their compiled variants, and launch plans. None of
// it outlives its Spec, none holds a tensor.
#pragma once
#include "compiler/check/typed.h"
#include "compiler/ir/abi.h"
#include "compiler/passes/axes.h"
#include "runtime/cpu/jit.h"
#include "runtime/cuda/launch.h"
#include "runtime/elsewise.h"
#include "runtime/host/faults.h"
#include "runtime/layout/layout.h"
#include "runtime/layout/overlap.h"
#include <atomic>
#include <list>
#include <mutex>
#include <unordered_map>

namespace elsewise::api {

/// Code for one typing, form and machine. The kernel is there from the start; the code is made by prepare().
struct Variant {
  Variant(Kernel scheduled, Form asked, Machine machine);
  Kernel kernel;
  Form asked; // of the form pass, which knows better what is read, and whether segments are worth a table
  Machine machine;
  std::vector<SlotInfo> slots;
  HostProgram program;
  CallChecks checks;
  bool uses_parameters = false; // some host node depends on a parameter, or on where the window begins
  bool uses_list = false;       // or on the call's place in a list
  bool cut = false;             // skips_blocks(), or Form::segments: the host cuts the inner axis into segments
  std::mutex compiling;
  std::atomic<bool> compiled = false;
  std::unique_ptr<CpuCode> cpu;
  CudaCode cuda;
};

/// A spec under one signature: everything that types decide.
struct Typing {
  Signature signature;
  std::vector<bool> host_scalar; // by argument: a 0-d tensor on the CPU that goes with CUDA data, read at the call
  Typed typed;
  Kernel kernel;                                  // lowered
  UsedPositions positions;                        // that some piece reads or bounds
  std::vector<Operand> operands;                  // by argument
  std::vector<std::shared_ptr<Variant>> variants; // guarded by the library's lock
};

/// A call's types, shapes, strides and devices as numbers: what plans are found by.
using PlanKey = llvm::SmallVector<int64_t, 48>;

class Spec {
public:
  Spec(std::string text, std::string file) : source(std::move(text), std::move(file)) {}
  ~Spec();

  Source source;
  Ast ast;
  Names names;
  std::vector<Diagnostic> warnings;
  std::string shown; // the text on one short line, for messages

  // Guarded by the library's lock.
  mutable std::list<Typing> typings;
  mutable std::unordered_multimap<uint64_t, std::shared_ptr<Plan>> plans;
};

/// The inner axis of a launch, cut where the piece changes, and the bytes of that where the kernel takes a table.
struct Cut {
  std::vector<Segment> segments;
  std::vector<uint8_t> table;
};

/// A plan's use of one variant: which arguments are the same view as `out`, which contiguous ones are not aligned with
/// it.
struct Launch {
  uint64_t alias = 0, scalar = 0; // by argument
  bool wide = false, many = false;
  std::shared_ptr<Variant> variant;
  llvm::SmallVector<Slot, 32> slots;      // all of them; pointers are filled in at a call
  llvm::SmallVector<int32_t, 8> pointers; // by slot: an argument, out_pointer, or no_pointer
  // Slots that the geometry fills, and the cut.
  int32_t shift = -1, blocks = -1, blocks_inverse = -1, blocks_shift = -1, live = -1, table = -1;
  std::vector<Intervals::Look> looks; // of the variant's checks
  // Uniforms, bounds and their checks: settled here once if no parameter enters them, else at every call.
  bool settled = false;
  Cut cut;
};

/// An operand of a plan, by argument.
struct PlannedOperand {
  bool tensor = false; // on the plan's device
  bool host_scalar = false;
  bool measured = false;  // only its lengths are asked for
  bool table = false;     // read at indices
  bool may_alias = false; // has the output's dtype and walks memory as it does
  int32_t bytes = 1;
  Dims stride; // over the domain, in bytes
  Extremes extremes;
  Dims table_stride; // of a table, in elements, along its own axes: 0 where there is one element
  Extremes table_extremes;
};

class Plan {
public:
  const Spec *spec = nullptr; // alive while a PlanRef is: see Held
  Typing *typing = nullptr;
  PlanKey key;
  size_t arguments_end = 0; // in key: beyond it stands `out`
  bool with_out = false;
  std::optional<DType> asked; // what `dtype=` or `out` asked for
  bool serves_asking = false; // a call that asks for the plan's own dtype has the same typing

  Machine machine = Machine::Cpu;
  Device device;
  DType dtype = DType::F32;
  Dims shape, stride;
  int64_t count = 0;
  Loop loop;
  Form form;          // as if all were aligned and distinct
  Form form_in_place; // of a launch whose `out` is the same view as an operand, as if it were not
  Dims lengths;       // by Kernel::axes
  bool in_window = false;
  Dims whole;                      // the shape of the domain, where `shape` is that of a window
  Dims axes;                       // by Kernel::axes: which axis of the domain it is
  std::vector<Dims> shapes;        // by argument; of tensors, as they would be read in the whole domain
  std::vector<DimsRef> each;       // the same, as `host` has them
  HostDomain host = HostDomain(0); // into the members above: a plan stays where it was made
  Dims out_stride;                 // over the domain, in bytes
  Extremes out_extremes;
  std::vector<PlannedOperand> operands;
  int64_t bytes_per_position = 0;

  mutable std::mutex launching;
  mutable std::vector<std::unique_ptr<Launch>> launches; // never removed while the plan lives
  mutable std::atomic<const Launch *> last = nullptr;
};

/// What a PlanRef owns.
struct Held {
  SpecRef spec;
  std::shared_ptr<Plan> plan;
};

/// Where the tensors of a call are.
class Addresses {
public:
  Addresses(const Call &call) : call_(&call) {}
  Addresses(const ListedCall &listed) : call_(listed.call), listed_(listed.addresses) {}
  const Call &call() const { return *call_; } // for all but where they are
  bool has_out() const { return call_->out; }
  void *pointer(size_t argument) const { return listed_ ? listed_[argument] : call_->args[argument].data; }
  void *out_pointer() const { return listed_ ? listed_[call_->args.size()] : call_->out->data; }
  uintptr_t operator[](size_t argument) const { return reinterpret_cast<uintptr_t>(pointer(argument)); }
  uintptr_t out() const { return reinterpret_cast<uintptr_t>(out_pointer()); }

private:
  const Call *call_;
  void *const *listed_ = nullptr; // null: they are the call's own
};

inline constexpr int32_t out_pointer = -1, no_pointer = -2;
inline constexpr size_t most_arguments = 64; // of one spec in a call: the width of Launch's sets

/// The counters of this process.
struct Counts {
  std::atomic<uint64_t> variants = 0, plans = 0, variant_hits = 0, plan_hits = 0;
};
extern Counts counts;

/// Held around whatever takes a lock of the library, a compilation's included: fork() waits until nobody does, so that
/// no child inherits one locked.
class ForkGate {
public:
  ForkGate();
  ~ForkGate();
  ForkGate(const ForkGate &) = delete;
};
/// The lock of everything cached.
class LibraryLock {
public:
  LibraryLock();
  ~LibraryLock();
  LibraryLock(const LibraryLock &) = delete;

private:
  ForkGate gate_;
};

// spec.cpp
std::vector<Diagnostic> convert(const std::vector<elsewise::Diagnostic> &, const Source &, bool errors);
void forget_caches(); // clear_cache()

// typing.cpp
/// The typing for a signature, made if it is new. Under the library's lock.
Result<Typing *> typing_for(const Spec &, const Signature &, const std::vector<bool> &host_scalar);

/// Whether a call that asks for the dtype that comes out anyway has the same types. Asking for f64 also decides the
/// working float.
bool serves_asking(const Typed &);

/// By Kernel::axes: which axis of a domain of that rank it is; outside 0 .. rank-1 if the domain has no such axis.
Dims axes_in(const Kernel &, size_t rank);

/// The positions that a typing uses, over a domain in which its axes are those of `dims`.
Positions positions_in(const Typing &, DimsRef dims, size_t rank);

// variant.cpp
/// The variant for a form, made (but not compiled) if it is new. Under the library's lock.
Result<std::shared_ptr<Variant>> variant_for(const Spec &, Typing &, const Form &, Machine);
/// The same, of those that there are, uncounted; null: there is none. Under the library's lock.
std::shared_ptr<Variant> find_variant(const Typing &, const Form &, Machine);
/// One that nobody else sees.
Result<std::shared_ptr<Variant>> make_variant(const Spec &, const Typing &, const Form &, Machine);
/// PassOptions::parameter_bytes: the driver and NVRTC take more than 4096 from 12.1 on, and only CUDA's code has a
/// table in them.
size_t parameter_bytes(Machine);
/// Compiles it for `device` unless it is. `stream`: refuses to compile or load while this CUDA stream is capturing.
Result<bool> prepare(Variant &, Device device, void *stream);

// call.cpp
/// Appends what a plan depends on: kinds, dtypes, shapes, strides and devices of the arguments, and the call's options
/// but `out` and `offset`.
void append_arguments(const Call &, PlanKey &);
void append_tensor(const Arg &, PlanKey &);
/// The dtype that `dtype=`, else `out`, asks for.
std::optional<DType> asked_dtype(const Call &);
inline DimsRef shape_of(const Arg &a) { return {a.shape, size_t(a.rank)}; }
inline DimsRef stride_of(const Arg &a) { return {a.stride, size_t(a.rank)}; }
std::string show_shape(DimsRef); // "(3, 4)", "(3,)", "()"
std::string show_device(Device); // "cpu", "cuda:0"
/// Value of a parameter, or of a 0-d tensor on the host, as host nodes take it.
HostValue host_value_of(const Arg &);

/// The header's axes against the domain's; empty: they agree.
std::string wrong_rank(const Header &, size_t rank);
/// `..` in an index that would stand for axes which a domain of that rank lacks; empty: there is none.
std::string lacks_axes(const Spec &, const Signature &, size_t rank);

/// What types and shapes of a call come to, or why it cannot be.
struct Request {
  Signature signature;
  std::vector<bool> host_scalar;
  Device device;
  Dims domain; // of a window: its extent
  int64_t count = 0;
  Dims whole; // of a window: what it is part of
};
Result<Request> read_call(const Spec &, const Call &);

/// Why the call's window is no part of the plan's domain; empty: it is.
std::string wrong_window(const Plan &, const Call &);

// plan.cpp
struct LookedAt {
  std::shared_ptr<Plan> plan;
  bool cached = false; // a call had it before
};
/// The plan of a call for a look: found, or made and kept by nobody; nothing is compiled or counted. Faults: the
/// call's.
Result<LookedAt> look_at_plan(const Spec &, const Call &);

// launch.cpp
/// The launch of a plan for the pointers of a call, compiled. `call.out` may be missing: then it is aligned and
/// distinct. `many`: in a launch over a list, which only a plan whose form has no rows can be in.
Result<const Launch *> launch_for(const Plan &, const Call &, bool wide, bool many = false);
/// True if launch_for() would give a launch of the plan, one that is not wide, to this call too.
bool serves(const Plan &, const Launch &, const Addresses &, bool many);
/// The launch that a call would have, for a look: nothing is compiled, kept or counted. Faults: the call's.
Result<std::shared_ptr<Launch>> look_at_launch(const Plan &, const Call &);
/// What the host works out for one call. It refers to itself, so it stays where it is.
struct HostSide {
  HostSide() = default;
  HostSide(const HostSide &) = delete;
  std::vector<HostValue> values;
  std::vector<uint8_t> poisoned;
  HostDomain domain = HostDomain(0);
  Dims origins;
};
void work_on_host(const Plan &, const Variant &, const Call &, HostSide &);
/// Host values of a call into uniforms, bounds and the cut; false in `value` if the call needs the wide variant.
/// Faults: the call's.
Result<bool> settle(const Plan &, const Launch &, const Call &, std::span<Slot> slots, Cut &);

// run.cpp
/// Overlap of `out` with what is not the identical view, alignment, and where raw addresses are. Empty: fine.
std::string wrong_memory(const Plan &, const Launch &, const Addresses &);
/// What calls of a plan that nothing speaks against any more are started with: the code, and what it is given but
/// pointers. One serves all calls that have the launch and for which the host works out the same.
struct Ready {
  const Launch *launch = nullptr;
  llvm::SmallVector<Slot, 48> slots;
  const Cut *cut = nullptr; // the launch's, or `own`
  Cut own;
};
/// Checks what pointers and values of a call can be refused for, and puts values into slots. `many`: as for
/// launch_for(); a call whose indexes need 128 bits is made ready for a launch of its own.
Result<bool> get_ready(const Plan &, const Call &, bool many, Ready &);
/// Puts a call's pointers into slots of a launch.
void put_pointers(const Addresses &, const Launch &, Slot *slots);
/// One launch of a variant's CUDA code, or what TakeLaunches has for it. Empty: it was started.
std::string launch_cuda(const Variant &, Device, const Geometry &, void *stream, std::span<void *const> parameters);
/// Starts a call alone.
Result<bool> start(const Plan &, const Addresses &, void *stream, Ready &);

// Messages
template <class T> Result<T> fault(Fault f, std::string message, const Spec &spec) {
  Result<T> r;
  r.fault = f, r.message = std::move(message);
  if (!spec.shown.empty()) r.message += "; in `" + spec.shown + "`";
  return r;
}
/// The fault of a spec: every error in the sink.
template <class T> Result<T> spec_fault(Sink &sink, const Source &source) {
  Result<T> r;
  r.fault = Fault::Spec;
  r.diagnostics = convert(sink.take(), source, true);
  for (const Diagnostic &d : r.diagnostics) r.message += d.rendered;
  while (!r.message.empty() && r.message.back() == '\n') r.message.pop_back();
  return r;
}
/// What reached the border of the facade: no memory, or a lock that the system refused.
template <class T> Result<T> crashed(const std::exception &error) {
  Result<T> r;
  r.fault = Fault::Internal, r.message = error.what();
  return r;
}
template <class T, class U> Result<T> pass_on(Result<U> &&other) {
  Result<T> r;
  r.fault = other.fault, r.message = std::move(other.message), r.diagnostics = std::move(other.diagnostics);
  return r;
}

} // namespace elsewise::api
