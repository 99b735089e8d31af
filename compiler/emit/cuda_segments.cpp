// SPDX-License-Identifier: Apache-2.0
// The form for many pieces: a table of segments, cut by the host and passed by value, tells a position's piece. It
// compares no bound of a piece and prints no value.
#include "compiler/emit/cuda_kernel.h"

namespace elsewise::cuda {

// Up to this many bodies a vector of several pieces is chosen by lane in registers, which prints all of them V times.
static constexpr size_t most_lane_bodies = 8;

void KernelPrinter::print_segment_tools(Lines &out) const {
  const SegmentLayout layout = segment_layout(k_);
  const std::string count = num(int64_t(layout.count)), place(integer());
  out.add(0, "struct Segments {",
          std::string("from begin[s] up to begin[s + 1] piece[s] holds") +
              (layout.entries ? ", with entry[s] of constants" : ""));
  out.add(2, place + " begin[" + count + "];", "the unused ones lie beyond every position");
  out.add(2, std::string(layout.piece_bytes == 1 ? "unsigned char" : "unsigned short") + " piece[" + count + "];");
  if (layout.entries) out.add(2, "unsigned short entry[" + count + "];");
  out.add(0, "};");
  if (nothing_) return;
  // Of the last entry nothing is asked but where it begins.
  const int64_t searched = int64_t(layout.count) - 1;
  int64_t half = 1;
  while (half * 2 <= searched) half *= 2;
  const std::string upper = num(searched - half);
  out.comment(0, "The segment that holds p. Steps are halves of a power of two, so that all of them are unrolled.");
  out.add(0, "__device__ int segment_at(const Segments &segments, " + place + " p) {");
  out.add(2, searched == half ? "int s = 0;" : "int s = segments.begin[" + upper + "] <= p ? " + upper + " : 0;");
  out.add(2, "for (int step = " + num(half / 2) + "; step > 0; step /= 2)");
  out.add(4, "if (segments.begin[s + step] <= p) s += step;");
  out.add(2, "return s;");
  out.add(0, "}");
}

std::vector<size_t> KernelPrinter::segment_bodies() const {
  std::vector<size_t> list;
  for (size_t p = 0; p < count_; ++p)
    if (bodies_[p] == p) list.push_back(p);
  return list;
}

// Where all bodies read the same, they do so ahead of the search, which takes as long as the memory does.
bool KernelPrinter::loads_early() const {
  for (size_t p = 0; p < count_; ++p)
    if (identity(p) || arguments(values_read_[p]) != arguments(values_read_[0])) return false;
  return true;
}

// The segments of the block's first and last position, and the thread's own between them.
void KernelPrinter::print_search(Lines &out, const std::string &own) const {
  const std::string threads = "int(blockDim.x)";
  const std::string width = form_.tile        ? num(tile_width(form_))
                            : form_.rows == 0 ? num(int64_t(block_threads) * v_)
                            : v_ == 1         ? threads
                                              : threads + " * " + num(v_);
  const std::string place(integer());
  out.comment(2, "The segments in which the block begins and ends, and between them this thread's.");
  out.add(2, "const " + place + " end = first + " + width + ", at = first + " + own + ";");
  out.add(2, "const int from = segment_at(segments, first);");
  out.add(2, "int mine = from, to = segments.begin[from + 1] < end ? segment_at(segments, end - 1) : from;");
  out.add(2, "while (mine < to) {");
  out.add(4, "const int middle = (mine + to + 1) / 2;");
  out.add(4, "if (segments.begin[middle] <= at) mine = middle;");
  out.add(4, "else to = middle - 1;");
  out.add(2, "}");
}

// The value at a position whose segment is `segment`.
void KernelPrinter::print_segment_value(Lines &out, int indent, const std::string &segment, bool lanes) {
  const std::string target = lanes ? "v.at[k]" : out_ + (form_.out == Access::Strided ? "[p * out_stride]" : "[p]");
  entry_ = "segments.entry[" + segment + "]";
  const std::vector<size_t> list = segment_bodies();
  auto value = [&](int at, size_t p) {
    conditional(out, at, "", target + " = " + call(function(p), values_read_[p], lanes, p) + ";");
  };
  if (list.size() == 1 && !identity(list[0])) return value(indent, list[0]);
  out.add(indent, "switch (segments.piece[" + segment + "]) {");
  for (const size_t p : list) {
    if (identity(p)) continue; // it stays as it is
    out.add(indent, "case " + num(int64_t(p) + 1) + ":");
    value(indent + 2, p);
    out.add(indent + 2, "break;");
  }
  out.add(indent, "}");
}

void KernelPrinter::print_segment_lanes(Lines &out, int indent, bool loaded) {
  const std::vector<std::string> loads = vector_loads();
  if (!loaded) out.statements(indent, "", loads);
  out.add(indent, "for (int k = 0, now = mine; k < " + num(v_) + "; ++k) {");
  out.add(indent + 2, "now += segments.begin[now + 1] <= first + c + k;");
  print_segment_value(out, indent + 2, "now", true);
  out.add(indent, "}");
  out.add(indent, "*" + outs_ + " = v;");
  shared_ = ~0u;
}

void KernelPrinter::print_segment_chain(Lines &out, int indent) {
  out.add(indent, "for (int p = c < lo ? lo : c, now = mine; p < z && p < hi; ++p) {");
  out.add(indent + 2, "now += segments.begin[now + 1] <= first + p;");
  print_segment_value(out, indent + 2, "now", false);
  out.add(indent, "}");
}

void KernelPrinter::print_segments(Lines &out) {
  if (v_ == 1) {
    out.add(2, "const int p = threadIdx.x;");
    out.add(2, "if (p >= hi) return;");
    print_search(out, "p");
    return print_segment_value(out, 2, "mine", false);
  }
  const bool early = loads_early();
  out.add(2, "const bool inside = lo <= c && z <= hi;");
  if (early) {
    const std::vector<std::string> loads = vector_loads();
    shared_ = ~0u;
    if (loads.size() == 1) out.add(2, "if (inside) " + loads[0] + ";", "ahead of the search");
    else if (!loads.empty()) {
      out.add(2, "if (inside) {", "ahead of the search");
      out.statements(4, "", loads);
      out.add(2, "}");
    }
  }
  print_search(out, "c");
  print_segment_body(out, early);
}

// What a thread does once it knows its segment. `loaded`: its vectors are.
void KernelPrinter::print_segment_body(Lines &out, bool loaded) {
  const std::vector<size_t> list = segment_bodies();
  const std::string alone = "inside && first + z <= segments.begin[mine + 1]";
  auto straight = [&](int indent, size_t p) {
    entry_ = "segments.entry[mine]";
    if (!identity(p)) print_straight(out, indent, p, loaded);
  };
  const bool lanes = list.size() <= most_lane_bodies;
  auto mixed = [&](int indent) {
    if (!lanes) return print_segment_chain(out, indent);
    out.add(indent, "if (inside) {");
    print_segment_lanes(out, indent + 2, loaded);
    out.add(indent, "} else {");
    print_segment_chain(out, indent + 2);
    out.add(indent, "}");
  };
  const std::string ends =
      lanes ? "several segments, chosen by lane, or an end of the row" : "several segments, or an end of the row";
  if (list.size() == 1) {
    out.add(2, "if (" + alone + ") {", "in one segment");
    straight(4, list[0]);
    out.add(2, "} else if (inside) {", "in several: chosen by lane");
    print_segment_lanes(out, 4, loaded);
    out.add(2, "} else {", "an end of the row");
    print_segment_chain(out, 4);
    out.add(2, "}");
    return;
  }
  out.add(2, "switch (" + alone + " ? segments.piece[mine] : 0) {");
  for (const size_t p : list) {
    const Inst &root = k_[k_.pieces[p].values[0]];
    const bool bits = root.op == Op::Load && root.type == k_.outputs[0];
    const char *how = identity(p) ? ": in place already" : bits ? ": moved as bits" : "";
    out.add(2, "case " + num(int64_t(p) + 1) + ":", "piece " + num(int64_t(p) + 1) + how);
    straight(4, p);
    out.add(4, "break;");
  }
  out.add(2, "default:", ends);
  mixed(4);
  out.add(2, "}");
}

} // namespace elsewise::cuda
