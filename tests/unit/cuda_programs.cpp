// SPDX-License-Identifier: Apache-2.0
// Makes and runs random kernels. It draws everything that a scheduled kernel may hold, whether or not a front end would
// write it.
#include "tests/unit/cuda_programs.h"
#include "compiler/ir/rows.h"
#include <cmath>
#include <cstring>

namespace elsewise::test {

namespace {

constexpr DType dtypes[] = {DType::Bool, DType::U8,  DType::I8,   DType::I16, DType::I32,
                            DType::I64,  DType::F16, DType::BF16, DType::F32, DType::F64};

double half_value(DType d, uint16_t bits) {
  const int fraction_bits = d == DType::F16 ? 10 : 7, bias = d == DType::F16 ? 15 : 127;
  const int exponent = bits >> fraction_bits & ((1 << (15 - fraction_bits)) - 1),
            fraction = bits & ((1 << fraction_bits) - 1);
  const double sign = bits >> 15 ? -1 : 1;
  if (exponent == (1 << (15 - fraction_bits)) - 1) return fraction ? NAN : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - fraction_bits);
  return sign * std::ldexp((1 << fraction_bits) + fraction, exponent - bias - fraction_bits);
}

uint16_t half_bits(DType d, double v) { // v is exact in d
  const int fraction_bits = d == DType::F16 ? 10 : 7, bias = d == DType::F16 ? 15 : 127,
            top = (1 << (15 - fraction_bits)) - 1;
  const uint16_t sign = std::signbit(v) ? 0x8000 : 0;
  if (std::isnan(v)) return uint16_t(top << fraction_bits | 1);
  v = std::fabs(v);
  if (std::isinf(v)) return uint16_t(sign | top << fraction_bits);
  int exponent;
  std::frexp(v, &exponent);
  exponent = std::max(exponent - 1, 1 - bias);
  const int whole = v == 0 ? 0 : int(std::ldexp(v, fraction_bits - exponent)); // with its leading one, if it is normal
  return uint16_t(sign | (whole ? ((exponent + bias - 1) << fraction_bits) + whole : 0));
}

Constant decode(DType d, const uint8_t *p) {
  Constant c;
  switch (d) {
  case DType::Bool:
    c.integer = *p != 0;
    break;
  case DType::U8:
    c.integer = *p;
    break;
  case DType::I8:
    c.integer = int8_t(*p);
    break;
  case DType::F16:
  case DType::BF16: {
    uint16_t h;
    std::memcpy(&h, p, 2);
    c.real = half_value(d, h);
    break;
  }
#define READ(D, T, member)                                                                                             \
  case DType::D: {                                                                                                     \
    T v;                                                                                                               \
    std::memcpy(&v, p, sizeof v);                                                                                      \
    c.member = v;                                                                                                      \
    break;                                                                                                             \
  }
    READ(I16, int16_t, integer)
    READ(I32, int32_t, integer)
    READ(I64, int64_t, integer)
    READ(U16, uint16_t, integer)
    READ(U32, uint32_t, integer)
    READ(U64, uint64_t, integer)
    READ(F32, float, real)
    READ(F64, double, real)
#undef READ
  case DType::Index:
    break;
  }
  return c;
}

void encode(DType d, const Constant &c, uint8_t *p) {
  const int64_t i = int64_t(c.integer);
  const float f = float(c.real);
  if (is_half(d)) {
    const uint16_t h = half_bits(d, c.real);
    std::memcpy(p, &h, 2);
  } else if (d == DType::F32) std::memcpy(p, &f, 4);
  else if (d == DType::F64) std::memcpy(p, &c.real, 8);
  else std::memcpy(p, &i, bytes(d));
}

double interesting_real(std::mt19937_64 &random) {
  static constexpr double some[] = {
      0.0,      -0.0,      1,     -1,     0.5,   2,     -3.75,      1e-3,          100,   127.5,
      128,      -129,      32768, 65504,  65520, 1e10,  -3e9,       1e19,          1e-8,  5.960464477539063e-08,
      INFINITY, -INFINITY, NAN,   3.4e38, 1e300, 1e-40, 2147483647, -2147483648.0, 9.3e18};
  if (random() % 3 == 0) return some[random() % std::size(some)];
  return double(int64_t(random() % 2001) - 1000) / double(1 << random() % 8);
}
__int128 interesting_integer(std::mt19937_64 &random, DType d) {
  static constexpr int64_t some[] = {0,         1,        -1, 2,   3,    -2,  7,     8,      31,         32,
                                     33,        63,       64, 127, -128, 255, 32767, -32768, 2147483647, -2147483648ll,
                                     INT64_MAX, INT64_MIN};
  return wrap(d, random() % 2 ? some[random() % std::size(some)] : int64_t(random() % 41) - 20);
}

} // namespace

