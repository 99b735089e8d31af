// SPDX-License-Identifier: Apache-2.0
// Where a block and a thread stand, and which pieces can match there: the kernel's text up to its bodies. It prints no
// piece.
#include "compiler/emit/cuda_kernel.h"
#include "compiler/emit/emit.h"

namespace elsewise {

size_t masked_pieces(const Kernel &k) {
  constexpr size_t bits = 31; // of the mask, an int
  size_t reachable = 0, end = 0;
  bool straight = false, open = true;
  for (const Piece &p : k.pieces) {
    const bool residual = p.guard != no_node, everywhere = cuda::unbounded(p);
    ++reachable;
    if (open) ++end, straight |= !residual;
    if (everywhere && !residual) break;
    open &= !everywhere; // a residual guard that no range bounds meets every vector: from there on no piece is alone
  }
  return k.form.vector > 1 && reachable > 1 && reachable <= bits && straight ? end : 0;
}

namespace cuda {

void KernelPrinter::choose_pieces() {
  bodies_ = bodies(k_);
  while (count_ < k_.pieces.size()) {
    const size_t p = count_++;
    nothing_ &= identity(p);
    if (always(p) && !residual(p)) break;
  }
  choose_values();
  for (size_t p = 0; p < count_; ++p) {
    values_read_.push_back(reads(k_, k_.pieces[p].values[0], names_.given));
    guards_read_.push_back(residual(p) ? reads(k_, k_.pieces[p].guard, names_.given) : Reads{});
    position_ |= values_read_[p].position || guards_read_[p].position;
  }
  for (const auto &[n, name] : names_.given) position_ |= reads(k_, n).position;
  if (form_.segments) return;
  for (size_t p = 0; p < count_; ++p) lanes_ |= residual(p);
  masked_ = masked_pieces(k_);
  if (v_ > 1 && count_ > 1 && !masked_) lanes_ = true;
}

std::string KernelPrinter::any_box(size_t p, const Words &words) const {
  std::string s;
  const auto &boxes = bounds_[p];
  for (const Bound &b : boxes) {
    std::string t;
    for (const std::string &lo : b.lo) t = conjunction(t, words.lo + lo + words.after_lo);
    for (const std::string &hi : b.hi) t = conjunction(t, words.hi + hi);
    if (boxes.size() > 1 && t.find("&&") != std::string::npos) t = "(" + t + ")";
    s += (s.empty() ? "" : " || ") + t;
  }
  return s;
}

std::string KernelPrinter::holds_everywhere(size_t p) const { return any_box(p, {"", " <= c", "z <= "}); }
std::string KernelPrinter::meets(size_t p) const { return any_box(p, {"", " < z", "c < "}); }
std::string KernelPrinter::matches(size_t p) const {
  if (form_.flat) return flat_matches(p);
  return any_box(p, {"p >= ", "", "p < "});
}

// A sum of steps along the row axes, as a pointer is moved by or as row-major order counts: to this row's place on
// each, on axis 0 to `first` where that is given.
std::string KernelPrinter::row_offset(SlotKind kind, uint32_t argument, const std::string &step,
                                      const std::string &first) const {
  std::string s;
  for (const SlotInfo &slot : slots_) {
    if (slot.kind != kind || (kind == SlotKind::InStride && slot.index != argument)) continue;
    const uint32_t axis = kind == SlotKind::InStride ? slot.box : slot.index;
    s += (s.empty() ? "" : " + ") + (axis == 0 && !first.empty() ? first : row_names_[axis]) + " * " + step + num(axis);
  }
  return s;
}

// The block's (and row's) first position, and every pointer moved there.
void KernelPrinter::print_origin(Lines &out) {
  const int64_t width = int64_t(block_threads) * v_, aligned = std::min<int64_t>(16, v_ * bytes(k_.outputs[0]));
  const std::string out_rows = row_offset(SlotKind::OutStride, 0, "out_stride");
  const std::string alignment = v_ > 1 ? "; `" + out_ + "` is " + num(aligned) + "-byte aligned there" : "";
  if (form_.rows == 0) {
    const std::string cast = form_.narrow ? "(int)" : "", step = num(width) + (form_.narrow ? "" : "ll");
    const std::string block = has(SlotKind::Live) ? cast + "live_block(live, blockIdx.x) * " + num(width)
                              : form_.many        ? cast + "(blockIdx.x + item.block) * " + num(width)
                                                  : "blockIdx.x * " + step;
    out.add(2, "const " + std::string(integer()) + " first = " + block + " - shift;",
            "the block's first position" + alignment);
  } else {
    const bool narrow = form_.narrow;
    const std::string type(integer());
    const std::string row =
        narrow ? "band * blockDim.y + threadIdx.y" : "i64(blockIdx.x / blocks) * blockDim.y + threadIdx.y";
    const std::string name = form_.rows == 1 ? row_names_[0] : "row";
    auto divided = [&](const std::string &n, uint32_t by, const std::string &length) {
      const std::string inverse = inverse_name(by);
      return narrow ? "quotient(" + n + ", " + inverse + ", " + inverse + "_shift)" : n + " / " + length;
    };
    if (narrow)
      out.add(2, "const int band = " + divided("blockIdx.x", 0, "blocks") + ", block = blockIdx.x - band * blocks;",
              "its rows, its place along them");
    out.add(2, "const " + type + " " + name + " = " + row + ";");
    out.add(2, "if (" + name + " >= rows) return;");
    // Axis 0 is the fastest. Each quotient feeds the next division.
    if (form_.rows > 1) {
      std::string rest = "row";
      for (int d = 0; d + 1 < form_.rows; ++d) {
        const bool last = d + 2 == form_.rows;
        const std::string length = "length" + num(d), next = last ? row_names_[d + 1] : "rest" + num(d + 1);
        out.add(2, "const " + type + " " + next + " = " + divided(rest, d + 1, length) + ", " + row_names_[d] + " = " +
                       rest + " - " + next + " * " + length + ";");
        rest = next;
      }
    }
    std::string head;
    if (v_ > 1) {
      out.add(2, "const int head = (" + out_rows + " + shift) & " + num(v_ - 1) + ";",
              "the row starts `head` positions into a vector");
      head = " - head";
    }
    const std::string step = v_ > 1 ? " * " + num(v_) : "";
    out.add(2,
            "const " + std::string(integer()) + " first = " +
                (narrow ? "block * blockDim.x" : "i64(blockIdx.x % blocks) * blockDim.x") + step + head + ";",
            "the block's first position in the row");
  }
  auto moved = [](const std::string &rows, const std::string &stride) {
    return (rows.empty() ? "" : rows + " + ") + "first" + (stride.empty() ? "" : " * " + stride);
  };
  std::vector<std::string> moves{out_ + " += " + moved(out_rows, form_.out == Access::Strided ? "out_stride" : "")};
  for (uint32_t a = 0; a < k_.arguments.size(); ++a) {
    if (!has(SlotKind::In, a)) continue;
    if (access(a) == Access::Broadcast) print_row_operand(out, a);
    else
      moves.push_back(
          names_.args[a] + " += " +
          moved(row_offset(SlotKind::InStride, a, strides_[a]), access(a) == Access::Strided ? strides_[a] : ""));
  }
  out.statements(2, "", moves);
  print_row_base(out);
}

// An operand that is the same along the row.
void KernelPrinter::print_row_operand(Lines &out, uint32_t a) {
  const std::string offset = row_offset(SlotKind::InStride, a, strides_[a]);
  out.add(2,
          "const " + std::string(stored(dtype(a))) + " " + values_[a] + " = " +
              (offset.empty() ? "*" + names_.args[a] : names_.args[a] + "[" + offset + "]") + ";",
          "the same along the row");
}

// Where the row, and what the block has of it, begins in row-major order.
void KernelPrinter::print_row_base(Lines &out) {
  const std::string base = row_offset(SlotKind::RowPitch, 0, "pitch");
  if (base.empty()) return;
  out.add(2, "const " + std::string(integer()) + " rowbase = " + base + ";",
          "the row's first element in row-major order");
  if (position_)
    out.add(2, std::string("const i64 start = rowbase + ") + (form_.unit_pitch ? "first;"
                                                              : form_.narrow   ? "i64(first) * pitch;"
                                                                               : "first * pitch;"));
}

void KernelPrinter::print_ends(Lines &out) {
  std::vector<std::string> ends{"hi = local(extent - first)"};
  if (v_ > 1) ends.insert(ends.begin(), "lo = local(-first)");
  out.statements(2, "const int ", ends);
}

void KernelPrinter::print_bounds(Lines &out) {
  auto statement = [&](std::vector<std::string> items) { out.statements(2, "const int ", items); };
  std::vector<NodeId> rows;
  for (const Local &l : locals_)
    if (l.row != no_node) rows.push_back(l.row);
  std::vector<std::string> shared;
  rows.insert(rows.end(), row_values_.begin(), row_values_.end());
  const std::vector<std::string> texts = row_expressions(k_, names_, helpers_, row_positions(), rows, shared);
  for (const std::string &line : shared) out.add(2, line);
  for (size_t v = 0; v < row_values_.size(); ++v)
    out.add(2,
            "const " + std::string(given_type(k_, row_values_[v])) + " " + names_.given.at(row_values_[v]) + " = " +
                texts[texts.size() - row_values_.size() + v] + ";",
            v ? "" : "the same along the row");
  std::vector<std::string> items;
  size_t next = 0;
  for (const Local &l : locals_) {
    std::string at = l.row != no_node ? texts[next++] : l.parameter;
    if (form_.rows > 0 && l.flat) at += " - rowbase";
    if (form_.rows > 0 && l.flat && !form_.unit_pitch) at = "ceil_div(" + at + ", pitch)";
    items.push_back(l.name + (clamps(l) ? " = within(" + at + ", extent) - first" : " = local(" + at + " - first)"));
  }
  statement(items);
}

void KernelPrinter::print_vectors(Lines &out) {
  out.add(2, "const int c = threadIdx.x * " + num(v_) + ", z = c + " + num(v_) + ";",
          "this thread: [c, z) from `first`");
}

void KernelPrinter::print_mask(Lines &out) {
  // Bit p: piece p+1 can match somewhere in [c, z), and no earlier piece holds on all of it.
  std::vector<std::string> all, terms;
  auto build = [&](bool cumulative) {
    all.clear(), terms.clear();
    std::vector<std::string> earlier;
    for (size_t p = 0; p < masked_; ++p) {
      std::string term = always(p) ? "" : meets(p);
      size_t parts = term.empty() ? 0 : 1;
      if (!earlier.empty() && term.find("||") != std::string::npos) term = "(" + term + ")";
      for (size_t e = cumulative && !earlier.empty() ? earlier.size() - 1 : 0; e < earlier.size(); ++e, ++parts)
        term = conjunction(term, "!" + earlier[e]);
      if (term.empty()) term = "1";
      const bool bare = parts == 1 && term[0] == '!' && term.find(' ') == std::string::npos;
      if (!bare && term != "1") term = "(" + term + ")";
      terms.push_back(p ? term + " << " + num(p) : term);
      if (residual(p) || always(p) || p + 1 == masked_) continue;
      const std::string name = "all" + num(p + 1);
      std::string holds = holds_everywhere(p);
      if (cumulative && !earlier.empty())
        holds = earlier.back() + " || " +
                (holds.find("&&") != std::string::npos && holds.find("||") == std::string::npos ? "(" + holds + ")"
                                                                                                : holds);
      all.push_back(name + " = " + holds);
      earlier.push_back(name);
    }
  };
  build(false);
  auto joined = [&] {
    std::string s;
    for (const std::string &t : terms) s += (s.empty() ? "" : " | ") + t;
    return s;
  };
  const std::string comment = "pieces that can match in [c, z)";
  const std::string line = "const int may = " + joined() + ";";
  if (line.size() + 2 <= columns) {
    out.statements(2, "const bool ", all);
    out.add(2, line, comment);
    return;
  }
  build(true);
  out.comment(2, "allK: piece K, or one before it, holds on all of [c, z)");
  out.statements(2, "const bool ", all);
  out.add(2, "int may = " + terms[0] + ";", comment);
  for (size_t t = 1; t < terms.size(); ++t) out.add(2, "may |= " + terms[t] + ";");
}

} // namespace cuda
} // namespace elsewise
