// SPDX-License-Identifier: Apache-2.0
// Hand-made kernels as CUDA C on the CPU: the seed rule at many lengths and places, every conversion of halves, awkward
// names. No pass runs here.
#include "compiler/emit/emit.h"
#include "compiler/ir/arithmetic.h"
#include "grammar/builtins.h"
#include "tests/shim/shim.h"
#include "tests/unit/cpu_kernels.h"
#include "tests/unit/interpret.h"
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <random>

namespace elsewise::test {
namespace {

struct Seed {
  Maker m{{DType::F32}, DType::F32};
  NodeId quarter, rest;
  Seed(bool in_place, Access access, int rows) {
    Builder &b = m.b;
    const NodeId n = m.count(), x = b.load(0);
    quarter = b.binary(BinaryOp::FloorDiv, n, b.integer(DType::Index, 4));
    rest = b.binary(BinaryOp::Sub, n, quarter);
    m.piece(b.binary(BinaryOp::Mul, x, b.real(DType::F32, 0.5)), {m.range(no_node, quarter)});
    m.piece(b.binary(BinaryOp::Mul, x, b.real(DType::F32, 2)), {m.range(rest, no_node)});
    m.piece(x);
    Form &f = m.kernel.form;
    f.same_view[0] = in_place;
    f.args[0] = access;
    f.out = access == Access::Strided ? access : Access::Vector;
    f.vector = f.out == Access::Strided ? 1 : 4;
    f.rows = uint8_t(rows);
    m.scheduled();
  }
  // `in` and `out` at element 0; rows of `columns`, `pitch` elements apart.
  CudaCall call(float *out, const float *in, int64_t rows, int64_t columns, int64_t pitch, int64_t inner) const {
    const Kernel &k = m.kernel;
    const int64_t n = rows * columns;
    const Alike layout{out, in, rows, columns, pitch, inner};
    return cuda_call(k, [&](const SlotInfo &s) {
      if (s.kind != SlotKind::Begin && s.kind != SlotKind::End) return layout.slot(s);
      return Slot{.integer = bound_node(k, s) == quarter ? n / 4 : n - n / 4};
    });
  }
};

float seed_value(int64_t i, int64_t n, float x) { return i < n / 4 ? x * 0.5f : i >= n - n / 4 ? x * 2 : x; }

TEST(CudaKernel, SeedRuleAtEveryLengthAndPlace) {
  Seed distinct(false, Access::Vector, 0), in_place(true, Access::Vector, 0), scalar(false, Access::Scalar, 0),
      strided(false, Access::Strided, 0);
  Seed *const variants[] = {&distinct, &in_place, &scalar, &strided};
  constexpr size_t forms = 8; // each with indexes of 64 bits, then each with ones of 32
  auto form = [&](size_t f) -> const Seed & {
    variants[f % 4]->m.kernel.form.narrow = f >= 4;
    return *variants[f % 4];
  };
  std::vector<std::string> texts;
  for (size_t f = 0; f < forms; ++f) texts.push_back(emit_cuda(form(f).m.kernel));
  std::string error;
  const auto batch = ShimBatch::build(texts, error);
  ASSERT_TRUE(batch) << error;
  std::vector<int64_t> lengths{1000, 1023, 1024, 1025, 4097, 5000, 20000};
  for (int64_t n = 0; n <= 200; ++n) lengths.push_back(n);
  for (size_t f = 0; f < forms; ++f)
    for (int64_t n : lengths)
      for (int64_t place = 0; place < 5; ++place) {
        const size_t variant = f % 4;
        const int64_t inner = variant == 3 ? 3 : 1, in_place_of = variant == 2 ? 4 - place : place;
        alignas(16) static float from[61000], to[61000];
        for (int64_t i = 0; i < n * inner + 16; ++i) from[i] = float(i % 1000) + 0.25f, to[i] = -7;
        float *out = variant == 1 ? from + place : to + place;
        const std::vector<float> before(from, from + n * inner + 16);
        const CudaCall call = form(f).call(out, from + in_place_of, 1, n, 0, inner);
        if (variant == 1 && n == 20000) {
          ASSERT_LT(call.geometry.grid, 14u); // of 20 blocks, those in the middle stay out
        }
        batch->launch(f, call.geometry, call.pointers().data());
        for (int64_t i = 0; i < n; ++i)
          ASSERT_EQ(out[i * inner], seed_value(i, n, before[in_place_of + i * inner]))
              << "form " << f << " n " << n << " place " << place << " i " << i;
        for (int64_t i = -std::min<int64_t>(place, 1); i < n * inner + 3; ++i)
          if (i < 0 || i % inner || i >= n * inner) {
            ASSERT_EQ(out[i], variant == 1 ? before[place + i] : -7.0f) << "wrote outside at " << i;
          }
      }
}

TEST(CudaKernel, SeedRuleInRows) {
  Seed wide(false, Access::Vector, 1), narrow(false, Access::Vector, 1), in_place(true, Access::Vector, 1);
  narrow.m.kernel.form.narrow = true;
  const Seed *variants[] = {&wide, &narrow, &in_place};
  std::vector<std::string> texts;
  for (const Seed *s : variants) texts.push_back(emit_cuda(s->m.kernel));
  std::string error;
  const auto batch = ShimBatch::build(texts, error);
  ASSERT_TRUE(batch) << error;
  std::vector<float> from, to;
  for (size_t variant = 0; variant < 3; ++variant)
    for (int64_t rows : {1, 2, 7, 40})
      for (int64_t columns : {1, 3, 31, 64, 65, 1030})
        for (int64_t gap : {0, 1, 4})
          for (int64_t place : {0, 1, 3}) {
            const int64_t pitch = columns + gap, n = rows * columns;
            from.assign(rows * pitch + 32, 0), to.assign(rows * pitch + 32, -7);
            for (size_t i = 0; i < from.size(); ++i) from[i] = float(i % 777) - 3;
            auto aligned = [&](std::vector<float> &v) {
              return v.data() + (0 - reinterpret_cast<uintptr_t>(v.data())) % 16 / 4 + place;
            };
            const std::vector<float> before = from;
            const float *was = before.data() + (aligned(from) - from.data());
            float *out = variant == 2 ? aligned(from) : aligned(to);
            const CudaCall call = variants[variant]->call(out, aligned(from), rows, columns, pitch, 1);
            batch->launch(variant, call.geometry, call.pointers().data());
            for (int64_t r = 0; r < rows; ++r)
              for (int64_t c = 0; c < pitch; ++c) {
                const float untouched = variant == 2 ? was[r * pitch + c] : -7.0f;
                const float want = c < columns ? seed_value(r * columns + c, n, was[r * pitch + c]) : untouched;
                ASSERT_EQ(out[r * pitch + c], want) << "variant " << variant << " row " << r << " column " << c;
              }
          }
}

TEST(CudaKernel, LiveRangesOfAnAxis) { // bounds of the inner axis have slots of their own
  Form form;
  form.args = {Access::Absent, Access::Vector}, form.same_view = {false, true}, form.inner_axis = 0;
  const Kernel k = scheduled("[t]; 2 <= t < m: x*2; else x", {"x: f32", "m: int"}, form);
  ASSERT_TRUE(has_live(k));
  alignas(16) float out[4] = {};
  auto blocks = [&](int64_t m) {
    const CudaCall call = cuda_call(k, [&](const SlotInfo &s) {
      Slot v{};
      if (s.kind == SlotKind::Out) v.pointer = out;
      if (s.kind == SlotKind::Extent) v.integer = 1'000'000;
      if (s.kind == SlotKind::Begin) v.integer = 2;
      if (s.kind == SlotKind::End) v.integer = m;
      return v;
    });
    return call.geometry.grid;
  };
  EXPECT_EQ(blocks(5), 1u);
  EXPECT_EQ(blocks(3000), 3u);
  EXPECT_EQ(blocks(2), 0u);
}

TEST(CudaKernel, SeedRuleText) {
  const Seed s(false, Access::Vector, 0);
  const std::string text = emit_cuda(s.m.kernel);
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 50);
  EXPECT_EQ(text.find("#include"), std::string::npos);
}

// One cast a kernel, on one list of inputs.
class Conversion {
public:
  Conversion(DType from, DType to) : from_(from), to_(to), m_({from}, to) {
    m_.piece(m_.b.cast(is_half(from) && !is_half(to) ? m_.b.load(0) : m_.b.load(0), to));
    m_.kernel.form.vector = uint8_t(std::max(1, std::min(16 / bytes(to), 32 / bytes(from))));
    m_.scheduled();
  }
  std::string text() const { return emit_cuda(m_.kernel); }
  // Elements of `in` converted by the kernel; `out` has room.
  void run(const ShimBatch &batch, size_t index, const void *in, void *out, int64_t n) const {
    const CudaCall call = cuda_call(m_.kernel, [&](const SlotInfo &s) {
      Slot v{};
      if (s.kind == SlotKind::Out) v.pointer = out;
      if (s.kind == SlotKind::In) v.pointer = const_cast<void *>(in);
      if (s.kind == SlotKind::Extent) v.integer = n;
      return v;
    });
    batch.launch(index, call.geometry, call.pointers().data());
  }
  DType from_, to_;

private:
  Maker m_;
};

double from_bits(DType d, uint16_t h) {
  const int fraction_bits = d == DType::F16 ? 10 : 7, bias = d == DType::F16 ? 15 : 127,
            top = (1 << (15 - fraction_bits)) - 1;
  const int exponent = h >> fraction_bits & top, fraction = h & ((1 << fraction_bits) - 1);
  const double sign = h >> 15 ? -1 : 1;
  if (exponent == top) return fraction ? NAN : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - fraction_bits);
  return sign * std::ldexp((1 << fraction_bits) + fraction, exponent - bias - fraction_bits);
}