std::vector<DType> RandomKernel::types() {
  std::vector<DType> t;
  for (uint64_t k = 0, count = 1 + below(3); k < count; ++k) t.push_back(dtypes[below(10)]);
  result_ = below(3) ? t[0] : dtypes[below(10)];
  return t;
}

NodeId RandomKernel::parameter(DType d) {
  Kernel &k = maker_.kernel;
  k.arguments.push_back(
      {"g" + std::to_string(k.arguments.size()), {d == DType::Index ? ArgKind::Int : ArgKind::Float}});
  k.form.args.push_back(Access::Absent);
  k.form.same_view.push_back(false);
  return maker_.b.param(uint32_t(k.arguments.size() - 1), d);
}

NodeId RandomKernel::leaf(DType d) {
  Builder &b = maker_.b;
  const Kernel &k = maker_.kernel;
  if (d == DType::Bool) return b.compare(CompareOp::Lt, leaf(DType::F32), b.real(DType::F32, 1));
  if (below(4)) {
    const uint32_t a = uint32_t(below(tensors_.size()));
    return b.cast(b.cast(b.load(a), opmath(k.arguments[a].type.dtype)), d);
  }
  if (below(3) == 0) { // a parameter in this type
    const NodeId p = b.cast(parameter(is_float(d) ? DType::F64 : DType::Index), d);
    Constant c;
    if (is_float(d)) c.real = round_to(d, interesting_real(random_));
    else c.integer = d == DType::Index ? int64_t(below(9)) - 4 : interesting_integer(random_, d);
    host_[p] = c;
    return p;
  }
  return is_float(d) ? b.real(d, round_to(d, interesting_real(random_)))
                     : b.integer(d, interesting_integer(random_, d));
}

NodeId RandomKernel::index(int depth) {
  Builder &b = maker_.b;
  if (depth <= 0) {
    if (below(3)) return b.pos(flat_axis);
    return below(2) ? b.integer(DType::Index, int64_t(below(13)) - 4) : leaf(DType::Index);
  }
  switch (below(8)) {
  case 0:
    return b.cast(boolean(depth - 1), DType::Index);
  case 1:
    return b.where(boolean(depth - 1), index(depth - 1), index(depth - 1));
  case 2:
    return b.unary(below(2) ? UnaryOp::Neg : UnaryOp::BitNot, index(depth - 1));
  case 3:
    return b.binary(below(2) ? BinaryOp::FloorDiv : BinaryOp::Mod, index(depth - 1), index(depth - 1));
  case 4:
    return b.call(below(2) ? least_row() : greatest_row(), DType::Index, {index(depth - 1), index(depth - 1)});
  default: {
    static constexpr BinaryOp ops[] = {BinaryOp::Add,    BinaryOp::Sub,   BinaryOp::Mul,
                                       BinaryOp::BitAnd, BinaryOp::BitOr, BinaryOp::BitXor};
    return b.binary(ops[below(6)], index(depth - 1), index(depth - 1));
  }
  }
}

NodeId RandomKernel::boolean(int depth) {
  Builder &b = maker_.b;
  switch (below(depth > 0 ? 7 : 3)) {
  case 0:
    return b.compare(CompareOp(below(6)), index(depth / 2), index(depth / 2));
  case 1: {
    const uint32_t a = uint32_t(below(tensors_.size()));
    return b.cast(b.cast(b.load(a), opmath(maker_.kernel.arguments[a].type.dtype)), DType::Bool);
  }
  case 2:
  case 3: {
    DType d = dtypes[1 + below(9)];
    if (is_half(d)) d = DType::F32;
    return b.compare(CompareOp(below(6)), value(d, depth - 1), value(d, depth - 1));
  }
  case 4:
    return b.logic(LogicOp::Not, boolean(depth - 1));
  default:
    return b.logic(below(2) ? LogicOp::And : LogicOp::Or, boolean(depth - 1), boolean(depth - 1));
  }
}

