// SPDX-License-Identifier: Apache-2.0
// Rows, segments, chains, layouts and aliasing of CPU code on random kernels, against a loop that asks every position.
// Arithmetic stands in llvm_test.cpp.
#include "tests/unit/cpu_kernels.h"
#include <gtest/gtest.h>
#include <numeric>
#include <random>

namespace elsewise::test {
namespace {

/// A random rule on i32 data, what it is run on, and its plain evaluation.
struct Case {
  std::mt19937 random;
  int pick(int n) { return int(random() % uint32_t(n)); }

  struct Box {
    int64_t lo, hi;
    bool open_lo, open_hi;
  };
  struct Rule {
    std::vector<Box> boxes;
    bool guarded;
    int threshold; // guard: y > threshold
    int kind;      // 0: x, 1: x + y * 3, 2: i, 3: constant
  };
  std::vector<Rule> rules;
  std::vector<int64_t> shape; // logical
  std::vector<int> order;     // memory: axes from the slowest to the fastest
  Access x_access, y_access, out_access;
  bool in_place = false;

  explicit Case(uint32_t seed) : random(seed) {
    const int rank = 1 + pick(3);
    for (int d = 0; d < rank; ++d) shape.push_back(rank == 1 ? 1 + pick(400) : 1 + pick(d + 1 == rank ? 60 : 7));
    order.resize(size_t(rank));
    std::iota(order.begin(), order.end(), 0);
    if (pick(3) == 0) std::shuffle(order.begin(), order.end(), random);
    in_place = pick(3) == 0;
    auto access = [&] { return pick(2) ? Access::Vector : pick(2) ? Access::Strided : Access::Broadcast; };
    out_access = pick(4) ? Access::Vector : Access::Strided;
    x_access = in_place ? out_access : access();
    y_access = access();
    const int pieces = 1 + pick(pick(4) ? 4 : 9);
    for (int p = 0; p < pieces; ++p) {
      Rule r;
      const int boxes = p + 1 == pieces ? 0 : pick(4) ? 1 + pick(2) : 0;
      const int64_t n = count();
      for (int i = 0; i < boxes; ++i) {
        Box box{pick(int(n) + 1), pick(int(n) + 1), pick(3) == 0, pick(3) == 0};
        if (box.open_lo && box.open_hi) box.open_lo = false;
        r.boxes.push_back(box);
      }
      r.guarded = p + 1 < pieces && (boxes == 0 || pick(3) == 0);
      r.threshold = pick(200) - 100;
      r.kind = pick(4);
      rules.push_back(r);
    }
  }
  int64_t count() const { return std::accumulate(shape.begin(), shape.end(), int64_t(1), std::multiplies<>()); }

  int32_t evaluate(int64_t i, int32_t x, int32_t y) const {
    for (const Rule &r : rules) {
      bool inside = r.boxes.empty();
      for (const Box &b : r.boxes) inside |= (b.open_lo || b.lo <= i) && (b.open_hi || i < b.hi);
      if (!inside || (r.guarded && y <= r.threshold)) continue;
      return r.kind == 0 ? x : r.kind == 1 ? x + y * 3 : r.kind == 2 ? int32_t(i) : 7;
    }
    return -1;
  }

