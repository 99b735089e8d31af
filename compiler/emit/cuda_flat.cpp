// SPDX-License-Identifier: Apache-2.0
// The flat form, for short rows: a thread takes a vector of `out` wherever rows end, finds its row by a product, and
// steps across ends by lane. It knows no mask: every vector goes through the chain.
#include "compiler/emit/cuda_kernel.h"

namespace elsewise::cuda {

std::string KernelPrinter::flat_element(uint32_t a, bool lanes) const {
  const std::string &name = names_.args[a];
  switch (access(a)) {
  case Access::Broadcast:
    return values_[a];
  case Access::Scalar:
    return lanes ? vectors_[a] + ".at[k]" : name + "[p]";
  case Access::Strided:
    return name + "[" + values_[a] + " + " + column_ + " * " + strides_[a] + "]";
  default:
    return name + "[" + column_ + " * " + strides_[a] + "]";
  }
}

// Bounds as the host or the row has them: what is compared is the position in the row, or the row-major one.
std::string KernelPrinter::flat_matches(size_t p) const {
  auto text = [&](const std::string &name, bool begins) {
    const Local &l = *std::find_if(locals_.begin(), locals_.end(), [&](const Local &l) { return l.name == name; });
    const std::string bound = l.row == no_node ? l.parameter : l.name;
    return (l.flat ? "position" : column_) + (begins ? " >= " : " < ") + bound;
  };
  std::string s;
  for (const Bound &b : bounds_[p]) {
    std::string t;
    for (const std::string &lo : b.lo) t = conjunction(t, text(lo, true));
    for (const std::string &hi : b.hi) t = conjunction(t, text(hi, false));
    if (bounds_[p].size() > 1 && t.find("&&") != std::string::npos) t = "(" + t + ")";
    s += (s.empty() ? "" : " || ") + t;
  }
  return s;
}

std::string KernelPrinter::quotient(const std::string &of, int length) const {
  const std::string inverse = inverse_name(uint32_t(length));
  return (form_.narrow ? "__umulhi(" : "__umul64hi(") + of + ", " + inverse + ") >> " + inverse + "_shift";
}

// What the row alone decides: where operands begin in it, its values and bounds.
void KernelPrinter::print_row_entry(Lines &out) {
  Lines entry;
  std::vector<std::string> rows;
  auto variable = [&](std::string_view type, const std::string &name) {
    out.add(2, std::string(type) + " " + name + ";");
    enters_ = true;
  };
  if (has(SlotKind::RowPitch)) {
    variable(integer(), "rowbase");
    entry.add(4, "rowbase = " + row_offset(SlotKind::RowPitch, 0, "pitch") + ";");
  }
  for (uint32_t a = 0; a < k_.arguments.size(); ++a) {
    if (!has(SlotKind::In, a) || (access(a) != Access::Broadcast && access(a) != Access::Strided)) continue;
    const bool value = access(a) == Access::Broadcast;
    const std::string begin = row_offset(SlotKind::InStride, a, strides_[a]);
    variable(value ? stored(dtype(a)) : integer(), values_[a]);
    entry.add(4, values_[a] + " = " + (value ? names_.args[a] + "[" + begin + "]" : begin) + ";");
  }
  std::vector<NodeId> roots;
  for (const Local &l : locals_)
    if (l.row != no_node) roots.push_back(l.row);
  const size_t bounds = roots.size();
  roots.insert(roots.end(), row_values_.begin(), row_values_.end());
  if (!roots.empty()) {
    std::vector<std::string> shared;
    const std::vector<std::string> texts = row_expressions(k_, names_, helpers_, row_positions(), roots, shared);
    for (const std::string &line : shared) entry.add(4, line);
    size_t next = 0;
    for (const Local &l : locals_) {
      if (l.row == no_node) continue;
      const bool clamped = clamps(l);
      variable(clamped ? "int" : bound_type(), l.name);
      entry.add(4, l.name + " = " + (clamped ? "within(" + texts[next] + ", extent);" : texts[next] + ";"));
      ++next;
    }
    for (size_t v = 0; v < row_values_.size(); ++v) {
      const std::string &name = names_.given.at(row_values_[v]);
      variable(given_type(k_, row_values_[v]), name);
      entry.add(4, name + " = " + texts[bounds + v] + ";");
    }
  }
  if (!enters_) return;
  out.add(2, "auto enter_row = [&] {", "what the row decides");
  out.append(entry);
  out.add(2, "};");
  out.add(2, "enter_row();");
}

void KernelPrinter::print_flat(Lines &out) {
  const int64_t width = int64_t(block_threads) * v_, aligned = std::min<int64_t>(16, v_ * bytes(k_.outputs[0]));
  const std::string type(integer());
  out.add(2, "const " + type + " first = blockIdx.x * " + num(width) + (form_.narrow ? "" : "ll") + " - shift;",
          "the block's first position; `" + out_ + "` is " + num(aligned) + "-byte aligned there");
  std::vector<std::string> moves{out_ + " += first"};
  for (uint32_t a = 0; a < k_.arguments.size(); ++a)
    if (has(SlotKind::In, a) && (access(a) == Access::Vector || access(a) == Access::Scalar))
      moves.push_back(names_.args[a] + " += first");
  out.statements(2, "", moves);
  out.add(2, "const int lo = local(-first), hi = local(rows * extent - first);");
  print_vectors(out);
  out.add(2, "if (c >= hi) return;");
  out.add(2, "const " + type + " at = first + (c < lo ? lo : c);", "its first position of all rows");

  const bool in_rows = uses_rows(k_), several = form_.rows > 1;
  const std::string row = several || !in_rows ? "row" : row_names_[0];
  out.add(2, (several || !in_rows ? "const " : "") + type + " " + row + " = " + quotient("at", 0) + ";", "at / extent");
  out.add(2, "int " + column_ + " = at - " + row + " * extent;", "where it is in that row");
  if (!in_rows) return;
  std::string rest = "row";
  for (int d = 0; d + 1 < form_.rows; ++d) { // axis 0 is the fastest, and each quotient feeds the next division
    const std::string next = d + 2 == form_.rows ? row_names_[d + 1] : "rest" + num(d + 1);
    out.add(2, type + " " + next + " = " + quotient(rest, d + 1) + ", " + row_names_[d] + " = " + rest + " - " + next +
                   " * length" + num(d) + ";");
    rest = next;
  }
  print_row_entry(out);
}

// One position: into the next row first, if the last one ended.
void KernelPrinter::print_lane(Lines &out, int indent, bool lanes) {
  const std::string ended = "if (" + column_ + " == extent) ", entered = enters_ ? "enter_row();" : "";
  if (!uses_rows(k_)) out.add(indent, ended + column_ + " = 0;");
  else if (form_.rows == 1)
    out.add(indent, ended + column_ + " = 0, ++" + row_names_[0] + (enters_ ? ", " + entered : ";"));
  else {
    out.add(indent, ended + "{");
    out.add(indent + 2, column_ + " = 0;");
    std::string carry = "++" + row_names_[0] + " == length0";
    for (int d = 1; d + 1 < form_.rows; ++d)
      carry += " && (" + row_names_[d - 1] + " = 0, ++" + row_names_[d] + " == length" + num(d) + ")";
    out.add(indent + 2,
            "if (" + carry + ") " + row_names_[form_.rows - 2] + " = 0, ++" + row_names_[form_.rows - 1] + ";");
    if (enters_) out.add(indent + 2, entered);
    out.add(indent, "}");
  }
  if (has(SlotKind::RowPitch))
    out.add(indent, "const " + std::string(integer()) + " position = rowbase + " + column_ +
                        (form_.unit_pitch ? ";" : " * pitch;"));
  print_matches(out, indent, lanes);
}

void KernelPrinter::print_flat_body(Lines &out) {
  out.add(2, "if (lo <= c && z <= hi) {");
  print_loads(out, 4);
  out.add(0, "#pragma unroll");
  out.add(4, "for (int k = 0; k < " + num(v_) + "; ++k, ++" + column_ + ") {");
  print_lane(out, 6, true);
  out.add(4, "}");
  out.add(4, "*" + outs_ + " = v;");
  shared_ = ~0u;
  out.add(2, "} else {", "an end of `" + out_ + "`");
  out.add(4, "for (int p = c < lo ? lo : c; p < z && p < hi; ++p, ++" + column_ + ") {");
  print_lane(out, 6, false);
  out.add(4, "}");
  out.add(2, "}");
}

} // namespace elsewise::cuda