NodeId RandomKernel::value(DType d, int depth) {
  Builder &b = maker_.b;
  if (d == DType::Bool) return boolean(depth);
  if (depth <= 0) return leaf(d);
  const uint64_t kind = below(12);
  if (kind == 0) return b.where(boolean(depth - 1), value(d, depth - 1), value(d, depth - 1));
  if (kind == 1) { // from another type
    DType from = dtypes[below(10)];
    if (is_half(from)) return b.cast(b.cast(value(DType::F64, depth - 1), from), d);
    return b.cast(value(from, depth - 1), d);
  }
  if (kind == 2) return b.cast(index(2), d);
  if (kind == 3) { // a builtin
    for (;;) {
      const uint8_t row = uint8_t(below(builtins().size()));
      const Builtin &f = builtins()[row];
      if (f.cuda[0].empty() || !f.body.empty() || f.rule == Rule::Predicate) continue;
      if (!is_float(d) && f.cuda[ClassInt].empty()) continue;
      if (!is_float(d) && dclass(d) == DClass::UInt && f.min_arguments == 1) continue; // never lowered
      std::vector<NodeId> args;
      for (int a = 0, count = f.min_arguments; a < count; ++a) args.push_back(value(d, depth - 1));
      return b.call(row, d, args);
    }
  }
  if (kind == 4) return b.unary(is_float(d) || below(2) ? UnaryOp::Neg : UnaryOp::BitNot, value(d, depth - 1));
  const NodeId x = value(d, depth - 1), y = below(4) ? value(d, depth - 1) : x; // sometimes shared
  static constexpr BinaryOp floats[] = {BinaryOp::Add, BinaryOp::Sub,      BinaryOp::Mul,
                                        BinaryOp::Div, BinaryOp::FloorDiv, BinaryOp::Mod};
  static constexpr BinaryOp integers[] = {BinaryOp::Add,    BinaryOp::Sub,   BinaryOp::Mul,   BinaryOp::FloorDiv,
                                          BinaryOp::Mod,    BinaryOp::Pow,   BinaryOp::Shl,   BinaryOp::Shr,
                                          BinaryOp::BitAnd, BinaryOp::BitOr, BinaryOp::BitXor};
  return b.binary(is_float(d) ? floats[below(6)] : integers[below(11)], x, y);
}

