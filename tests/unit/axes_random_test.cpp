// SPDX-License-Identifier: Apache-2.0
// Random rules over named axes on random layouts: CPU code and CUDA C on the CPU against the IR's own arithmetic at
// every position. No front end takes part.
#include "compiler/emit/emit.h"
#include "compiler/ir/arithmetic.h"
#include "compiler/ir/rows.h"
#include "compiler/passes/axes.h"
#include "runtime/cpu/jit.h"
#include "runtime/host/faults.h"
#include "runtime/layout/layout.h"
#include "tests/shim/shim.h"
#include "tests/unit/cpu_kernels.h"
#include <gtest/gtest.h>
#include <numeric>
#include <random>

namespace elsewise::test {
namespace {

constexpr int64_t canary = 99;

class RandomAxes {
public:
  explicit RandomAxes(uint64_t seed) : random_(seed) { make(); }

  const Kernel &lowered() const { return lowered_; }
  const Kernel &scheduled(Machine m) const { return m == Machine::Cpu ? cpu_ : cuda_; }
  const std::string &wrong() const { return wrong_; }
  bool refused() const { return refused_; }
  bool flat() const { return cuda_.form.flat; }

  // What the kernel's slot holds.
  Slot slot(const Kernel &k, const SlotInfo &s) {
    Slot v{};
    switch (s.kind) {
    case SlotKind::Out:
      v.pointer = out_.data() + out_base_;
      break;
    case SlotKind::In:
      v.pointer = in_.data() + in_base_;
      break;
    case SlotKind::Uniform:
      v = uniform_slot(k[k.uniforms[s.index]].type, values_[k.uniforms[s.index]]);
      break;
    case SlotKind::Begin:
    case SlotKind::End:
      v.integer = clamp_bound(values_[bound_node(k, s)], bound_axis(k, s) == flat_axis ? count_ : loop_.extent);
      break;
    default:
      v.integer = loop_slot(loop_, s).value_or(0);
      break;
    }
    return v;
  }

  /// Host values of a kernel; false: the call is refused, or needs 128 bits.
  bool settle(const Kernel &k) {
    HostDomain domain(count_);
    domain.axes = lengths_, domain.extent = loop_.extent, domain.inner_pitch = loop_.inner_pitch;
    domain.row_lengths = ref(loop_.lengths), domain.row_pitches = ref(loop_.pitches);
    std::vector<HostValue> params(3);
    params[1].integer = parameter_;
    HostProgram(k).run(params, domain, values_, poisoned_);
    const CallChecks checks(k);
    const CallCheck check = checks.run(values_, poisoned_, checks.looks(domain), domain);
    fault_ = check.fault.message;
    return check.fault.what == HostFault::None && !check.wide;
  }

  std::string run_cpu_code() {
    std::string error;
    const auto code = compile_cpu(cpu_, error);
    if (!code) return error;
    reset();
    std::vector<Slot> all;
    for (const SlotInfo &s : slots(cpu_, Backend::Cpu)) all.push_back(slot(cpu_, s));
    const int64_t half = loop_.extent / 2; // in parts, as threads do
    code->function(all.data(), 0, loop_.rows, 0, half);
    code->function(all.data(), 0, loop_.rows, half, loop_.extent);
    return compare();
  }
  std::string run_shim(const ShimBatch &batch, size_t index) {
    reset();
    const CudaCall call = cuda_call(cuda_, [&](const SlotInfo &s) { return slot(cuda_, s); });
    batch.launch(index, call.geometry, call.pointers().data());
    return compare();
  }

private:
  int pick(int n) { return int(random_() % uint64_t(n)); }

  NodeId index(Builder &b, int depth) {
    const int what = depth <= 0 ? pick(4) : pick(9);
    if (what == 0 && !lowered_.axes.empty()) return b.pos(uint32_t(pick(int(lowered_.axes.size()))));
    if (what == 1) return pick(3) ? b.pos(uint32_t(pick(int(lowered_.axes.size())))) : b.pos(flat_axis);
    if (what == 2) return b.integer(DType::Index, pick(9) - 2);
    if (what == 3) {
      const int which = pick(3);
      return which == 0   ? b.param(1, DType::Index)
             : which == 1 ? b.len(flat_axis)
                          : b.len(uint32_t(pick(int(lowered_.axes.size()))));
    }
    const NodeId x = index(b, depth - 1), y = index(b, depth - 1);
    if (what == 4) return b.call(pick(2) ? least_row() : greatest_row(), DType::Index, {x, y});
    if (what == 5) return b.binary(BinaryOp::Sub, x, y);
    if (what == 6) return b.binary(BinaryOp::FloorDiv, x, b.integer(DType::Index, 1 + pick(4)));
    if (what == 7) return b.binary(BinaryOp::Mod, x, b.integer(DType::Index, 1 + pick(4)));
    return b.binary(BinaryOp::Add, x, y);
  }
  NodeId guard(Builder &b, int depth) {
    const int what = depth <= 0 ? 0 : pick(5);
    if (what == 1) return b.logic(LogicOp::Not, guard(b, depth - 1));
    if (what == 2 || what == 3) {
      const NodeId x = guard(b, depth - 1), y = guard(b, depth - 1);
      return b.logic(what == 2 ? LogicOp::And : LogicOp::Or, x, y);
    }
    if (what == 4 && pick(3) == 0) return b.compare(CompareOp::Gt, b.load(0), b.real(DType::F32, 0), Exactness::Data);
    const NodeId x = index(b, 2), y = index(b, 2);
    return b.compare(CompareOp(pick(6)), x, y);
  }

