// SPDX-License-Identifier: Apache-2.0
// The facade of libelsewise: all that the Python module, ewc and other hosts see. No LLVM, CUDA or Python type stands
// here, and nothing throws.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/types/types.h" // DType, ArgKind, ArgType, Signature: plain enums and structs

#define EW_API __attribute__((visibility("default")))

namespace elsewise::api {

/// Which Python exception a fault becomes: SpecError, TypeError, ValueError, IndexError, ZeroDivisionError,
/// OverflowError, RuntimeError (Environment, Internal).
enum class Fault : uint8_t { None, Spec, Type, Value, Index, ZeroDivision, Overflow, Environment, Internal };

struct FixIt {
  uint32_t begin, end; // bytes of the spec
  std::string replacement, label;
};
/// A diagnostic ready for a person and for a SyntaxError. Lines and columns are 1-based and count characters; end_* is
/// exclusive.
struct Diagnostic {
  std::string code;     // "unknown-name"
  bool error = true;    // false: a warning
  std::string message;  // one line
  std::string note;     // may be empty
  std::string rendered; // with source line and caret
  uint32_t line = 1, column = 1, end_line = 1, end_column = 1;
  std::vector<FixIt> fixits;
};

template <class T> struct Result {
  T value{};
  Fault fault = Fault::None;
  std::string message;                 // whole text of the error for a person
  std::vector<Diagnostic> diagnostics; // Fault::Spec: all of them
  explicit operator bool() const { return fault == Fault::None; }
};

enum class DeviceKind : uint8_t { Cpu, Cuda };
struct Device {
  DeviceKind kind = DeviceKind::Cpu;
  int32_t ordinal = 0;
  bool operator==(const Device &) const = default;
};

/// One argument of a call. Tensor: device, dtype, rank, shape, stride (in elements), data. Int, Bool: integer. Float:
/// real. Borrowed for the call.
struct Arg {
  ArgKind kind = ArgKind::Unknown;
  DType dtype = DType::F32;
  Device device;
  int32_t rank = 0;
  const int64_t *shape = nullptr, *stride = nullptr;
  void *data = nullptr;
  __int128 integer = 0;
  double real = 0;
};

struct Call {
  std::span<const Arg> args; // in the order of arguments(); ArgKind::Unknown: missing
  const Arg *out = nullptr;  // null: plan() only describes it; run() needs it
  bool has_domain = false;   // `shape=`
  std::span<const int64_t> domain;
  bool has_window = false;         // `domain=`: what is computed is a part of that one, and its positions are meant
  std::span<const int64_t> whole;  // its shape
  std::span<const int64_t> offset; // `offset=`: where the part begins, by axis; empty: at its first position
  bool has_dtype = false;          // `dtype=`
  DType dtype = DType::F32;
  bool has_device = false; // `device=`; else the tensors' own, else the CPU
  Device device;
  int64_t in_list = 0;       // its place in a list of calls, which noise is told apart by
  void *stream = nullptr;    // CUstream; null is the default stream
  bool raw_pointers = false; // addresses from the user: run() asks the driver where each one is, and refuses host
                             // memory given as a device's
};

class Spec;
class Plan;
using SpecRef = std::shared_ptr<const Spec>;
using PlanRef = std::shared_ptr<const Plan>;

/// Parses, resolves and checks `text`; `file` names it in messages ("<spec>"). Interned by text: equal text gives the
/// same Spec while any is alive.
EW_API Result<SpecRef> compile(std::string_view text, std::string_view file) noexcept;
EW_API std::string_view text(const Spec &) noexcept;
EW_API std::span<const std::string> arguments(const Spec &) noexcept;
/// Warnings of compile() (unreachable pieces, …).
EW_API std::span<const Diagnostic> warnings(const Spec &) noexcept;

/// How many units in the last place a float result may be from plain torch's: twice the bound of each function that a
/// value goes through and that both keep within a bound of the exact value. 0: the bits are the same.
struct Allowance {
  int64_t ulp = 0;
  std::vector<std::string> functions; // that state such a bound
};
EW_API Allowance allowance(const Spec &) noexcept;

/// Everything about a call that does not depend on values or pointers: types, domain, layout, the compiled variant
/// (compiled here if it is new). Plans are cached in the Spec and hold no tensor.
EW_API Result<PlanRef> plan(const SpecRef &, const Call &) noexcept;

struct Output {
  DType dtype;
  Device device;
  std::span<const int64_t> shape, stride; // stride in elements, torch TensorIterator's choice
};
EW_API Output output(const Plan &) noexcept;
/// True if `call` has the kinds, dtypes, shapes, domain, strides, devices and addresses modulo 16 that the plan was
/// made for, wherever its window begins (its `out` too, if given).
EW_API bool matches(const Plan &, const Call &) noexcept;
/// Checks what depends on values and pointers (overlap, parameter fit, zero divisors, NaN bounds), then launches: CPU,
/// in the caller's thread and a pool, done on return; CUDA, one launch on `stream`, asynchronous. On a fault nothing
/// was written. call.out must be given.
EW_API Result<bool> run(const Plan &, const Call &) noexcept;

/// One call of a list: `call`, but that its tensors are at `addresses`, and its place is that in the list. Calls that
/// differ in nothing else may share one `call`, which is then looked at once.
struct ListedCall {
  const Plan *plan = nullptr;
  const Call *call = nullptr;       // `out` given
  void *const *addresses = nullptr; // by argument, whatever its kind, then that of `out`
};
/// The same for a list of calls, as if they were run one after the other; `call.stream` is the first's. All are checked
/// before anything is written. On CUDA, calls over contiguous data share a launch; a fault's message begins with the
/// place of its call in the list.
EW_API Result<bool> run_each(std::span<const ListedCall>) noexcept;
/// Positions of one piece along one axis, which bounds decide: [begin, end), in positions of the domain. A number where
/// the host knows it, within what the call computes; else the bound in the rule's words.
struct PositionRange {
  struct End {
    bool known = false;
    int64_t at = 0;
    std::string text; // of the number too
  };
  std::string axis; // as the rule calls the position along it
  bool each_row = false;
  End begin, end;
};
struct PieceUse {
  std::string text; // its source on one line
  uint32_t line = 1, column = 1;
  std::vector<std::vector<PositionRange>> boxes; // one of them, in which every range holds; none: everywhere
  std::vector<std::string> rows;                 // by box: what each row must meet besides; "": nothing
  std::string guard;                             // what elements are tested for; "": nothing
  std::string where;                             // all of that in words
  bool never = false;                            // no position of any call comes to it
  int64_t least = 0, most = 0;                   // positions that it gives the value of: between these
  bool has_segments = false;
  std::vector<std::pair<int64_t, int64_t>> segments; // where it is the first that holds, if one axis says it
  std::vector<std::string> reads;                    // arguments whose elements it reads
  int64_t read = 0, written = 0;                     // bytes of its positions, at most
  std::string does;                                  // in words
};
/// How one argument, or `out`, is reached.
struct OperandUse {
  std::string name, kind; // "f32", "f32[0]", "float"
  std::string access;     // in words: "vector", "element by element", "one value a row", "strided", "at indices", …
  std::string why, cure;  // of slow access; "": nothing to say
  int64_t bytes = 0;      // of it that are read (`out`: written), at most
};
struct LoopAxis {
  std::vector<std::string> axes; // of the domain that are walked as this one: the rule's name, else "axis 0"
  int64_t length = 1;
};
/// What one call would do. Nothing of it was done.
struct Explained {
  DType dtype = DType::F32;
  Device device;
  std::vector<int64_t> shape, stride;
  int64_t positions = 0;
  bool window = false;
  std::vector<int64_t> domain, offset;
  bool works_in_doubles = false; // the working float is f64
  std::vector<LoopAxis> loop;    // the inner axis first, then the axes of rows, the fastest first
  int64_t rows = 1, extent = 1;
  int vector = 1;                  // CUDA: positions that a thread takes
  std::string vectors;             // in words, and why
  int64_t head = 0, tail = 0;      // CUDA: positions one by one before and behind the vectors; -1: each row has its own
  std::string choice;              // how a position comes to its piece, in words
  int64_t segments = 0;            // CUDA, where a table tells pieces: entries that this call uses
  int64_t table_bytes = 0;         // of it, among the launch arguments
  std::vector<std::string> checks; // what keeps reads in bounds, and what this call was looked at for, in words
  std::vector<OperandUse> operands; // arguments in their order, then `out`
  std::vector<PieceUse> pieces;
  bool walked = true;                      // false: there are too many rows to count positions by
  int64_t read = 0, written = 0, copy = 0; // bytes: of the call, and of a copy of its result
  bool at_most = false;                    // read and written are bounds, not exact
  int64_t untouched = 0;                   // in place: positions that keep their element, neither read nor written
  int64_t not_launched = 0;                // of these, those for which no thread starts (CUDA)
  std::string form;                        // in words
  bool plan_cached = false, compiled = false;
  bool made = false;                           // CUDA, not compiled here: the code is there, loaded on another device
  std::string target;                          // "sm_90", or LLVM's name for this CPU; "": not known
  unsigned grid = 0, block_x = 0, block_y = 0; // CUDA
  bool has_facts = false;                      // CUDA, loaded on the device
  int registers = 0, local_bytes = 0, shared_bytes = 0, binary = 0;
  int64_t code_bytes = 0; // CPU, compiled: of machine code
};
/// Looks at a call as run() would and refuses what it would refuse, but compiles, keeps and counts nothing, needs no
/// `out`, and touches no element. `positions`: by piece, how many it has if somebody has counted them.
EW_API Result<Explained> explain(const SpecRef &, const Call &, std::span<const int64_t> positions = {}) noexcept;
/// The same rule with each piece's value replaced by the piece's number, from 0: what elements decide can be counted by
/// running it.
EW_API std::string numbered(const Spec &) noexcept;

enum class Stage : uint8_t { Tokens, Ast, Ir, Cuda, Ptx, Cubin, Llvm, Asm, Torch };
struct EmitRequest {
  Stage stage = Stage::Cuda;
  Signature signature; // one ArgType an argument; Unknown is filled: a name used with i or n alone stays an error, any
                       // other defaults to f32 tensor
  std::string arch;    // "sm_90"; "" the present device's, else sm_80. For llvm, asm: "" the host's CPU
  bool in_place = false;   // as if `out` were the first tensor argument
  bool window = false;     // the form of a part of a domain
  int rows = 0;            // emit the row form with that many row axes (a rule without named axes)
  bool flat = false;       // with rows, or named axes that make some: the form of short rows
  bool any_length = false; // the form whose indexes have 64 bits
  int rank = -1;           // of the domain; else the largest of `ranks` that counts, at least the axes of the header
  std::vector<int> ranks;  // by argument; -1: not known. Those of tensors read elementwise count
  std::string print_after; // a pass name, "all", or ""
  std::optional<std::vector<std::string>> passes; // these alone, in this order, instead of all
  bool verify_each = false;
};
/// Text of a stage (Cubin: bytes). Layout: all contiguous vectors.
EW_API Result<std::string> emit(const Spec &, const EmitRequest &) noexcept;
/// The same of a kernel given as IR text. `passes` missing: all of them if it has no schedule, none if it has. Its form
/// is its own, or if it has none that of contiguous vectors; of the request's signature and ranks nothing is used.
EW_API Result<std::string> emit_ir(std::string_view text, std::string_view file, const EmitRequest &) noexcept;
/// Tokens or Ast of a text that need not be a whole or well-typed spec: only what is wrong up to that stage is a fault.
EW_API Result<std::string> emit_syntax(std::string_view text, std::string_view file, Stage) noexcept;
/// The text in the language's style (compiler/parse/format.h); only what does not parse is a fault.
EW_API Result<std::string> format(std::string_view text, std::string_view file) noexcept;

struct Counters {
  uint64_t nvrtc = 0, orc = 0;      // compilations
  uint64_t variants = 0, plans = 0; // made so far
  uint64_t variant_hits = 0, plan_hits = 0;
  uint64_t launches = 0; // CUDA launches
};
EW_API Counters counters() noexcept;
/// Drops every cached variant and plan that no call is using.
EW_API void clear_cache() noexcept;
/// Threads of the CPU pool (0: back to the default: the cores this process may use). torch.get_num_threads() is
/// respected by the Python layer.
EW_API void set_threads(int) noexcept;

/// One line a fact, for `doctor` and error messages: {"driver", "/usr/lib/…/libcuda.so.1 (13.0)"} …
struct Fact {
  std::string name, value, remedy; // remedy: empty if fine
};
EW_API std::vector<Fact> environment() noexcept;
/// True if the CUDA driver is there and has a device; else `why` (if given) says what was looked for and what to
/// install.
EW_API bool cuda_available(std::string *why) noexcept;
/// Folders or files in which NVRTC is looked for before the toolkit's and the system's (the Python layer names those
/// that pip filled).
EW_API void set_nvrtc_paths(const std::vector<std::string> &) noexcept;
/// Every NVRTC that is there, in the order of trying, as {what named its place, path}; the last are names for the
/// system's loader, which may not be there.
EW_API std::vector<Fact> nvrtc_places() noexcept;
EW_API std::string_view version() noexcept;

} // namespace elsewise::api

/// The driver: `ewc`.
extern "C" EW_API int ew_main(int argc, char **argv) noexcept;