bool same(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
}

// Every row whose bits are the same everywhere, as its own kernel, on every pair of awkward floats.
TEST(CudaKernel, EveryExactRow) {
  struct Case {
    const Builtin *row;
    DType d;
    Maker m; // stays where it is
    Case(const Builtin &row, DType d, DType result) : row(&row), d(d), m({d, d}, result) {}
  };
  std::vector<std::unique_ptr<Case>> cases;
  std::vector<std::string> texts;
  for (const Builtin &f : builtins())
    for (DType d : {DType::F32, DType::F64}) {
      if (f.cuda[d == DType::F64].empty() || !f.real || f.sameness != Sameness::Bits) continue;
      const DType result = f.rule == Rule::Predicate ? DType::Bool : d;
      Case &c = *cases.emplace_back(std::make_unique<Case>(f, d, result));
      std::vector<NodeId> operands{c.m.b.load(0)};
      if (f.max_arguments > 1) operands.push_back(c.m.b.load(1));
      c.m.piece(c.m.b.call(uint8_t(&f - builtins().data()), result, operands));
      texts.push_back(emit_cuda(c.m.scheduled()));
    }
  EXPECT_GE(cases.size(), 20u);
  std::string error;
  const auto batch = ShimBatch::build(texts, error);
  ASSERT_TRUE(batch) << error;
  const double edges[] = {0,         0.25,   0.5,    0.75, 1,   1.5,      2.5,      3,         3.5,
                          1e9 + 0.5, 0x1p23, 0x1p60, 1e30, NAN, INFINITY, 0x1p-126, 0x1.8p-140};
  std::vector<double> one, other;
  for (double a : edges)
    for (double b : edges)
      for (int signs = 0; signs < 4; ++signs) one.push_back(signs & 1 ? -a : a), other.push_back(signs & 2 ? -b : b);
  const size_t count = one.size();
  for (size_t k = 0; k < cases.size(); ++k) {
    const Case &c = *cases[k];
    const bool single = c.d == DType::F32, predicate = c.row->rule == Rule::Predicate;
    const std::vector<float> a(one.begin(), one.end()), b(other.begin(), other.end());
    std::vector<double> out(count);
    const CudaCall call = cuda_call(c.m.kernel, [&](const SlotInfo &s) {
      Slot v{};
      if (s.kind == SlotKind::Out) v.pointer = out.data();
      if (s.kind == SlotKind::In)
        v.pointer = single ? (void *)(s.index ? b : a).data() : (void *)(s.index ? other : one).data();
      if (s.kind == SlotKind::Extent) v.integer = int64_t(count);
      return v;
    });
    batch->launch(k, call.geometry, call.pointers().data());
    for (size_t i = 0; i < count; ++i) {
      const double operands[] = {single ? a[i] : one[i], single ? b[i] : other[i]};
      const double want = round_to(predicate ? DType::F64 : c.d, c.row->real(operands));
      double got = out[i];
      if (predicate) got = reinterpret_cast<const bool *>(out.data())[i];
      else if (single) got = reinterpret_cast<const float *>(out.data())[i];
      ASSERT_TRUE(same(got, want)) << c.row->name << " of " << spelling(c.d) << ' ' << operands[0] << ", "
                                   << operands[1] << ": got " << got << ", not " << want;
    }
  }
}

