// SPDX-License-Identifier: Apache-2.0
// A scheduled kernel to CUDA C for people: signature, classification of each thread's vector, straight bodies and the
// first-match chain. It decides no type, places no node and knows no device.
#include "compiler/emit/cuda_expr.h"
#include "compiler/emit/emit.h"
#include <algorithm>

namespace elsewise {

using namespace cuda;

namespace {

constexpr size_t most_masked_pieces = 31; // bits of the mask, an int

std::string num(int64_t v) { return std::to_string(v); }

class Emitter {
public:
  explicit Emitter(const Kernel &k)
      : k_(k), form_(k.form), v_(std::max<int>(k.form.vector, 1)), helpers_(k.form.wide) {}
  std::string run();

private:
  // One box bound: the kernel's parameter and its place relative to the block.
  struct Bound {
    std::string lo, hi; // "b2", "e1"; empty if open
  };

  void choose_names();
  void choose_pieces();
  void print_pieces(Lines &);
  void print_signature(Lines &);
  void print_origin(Lines &);
  void print_bounds(Lines &);
  void print_vectors(Lines &);
  void print_mask(Lines &);
  void print_straight(Lines &, int indent, size_t piece);
  void print_lanes(Lines &, int indent);
  void print_chain(Lines &, int indent);
  void print_loop(Lines &, int indent, const std::string &head, bool lanes);
  void print_body(Lines &);
  void print_single(Lines &);
  void print_matches(Lines &, int indent, bool lanes);

  std::string_view integer() const { return form_.narrow ? "int" : "i64"; }
  bool same_view(uint32_t a) const { return a < form_.same_view.size() && form_.same_view[a]; }
  Access access(uint32_t a) const {
    return same_view(a) ? form_.out : a < form_.args.size() ? form_.args[a] : Access::Absent;
  }
  DType dtype(uint32_t a) const { return k_.arguments[a].type.dtype; }
  std::string vector_type(DType d) const { return std::string(spelling(d)) + "x" + num(v_); }
  bool identity(size_t p) const { return is_identity(k_, uint32_t(p)); }
  bool has(SlotKind kind, uint32_t index = 0) const {
    return std::any_of(slots_.begin(), slots_.end(),
                       [&](const SlotInfo &s) { return s.kind == kind && s.index == index; });
  }
  static std::string box_suffix(size_t box) { return box ? std::string(1, char('a' + box)) : ""; }
  bool always(size_t p) const { // no range says where this piece holds
    const auto &boxes = k_.pieces[p].boxes;
    return boxes.empty() || std::any_of(boxes.begin(), boxes.end(), [](const auto &box) { return box.empty(); });
  }
  bool residual(size_t p) const { return k_.pieces[p].guard != no_node; }

  std::string any_box(size_t p, const char *both, std::string (*term)(const Bound &)) const;
  std::string holds_everywhere(size_t p) const; // on all of [c, z)
  std::string meets(size_t p) const;            // on some of [c, z)
  std::string matches(size_t p) const;          // at p
  std::string element(uint32_t a, bool lanes) const;
  std::string position(bool lanes) const;
  std::string call(const std::string &name, const Reads &, bool lanes) const;
  // The operand that shares the output's vector variable, no_node if none.
  uint32_t shared(const std::vector<uint32_t> &args) const;
  std::string vector_name(uint32_t a) const { return a == shared_ ? "v" : vectors_[a]; }
  void conditional(Lines &, int indent, const std::string &head, const std::string &body) const;