  void run() {
    const size_t rank = shape.size();
    const int inner = order.back();
    Maker m({DType::I32, DType::I32}, DType::I32);
    Kernel &k = m.kernel;
    std::map<NodeId, int64_t> bounds;
    auto bound = [&](int64_t v) { // a host node that is not a constant, one a value
      const NodeId node = m.b.binary(BinaryOp::Add, m.count(), m.b.integer(DType::Index, v));
      bounds[node] = v;
      return node;
    };
    for (const Rule &r : rules) {
      Piece p;
      for (const Box &b : r.boxes)
        p.boxes.push_back({m.range(b.open_lo ? no_node : bound(b.lo), b.open_hi ? no_node : bound(b.hi))});
      const NodeId x = m.b.load(0), y = m.b.load(1);
      if (r.guarded) p.guard = m.b.compare(CompareOp::Gt, y, m.b.integer(DType::I32, r.threshold));
      p.values = {r.kind == 0   ? x
                  : r.kind == 1 ? m.b.binary(BinaryOp::Add, x, m.b.binary(BinaryOp::Mul, y, m.b.integer(DType::I32, 3)))
                  : r.kind == 2 ? m.b.cast(m.flat(), DType::I32)
                                : m.b.integer(DType::I32, 7)};
      k.pieces.push_back(std::move(p));
    }
    k.form.rows = uint8_t(rank - 1);
    k.form.unit_pitch = inner == int(rank) - 1;
    k.form.out = out_access;
    k.form.args = {x_access, y_access};
    k.form.same_view = {in_place, false};
    m.scheduled();
    std::string error;
    const auto code = compile_cpu(k, error);
    ASSERT_TRUE(code) << error;

    // Layouts: memory order of `order`, with gaps; inner stride 1, 3 or 0.
    std::vector<int64_t> pitch(rank, 1);
    for (size_t d = rank - 1; d-- > 0;) pitch[d] = pitch[d + 1] * shape[d + 1];
    auto strides = [&](Access access) {
      std::vector<int64_t> s(rank);
      int64_t step = access == Access::Strided ? 3 : 1;
      for (size_t j = rank; j-- > 0;) {
        const size_t d = size_t(order[j]);
        s[d] = access == Access::Broadcast && int(d) == inner ? 0 : step;
        step *= shape[d] + (access == Access::Broadcast ? 0 : 1);
      }
      return s;
    };
    const auto out_stride = strides(out_access), x_stride = in_place ? out_stride : strides(x_access),
               y_stride = strides(y_access);
    const size_t room = 4 * 4 * 9 * 9 * 500;
    std::vector<int32_t> out(room), x(room), y(room);
    for (auto *v : {&x, &y})
      for (int32_t &e : *v) e = pick(300) - 150;
    std::fill(out.begin(), out.end(), 12345);
    if (in_place) out = x;

    // Expected: position by position.
    std::vector<int32_t> want = out;
    for (int64_t i = 0; i < count(); ++i) {
      int64_t o = 0, a = 0, b = 0;
      for (size_t d = 0; d < rank; ++d) {
        const int64_t at = i / pitch[d] % shape[d];
        o += at * out_stride[d], a += at * x_stride[d], b += at * y_stride[d];
      }
      want[size_t(o)] = evaluate(i, x[size_t(a)], y[size_t(b)]);
    }

    Operands run;
    run.out = out.data(), run.in = {x.data(), y.data()};
    run.bounds = bounds;
    run.extent = shape[size_t(inner)];
    run.in_strides.resize(2);
    for (size_t j = rank - 1; j-- > 0;) { // row axes, the fastest first
      const size_t d = size_t(order[j]);
      run.rows *= shape[d];
      run.row_lengths.push_back(shape[d]), run.row_pitches.push_back(pitch[d]),
          run.out_strides.push_back(out_stride[d]);
      run.in_strides[0].push_back(x_stride[d]), run.in_strides[1].push_back(y_stride[d]);
    }
    run.inner_pitch = pitch[size_t(inner)], run.out_inner = out_stride[size_t(inner)];
    run.in_inner = {x_stride[size_t(inner)], y_stride[size_t(inner)]};
    const std::vector<Slot> slots = fill(k, run);
    // In parts, as the pool would cut it: rows, and stretches of rows.
    for (int64_t r = 0, z; r < run.rows; r = z) {
      z = std::min<int64_t>(run.rows, r + 1 + pick(9));
      for (int64_t c = 0, e; c < run.extent; c = e) {
        e = std::min<int64_t>(run.extent, c + 1 + pick(int(run.extent)));
        code->function(slots.data(), r, z, c, e);
      }
    }
    EXPECT_EQ(out, want) << print(k);
  }
};

TEST(LlvmLoops, RandomRulesAndLayouts) {
  for (uint32_t seed = 0; seed < 120 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Case(seed).run();
  }
}

// Bits of a bare element survive: signalling NaNs, bools that are neither 0 nor 1.
TEST(LlvmLoops, BareElementsMoveAsBits) {
  for (DType d : {DType::F16, DType::BF16, DType::F32, DType::F64, DType::Bool}) {
    Maker m({d, DType::I32}, d);
    const NodeId x = m.b.load(0);
    const NodeId other = d == DType::Bool ? m.b.integer(d, 1) : m.b.real(d, 1);
    m.piece(other, {}, m.b.compare(CompareOp::Gt, m.b.load(1), m.b.integer(DType::I32, 0)));
    m.piece(x);
    std::string error;
    const auto code = compile_cpu(m.scheduled(), error);
    ASSERT_TRUE(code) << error;
    constexpr size_t n = 4099;
    std::vector<uint8_t> in(n * 8), out(n * 8, 0);
    std::vector<int32_t> y(n, -1);
    std::mt19937 random(1);
    for (uint8_t &b : in) b = uint8_t(random());
    const size_t size = size_t(bytes(d));
    if (size > 1)
      for (size_t i = 0; i < n; i += 2)
        in[i * size + size - 1] |= 0x7f, in[i * size + size - 2] |= d == DType::F16 ? 0x7c : 0xf0; // NaNs of every kind
    if (size > 2)
      for (size_t i = 0; i < n; i += 4)
        in[i * size + size - 2] &= 0xb7 | (d == DType::F64 ? 0xf0 : 0x80); // the quiet bit off
    Operands run;
    run.out = out.data(), run.in = {in.data(), y.data()}, run.extent = n;
    code->function(fill(m.kernel, run).data(), 0, 1, 0, n);
    EXPECT_TRUE(std::equal(in.begin(), in.begin() + long(n * size), out.begin())) << spelling(d);
  }
}

// Parameters come through slots in their node's type.
TEST(LlvmLoops, UniformsOfEveryType) {
  for (DType d : {DType::Index, DType::F64, DType::Bool, DType::F32, DType::I8, DType::I64}) {
    Maker m({DType::F32}, d == DType::Index ? DType::I64 : d);
    const NodeId p = m.parameter(d == DType::Bool                    ? DType::Bool
                                 : d == DType::Index || !is_float(d) ? DType::Index
                                                                     : DType::F64);
    const NodeId v = m.kernel[p].type == d ? p : m.b.cast(p, d);
    m.piece(d == DType::Index ? m.b.cast(m.b.binary(BinaryOp::Add, m.flat(), v), DType::I64) : v);
    m.scheduled();
    std::string error;
    const auto code = compile_cpu(m.kernel, error);
    ASSERT_TRUE(code) << error;
    uint64_t out[5] = {};
    Operands run;
    float x[5] = {};
    run.out = out, run.in = {x}, run.extent = 5;
    Slot slot{};
    if (d == DType::F64) slot.real = 2.5;
    else if (d == DType::F32) slot.single = 2.5f;
    else if (d == DType::Bool) slot.byte = 1;
    else slot.integer = -3;
    run.uniforms[v] = slot;
    code->function(fill(m.kernel, run).data(), 0, 1, 0, 5);
    const auto *bytes_out = reinterpret_cast<const uint8_t *>(out);
    if (d == DType::F64) EXPECT_EQ(reinterpret_cast<double *>(out)[4], 2.5);
    else if (d == DType::F32) EXPECT_EQ(reinterpret_cast<float *>(out)[4], 2.5f);
    else if (d == DType::Bool || d == DType::I8) EXPECT_EQ(int8_t(bytes_out[4]), d == DType::Bool ? 1 : -3);
    else EXPECT_EQ(int64_t(out[4]), d == DType::Index ? 1 : -3);
  }
}

} // namespace
} // namespace elsewise::test