TEST(CudaKernel, QuotientsOfWholeNumbersAreRoundedOnce) {
  Maker m({DType::I64}, DType::F32);
  const NodeId divisor = m.parameter(DType::F32);
  m.piece(m.b.binary(BinaryOp::Div, m.b.cast(m.b.load(0), DType::F32), divisor));
  const std::string text = emit_cuda(m.scheduled());
  EXPECT_NE(text.find("divide((float)x, p1, p1_inverse)"), std::string::npos) << text;
  std::string error;
  const auto batch = ShimBatch::build({text}, error);
  ASSERT_TRUE(batch) << error;
  std::mt19937_64 random(1);
  std::vector<int64_t> x{0, 1, -1, 3, INT64_MAX, INT64_MIN, (1 << 24) - 1, (1 << 24) + 1};
  while (x.size() < 4096) x.push_back(int64_t(random()) >> (random() % 64));
  std::vector<float> divisors{0.0f,    -0.0f,   1.0f,      -3.0f,     INFINITY, NAN,   0x1p-60f,      0x1.fffffep-61f,
                              0x1p60f, 0x1p61f, 0x1p-149f, 0x1p-126f, 0x1p127f, 3e38f, 0x1.fffffep0f, 0x1.000002p0f};
  while (divisors.size() < 300) {
    const float f = std::bit_cast<float>(uint32_t(random()));
    divisors.push_back(
        divisors.size() % 2 ? f : std::ldexp(1 + float(random() % (1 << 23)) * 0x1p-23f, int(random() % 124) - 62));
  }
  std::vector<float> got(x.size());
  for (const float by : divisors) {
    const CudaCall call = cuda_call(m.kernel, [&](const SlotInfo &s) {
      Slot v{};
      if (s.kind == SlotKind::Out) v.pointer = got.data();
      if (s.kind == SlotKind::In) v.pointer = x.data();
      if (s.kind == SlotKind::Extent) v.integer = int64_t(x.size());
      if (s.kind == SlotKind::Uniform) std::memcpy(&v, &by, sizeof by);
      return v;
    });
    batch->launch(0, call.geometry, call.pointers().data());
    for (size_t i = 0; i < x.size(); ++i) {
      const float want = float(x[i]) / by;
      ASSERT_TRUE(std::isnan(want) ? std::isnan(got[i])
                                   : std::bit_cast<uint32_t>(want) == std::bit_cast<uint32_t>(got[i]))
          << x[i] << " / " << by << ": got " << got[i] << ", not " << want;
    }
  }
}