void RandomKernel::make() {
  Kernel &k = maker_.kernel;
  Builder &b = maker_.b;
  const size_t tensors = k.arguments.size();
  tensors_.resize(tensors);
  k.source = "random";
  Form &f = k.form;
  f.wide = below(4) == 0;
  f.rows = uint8_t(below(2) ? 0 : 1 + below(2));
  f.narrow = below(2);
  f.flat = f.rows > 0 && below(2);
  f.unit_pitch = f.rows == 0 || below(3) > 0;
  int64_t rows0 = f.rows ? 1 + int64_t(below(5)) : 1, rows1 = f.rows == 2 ? 1 + int64_t(below(3)) : 1;
  if (f.flat && f.rows == 2) rows0 *= 2; // no division by 1
  rows_ = rows0 * rows1;
  extent_ = int64_t(below(f.rows ? 90 : 1400));
  if (below(4) == 0) extent_ = int64_t(below(9));
  if (f.flat) extent_ = 2 + int64_t(below(below(2) ? 7 : 70));
  inner_pitch_ = f.unit_pitch ? 1 : rows_;
  row_pitch_ = f.unit_pitch ? extent_ : 1;
  const bool in_place = k.arguments[0].type.dtype == result_ && below(3) == 0;
  f.out = !f.flat && below(6) == 0 ? Access::Strided : Access::Vector;
  f.tile = f.rows > 0 && !f.flat && f.out == Access::Vector && below(3) == 0 ? 32 : 0;
  int widest = 1;
  for (size_t a = 0; a < tensors; ++a) {
    f.same_view[a] = in_place && a == 0;
    f.args[a] = f.same_view[a] ? f.out : f.tile && below(2) ? Access::Tiled : Access(1 + below(f.flat ? 5 : 4));
    if (f.args[a] != Access::Broadcast) widest = std::max(widest, bytes(k.arguments[a].type.dtype));
  }
  f.vector = uint8_t(f.out == Access::Strided ? 1 : std::max(1, std::min(16 / bytes(result_), 32 / widest)));
  if (f.tile && below(3) == 0) f.vector = 1;
  auto store = [&](Tensor &t, DType d, Access how, int64_t misplaced) {
    const int64_t v = f.vector;
    t.inner = how == Access::Broadcast ? 0
              : how == Access::Strided ? 2
              : how == Access::Column  ? 3
              : how == Access::Tiled   ? rows_ + 1
                                       : 1;
    t.row = how == Access::Broadcast || how == Access::Tiled ? 1
            : how == Access::Column                          ? 0
            : how == Access::Strided                         ? 2 * extent_ + 3
            : f.flat                                         ? extent_
            : how == Access::Scalar                          ? extent_ + 1
            : f.tile                                         ? extent_ / v * v + v // all rows begin as the first does
                                                             : extent_ + 5;
    t.storage.resize(((rows_ + 1) * (t.row + t.inner) + extent_ * t.inner + 4 * v + 64) * bytes(d) + 64);
    const uintptr_t base = reinterpret_cast<uintptr_t>(t.storage.data());
    t.offset = int64_t((0 - base) % 64) + misplaced * bytes(d);
    for (size_t e = 0; e + bytes(d) <= t.storage.size() - 64; e += size_t(bytes(d))) {
      Constant c;
      if (is_float(d)) c.real = round_to(d, interesting_real(random_));
      else c.integer = interesting_integer(random_, d);
      encode(d, c, t.storage.data() + (t.offset + int64_t(e)) % int64_t(t.storage.size() - 16));
      if (d == DType::Bool && below(8) == 0) t.storage[e] = 2; // not a bool that C would write
    }
  };
  const int64_t place = int64_t(below(5));
  store(out_, result_, f.out, place);
  for (size_t a = 0; a < tensors; ++a)
    if (!f.same_view[a])
      store(tensors_[a], k.arguments[a].type.dtype, f.args[a], f.args[a] == Access::Vector ? place : int64_t(below(5)));

  // Bounds: parameters, whose values stand for what the host would have clamped.
  const int64_t n = rows_ * extent_;
  auto bound = [&]() -> NodeId {
    const NodeId p = parameter(DType::Index);
    host_[p] = {n ? int64_t(below(uint64_t(n) + 1)) : 0, 0};
    return p;
  };
  NodeId last = no_node;
  const uint64_t pieces = below(12) == 0 ? 30 + below(6) : below(5);
  for (uint64_t p = 0; p < pieces; ++p) {
    Piece piece;
    piece.line = 1, piece.column = uint32_t(10 * p + 1), piece.text = "piece";
    for (uint64_t box = 0, boxes = below(6) == 0 ? 2 + below(3) : below(8) ? 1 : 0; box < boxes; ++box) {
      Range r{uint8_t(flat_axis)};
      if (below(3)) r.lo = below(4) == 0 && last != no_node ? last : bound();
      if (below(3) || r.lo == no_node) r.hi = bound();
      last = r.hi;
      piece.boxes.push_back({r});
    }
    if (piece.boxes.empty() || below(4) == 0) piece.guard = boolean(2);
    piece.values = {0};
    k.pieces.push_back(piece);
  }
  k.pieces.emplace_back().text = "else";
  k.pieces.back().values = {0};
  for (Piece &piece : k.pieces) {
    NodeId v;
    if (k.arguments[0].type.dtype == result_ && below(3) == 0) v = b.load(0);
    else v = b.cast(value(opmath(result_), int(below(5))), result_);
    piece.values = {v};
  }
  for (size_t a = 0; a < tensors; ++a) { // what nothing reads has no slot
    bool read = false;
    for (const Inst &i : k.insts) read |= i.op == Op::Load && i.a == a;
    if (!read && !f.same_view[a]) f.args[a] = Access::Absent;
  }
  wrong_ = verify(k);
  maker_.scheduled();
}

Constant RandomKernel::evaluate(NodeId n, int64_t r, int64_t c) {
  const Kernel &k = maker_.kernel;
  if (auto at = host_.find(n); at != host_.end()) return at->second;
  const Inst &i = k[n];
  switch (i.op) {
  case Op::Const:
    return k.constants[i.a];
  case Op::Pos:
    return {r * row_pitch_ + c * inner_pitch_, 0};
  case Op::Load: {
    const DType d = k.arguments[i.a].type.dtype;
    return decode(d, (k.form.same_view[i.a] ? out_ : tensors_[i.a]).at(d, r, c));
  }
  default:
    break;
  }
  std::vector<Constant> operands;
  for (NodeId o : elsewise::operands(k, n)) operands.push_back(evaluate(o, r, c));
  Constant out;
  if (apply(i, k[elsewise::operands(k, n)[0]].type, operands, out) == Trouble::Overflow) overflow_ = true;
  if (i.type == DType::Index && !fits(DType::Index, out.integer)) overflow_ = true;
  return out;
}

std::string RandomKernel::run(const ShimBatch &batch, size_t index) {
  return run([&](const CudaCall &call, const auto &) -> std::string {
    batch.launch(index, call.geometry, call.pointers().data());
    return "";
  });
}

