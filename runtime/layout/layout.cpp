// SPDX-License-Identifier: Apache-2.0
// Axis order, merging and access classes. It is pure arithmetic on shapes and strides.
#include "runtime/layout/layout.h"
#include <algorithm>
#include <bit>
#include <numeric>

namespace elsewise {

static int64_t magnitude(int64_t v) { return v < 0 ? -v : v; }

Loop make_loop(DimsRef domain, DimsRef out, std::span<const Dims> inputs, const Positions &positions, DimsRef whole) {
  struct Axis {
    int64_t length, pitch, out;
    int64_t dim; // whose position is used, else -1
    llvm::SmallVector<int64_t, 4> in;
  };
  llvm::SmallVector<Axis, 8> axes; // the logical innermost first
  int64_t pitch = 1;
  for (size_t d = domain.size(); d-- > 0;) {
    if (domain[d] != 1) {
      const bool used = d < positions.dims.size() && positions.dims[d];
      Axis axis{domain[d], pitch, out[d], used ? int64_t(d) : -1, {}};
      for (const Dims &s : inputs) axis.in.push_back(s[d]);
      axes.push_back(std::move(axis));
    }
    pitch *= whole.empty() ? domain[d] : whole[d];
  }
  std::stable_sort(axes.begin(), axes.end(),
                   [](const Axis &a, const Axis &b) { return magnitude(a.out) < magnitude(b.out); });

  llvm::SmallVector<Axis, 8> merged;
  for (Axis &axis : axes) {
    if (!merged.empty()) {
      Axis &last = merged.back();
      bool one = axis.dim < 0 && last.dim < 0 && axis.out == last.out * last.length &&
                 (!positions.flat || axis.pitch == last.pitch * last.length);
      for (size_t k = 0; k < inputs.size(); ++k) one &= axis.in[k] == last.in[k] * last.length;
      if (one) {
        last.length *= axis.length;
        continue;
      }
    }
    merged.push_back(std::move(axis));
  }

  Loop loop;
  loop.inputs.resize(inputs.size());
  if (merged.empty()) { // a single element: every operand counts as contiguous
    loop.out.inner = 1;
    for (Walk &w : loop.inputs) w.inner = 1;
    return loop;
  }
  loop.inner_dim = merged[0].dim;
  loop.extent = merged[0].length, loop.inner_pitch = merged[0].pitch, loop.out.inner = merged[0].out;
  for (size_t k = 0; k < inputs.size(); ++k) loop.inputs[k].inner = merged[0].in[k];
  for (size_t d = 1; d < merged.size(); ++d) {
    loop.lengths.push_back(merged[d].length), loop.pitches.push_back(merged[d].pitch),
        loop.out.rows.push_back(merged[d].out);
    loop.rows *= merged[d].length;
    loop.row_dims.push_back(merged[d].dim);
    for (size_t k = 0; k < inputs.size(); ++k) loop.inputs[k].rows.push_back(merged[d].in[k]);
  }
  // Code of one row takes a step of it for one of the flat position. In a window that may be wrong: then it is a row
  // among others, of which there is one.
  if (positions.flat && loop.lengths.empty() && loop.inner_pitch != 1) {
    loop.lengths.push_back(1), loop.pitches.push_back(0), loop.out.rows.push_back(0), loop.row_dims.push_back(-1);
    for (Walk &w : loop.inputs) w.rows.push_back(0);
  }
  return loop;
}

int64_t flat_span(const Loop &loop) {
  int64_t last = (loop.extent - 1) * loop.inner_pitch;
  for (size_t d = 0; d < loop.lengths.size(); ++d) last += (loop.lengths[d] - 1) * loop.pitches[d];
  return last + 1;
}

// With 2^(l-1) < d <= 2^l, m = ceil(2^(bits-1+l) / d) has `bits` bits, and its error e = m * d - 2^(bits-1+l) is below
// 2^l: so n * e stays below 2^(bits-1+l), and no quotient is one too large.
Inverse inverse(int64_t divisor, int bits) {
  const auto d = uint64_t(divisor);
  const int l = std::min(int(std::bit_width(d - 1)), bits - 1);
  const auto quotient = [&](auto power) { return uint64_t((power + d - 1) / d); };
  if (bits == 32) return {quotient(uint64_t(1) << (31 + l)), l - 1}; // without a division of 128 bits
  return {quotient((unsigned __int128)1 << (bits - 1 + l)), l - 1};
}

std::optional<int64_t> loop_slot(const Loop &loop, const SlotInfo &s) {
  switch (s.kind) {
  case SlotKind::Rows:
    return loop.rows;
  case SlotKind::Extent:
    return loop.extent;
  case SlotKind::RowLength:
    return loop.lengths[s.index];
  case SlotKind::RowPitch:
    return loop.pitches[s.index];
  case SlotKind::InnerPitch:
    return loop.inner_pitch;
  case SlotKind::OutStride:
    return loop.out.rows[s.index];
  case SlotKind::InStride:
    return loop.inputs[s.index].rows[s.box];
  case SlotKind::OutInner:
    return loop.out.inner;
  case SlotKind::InInner:
    return loop.inputs[s.index].inner;
  case SlotKind::Inverse:
  case SlotKind::InverseShift: {
    const Inverse i = inverse(s.index ? loop.lengths[s.index - 1] : loop.extent, int(s.box));
    return s.kind == SlotKind::Inverse ? int64_t(i.multiplier) : i.shift;
  }
  default:
    return std::nullopt;
  }
}

static Access contiguity(const Loop &loop, size_t input, const Operand &operand) {
  if (!operand.read) return Access::Absent;
  if (operand.zero_dim || loop.inputs[input].inner == 0) return Access::Broadcast;
  return loop.inputs[input].inner == 1 ? Access::Vector : Access::Strided;
}

uint8_t vector_width(DType out, const Loop &loop, std::span<const Operand> inputs) {
  if (loop.out.inner != 1) return 1;
  int width = 16 / bytes(out);
  for (size_t k = 0; k < inputs.size(); ++k)
    if (contiguity(loop, k, inputs[k]) == Access::Vector) width = std::min(width, 32 / bytes(inputs[k].dtype));
  return uint8_t(std::max(1, width));
}

bool rows_congruent(const Loop &loop, size_t input, uint8_t vector) {
  const Walk &in = loop.inputs[input];
  if (in.inner != 1 || loop.out.inner != 1) return false;
  for (size_t d = 0; d < in.rows.size(); ++d)
    if ((in.rows[d] - loop.out.rows[d]) % vector != 0) return false;
  return true;
}

// Rows, lengths, offsets and, where they are used, flat positions so far below 2^31 that rounding up to whole blocks
// cannot leave 32 bits, nor where the first block begins, up to a vector ahead of the row.
static bool fits_32_bits(const Loop &loop, std::span<const Operand> inputs, bool flat) {
  constexpr __int128 limit = 1 << 30;
  if (loop.rows >= limit || loop.extent >= limit || __int128(loop.rows) * loop.extent >= limit) return false;
  if (flat && flat_span(loop) >= limit) return false; // in a window they are further apart
  auto reach = [&](const Walk &w) {
    __int128 far = __int128(magnitude(w.inner)) * (loop.extent + 16);
    for (size_t d = 0; d < w.rows.size(); ++d) far += __int128(magnitude(w.rows[d])) * loop.lengths[d];
    return far;
  };
  if (reach(loop.out) >= limit) return false;
  for (size_t k = 0; k < inputs.size(); ++k)
    if (inputs[k].read && reach(loop.inputs[k]) >= limit) return false;
  return true;
}

// Whether one step of every row axis is the whole of what lies below it, and every division of the flat form one by at
// least 2.
static bool dense_rows(const Loop &loop) {
  int64_t below = loop.extent;
  for (size_t d = 0; d < loop.lengths.size(); ++d) {
    if (loop.out.rows[d] != below || loop.lengths[d] < 2) return false;
    below *= loop.lengths[d];
  }
  return loop.out.inner == 1 && loop.extent >= 2;
}

static Access flat_access(const Loop &loop, size_t input, const Operand &operand) {
  const Walk &in = loop.inputs[input];
  if (!operand.read) return Access::Absent;
  if (std::all_of(in.rows.begin(), in.rows.end(), [](int64_t s) { return s == 0; })) return Access::Column;
  if (in.inner == 1 && in.rows == loop.out.rows) return Access::Vector;
  return in.inner == 0 ? Access::Broadcast : Access::Strided;
}

// The flat form, where rows are short.
static void flatten(Form &form, const Loop &loop, DType out, std::span<const Operand> inputs, int64_t longest) {
  constexpr int64_t most = 1 << 30; // positions in a row have 32 bits
  if (form.rows == 0 || loop.extent > std::min(longest, most) || !dense_rows(loop)) return;
  std::vector<Access> args;
  int width = 16 / bytes(out);
  for (size_t k = 0; k < inputs.size(); ++k) {
    args.push_back(flat_access(loop, k, inputs[k]));
    if (args[k] == Access::Vector) width = std::min(width, 32 / bytes(inputs[k].dtype));
  }
  form.flat = true, form.vector = uint8_t(width), form.args = std::move(args);
}

// A warp that walks row axis `d` of the input finds neighbours in memory, and one that walks the inner axis does not.
static bool runs_along(const Loop &loop, size_t input, const Operand &operand, size_t d, int64_t least) {
  constexpr int sector = 32; // bytes that memory gives at once
  const Walk &w = loop.inputs[input];
  const int64_t along = magnitude(w.rows[d]), inside = magnitude(w.inner), size = bytes(operand.dtype);
  return operand.read && !operand.zero_dim && along > 0 && along <= sector / 2 / size && inside > along &&
         inside >= std::min(sector / size, least);
}

void bring_tiled_axis(Loop &loop, std::span<const Operand> inputs, const FormLimits &limits) {
  if (loop.out.inner != 1 || loop.extent < limits.least_tiled) return;
  size_t best = 0;
  int64_t most = 0;
  for (size_t d = 0; d < loop.lengths.size(); ++d) {
    int64_t size = 0;
    for (size_t k = 0; k < inputs.size(); ++k)
      if (loop.lengths[d] >= limits.least_tiled && runs_along(loop, k, inputs[k], d, limits.least_tiled))
        size += bytes(inputs[k].dtype);
    if (size > most) best = d, most = size;
  }
  if (best == 0) return;
  auto bring = [&](auto &by_axis) { std::rotate(by_axis.begin(), by_axis.begin() + best, by_axis.begin() + best + 1); };
  bring(loop.lengths), bring(loop.pitches), bring(loop.row_dims), bring(loop.out.rows);
  for (Walk &w : loop.inputs) bring(w.rows);
}

// Tiles along row axis 0 for the inputs that run along it, and the vector that suits them.
static void choose_tiles(Form &form, const Loop &loop, DType out, std::span<const Operand> inputs, int64_t least) {
  if (loop.out.inner != 1 || loop.lengths.empty() || loop.extent < least || loop.lengths[0] < least) return;
  Form with = form;
  int narrowest = 16, widest = 1;
  for (size_t k = 0; k < inputs.size(); ++k) {
    if (!runs_along(loop, k, inputs[k], 0, least)) continue;
    with.args[k] = Access::Tiled;
    narrowest = std::min(narrowest, bytes(inputs[k].dtype)), widest = std::max(widest, bytes(inputs[k].dtype));
  }
  if (with.args == form.args) return;
  with.vector = uint8_t(std::max(1, std::min<int>(vector_width(out, loop, inputs), 32 / widest)));
  // All rows of a tile begin at the same place in a vector, or vectors are shorter. From 4 positions down single ones
  // are better: their tiles are wider.
  for (const int64_t step : loop.out.rows)
    while (step % with.vector) with.vector = with.vector > 4 ? with.vector / 2 : 1;
  // A line of memory of the narrowest, and two of the others; short axes have short tiles.
  with.tile = loop.lengths[0] <= 32 ? 32 : narrowest == 1 ? 128 : 64;
  auto shared_bytes = [&] {
    int64_t sum = 0;
    for (size_t k = 0; k < inputs.size(); ++k)
      if (with.args[k] == Access::Tiled) sum += tile_bytes(with, bytes(inputs[k].dtype));
    return sum;
  };
  while (shared_bytes() > most_tile_bytes && with.tile > 32) with.tile /= 2;
  if (shared_bytes() > most_tile_bytes) return;
  // The last tile's idle rows count too.
  auto near = [&](const Walk &w) {
    return __int128(magnitude(w.rows[0])) * (loop.lengths[0] + 2 * with.tile) < 1 << 30;
  };
  with.narrow &= near(loop.out);
  for (size_t k = 0; k < inputs.size(); ++k)
    if (inputs[k].read) with.narrow &= near(loop.inputs[k]);
  form = with;
}

Form make_form(const Loop &loop, DType out, std::span<const Operand> inputs, bool flat, Machine machine, DimsRef axes,
               const FormLimits &limits) {
  Form form;
  form.rows = uint8_t(loop.lengths.size());
  form.unit_pitch = !flat || loop.inner_pitch == 1;
  form.out = loop.out.inner == 1 ? Access::Vector : Access::Strided;
  form.vector = machine == Machine::Cuda ? vector_width(out, loop, inputs) : 1; // CPU code knows no vector of ours
  form.narrow = machine == Machine::Cuda && fits_32_bits(loop, inputs, flat);
  for (size_t k = 0; k < inputs.size(); ++k) form.args.push_back(contiguity(loop, k, inputs[k]));
  form.same_view.assign(inputs.size(), false);
  if (machine == Machine::Cuda) {
    choose_tiles(form, loop, out, inputs, limits.least_tiled);
    for (size_t k = 0; k < inputs.size(); ++k)
      if (form.args[k] == Access::Vector && !rows_congruent(loop, k, form.vector)) form.args[k] = Access::Scalar;
    if (!form.tile) flatten(form, loop, out, inputs, limits.longest_flat);
  }
  auto axis_of = [&](int64_t dim) {
    const auto at = dim < 0 ? axes.end() : std::find(axes.begin(), axes.end(), dim);
    return at == axes.end() ? no_axis : uint8_t(at - axes.begin());
  };
  form.inner_axis = axis_of(loop.inner_dim);
  for (const int64_t dim : loop.row_dims) form.row_axes.push_back(axis_of(dim));
  while (!form.row_axes.empty() && form.row_axes.back() == no_axis) form.row_axes.pop_back();
  return form;
}

} // namespace elsewise
