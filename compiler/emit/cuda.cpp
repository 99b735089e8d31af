// SPDX-License-Identifier: Apache-2.0
// A scheduled kernel to CUDA C for people: head, helpers, device functions, signature, body. It decides no type, places
// no node and knows no device.
#include "compiler/emit/cuda_kernel.h"
#include "compiler/emit/emit.h"
#include "compiler/ir/rows.h"

namespace elsewise {
namespace cuda {

void KernelPrinter::print_pieces(Lines &out) {
  for (size_t p = 0; p < count_; ++p) {
    const Piece &piece = k_.pieces[p];
    const std::string at = num(piece.line) + ":" + num(piece.column) + " " + comment_text(piece.text);
    if (residual(p)) print_function(k_, names_, helpers_, "guard" + num(p + 1), "bool", piece.guard, at, out);
    if (identity(p)) out.comment(0, "piece " + num(p + 1) + " is the element itself, nothing to do: " + at);
    else if (!shares(p)) {
      print_function(k_, names_, helpers_, function(p), stored(k_.outputs[0]), piece.values[0], at, out);
      print_packed(p, out);
    } else if (bodies_[p] == p) print_shared(p, out);
  }
}

// Above a body that several pieces share, the first of them.
void KernelPrinter::print_shared(size_t p, Lines &out) {
  constexpr size_t most_sources = 8;
  std::vector<std::string> sources;
  size_t sharing = 0;
  for (size_t q = p; q < count_; ++q) {
    if (bodies_[q] != p || ++sharing > most_sources) continue;
    const Piece &piece = k_.pieces[q];
    sources.push_back(num(piece.line) + ":" + num(piece.column) + " " + comment_text(piece.text));
  }
  if (sharing > most_sources) sources.push_back("and " + num(int64_t(sharing - most_sources)) + " more of this shape");
  for (size_t s = 0; sources.size() > 1 && s < sources.size(); ++s) out.comment(0, sources[s]);
  print_function(k_, names_, helpers_, function(p), stored(k_.outputs[0]), k_.pieces[p].values[0],
                 sources.size() > 1 ? "" : sources[0], out);
}

// Constants in which the pieces of a shape differ.
void KernelPrinter::print_tables(Lines &out) const {
  constexpr size_t most_constant_bytes = 48 * 1024; // of the 64 KiB that all `__constant__` of a module have
  size_t size = 0;
  for (const Table &t : k_.tables) size += t.entries.size() * size_t(bytes(t.type));
  const std::string where = size <= most_constant_bytes ? "__constant__ " : "__device__ const ";
  for (size_t t = 0; t < k_.tables.size(); ++t) {
    const Table &table = k_.tables[t];
    std::vector<std::string> items;
    for (const Constant &c : table.entries) items.push_back(literal(table.type, c, false, false));
    out.list(0, where + std::string(value(table.type, false)) + " constants" + num(int64_t(t) + 1) + "[] = {", items,
             "};");
  }
}

// What the host passes, in the order of the slots.
std::vector<KernelPrinter::Parameter> KernelPrinter::parameters() const {
  std::vector<Parameter> list;
  const std::string integer_type = std::string(integer()) + " ";
  auto bound_type = [&](const SlotInfo &s) {
    return form_.flat && bound_axis(k_, s) != flat_axis ? "int " : integer_type;
  };
  auto place = [&](const SlotInfo &s) { return num(s.index + 1) + box_suffix(s.box, s.range); };
  auto pointer = [&](const char *qualifier, DType d) { return qualifier + std::string(stored(d)) + " *__restrict__ "; };
  for (const SlotInfo &s : slots_) {
    switch (s.kind) {
    case SlotKind::Out:
      list.push_back(
          {out_ == "out" ? pointer("", k_.outputs[s.index]) : std::string(stored(k_.outputs[s.index])) + " *", out_});
      break;
    case SlotKind::In:
      list.push_back({pointer("const ", dtype(s.index)), names_.args[s.index]});
      break;
    case SlotKind::Table:
      list.push_back({pointer("const ", dtype(s.index)), names_.tables[s.index]});
      break;
    case SlotKind::TableStride:
      list.push_back({"i64 ", names_.steps[s.index][s.box]});
      break;
    case SlotKind::Uniform: {
      const DType d = k_[k_.uniforms[s.index]].type;
      list.push_back({std::string(d == DType::Index ? "i64" : value(d, false)) + " ", names_.uniforms[s.index]});
      break;
    }
    case SlotKind::Rows:
      list.push_back({integer_type, "rows"});
      break;
    case SlotKind::Extent:
      list.push_back({form_.flat ? "int " : integer_type, "extent"});
      break;
    case SlotKind::End:
      list.push_back({bound_type(s), "end" + place(s)});
      break;
    case SlotKind::Begin:
      list.push_back({bound_type(s), "begin" + place(s)});
      break;
    case SlotKind::RowLength:
      list.push_back({integer_type, "length" + num(s.index)});
      break;
    case SlotKind::RowPitch:
      list.push_back({integer_type, "pitch" + num(s.index)});
      break;
    case SlotKind::InnerPitch:
      list.push_back({integer_type, "pitch"});
      break;
    case SlotKind::OutStride:
      list.push_back({integer_type, "out_stride" + num(s.index)});
      break;
    case SlotKind::InStride:
      list.push_back({integer_type, strides_[s.index] + num(s.box)});
      break;
    case SlotKind::OutInner:
      list.push_back({integer_type, "out_stride"});
      break;
    case SlotKind::InInner:
      list.push_back({integer_type, strides_[s.index]});
      break;
    case SlotKind::Inverse:
      list.push_back({form_.narrow ? "unsigned " : "u64 ", inverse_name(s.index)});
      break;
    case SlotKind::InverseShift:
      list.push_back({"int ", inverse_name(s.index) + "_shift"});
      break;
    case SlotKind::Shift:
      list.push_back({"int ", "shift"});
      break;
    case SlotKind::Blocks:
      list.push_back({"unsigned ", "blocks"});
      break;
    case SlotKind::Live:
      list.push_back({"Live ", "live"});
      break;
    case SlotKind::Segments:
      list.push_back({"const __grid_constant__ Segments ", "segments"});
      break;
    }
  }
  return list;
}

// Quotients of floats take a register or two more than the 32 with which a multiprocessor of 2048 threads is full,
// and so many threads more are needed to keep memory busy: such a kernel is asked to do with 32. What calls functions
// or divides anything wider would spill.
bool KernelPrinter::asks_for_few_registers() const {
  if (form_.wide || form_.tile || form_.segments) return false;
  bool divides = false;
  for (const Inst &i : k_.insts) {
    if (i.stage != Stage::Element) continue;
    if (i.op == Op::Call && i.sub != least_row() && i.sub != greatest_row() && i.sub != magnitude_row()) return false;
    if (i.op != Op::Binary) continue;
    const BinaryOp op = BinaryOp(i.sub);
    if (op == BinaryOp::Div && i.type == DType::F32) divides = true;
    else if (op == BinaryOp::Div || op == BinaryOp::Pow) return false;
    else if ((op == BinaryOp::FloorDiv || op == BinaryOp::Mod) && k_[i.b].op != Op::Const) return false;
  }
  return divides;
}

void KernelPrinter::print_signature(Lines &out) {
  std::vector<std::string> parameters;
  if (form_.many) parameters.push_back("const __grid_constant__ Items items");
  else
    for (const Parameter &p : this->parameters()) parameters.push_back(p.type + p.name);
  const std::string attributes = "extern \"C\" __global__ void __launch_bounds__(" + num(block_threads) +
                                 (asks_for_few_registers() ? ", " + num(2048 / block_threads) : "") + ")";
  // In one construct if that takes fewer lines than the name on a line of its own.
  Lines whole, split;
  whole.list(0, attributes + " elsewise(", parameters, ") {");
  split.add(0, attributes);
  split.list(4, "elsewise(", parameters, ") {");
  out.append(whole.count() < split.count() ? whole : split);
}

// NVRTC 13 takes a byte out of a vector's word and works on it in 16 bits without giving it its sign first: `min(-x,
// k)` compares what the byte above it happens to be. So it may not look into the words. tests/python/test_cuda_text.py
// counts the conversions.
void KernelPrinter::print_whole(Lines &out, DType d) const {
  const std::string type = vector_type(d);
  out.add(0, "__device__ " + type + " whole(" + type + " v) {", "a vector whose bytes NVRTC must not take for 16 bits");
  if (v_ >= 4) {
    out.add(2, "for (int k = 0; k < " + num(v_ / 4) + "; ++k) asm(\"\" : \"+r\"(v.at.word[k]));");
  } else {
    out.add(2, "unsigned word = *(unsigned short *)&v;");
    out.add(2, "asm(\"\" : \"+r\"(word));");
    out.add(2, "*(unsigned short *)&v = (unsigned short)word;");
  }
  out.add(2, "return v;");
  out.add(0, "}");
}

// Structs, and the two functions that know the tile.
void KernelPrinter::print_tools(Lines &out) {
  const int64_t width = form_.tile ? tile_width(form_) : int64_t(block_threads) * v_;
  if (v_ > 1 && !nothing_)
    for (DType d : vector_types_) {
      if (in_words(d)) print_byte_vector(out, d);
      else {
        out.add(0, "struct alignas(" + num(std::min(16, v_ * bytes(d))) + ") " + vector_type(d) + " {");
        out.add(2, std::string(stored(d)) + " at[" + num(v_) + "];");
        out.add(0, "};");
      }
      if (whole_types_.contains(d)) print_whole(out, d);
    }
  if (form_.many) print_list_tools(out);
  if (has(SlotKind::Live)) {
    out.add(0, "struct Live {", "blocks with work: from begin[r] on they are first[r], first[r] + 1, ...");
    out.add(2, "i64 first[4];");
    out.add(2, "unsigned begin[4];");
    out.add(0, "};");
    if (!nothing_) {
      out.add(0, "__device__ i64 live_block(const Live &live, unsigned block) {");
      out.add(2, "i64 first = live.first[0];");
      out.add(2, "for (int r = 1; r < 4; ++r)");
      out.add(4, "if (block >= live.begin[r]) first = live.first[r] - live.begin[r];");
      out.add(2, "return first + block;");
      out.add(0, "}");
    }
  }
  if (form_.segments) print_segment_tools(out);
  const auto clamped = [&](const Local &l) { return clamps(l); };
  const bool all_clamped = form_.flat || std::all_of(locals_.begin(), locals_.end(),
                                                     [&](const Local &l) { return l.row == no_node || clamps(l); });
  if (!nothing_)
    out.add(0, "__device__ int local(" + std::string(all_clamped ? integer() : bound_type()) +
                   " p) { return p < 0 ? 0 : p < " + num(width) + " ? (int)p : " + num(width) + "; }");
  if (!nothing_ && form_.rows > 0 && form_.narrow && !form_.flat && !form_.tile) {
    out.add(0, "__device__ int quotient(int n, unsigned inverse, int shift) { "
               "return (int)((u64)n * inverse >> (32 + shift)); }");
  }
  if (!nothing_ && std::any_of(locals_.begin(), locals_.end(), clamped))
    out.add(0, "__device__ int within(" + std::string(bound_type()) +
                   " p, int extent) { return p < 0 ? 0 : p < extent ? (int)p : extent; }");
}

// The spec, how this variant reaches its operands, and what the host works out for it.
void KernelPrinter::print_head(Lines &out) const {
  std::string_view source = k_.source;
  while (!source.empty()) {
    const size_t end = source.find('\n');
    const std::string line =
        comment_text(source.substr(0, std::min(end, source.find('#')))); // without its own comments
    if (line.find_first_not_of(' ') != std::string::npos) out.comment(0, line);
    if (end == std::string_view::npos) break;
    source.remove_prefix(end + 1);
  }
  static constexpr const char *how[] = {
      " (unused)", "", " (any alignment)", " (one value a row)", " (strided)", " (a row for all)", " (along the rows)"};
  std::string line;
  for (uint32_t a = 0; a < k_.arguments.size(); ++a) {
    const ArgType &type = k_.arguments[a].type;
    line += (a ? ", " : "") + comment_text(k_.arguments[a].name) + " ";
    line += type.kind == ArgKind::Tensor ? spelling(type.dtype)
            : type.kind == ArgKind::Int  ? "int"
            : type.kind == ArgKind::Bool ? "bool"
                                         : "float";
    if (has(SlotKind::Table, a)) line += "[" + num(type.rank) + "]";
    if (type.kind == ArgKind::Tensor && !same_view(a) && has(SlotKind::In, a)) line += how[int(access(a))];
  }
  line += (line.empty() ? "-> " : " -> ") + std::string(spelling(k_.outputs[0])) +
          (form_.out == Access::Strided ? " (strided)" : "");
  line += out_ == "out" ? "; out distinct" : "; in place of " + out_;
  line += form_.many        ? "; a list of tensors"
          : form_.rows == 0 ? "; one row"
                            : "; rows over " + num(form_.rows) + (form_.rows == 1 ? " axis" : " axes");
  if (form_.flat) line += ", one behind the other";
  if (form_.tile) line += ", in tiles of " + num(form_.tile);
  if (form_.window) line += "; a window of its domain";
  if (form_.segments) line += "; pieces by segments";
  line += "; " + num(v_) + (v_ == 1 ? " position a thread" : " positions a thread");
  out.comment(0, line);
  for (size_t u = 0; u < k_.uniforms.size(); ++u) {
    NodeId bare = k_.uniforms[u];
    while (k_[bare].op == Op::Cast) bare = k_[bare].a;
    if (k_[bare].op != Op::Param && (k_[k_.uniforms[u]].op != Op::Len || k_[k_.uniforms[u]].a != flat_axis))
      out.comment(0, names_.uniforms[u] + " = " + comment_text(describe(k_, k_.uniforms[u])));
  }
}

// Vector variables and pointers that the bodies used.
void KernelPrinter::print_variables(Lines &out, const std::string &body) {
  vector_types_.insert(k_.outputs[0]);
  const std::string out_type = vector_type(k_.outputs[0]);
  for (uint32_t a : vector_pointers_) {
    const std::string type = vector_type(dtype(a));
    out.add(2,
            "const " + type + " *" + pointers_[a] + " = (const " + type + " *)" + names_.args[a] + " + threadIdx.x;");
  }
  // Bytes are put into words that have to have a value.
  const char *v = !mentions(body, "v")                                                      ? " *"
                  : in_words(k_.outputs[0]) && body.find("v.at[k] = ") != std::string::npos ? " v = {}, *"
                                                                                            : " v, *";
  out.add(2, out_type + v + outs_ + " = (" + out_type + " *)" + out_ + " + threadIdx.x;");
  for (uint32_t a : vector_operands_)
    if (!same_view(a) && mentions(body, vectors_[a]))
      out.add(2, vector_type(dtype(a)) + " " + vectors_[a] + (form_.flat && in_words(dtype(a)) ? " = {};" : ";"));
}

// Of uniforms that divide whole numbers: once a thread, for all its positions.
void KernelPrinter::print_reciprocals(Lines &out) {
  for (const auto &[u, name] : names_.reciprocals) {
    helpers_.use("reciprocal", DType::F32);
    out.add(2, "const float " + name + " = reciprocal(" + names_.uniforms[u] + ");");
  }
}

std::string KernelPrinter::run() {
  slots_ = slots(k_, Backend::Cuda);
  choose_pieces();
  choose_names();

  Lines functions, body, code;
  print_pieces(functions);
  print_signature(code);
  if (nothing_) code.comment(2, "every value is the element itself");
  else if (form_.flat) {
    print_reciprocals(code);
    print_flat(code);
    print_flat_body(body);
    print_variables(code, body.str());
    code.append(body);
  } else {
    if (form_.many) print_item(code);
    print_reciprocals(code);
    if (form_.tile) print_tiles(code);
    else {
      print_origin(code);
      print_ends(code);
      print_bounds(code);
      if (v_ == 1) form_.segments ? print_segments(code) : print_single(code);
      else {
        choose_early();
        form_.segments ? print_segments(body) : print_body(body);
        print_vectors(code);
        if (masked_ && early_.empty()) print_mask(code);
        print_variables(code, body.str());
        if (!early_.empty()) {
          print_early(code);
          print_mask(code);
        }
        code.append(body);
      }
    }
  }
  code.add(0, "}");

  byte_lanes_ = code.str().find(".at[") != std::string::npos;
  Lines prelude, tools, head;
  const auto flat = [&](const Local &l) { return l.flat; };
  const auto by_row = [&](const Local &l) { return l.flat && l.row != no_node; };
  if (!nothing_ && form_.rows > 0 && !form_.flat && !form_.unit_pitch &&
      std::any_of(locals_.begin(), locals_.end(), flat)) {
    const std::string_view bound = std::any_of(locals_.begin(), locals_.end(), by_row) ? bound_type() : integer();
    helpers_.use("ceil_div", bound == "int" ? DType::I32 : bound == "i64" ? DType::I64 : DType::Index);
  }
  if (!nothing_ || has(SlotKind::Live) || form_.many || form_.segments) print_tools(tools);
  helpers_.print(tools);
  print_tables(tools);
  print_prelude(prelude, tools.str() + functions.str() + code.str());

  print_head(head);
  head.append(prelude), head.append(tools), head.append(functions);
  head.blank();
  head.append(code);
  return head.str();
}

} // namespace cuda

std::string emit_cuda(const Kernel &scheduled) { return cuda::KernelPrinter(scheduled).run(); }

std::vector<std::string> cuda_options(const Kernel &scheduled) {
  std::vector<std::string> options{"--fmad=false", "--minimal", "-std=c++17"};
  bool wide = scheduled.form.wide;
  for (const Inst &i : scheduled.insts)
    if (i.op == Op::Const && i.type == DType::Index) {
      const __int128 v = scheduled.constants[i.a].integer;
      wide |= v != (int64_t)v;
    }
  if (wide) options.push_back("--device-int128");
  return options;
}

} // namespace elsewise
