// SPDX-License-Identifier: Apache-2.0
// Blocks of several rows whose transposed operands come through shared memory: read along the rows, used along the
// inner axis. It chooses no tile and prints no piece.
#include "compiler/emit/cuda_kernel.h"

namespace elsewise::cuda {

// The tile of the block: its first row on axis 0 and the places on the others, its first position in each row.
void KernelPrinter::print_tile_place(Lines &out) {
  const std::string type(integer()), of = form_.rows == 1 ? "rows" : "length0", tile = num(form_.tile);
  const std::string block = form_.narrow ? "int(blockIdx.x / blocks)" : "i64(blockIdx.x / blocks)";
  if (form_.rows == 1) out.add(2, "const " + type + " top = " + block + " * " + tile + ";", "the block's first row");
  else {
    // Bands of rows are the fastest; each quotient feeds the next division.
    auto left = [&](int d) { return d + 1 == form_.rows ? row_names_[d] : "rest" + num(d); };
    out.add(2, "const " + type + " bands = (length0 + " + num(form_.tile - 1) + ") / " + tile + ";");
    out.add(2, "const " + type + " rest0 = " + block + ", " + left(1) + " = rest0 / bands;");
    out.add(2, "const " + type + " top = (rest0 - " + left(1) + " * bands) * " + tile + ";",
            "the block's first row along the axis of the tile");
    for (int d = 1; d + 1 < form_.rows; ++d)
      out.add(2, "const " + type + " " + left(d + 1) + " = " + left(d) + " / length" + num(d) + ", " + row_names_[d] +
                     " = " + left(d) + " - " + left(d + 1) + " * length" + num(d) + ";");
  }
  const std::string width = num(tile_width(form_)), shift = v_ > 1 ? " - shift" : "";
  const int64_t aligned = std::min<int64_t>(16, v_ * bytes(k_.outputs[0]));
  out.add(2,
          "const " + type + " first = " + (form_.narrow ? "int(blockIdx.x % blocks)" : "i64(blockIdx.x % blocks)") +
              " * " + width + shift + ";",
          "its first position" + (v_ > 1 ? "; `" + out_ + "` is " + num(aligned) + "-byte aligned there" : ""));
  out.add(2,
          "const int height = " + of + " - top < " + tile + " ? " + (form_.narrow ? "" : "(int)") +
              (form_.narrow ? of + " - top" : "(" + of + " - top)") + " : " + tile + ";",
          "its rows");
}

// Every element of the tile that there is, whichever pieces read it, and beyond its ends the last ones once more: so
// that no load waits for a condition, and no thread leaves before the barrier.
void KernelPrinter::print_tile_loads(Lines &out) {
  const int step = block_threads / form_.tile, width = tile_width(form_);
  const std::string thread = "(threadIdx.y * " + num(tile_threads(form_)) + " + threadIdx.x)", tile = num(form_.tile);
  std::vector<std::string> moves;
  Lines loads;
  for (uint32_t a = 0; a < k_.arguments.size(); ++a) {
    if (access(a) != Access::Tiled || !has(SlotKind::In, a)) continue;
    const std::string &name = names_.args[a], &stride = strides_[a];
    out.add(2,
            "__shared__ " + std::string(stored(dtype(a))) + " " + tiles_[a] + "[" + num(width) + "][" +
                num(tile_pitch(form_, bytes(dtype(a)))) + "];",
            moves.empty() ? "by position and row; longer than these, so that a warp meets no bank twice" : "");
    moves.push_back(name + " += " + row_offset(SlotKind::InStride, a, stride, "(top + own)") + " + first * " + stride);
    loads.add(4, tiles_[a] + "[p][lane] = " + name + "[q * " + stride + "];");
  }
  out.add(2, "const int lane = " + thread + " % " + tile + ";");
  out.add(2, "const int own = lane < height ? lane : height - 1;",
          "the row that this thread reads: lanes of a warp are neighbours in memory");
  out.statements(2, "", moves);
  out.add(2, "for (int k = 0, p = " + thread + " / " + tile + "; k < " + num(width / step) +
                 "; ++k, p += " + num(step) + ") {");
  out.add(4, std::string("const int q = ") + (v_ > 1 ? "p < lo ? lo : " : "") + "p < hi ? p : hi - 1;",
          "beyond an end the last one once more");
  out.append(loads);
  out.add(2, "}");
  out.add(2, "__syncthreads();");
}

// What a row of the tile begins with: its position, values that are its own, the row-major position.
void KernelPrinter::print_tile_row(Lines &out) {
  for (uint32_t a = 0; a < k_.arguments.size(); ++a)
    if (has(SlotKind::In, a) && access(a) == Access::Broadcast) print_row_operand(out, a);
  print_row_base(out);
}

void KernelPrinter::print_tiles(Lines &out) {
  const int threads = tile_threads(form_), step = block_threads / threads;
  print_tile_place(out);
  print_ends(out);
  print_tile_loads(out);

  std::vector<std::string> moves{
      out_ + " += " + row_offset(SlotKind::OutStride, 0, "out_stride", "(top + (int)threadIdx.y)") + " + first"};
  std::vector<std::string> steps{"row += " + num(step), out_ + " += " + num(step) + " * out_stride0"};
  for (uint32_t a = 0; a < k_.arguments.size(); ++a) {
    const Access how = access(a);
    if (!has(SlotKind::In, a) || how == Access::Tiled || how == Access::Broadcast) continue;
    const std::string &name = names_.args[a], &stride = strides_[a];
    moves.push_back(name + " += " + row_offset(SlotKind::InStride, a, stride, "(top + (int)threadIdx.y)") + " + first" +
                    (how == Access::Strided ? " * " + stride : ""));
    steps.push_back(name + " += " + num(step) + " * " + stride + "0");
  }

  // What no row decides stands ahead of the rows.
  const bool by_row = !row_values_.empty() || std::any_of(locals_.begin(), locals_.end(),
                                                          [](const Local &l) { return l.flat || l.row != no_node; });
  Lines row(2);
  print_tile_row(row);
  if (by_row) print_bounds(row);
  else print_bounds(out);
  if (v_ == 1) {
    out.add(2, "const int p = threadIdx.x;");
    out.add(2, "if (p >= hi) return;");
    if (form_.segments) print_search(out, "p"), print_segment_value(row, 2, "mine", false);
    else print_matches(row, 2, false);
  } else {
    Lines body(row.base());
    print_vectors(out);
    if (masked_) print_mask(by_row ? row : out);
    if (form_.segments) {
      out.add(2, "const bool inside = lo <= c && z <= hi;");
      print_search(out, "c");
      print_segment_body(body, false);
    } else print_body(body);
    print_variables(row, body.str());
    row.append(body);
  }
  out.statements(2, "", moves);
  const std::string head = "for (int row = threadIdx.y; row < height; ";
  Lines whole, split; // in two lines rather than with a break among the steps
  whole.list(2, head, steps, ") {");
  split.add(2, head.substr(0, head.size() - 1));
  split.list(7, "", steps, ") {");
  out.append(whole.count() < split.count() ? whole : split);
  if (mentions(row.str(), row_names_[0]))
    out.add(4, "const " + std::string(integer()) + " " + row_names_[0] + " = top + row;");
  out.append(row);
  out.add(2, "}");
}

} // namespace elsewise::cuda