  const Kernel &k_;
  const Form &form_;
  const int v_;
  std::vector<SlotInfo> slots_;
  KernelNames names_;
  Helpers helpers_;
  std::string out_;                             // name of the output pointer
  std::vector<std::string> vectors_, pointers_; // by argument: its vector variable and vector pointer
  std::vector<std::string> values_;             // by argument: a Broadcast operand's value
  std::string outs_;
  std::vector<std::vector<Bound>> bounds_;                  // by piece, by box
  std::vector<std::pair<std::string, std::string>> locals_; // of the bounds: "e1", "end1"
  std::vector<Reads> values_read_, guards_read_;
  size_t count_ = 0;                   // pieces that can be reached: a piece that always holds ends the list
  size_t masked_ = 0;                  // pieces with a bit in the mask; 0: no mask
  bool lanes_ = false;                 // vectors inside the row that no sole piece covers choose by lane
  bool position_ = false;              // some piece or guard reads the position as a value
  uint32_t shared_ = ~0u;              // while a body is printed: see shared()
  std::set<DType> vector_types_;       // that the text used
  std::set<uint32_t> vector_operands_; // arguments whose vector variable the text used
  std::set<uint32_t> vector_pointers_;
};

// C++ and CUDA words that a spec's names must not be; what helpers and builtins call is added.
constexpr const char *reserved[] = {
    "alignas", "alignof", "and", "and_eq", "asm", "auto", "bitand", "bitor", "bool", "break", "case", "catch", "char",
    "char16_t", "char32_t", "char8_t", "class", "compl", "concept", "const", "consteval", "constexpr", "constinit",
    "const_cast", "continue", "co_await", "co_return", "co_yield", "decltype", "default", "delete", "do", "double",
    "dynamic_cast", "else", "enum", "explicit", "export", "extern", "false", "float", "for", "friend", "goto", "if",
    "inline", "int", "long", "mutable", "namespace", "new", "noexcept", "not", "not_eq", "nullptr", "operator", "or",
    "or_eq", "private", "protected", "public", "register", "reinterpret_cast", "requires", "return", "short", "signed",
    "sizeof", "static", "static_assert", "static_cast", "struct", "switch", "template", "this", "thread_local", "throw",
    "true", "try", "typedef", "typeid", "typename", "union", "unsigned", "using", "virtual", "void", "volatile",
    "wchar_t", "while", "xor", "xor_eq", "linux", "unix", "threadIdx", "blockIdx", "blockDim", "gridDim", "warpSize",
    // the kernel's own words
    "elsewise", "Live", "live", "at", "out", "outs", "extent", "rows", "row", "shift", "blocks", "first", "start",
    "rowbase", "head", "pitch", "lo", "hi", "c", "z", "p", "k", "v", "i", "n", "may"};

void Emitter::choose_names() {
  for (const char *word : reserved) names_.taken.insert(word);
  for (const std::string &word : helper_words()) names_.taken.insert(word);
  for (int d = 0; d < dtype_count; ++d) names_.taken.insert(vector_type(DType(d)));
  const size_t pieces = k_.pieces.size();
  for (size_t p = 1; p <= pieces; ++p)
    for (const char *word : {"piece", "guard", "all"}) names_.taken.insert(word + num(p));
  // Pieces that share a bound share its parameter: the name is the first one's.
  auto bound = [&](NodeId node) -> std::string {
    if (node == no_node) return "";
    const SlotInfo &s = slots_[bound_slot(k_, slots_, node)];
    const std::string at = num(s.index + 1) + box_suffix(s.box);
    const bool begin = s.kind == SlotKind::Begin;
    names_.taken.insert((begin ? "begin" : "end") + at);
    const std::string local = (begin ? "b" : "e") + at;
    if (names_.taken.insert(local).second) locals_.push_back({local, (begin ? "begin" : "end") + at});
    return local;
  };
  for (size_t p = 0; p < count_; ++p) {
    bounds_.emplace_back();
    for (const auto &box : k_.pieces[p].boxes) {
      bounds_.back().emplace_back();
      for (const Range &r : box) bounds_.back().back() = {bound(r.lo), bound(r.hi)};
    }
  }
  for (int d = 0; d <= form_.rows; ++d)
    for (const char *word : {"r", "length", "pitch", "out_stride"}) names_.taken.insert(word + num(d));

  for (const Argument &a : k_.arguments) {
    std::string wish;
    bool lower = a.name.size() < 3; // long names all in capitals may be somebody's macro
    for (unsigned char ch : a.name) {
      if (ch < 0x80) wish += char(ch);
      else {
        static constexpr char hex[] = "0123456789abcdef";
        wish += hex[ch >> 4], wish += hex[ch & 15];
      }
      lower |= ch >= 'a' && ch <= 'z';
    }
    if (wish.empty() || (wish[0] >= '0' && wish[0] <= '9')) wish = "u" + wish;
    if (wish[0] == '_' || !lower || wish.find("__") != std::string::npos) wish += wish.back() == '_' ? "x" : "_";
    names_.args.push_back(names_.fresh(wish));
  }
  // A parameter keeps its name in its first use; what is worked out on the host has a number and a line in the head
  // comment.
  std::set<uint32_t> named;
  int number = 0;
  for (NodeId u : k_.uniforms) {
    NodeId bare = u;
    while (k_[bare].op == Op::Cast) bare = k_[bare].a;
    if (k_[bare].op == Op::Param && named.insert(k_[bare].a).second) names_.uniforms.push_back(names_.args[k_[bare].a]);
    else if (k_[bare].op == Op::Param)
      names_.uniforms.push_back(names_.fresh(typed_name(names_.args[k_[bare].a], k_[u].type)));
    else if (k_[u].op == Op::Len) names_.uniforms.push_back("n");
    else names_.uniforms.push_back(names_.fresh("u" + num(++number)));
  }
  out_ = "out";
  for (uint32_t a = 0; a < k_.arguments.size() && out_ == "out"; ++a)
    if (same_view(a)) out_ = names_.args[a];
  outs_ = out_ == "out" ? "outs" : names_.fresh(out_ + "s");
  for (uint32_t a = 0; a < k_.arguments.size(); ++a) {
    const Access how = access(a);
    vectors_.push_back(how == Access::Vector && !same_view(a) ? names_.fresh(names_.args[a] + "v") : "v");
    pointers_.push_back(same_view(a) ? outs_ : how == Access::Vector ? names_.fresh(names_.args[a] + "s") : "");
    values_.push_back(how == Access::Broadcast ? names_.fresh(names_.args[a] + "_value") : "");
  }
}

void Emitter::choose_pieces() {
  while (count_ < k_.pieces.size()) {
    const size_t p = count_++;
    values_read_.push_back(reads(k_, k_.pieces[p].values[0]));
    guards_read_.push_back(residual(p) ? reads(k_, k_.pieces[p].guard) : Reads{});
    position_ |= values_read_[p].position || guards_read_[p].position;
    if (always(p) && !residual(p)) break;
  }
  // A residual guard that no range bounds meets every vector: from there on no piece is alone, and the mask ends.
  size_t end = 0;
  bool straight = false;
  while (end < count_) {
    const size_t p = end++;
    straight |= !residual(p);
    lanes_ |= residual(p);
    if (always(p) && residual(p)) break;
  }
  for (size_t p = end; p < count_; ++p) lanes_ |= residual(p);
  masked_ = v_ > 1 && count_ > 1 && count_ <= most_masked_pieces && straight ? end : 0;
  if (v_ > 1 && count_ > 1 && !masked_) lanes_ = true;
}

std::string Emitter::any_box(size_t p, const char *both, std::string (*term)(const Bound &)) const {
  std::string s;
  const auto &boxes = bounds_[p];
  for (const Bound &b : boxes) {
    std::string t = term(b);
    if (boxes.size() > 1 && t.find("&&") != std::string::npos) t = "(" + t + ")";
    s += (s.empty() ? "" : both) + t;
  }
  return s;
}

static std::string conjunction(const std::string &a, const std::string &b) {
  return a.empty() ? b : b.empty() ? a : a + " && " + b;
}

std::string Emitter::holds_everywhere(size_t p) const {
  return any_box(p, " || ", [](const Bound &b) {
    return conjunction(b.lo.empty() ? "" : b.lo + " <= c", b.hi.empty() ? "" : "z <= " + b.hi);
  });
}

std::string Emitter::meets(size_t p) const {
  return any_box(p, " || ", [](const Bound &b) {
    return conjunction(b.lo.empty() ? "" : b.lo + " < z", b.hi.empty() ? "" : "c < " + b.hi);
  });
}

std::string Emitter::matches(size_t p) const {
  return any_box(p, " || ", [](const Bound &b) {
    return conjunction(b.lo.empty() ? "" : "p >= " + b.lo, b.hi.empty() ? "" : "p < " + b.hi);
  });
}

uint32_t Emitter::shared(const std::vector<uint32_t> &args) const {
  for (uint32_t a : args)
    if (same_view(a)) return a;
  for (uint32_t a : args)
    if (access(a) == Access::Vector && dtype(a) == k_.outputs[0]) return a;
  return ~0u;
}

std::string Emitter::element(uint32_t a, bool lanes) const {
  const std::string &name = same_view(a) ? out_ : names_.args[a];
  switch (access(a)) {
  case Access::Broadcast:
    return values_[a];
  case Access::Vector:
    if (lanes) return (same_view(a) ? "v" : vector_name(a)) + ".at[k]";
    return name + "[p]";
  case Access::Scalar:
    return name + (lanes ? "[c + k]" : "[p]");
  default:
    break;
  }
  return name + (lanes ? "[(c + k) * " : "[p * ") + (same_view(a) ? "out" : names_.args[a]) + "_stride]";
}

std::string Emitter::position(bool lanes) const {
  if (form_.rows == 0) return lanes ? "first + c + k" : "first + p";
  if (form_.unit_pitch) return lanes ? "start + c + k" : "start + p";
  return lanes ? "start + i64(c + k) * pitch" : "start + i64(p) * pitch";
}

std::string Emitter::call(const std::string &name, const Reads &r, bool lanes) const {
  std::vector<std::string> args;
  for (uint32_t a : r.args) args.push_back(element(a, lanes));
  for (uint32_t u : r.uniforms) args.push_back(names_.uniforms[u]);
  if (r.position) args.push_back(position(lanes));
  std::string s = name + "(";
  for (size_t k = 0; k < args.size(); ++k) s += (k ? ", " : "") + args[k];
  return s + ")";
}

void Emitter::print_pieces(Lines &out) {
  for (size_t p = 0; p < count_; ++p) {
    const Piece &piece = k_.pieces[p];
    const std::string at = num(piece.line) + ":" + num(piece.column) + " " + comment_text(piece.text);
    if (residual(p)) print_function(k_, names_, helpers_, "guard" + num(p + 1), "bool", piece.guard, at, out);
    if (identity(p)) out.comment(0, "piece " + num(p + 1) + " is the element itself, nothing to do: " + at);
    else print_function(k_, names_, helpers_, "piece" + num(p + 1), stored(k_.outputs[0]), piece.values[0], at, out);
  }
}

void Emitter::print_signature(Lines &out) {
  std::vector<std::string> parameters;
  const std::string integer_type = std::string(integer()) + " ";
  for (const SlotInfo &s : slots_) {
    switch (s.kind) {
    case SlotKind::Out:
      parameters.push_back(std::string(stored(k_.outputs[s.index])) +
                           (out_ == "out" ? " *__restrict__ out" : " *" + out_));
      break;
    case SlotKind::In:
      parameters.push_back("const " + std::string(stored(dtype(s.index))) + " *__restrict__ " + names_.args[s.index]);
      break;
    case SlotKind::Uniform: {
      const DType d = k_[k_.uniforms[s.index]].type;
      parameters.push_back(std::string(d == DType::Index ? "i64" : value(d, false)) + " " + names_.uniforms[s.index]);
      break;
    }
    case SlotKind::Rows:
      parameters.push_back(integer_type + "rows");
      break;
    case SlotKind::Extent:
      parameters.push_back(integer_type + "extent");
      break;
    case SlotKind::End:
      parameters.push_back(integer_type + "end" + num(s.index + 1) + box_suffix(s.box));
      break;
    case SlotKind::Begin:
      parameters.push_back(integer_type + "begin" + num(s.index + 1) + box_suffix(s.box));
      break;
    case SlotKind::RowLength:
      parameters.push_back(integer_type + "length" + num(s.index));
      break;
    case SlotKind::RowPitch:
      parameters.push_back(integer_type + "pitch" + num(s.index));
      break;
    case SlotKind::InnerPitch:
      parameters.push_back(integer_type + "pitch");
      break;
    case SlotKind::OutStride:
      parameters.push_back(integer_type + "out_stride" + num(s.index));
      break;
    case SlotKind::InStride:
      parameters.push_back(integer_type + names_.args[s.index] + "_stride" + num(s.box));
      break;
    case SlotKind::OutInner:
      parameters.push_back(integer_type + "out_stride");
      break;
    case SlotKind::InInner:
      parameters.push_back(integer_type + names_.args[s.index] + "_stride");
      break;
    case SlotKind::Shift:
      parameters.push_back("int shift");
      break;
    case SlotKind::Blocks:
      parameters.push_back("unsigned blocks");
      break;
    case SlotKind::Live:
      parameters.push_back("Live live");
      break;
    }
  }
  const std::string attributes = "extern \"C\" __global__ void __launch_bounds__(" + num(block_threads) + ")";
  // In one construct if that takes fewer lines than the name on a line of its own.
  Lines whole, split;
  whole.list(0, attributes + " elsewise(", parameters, ") {");
  split.add(0, attributes);
  split.list(4, "elsewise(", parameters, ") {");
  out.append(whole.count() < split.count() ? whole : split);
}

// The block's (and row's) first position, and every pointer moved there.
void Emitter::print_origin(Lines &out) {
  const int64_t width = int64_t(block_threads) * v_, aligned = std::min<int64_t>(16, v_ * bytes(k_.outputs[0]));
  auto pointer_sum = [&](const std::string &name, SlotKind stride_kind, uint32_t index, const std::string &stride_name,
                         bool strided) {
    std::string s;
    for (const SlotInfo &slot : slots_)
      if (slot.kind == stride_kind && slot.index == index && stride_kind == SlotKind::InStride)
        s += (s.empty() ? "r" : " + r") + num(slot.box) + " * " + stride_name + num(slot.box);
      else if (slot.kind == stride_kind && stride_kind == SlotKind::OutStride)
        s += (s.empty() ? "r" : " + r") + num(slot.index) + " * " + stride_name + num(slot.index);
    if (!name.empty()) s += (s.empty() ? "" : " + ") + std::string("first") + (strided ? " * " + name : "");
    return s;
  };
  const std::string out_rows = pointer_sum("", SlotKind::OutStride, 0, "out_stride", false);
  const std::string alignment = v_ > 1 ? "; `" + out_ + "` is " + num(aligned) + "-byte aligned there" : "";
  if (form_.rows == 0) {
    if (has(SlotKind::Live)) {
      out.add(2, "const i64 first = live_block(live, blockIdx.x) * " + num(width) + " - shift;",
              "the block's first position" + alignment);
    } else
      out.add(2, "const i64 first = blockIdx.x * " + num(width) + "ll - shift;",
              "the block's first position" + alignment);
  } else {
    const bool narrow = form_.narrow;
    const std::string type = narrow ? "int" : "i64";
    const std::string row = narrow ? "blockIdx.x / blocks * blockDim.y + threadIdx.y"
                                   : "i64(blockIdx.x / blocks) * blockDim.y + threadIdx.y";
    const std::string name = form_.rows == 1 ? "r0" : "row";
    out.add(2, "const " + type + " " + name + " = " + row + ";");
    out.add(2, "if (" + name + " >= rows) return;");
    // Axis 0 is the fastest. Each quotient feeds the next division.
    if (form_.rows > 1) {
      std::string rest = "row";
      for (int d = 0; d + 1 < form_.rows; ++d) {
        const bool last = d + 2 == form_.rows;
        const std::string length = "length" + num(d), next = last ? "r" + num(d + 1) : "rest" + num(d + 1);
        out.add(2, "const " + type + " " + next + " = " + rest + " / " + length + ", r" + num(d) + " = " + rest +
                       " - " + next + " * " + length + ";");
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
            "const " + type +
                " first = " + (narrow ? "blockIdx.x % blocks * blockDim.x" : "i64(blockIdx.x % blocks * blockDim.x)") +
                step + head + ";",
            "the block's first position in the row");
  }
  std::vector<std::string> moves;
  const auto out_sum = pointer_sum(form_.out == Access::Strided ? "out_stride" : "first", SlotKind::OutStride, 0,
                                   "out_stride", form_.out == Access::Strided);
  moves.push_back(out_ + " += " + out_sum);
  std::vector<std::string> values;
  for (uint32_t a = 0; a < k_.arguments.size(); ++a) {
    if (!has(SlotKind::In, a)) continue;
    const std::string stride = names_.args[a] + "_stride";
    if (access(a) == Access::Broadcast) {
      const std::string offset = pointer_sum("", SlotKind::InStride, a, stride, false);
      values.push_back(values_[a] + " = " +
                       (offset.empty() ? "*" + names_.args[a] : names_.args[a] + "[" + offset + "]"));
      out.add(2, "const " + std::string(stored(dtype(a))) + " " + values.back() + ";", "the same along the row");
      continue;
    }
    const bool strided = access(a) == Access::Strided;
    moves.push_back(names_.args[a] +
                    " += " + pointer_sum(strided ? stride : "first", SlotKind::InStride, a, stride, strided));
  }
  out.statements(2, "", moves);
  if (form_.rows == 0) return;
  std::string base;
  for (int d = 0; d < form_.rows; ++d)
    if (has(SlotKind::RowPitch, d)) base += (base.empty() ? "r" : " + r") + num(d) + " * pitch" + num(d);
  if (base.empty()) return;
  out.add(2, "const " + std::string(integer()) + " rowbase = " + base + ";",
          "the row's first element in row-major order");
  if (position_)
    out.add(2, std::string("const i64 start = rowbase + ") + (form_.unit_pitch ? "first;"
                                                              : form_.narrow   ? "i64(first) * pitch;"
                                                                               : "first * pitch;"));
}

void Emitter::print_bounds(Lines &out) {
  auto statement = [&](std::vector<std::string> items) { out.statements(2, "const int ", items); };
  if (v_ > 1) statement({"lo = local(-first)", "hi = local(extent - first)"});
  else statement({"hi = local(extent - first)"});
  std::vector<std::string> items;
  for (const auto &[local, parameter] : locals_) {
    std::string at = parameter;
    if (form_.rows > 0) at += " - rowbase";
    if (form_.rows > 0 && !form_.unit_pitch) at = "ceil_div(" + at + ", pitch)";
    items.push_back(local + " = local(" + at + " - first)");
  }
  statement(items);
}

void Emitter::print_mask(Lines &out) {
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

void Emitter::conditional(Lines &out, int indent, const std::string &head, const std::string &body) const {
  const std::string line = head + (head.empty() ? "" : " ") + body;
  if (indent + line.size() <= columns) {
    out.add(indent, line);
    return;
  }
  const size_t last = head.rfind(" && ");
  if (indent + head.size() > columns && last != std::string::npos) {
    out.add(indent, head.substr(0, last + 3));
    out.add(indent + int(head.find('(')) + 1, head.substr(last + 4));
  } else if (!head.empty()) out.add(indent, head);
  const int inner = head.empty() ? indent : indent + 2;
  const size_t open = body.rfind("(", body.find(' ', body.find('(')));
  if (inner + body.size() <= columns || open == std::string::npos) {
    out.add(inner, body);
    return;
  }
  // A long call: its arguments continue below the first.
  std::vector<std::string> items;
  size_t at = open + 1;
  for (size_t comma; (comma = body.find(", ", at)) != std::string::npos; at = comma + 2)
    items.push_back(body.substr(at, comma - at));
  items.push_back(body.substr(at));
  out.list(inner, body.substr(0, open + 1), items, "");
}

// The piece of every position of a vector is known: whole vectors in, whole vector out, no position compared.
void Emitter::print_straight(Lines &out, int indent, size_t p) {
  const Inst &root = k_[k_.pieces[p].values[0]];
  const Reads &r = values_read_[p];
  const bool bits = root.op == Op::Load && root.type == k_.outputs[0];
  if (bits && access(root.a) == Access::Vector && !same_view(root.a)) {
    vector_pointers_.insert(root.a), vector_types_.insert(dtype(root.a));
    out.add(indent, "*" + outs_ + " = *" + pointers_[root.a] + ";");
    return;
  }
  shared_ = shared(r.args);
  std::set<std::string> loaded;
  std::vector<std::string> loads;
  for (uint32_t a : r.args) {
    if (access(a) != Access::Vector) continue;
    vector_types_.insert(dtype(a)), vector_operands_.insert(a);
    if (!same_view(a)) vector_pointers_.insert(a);
    const std::string load = (same_view(a) ? "v" : vector_name(a)) + " = *" + pointers_[a];
    if (loaded.insert(load).second) loads.push_back(load);
  }
  out.statements(indent, "", loads);
  conditional(out, indent, "for (int k = 0; k < " + num(v_) + "; ++k)",
              "v.at[k] = " + call("piece" + num(p + 1), r, true) + ";");
  out.add(indent, "*" + outs_ + " = v;");
  shared_ = ~0u;
}

// The first-match chain at p; by lane, the value goes to v.at[k] and stays in registers.
void Emitter::print_matches(Lines &out, int indent, bool lanes) {
  const std::string target = lanes ? "v.at[k]" : out_ + (form_.out == Access::Strided ? "[p * out_stride]" : "[p]");
  const char *skip = v_ == 1 ? "return;" : "continue;";
  for (size_t p = 0; p < count_; ++p) {
    std::string condition = always(p) ? "" : matches(p);
    if (residual(p)) {
      if (condition.find("||") != std::string::npos) condition = "(" + condition + ")";
      condition = conjunction(condition, call("guard" + num(p + 1), guards_read_[p], lanes));
    }
    if (p + 1 == count_ && identity(p)) return;
    const std::string head =
        condition.empty() ? (p ? "else" : "") : std::string(p ? "else if (" : "if (") + condition + ")";
    conditional(out, indent, head,
                identity(p) ? skip : target + " = " + call("piece" + num(p + 1), values_read_[p], lanes) + ";");
  }
}

void Emitter::print_chain(Lines &out, int indent) {
  print_loop(out, indent, "for (int p = c < lo ? lo : c; p < z && p < hi; ++p)", false);
}

// One statement stands on the loop's own line, where there is room.
void Emitter::print_loop(Lines &out, int indent, const std::string &head, bool lanes) {
  Lines matches;
  print_matches(matches, indent + 2, lanes);
  const std::string text = matches.str();
  if (matches.count() == 1 && text.find("if (") == std::string::npos) {
    conditional(out, indent, head, text.substr(indent + 2, text.size() - indent - 3));
    return;
  }
  out.add(indent, head);
  out.append(matches);
}

void Emitter::print_lanes(Lines &out, int indent) {
  std::vector<uint32_t> args;
  bool keeps = false;
  for (size_t p = 0; p < count_; ++p) {
    keeps |= identity(p);
    for (const Reads *r : {&values_read_[p], &guards_read_[p]}) args.insert(args.end(), r->args.begin(), r->args.end());
  }
  std::sort(args.begin(), args.end());
  args.erase(std::unique(args.begin(), args.end()), args.end());
  shared_ = shared(args);
  std::vector<std::string> loads;
  bool own = false;
  for (uint32_t a : args) {
    if (access(a) != Access::Vector || (same_view(a) && own)) continue;
    own |= same_view(a);
    vector_types_.insert(dtype(a)), vector_operands_.insert(a);
    if (!same_view(a)) vector_pointers_.insert(a);
    loads.push_back((same_view(a) ? "v" : vector_name(a)) + " = *" + pointers_[a]);
  }
  if (keeps && !own) loads.push_back("v = *" + outs_);
  out.statements(indent, "", loads);
  const std::string steps = num(v_);
  print_loop(out, indent,
             locals_.empty() ? "for (int k = 0; k < " + steps + "; ++k)"
                             : "for (int k = 0, p = c; k < " + steps + "; ++k, ++p)",
             true);
  out.add(indent, "*" + outs_ + " = v;");
  shared_ = ~0u;
}

void Emitter::print_single(Lines &out) {
  out.add(2, "const int p = threadIdx.x;");
  out.add(2, "if (p >= hi) return;");
  print_matches(out, 2, false);
}

void Emitter::print_body(Lines &out) {
  const std::string inside = "lo <= c && z <= hi";
  if (!masked_) {
    // One piece, or too many for a mask, or a guard on data that may hold anywhere.
    out.add(2, "if (" + inside + ") {", "");
    if (count_ == 1 && !residual(0)) print_straight(out, 4, 0);
    else print_lanes(out, 4);
    out.add(2, "} else {", "an end of the row");
    print_chain(out, 4);
    out.add(2, "}");
    return;
  }
  out.add(2, "switch (" + inside + " ? may : 0) {");
  for (size_t p = 0; p < masked_; ++p) {
    if (residual(p)) continue;
    const Inst &root = k_[k_.pieces[p].values[0]];
    const bool bits = root.op == Op::Load && root.type == k_.outputs[0];
    const char *how = identity(p) ? ": in place already" : bits ? ": moved as bits" : "";
    out.add(2, "case " + num(int64_t(1) << p) + ":", "piece " + num(p + 1) + " alone" + how);
    if (!identity(p)) print_straight(out, 4, p);
    out.add(4, "break;");
  }
  if (lanes_) {
    out.add(2, "case 0:", "an end of the row: the first that matches");
    print_chain(out, 4);
    out.add(4, "break;");
    out.add(2, "default:", "several pieces: the first that matches, chosen by lane");
    print_lanes(out, 4);
  } else {
    out.add(2, "default:", "several pieces, or an end of the row: the first that matches");
    print_chain(out, 4);
  }
  out.add(2, "}");
}

void Emitter::print_vectors(Lines &out) {
  out.add(2, "const int c = threadIdx.x * " + num(v_) + ", z = c + " + num(v_) + ";",
          "this thread: [c, z) from `first`");
}

std::string Emitter::run() {
  slots_ = slots(k_, Backend::Cuda);
  choose_pieces();
  choose_names();

  Lines functions, body, code;
  print_pieces(functions);
  print_signature(code);
  bool nothing = true;
  for (size_t p = 0; p < count_; ++p) nothing &= identity(p);
  if (nothing) code.comment(2, "every value is the element itself");
  else {
    print_origin(code);
    print_bounds(code);
    if (v_ == 1) print_single(code);
    else {
      print_body(body);
      print_vectors(code);
      if (masked_) print_mask(code);
      vector_types_.insert(k_.outputs[0]);
      // Vector variables and pointers that the bodies used.
      const std::string out_type = vector_type(k_.outputs[0]);
      for (uint32_t a : vector_pointers_) {
        const std::string type = vector_type(dtype(a));
        code.add(2, "const " + type + " *" + pointers_[a] + " = (const " + type + " *)" + names_.args[a] +
                        " + threadIdx.x;");
      }
      const std::string text = body.str();
      const bool needs_v = mentions(text, "v");
      code.add(2, out_type + (needs_v ? " v, *" : " *") + outs_ + " = (" + out_type + " *)" + out_ + " + threadIdx.x;");
      for (uint32_t a : vector_operands_)
        if (!same_view(a) && mentions(text, vectors_[a])) code.add(2, vector_type(dtype(a)) + " " + vectors_[a] + ";");
      code.append(body);
    }
  }
  code.add(0, "}");

  Lines prelude, tools, head;
  if (!nothing) {
    if (form_.rows > 0 && !form_.unit_pitch && !locals_.empty())
      helpers_.use("ceil_div", form_.narrow ? DType::I32 : DType::I64);
  }
  // Structs and the two functions that know the tile.
  const int64_t width = int64_t(block_threads) * v_;
  if (v_ > 1 && !nothing)
    for (DType d : vector_types_) {
      tools.add(0, "struct alignas(" + num(std::min(16, v_ * bytes(d))) + ") " + vector_type(d) + " {");
      tools.add(2, std::string(stored(d)) + " at[" + num(v_) + "];");
      tools.add(0, "};");
    }
  if (has(SlotKind::Live)) {
    tools.add(0, "struct Live {", "blocks with work: from begin[r] on they are first[r], first[r] + 1, ...");
    tools.add(2, "i64 first[4];");
    tools.add(2, "unsigned begin[4];");
    tools.add(0, "};");
    if (!nothing) {
      tools.add(0, "__device__ i64 live_block(const Live &live, unsigned block) {");
      tools.add(2, "i64 first = live.first[0];");
      tools.add(2, "for (int r = 1; r < 4; ++r)");
      tools.add(4, "if (block >= live.begin[r]) first = live.first[r] - live.begin[r];");
      tools.add(2, "return first + block;");
      tools.add(0, "}");
    }
  }
  if (!nothing)
    tools.add(0, "__device__ int local(" + std::string(integer()) + " p) { return p < 0 ? 0 : p < " + num(width) +
                     " ? (int)p : " + num(width) + "; }");
  helpers_.print(tools);
  print_prelude(prelude, tools.str() + functions.str() + code.str());

  // Head comments: the spec, and how this variant reaches its operands.
  std::string_view source = k_.source;
  while (!source.empty()) {
    const size_t end = source.find('\n');
    const std::string line =
        comment_text(source.substr(0, std::min(end, source.find('#')))); // without its own comments
    if (line.find_first_not_of(' ') != std::string::npos) head.comment(0, line);
    if (end == std::string_view::npos) break;
    source.remove_prefix(end + 1);
  }
  static constexpr const char *how[] = {" (unused)", "", " (any alignment)", " (one value a row)", " (strided)"};
  std::string line;
  for (uint32_t a = 0; a < k_.arguments.size(); ++a) {
    const ArgType &type = k_.arguments[a].type;
    line += (a ? ", " : "") + comment_text(k_.arguments[a].name) + " ";
    line += type.kind == ArgKind::Tensor ? spelling(type.dtype)
            : type.kind == ArgKind::Int  ? "int"
            : type.kind == ArgKind::Bool ? "bool"
                                         : "float";
    if (type.kind == ArgKind::Tensor && !same_view(a) && has(SlotKind::In, a)) line += how[int(access(a))];
  }
  line += (line.empty() ? "-> " : " -> ") + std::string(spelling(k_.outputs[0])) +
          (form_.out == Access::Strided ? " (strided)" : "");
  line += out_ == "out" ? "; out distinct" : "; in place of " + out_;
  line += form_.rows == 0 ? "; one row" : "; rows over " + num(form_.rows) + (form_.rows == 1 ? " axis" : " axes");
  line += "; " + num(v_) + (v_ == 1 ? " position a thread" : " positions a thread");
  head.comment(0, line);
  for (size_t u = 0; u < k_.uniforms.size(); ++u) {
    NodeId bare = k_.uniforms[u];
    while (k_[bare].op == Op::Cast) bare = k_[bare].a;
    if (k_[bare].op != Op::Param && k_[k_.uniforms[u]].op != Op::Len)
      head.comment(0, names_.uniforms[u] + " = " + comment_text(describe(k_, k_.uniforms[u])));
  }

  head.append(prelude), head.append(tools), head.append(functions);
  head.blank();
  head.append(code);
  return head.str();
}

} // namespace

std::string emit_cuda(const Kernel &scheduled) { return Emitter(scheduled).run(); }

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