std::string RandomKernel::run(const Launch &launch) {
  const Kernel &k = maker_.kernel;
  // Uniforms that are worked out from others.
  for (NodeId u : k.uniforms)
    if (!host_.contains(u)) host_[u] = evaluate(u, 0, 0);
  std::vector<uint8_t> expected = out_.storage;
  for (int64_t r = 0; r < rows_; ++r)
    for (int64_t c = 0; c < extent_; ++c) {
      const int64_t i = r * row_pitch_ + c * inner_pitch_;
      const Piece *held = nullptr;
      for (const Piece &p : k.pieces) {
        bool in = p.boxes.empty();
        for (const auto &box : p.boxes)
          in |= (box[0].lo == no_node || i >= host_.at(box[0].lo).integer) &&
                (box[0].hi == no_node || i < host_.at(box[0].hi).integer);
        if (!in || (p.guard != no_node && !evaluate(p.guard, r, c).integer)) continue;
        held = &p;
        break;
      }
      const NodeId v = held->values[0];
      const uint8_t *from =
          k[v].op == Op::Load ? (k.form.same_view[k[v].a] ? out_ : tensors_[k[v].a]).at(result_, r, c) : nullptr;
      uint8_t *to = expected.data() + (out_.at(result_, r, c) - out_.storage.data());
      if (from) std::memcpy(to, from, size_t(bytes(result_)));
      else encode(result_, evaluate(v, r, c), to);
    }
  if (overflow_) return ""; // the host refuses such a call

  const CudaCall call = cuda_call(k, [&](const SlotInfo &s) {
    Slot v{};
    const int64_t rows0 =
        k.form.rows == 2 && rows_ % 2 == 0 ? 2 : 1; // how rows_ is split is free: strides of both axes agree
    auto stride = [&](const Tensor &t, uint32_t axis) { return axis == 0 ? t.row : t.row * rows0; };
    switch (s.kind) {
    case SlotKind::Out:
      v.pointer = out_.at(result_, 0, 0);
      break;
    case SlotKind::In:
      v.pointer = tensors_[s.index].at(k.arguments[s.index].type.dtype, 0, 0);
      break;
    case SlotKind::Uniform: {
      const DType d = k[k.uniforms[s.index]].type;
      const Constant c = host_.at(k.uniforms[s.index]);
      if (d == DType::Index) v.integer = int64_t(c.integer);
      else encode(d, c, reinterpret_cast<uint8_t *>(&v));
      break;
    }
    case SlotKind::Rows:
      v.integer = rows_;
      break;
    case SlotKind::Extent:
      v.integer = extent_;
      break;
    case SlotKind::End:
    case SlotKind::Begin:
      v.integer = int64_t(host_.at(bound_node(k, s)).integer);
      break;
    case SlotKind::RowLength:
      v.integer = rows0;
      break;
    case SlotKind::RowPitch:
      v.integer = s.index == 0 ? row_pitch_ : row_pitch_ * rows0;
      break;
    case SlotKind::InnerPitch:
      v.integer = inner_pitch_;
      break;
    case SlotKind::OutStride:
      v.integer = stride(out_, s.index);
      break;
    case SlotKind::InStride:
      v.integer = stride(tensors_[s.index], s.box);
      break;
    case SlotKind::OutInner:
      v.integer = out_.inner;
      break;
    case SlotKind::InInner:
      v.integer = tensors_[s.index].inner;
      break;
    default:
      break;
    }
    return v;
  });
  std::vector<std::span<uint8_t>> buffers{out_.storage};
  for (Tensor &t : tensors_)
    if (!t.storage.empty()) buffers.emplace_back(t.storage);
  if (std::string error = launch(call, buffers); !error.empty()) return error;
  for (int64_t r = 0; r < rows_; ++r)
    for (int64_t c = 0; c < extent_; ++c) {
      uint8_t *got = out_.at(result_, r, c), *want = expected.data() + (got - out_.storage.data());
      if (is_float(result_) && std::isnan(decode(result_, got).real) && std::isnan(decode(result_, want).real))
        std::memcpy(got, want, size_t(bytes(result_)));
      if (std::memcmp(got, want, size_t(bytes(result_))) == 0) continue;
      const Constant g = decode(result_, got), w = decode(result_, want);
      return "row " + std::to_string(r) + " position " + std::to_string(c) + ": got " +
             (is_float(result_) ? std::to_string(g.real) : std::to_string((long long)g.integer)) + ", not " +
             (is_float(result_) ? std::to_string(w.real) : std::to_string((long long)w.integer));
    }
  return expected == out_.storage ? "" : "wrote outside its elements";
}

} // namespace elsewise::test