// Every operator of integers on the ends of its dtype, against the exact arithmetic that folding works by.
TEST(CudaKernel, EveryOperatorOfIntegers) {
  struct Case {
    DType d;
    Maker m; // stays where it is
    Case(DType d) : d(d), m({d, d}, d) {}
  };
  std::vector<std::unique_ptr<Case>> cases;
  std::vector<std::string> texts;
  for (DType d : {DType::I8, DType::I16, DType::I32, DType::I64, DType::U8, DType::U16, DType::U32, DType::U64})
    for (int o = 0; o <= int(BinaryOp::BitXor); ++o) {
      if (BinaryOp(o) == BinaryOp::Div) continue;
      Case &c = *cases.emplace_back(std::make_unique<Case>(d));
      c.m.piece(c.m.b.binary(BinaryOp(o), c.m.b.load(0), c.m.b.load(1)));
      texts.push_back(emit_cuda(c.m.scheduled()));
    }
  std::string error;
  const auto batch = ShimBatch::build(texts, error);
  ASSERT_TRUE(batch) << error;
  for (size_t n = 0; n < cases.size(); ++n) {
    const Kernel &k = cases[n]->m.kernel;
    const DType d = cases[n]->d;
    const Inst &operation = k[k.pieces[0].values[0]];
    const int size = bytes(d), width = 8 * size;
    const __int128 high = extreme(d, true).integer, low = extreme(d, false).integer;
    std::vector<__int128> edges{low, low + 1, high, high - 1, width - 1, width, width + 1};
    for (int v = -3; v <= 3; ++v)
      if (fits(d, v)) edges.push_back(v);
    std::vector<__int128> x, y;
    for (const __int128 a : edges)
      for (const __int128 b : edges) x.push_back(a), y.push_back(b);
    alignas(64) std::byte memory[3][4096];
    ASSERT_LE(x.size() * size_t(size), sizeof memory[0]);
    for (size_t i = 0; i < x.size(); ++i)
      for (int a = 0; a < 2; ++a) std::memcpy(memory[a] + i * size_t(size), a ? &y[i] : &x[i], size_t(size));
    const CudaCall call = cuda_call(k, [&](const SlotInfo &s) {
      Slot v{};
      if (s.kind == SlotKind::Out) v.pointer = memory[2];
      if (s.kind == SlotKind::In) v.pointer = memory[s.index];
      if (s.kind == SlotKind::Extent) v.integer = int64_t(x.size());
      return v;
    });
    batch->launch(n, call.geometry, call.pointers().data());
    for (size_t i = 0; i < x.size(); ++i) {
      Constant a, b, want;
      a.integer = x[i], b.integer = y[i];
      const Constant both[] = {a, b};
      apply(operation, d, both, want);
      __int128 got = 0;
      std::memcpy(&got, memory[2] + i * size_t(size), size_t(size));
      ASSERT_EQ(wrap(d, got), want.integer) << spelling(BinaryOp(operation.sub)) << " of " << spelling(d) << ' '
                                            << int64_t(x[i]) << ", " << int64_t(y[i]);
    }
  }
}