  void make() {
    const int rank = 1 + pick(4);
    for (int d = 0; d < rank; ++d) domain_.push_back(pick(5) == 0 ? 1 : 1 + pick(rank == 1 ? 900 : rank == 2 ? 40 : 9));
    count_ = std::accumulate(domain_.begin(), domain_.end(), int64_t(1), std::multiplies<>());
    parameter_ = pick(12) - 3;
    // The output dense in some order, with a gap now and then; the input likewise, or backwards, or repeated.
    auto strides = [&](bool reads, Dims &stride, int64_t &base, int64_t &size) {
      std::vector<int> order(static_cast<size_t>(rank));
      std::iota(order.rbegin(), order.rend(), 0);
      if (pick(2)) std::shuffle(order.begin(), order.end(), random_);
      stride.assign(size_t(rank), 0);
      int64_t next = pick(6) == 0 ? 2 : 1;
      base = pick(4);
      for (int d : order) {
        const bool repeats = reads && pick(6) == 0;
        stride[size_t(d)] = repeats ? 0 : next;
        if (repeats) continue;
        next *= domain_[size_t(d)];
        next += pick(4) ? 0 : pick(3);
      }
      size = next + 8;
      if (reads)
        for (int d = 0; d < rank; ++d)
          if (pick(6) == 0) base += stride[size_t(d)] * (domain_[size_t(d)] - 1), stride[size_t(d)] *= -1;
    };
    int64_t out_size, in_size;
    strides(false, out_stride_, out_base_, out_size), strides(true, in_stride_, in_base_, in_size);
    out_.assign(size_t(out_size + 8), canary), in_.resize(size_t(in_size + 8));
    for (float &v : in_) v = float(pick(21) - 10);

    lowered_.arguments = {{"x", {ArgKind::Tensor, DType::F32}}, {"m", {ArgKind::Int}}};
    lowered_.outputs = {DType::F32};
    lowered_.source = "random";
    static const char *names[] = {"b", "h", "t", "c"};
    for (int d = 0; d < rank; ++d)
      if (lowered_.axes.empty() ? d + 1 == rank || pick(4) : pick(4)) {
        lowered_.axes.push_back({names[d], pick(2) ? d : d - rank});
        dims_.push_back(d), lengths_.push_back(domain_[size_t(d)]);
      }
    Builder b(lowered_);
    const int pieces = 1 + pick(5);
    for (int p = 0; p <= pieces; ++p) {
      Piece piece;
      if (p < pieces) piece.guard = guard(b, 2);
      const NodeId x = b.load(0);
      NodeId v = pick(3) ? b.binary(BinaryOp::Mul, x, b.real(DType::F32, p + 2)) : x;
      if (pick(2)) v = b.binary(BinaryOp::Add, v, b.cast(b.pos(uint32_t(pick(int(lowered_.axes.size())))), DType::F32));
      if (pick(4) == 0) v = b.cast(index(b, 2), DType::F32);
      piece.values = {v};
      piece.line = uint32_t(p + 1), piece.text = "piece";
      lowered_.pieces.push_back(piece);
    }
    std::string error;
    const Kernel plain = run_passes(lowered_, {.verify_each = true}, &error);
    if (!error.empty()) {
      wrong_ = error;
      return;
    }
    const UsedPositions used = used_positions(plain);
    Positions positions{used.flat};
    positions.dims.assign(size_t(rank), false);
    for (size_t a = 0; a < dims_.size(); ++a)
      if (used.axes[a]) positions.dims[size_t(dims_[a])] = true;
    const std::vector<Dims> inputs{in_stride_, Dims(size_t(rank), 0)};
    loop_ = make_loop(ref(domain_), ref(out_stride_), inputs, positions);
    const bool reads = plain.form.args[0] != Access::Absent;
    const std::vector<Operand> operands{{DType::F32, reads, false}, {DType::F32, false, false}};
    for (Machine m : {Machine::Cpu, Machine::Cuda}) {
      Form form = make_form(loop_, DType::F32, operands, used.flat, m, ref(dims_),
                            {.longest_flat = pick(3) ? longest_flat_row : 0});
      if (m == Machine::Cuda && form.args[0] == Access::Vector && (in_base_ - out_base_) % 4)
        form.args[0] = Access::Scalar;
      (m == Machine::Cpu ? cpu_ : cuda_) =
          run_passes(lowered_, {.form = form, .has_form = true, .verify_each = true}, &error);
      if (!error.empty()) wrong_ = error;
    }
    refused_ = !settle(cpu_);
  }