TEST(CudaKernel, HalvesConvertExactlyOnce) {
  std::vector<std::unique_ptr<Conversion>> kernels;
  std::vector<std::string> texts;
  for (DType half : {DType::F16, DType::BF16})
    for (auto [from, to] : {std::pair{half, DType::F32},
                            {DType::F32, half},
                            {DType::F64, half},
                            {DType::I64, half},
                            {DType::I32, half}}) {
      kernels.push_back(std::make_unique<Conversion>(from, to));
      texts.push_back(kernels.back()->text());
    }
  std::string error;
  const auto batch = ShimBatch::build(texts, error);
  ASSERT_TRUE(batch) << error;
  alignas(64) static uint16_t halves[65536], got[200000];
  alignas(64) static float singles[200000];
  for (size_t k = 0; k < kernels.size(); ++k) {
    const DType half = is_half(kernels[k]->from_) ? kernels[k]->from_ : kernels[k]->to_;
    for (int h = 0; h < 65536; ++h) halves[h] = uint16_t(h);
    if (is_half(kernels[k]->from_)) {
      kernels[k]->run(*batch, k, halves, singles, 65536);
      for (int h = 0; h < 65536; ++h)
        ASSERT_TRUE(same(singles[h], from_bits(half, uint16_t(h)))) << spelling(half) << " " << h;
      continue;
    }
    // Every value that has 16 bits, the middle between it and the next, and what lies just beside the middle.
    std::vector<double> reals;
    for (int h = 0; h < 0x7fff; ++h) {
      const double a = from_bits(half, uint16_t(h)), b = from_bits(half, uint16_t(h + 1));
      if (std::isnan(a) || std::isnan(b)) continue;
      const double middle = std::isinf(b) ? a + (a - from_bits(half, uint16_t(h - 1))) / 2 : (a + b) / 2;
      for (double v : {a, middle, std::nextafter(middle, 0.0), std::nextafter(middle, INFINITY),
                       double(std::nextafter(float(middle), 0.0f)), double(std::nextafter(float(middle), INFINITY))})
        reals.push_back(h % 2 ? -v : v);
    }
    for (double v : {double(NAN), double(INFINITY), -double(INFINITY), 1e300, -1e300, 1e-300, 1e39, 5e-324,
                     65519.999999999, 65520.0})
      reals.push_back(v);
    reals.resize(std::min<size_t>(reals.size(), 200000));
    const int64_t n = int64_t(reals.size());
    std::vector<float> f32(reals.begin(), reals.end());
    std::vector<int64_t> i64;
    std::vector<int32_t> i32;
    std::mt19937_64 random(1);
    for (int64_t i = 0; i < n; ++i) { // near the middle of two neighbours, at every magnitude
      const int64_t top = int64_t(random() >> (random() % 64)), keep = top & ~((int64_t(1) << (random() % 60)) - 1);
      i64.push_back((random() % 2 ? keep : top) + int64_t(random() % 3) - 1);
      i32.push_back(int32_t(i64.back()));
    }
    const void *in = kernels[k]->from_ == DType::F32   ? (const void *)f32.data()
                     : kernels[k]->from_ == DType::F64 ? (const void *)reals.data()
                     : kernels[k]->from_ == DType::I64 ? (const void *)i64.data()
                                                       : i32.data();
    kernels[k]->run(*batch, k, in, got, n);
    for (int64_t i = 0; i < n; ++i) {
      double want;
      if (kernels[k]->from_ == DType::F32) want = round_to(half, f32[size_t(i)]);
      else if (kernels[k]->from_ == DType::F64) want = round_to(half, reals[size_t(i)]);
      else {
        // Through float, the type that halves are worked in.
        const double d = kernels[k]->from_ == DType::I64 ? float(i64[size_t(i)]) : float(i32[size_t(i)]);
        want = round_to(half, d);
      }
      ASSERT_TRUE(same(from_bits(half, got[i]), want))
          << spelling(kernels[k]->from_) << " to " << spelling(half) << " input " << i << " " << i64[size_t(i)]
          << ": got " << from_bits(half, got[i]) << ", not " << want;
    }
  }
}

// Names that C++, CUDA or the kernel use themselves, macros, and letters beyond ASCII.
TEST(CudaKernel, AwkwardNames) {
  std::vector<std::string> texts;
  const std::vector<std::string> names{
      "float", "c",         "c_",    "threadIdx", "elsewise", "NULL",    "INFINITY",   "λ",       "e1",    "piece1",
      "xs",    "x",         "xv",    "v",         "out",      "z",       "inf",        "local",   "all1",  "r0",
      "_a",    "a__b",      "int",   "fmod",      "f16",      "to_i8",   "f32x4",      "x_value", "lo",    "may",
      "k",     "p",         "shift", "rows",      "live",     "signbit", "i64",        "at",      "linux", "u1",
      "sum",   "x_stride0", "x",     "rest1",     "x_stride", "length0", "out_stride", "floorf",  "sqrtf", "9x"};
  for (int rows : {0, 2})
    for (size_t at = 0; at + 1 < names.size(); at += 2) {
      Maker m({DType::F32, DType::F16}, DType::F32);
      Builder &b = m.b;
      m.kernel.arguments[0].name = names[at], m.kernel.arguments[1].name = names[at + 1];
      const NodeId x = b.load(0), y = b.cast(b.load(1), DType::F32), sum = b.binary(BinaryOp::Add, x, y);
      const NodeId n = m.count();
      m.piece(b.binary(BinaryOp::FloorDiv, b.binary(BinaryOp::Mul, sum, sum), b.real(DType::F32, -INFINITY)),
              {m.range(no_node, n)});
      m.piece(b.cast(b.cast(sum, DType::I8), DType::F32), {},
              b.compare(CompareOp::Lt, m.flat(), b.integer(DType::Index, 3)));
      m.piece(b.call(uint8_t(find_builtin("sqrt")), DType::F32, {sum}), {},
              b.compare(CompareOp::Gt, m.flat(), b.integer(DType::Index, 5)));
      m.piece(b.binary(BinaryOp::Add, x, b.cast(b.binary(BinaryOp::Sub, n, b.integer(DType::Index, 1)), DType::F32)));
      m.kernel.form.rows = uint8_t(rows), m.kernel.form.args[1] = rows ? Access::Broadcast : Access::Vector;
      m.kernel.source = "names\\\nare awkward \\";
      texts.push_back(emit_cuda(m.scheduled()));
    }
  std::string error;
  EXPECT_TRUE(ShimBatch::build(texts, error)) << error;
}