  void reset() { std::fill(out_.begin(), out_.end(), float(canary)); }

  Constant at(NodeId n, const std::vector<int64_t> &position, float x) const {
    const Inst &i = lowered_[n];
    switch (i.op) {
    case Op::Const:
      return lowered_.constants[i.a];
    case Op::Param:
      return {parameter_, 0};
    case Op::Len:
      return {i.a == flat_axis ? count_ : lengths_[i.a], 0};
    case Op::Pos: {
      if (i.a != flat_axis) return {position[size_t(dims_[i.a])], 0};
      int64_t flat = 0;
      for (size_t d = 0; d < domain_.size(); ++d) flat = flat * domain_[d] + position[d];
      return {flat, 0};
    }
    case Op::Load:
      return {0, x};
    default: {
      std::vector<Constant> list;
      for (NodeId o : operands(lowered_, n)) list.push_back(at(o, position, x));
      Constant result;
      apply(i, lowered_[operands(lowered_, n)[0]].type, list, result);
      return result;
    }
    }
  }

  // Empty, or the first element that is wrong; what is no element must not be written.
  std::string compare() const {
    std::vector<bool> written(out_.size());
    std::vector<int64_t> position(domain_.size());
    for (int64_t n = 0; n < count_; ++n) {
      int64_t rest = n, to = out_base_, from = in_base_;
      for (size_t d = domain_.size(); d-- > 0;) {
        position[d] = rest % domain_[d], rest /= domain_[d];
        to += position[d] * out_stride_[d], from += position[d] * in_stride_[d];
      }
      const float x = in_[size_t(from)];
      float want = 0;
      for (const Piece &p : lowered_.pieces)
        if (p.guard == no_node || at(p.guard, position, x).integer) {
          want = float(at(p.values[0], position, x).real);
          break;
        }
      written[size_t(to)] = true;
      if (out_[size_t(to)] != want) {
        std::string where = "at (";
        for (int64_t p : position) where += std::to_string(p) + " ";
        return where + "): " + std::to_string(out_[size_t(to)]) + ", not " + std::to_string(want);
      }
    }
    for (size_t o = 0; o < out_.size(); ++o)
      if (!written[o] && out_[o] != canary) return "wrote beside the output at " + std::to_string(o);
    return "";
  }

  std::mt19937_64 random_;
  Kernel lowered_, cpu_, cuda_;
  Dims domain_, out_stride_, in_stride_, dims_;
  std::vector<int64_t> lengths_;
  int64_t count_ = 0, parameter_ = 0, out_base_ = 0, in_base_ = 0;
  std::vector<float> out_, in_;
  Loop loop_;
  std::vector<HostValue> values_;
  std::vector<uint8_t> poisoned_;
  std::string wrong_, fault_;
  bool refused_ = false;
};

TEST(Axes, RandomRulesOnBothBackends) {
  std::vector<std::unique_ptr<RandomAxes>> cases;
  std::vector<std::string> texts;
  size_t refused = 0, flat = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    auto one = std::make_unique<RandomAxes>(seed);
    ASSERT_EQ(one->wrong(), "");
    if (one->refused()) { // small numbers never leave 64 bits
      ++refused;
      ADD_FAILURE() << "refused: " << print(one->lowered());
      continue;
    }
    ASSERT_EQ(one->run_cpu_code(), "") << print(one->lowered()) << print(one->scheduled(Machine::Cpu));
    texts.push_back(emit_cuda(one->scheduled(Machine::Cuda)));
    flat += one->flat();
    cases.push_back(std::move(one));
  }
  std::string error;
  const auto batch = ShimBatch::build(texts, error);
  ASSERT_TRUE(batch) << error.substr(0, 3000);
  for (size_t c = 0; c < cases.size(); ++c) {
    ASSERT_TRUE(cases[c]->settle(cases[c]->scheduled(Machine::Cuda)));
    ASSERT_EQ(cases[c]->run_shim(*batch, c), "") << print(cases[c]->scheduled(Machine::Cuda)) << texts[c];
  }
  EXPECT_GT(flat, cases.size() / 10);
}

} // namespace
} // namespace elsewise::test