// Helpers are overloads: with all of them there, a literal of any dtype still picks its own.
TEST(CudaKernel, OverloadsAreNeverAmbiguous) {
  Maker m({DType::F64, DType::I8}, DType::F64);
  Builder &b = m.b;
  const int rows[] = {find_builtin("min"), find_builtin("max")};
  NodeId sum = b.load(0);
  for (DType d : {DType::U8, DType::I8, DType::I16, DType::I32, DType::I64, DType::Index, DType::F32, DType::F64})
    for (double literal : {3.0, -1.0, double(INFINITY), -double(INFINITY), double(NAN)}) {
      if (!is_float(d) && !std::isfinite(literal)) continue;
      if (d == DType::U8 && literal < 0) continue;
      const NodeId x = d == DType::Index ? m.flat() : b.cast(b.load(d == DType::F64 ? 0 : 1), d);
      const NodeId c = is_float(d) ? b.real(d, literal) : b.integer(d, (__int128)literal);
      const NodeId other = is_float(d) ? b.real(d, -INFINITY) : b.integer(d, 1);
      for (int row : rows) {
        const NodeId chosen =
            b.where(b.compare(CompareOp::Lt, x, c), c, other); // two literals: C alone would say int, or float
        for (NodeId v : {b.call(uint8_t(row), d, {x, c}), b.call(uint8_t(row), d, {chosen, x}),
                         b.binary(BinaryOp::FloorDiv, chosen, x), b.binary(BinaryOp::Mod, x, c)})
          sum = b.binary(BinaryOp::Add, sum, b.cast(v, DType::F64));
      }
    }
  m.piece(sum);
  m.kernel.form.vector = 2;
  for (bool wide : {false, true}) {
    m.kernel.form.wide = wide;
    std::string error;
    EXPECT_TRUE(ShimBatch::build({emit_cuda(m.scheduled())}, error)) << error;
  }
}

TEST(CudaKernel, CompilerErrorsOfTheShimAreShown) {
  std::string error;
  EXPECT_FALSE(ShimBatch::build({"extern \"C\" __global__ void elsewise(int n) { nonsense }\n"}, error));
  EXPECT_NE(error.find("nonsense"), std::string::npos);
}

// The shim must be able to catch what it is there for.
TEST(CudaKernel, MisalignedVectorsAreCaught) {
  const Seed s(false, Access::Vector, 0);
  std::string error;
  const auto batch = ShimBatch::build({emit_cuda(s.m.kernel)}, error);
  ASSERT_TRUE(batch) << error;
  alignas(16) static float from[64], to[64];
  // The kernel promises that x is where out is, modulo 16 bytes; here it is not.
  const CudaCall call = s.call(to, from + 1, 1, 40, 0, 1);
  EXPECT_DEATH(batch->launch(0, call.geometry, call.pointers().data()), "misaligned");
}

} // namespace
} // namespace elsewise::test
