// SPDX-License-Identifier: Apache-2.0
// Names in emitted kernels: those of the spec stay as they are unless C++, CUDA or the kernel itself has them. It
// prints nothing.
#include "compiler/emit/cuda_kernel.h"
#include <map>

namespace elsewise::cuda {

// C++ and CUDA words that a spec's names must not be; what helpers and builtins call is added.
static constexpr const char *reserved[] = {
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
    "elsewise", "whole", "Live", "live", "Segments", "segments", "segment_at", "rowbase", "out_stride", "entry", "i"};
static constexpr const char *tile_words[] = {"top", "bands", "height", "lane", "own", "q"}; // of Form::tile
static constexpr const char *list_words[] = {"Items", "items", "item", "item_of", "block"}; // of Form::many

// Those of the kernel's own words that mean nothing inside a device function, whose parameters may have such a name.
static constexpr std::string_view body_words[] = {"c",   "z",      "p",     "k",      "v",     "n",     "at",   "rows",
                                                  "row", "extent", "shift", "blocks", "first", "start", "head", "pitch",
                                                  "lo",  "hi",     "may",   "out",    "outs",  "inside"};
static bool is_body_word(std::string_view name) {
  return std::find(std::begin(body_words), std::end(body_words), name) != std::end(body_words);
}

// A name of the spec in letters that C has, and no macro's.
static std::string plain_name(const std::string &name) {
  std::string wish;
  bool lower = name.size() < 3; // long names all in capitals may be somebody's macro
  for (unsigned char ch : name) {
    if (ch < 0x80) wish += char(ch);
    else {
      static constexpr char hex[] = "0123456789abcdef";
      wish += hex[ch >> 4], wish += hex[ch & 15];
    }
    lower |= ch >= 'a' && ch <= 'z';
  }
  if (wish.empty() || (wish[0] >= '0' && wish[0] <= '9')) wish = "u" + wish;
  if (wish[0] == '_' || !lower || wish.find("__") != std::string::npos) wish += wish.back() == '_' ? "x" : "_";
  return wish;
}

// In the narrow form rows and lengths stay below 2^30: sums of one position and small constants stay in 32 bits.
bool KernelPrinter::small(NodeId n) const {
  const Inst &i = k_[n];
  auto constant = [&](NodeId o) {
    constexpr int limit = 1 << 24;
    if (k_[o].op != Op::Const) return false;
    const __int128 v = k_.constants[k_[o].a].integer;
    return -limit < v && v < limit;
  };
  auto leaf = [&](NodeId o) {
    return k_[o].op == Op::Pos || (k_[o].op == Op::Len && k_[o].a == no_axis) || constant(o);
  };
  if (leaf(n)) return true;
  if (i.op == Op::Where) return holds_small(i.a) && small(i.b) && small(i.c);
  if (i.op == Op::Binary && (BinaryOp(i.sub) == BinaryOp::Add || BinaryOp(i.sub) == BinaryOp::Sub))
    return (leaf(i.a) && constant(i.b)) || (constant(i.a) && leaf(i.b));
  return false;
}

// A row's condition that compares what small() allows.
bool KernelPrinter::holds_small(NodeId n) const {
  const Inst &i = k_[n];
  if (i.op == Op::Const) return true;
  if (i.op == Op::Logic) {
    for (NodeId o : operands(k_, n))
      if (!holds_small(o)) return false;
    return true;
  }
  return i.op == Op::Compare && k_[i.a].type == DType::Index && small(i.a) && small(i.b);
}

void KernelPrinter::choose_names() {
  for (const char *word : reserved) names_.taken.insert(word);
  if (form_.many) names_.taken.insert(std::begin(list_words), std::end(list_words));
  if (form_.tile) names_.taken.insert(std::begin(tile_words), std::end(tile_words));
  for (const std::string_view word : body_words) names_.taken.emplace(word);
  if (form_.segments)
    for (const char *word : {"from", "to", "mine", "now", "inside", "end"}) names_.taken.insert(word);
  for (size_t t = 1; t <= k_.tables.size(); ++t) names_.taken.insert("constants" + num(int64_t(t)));
  for (const std::string &word : helper_words()) names_.taken.insert(word);
  for (int d = 0; d < dtype_count; ++d) names_.taken.insert(vector_type(DType(d)));
  if (form_.flat) {
    for (const char *word : {"column", "position", "enter_row"}) names_.taken.insert(word);
  }
  if (form_.narrow) names_.taken.insert("within");
  if (form_.rows > 0) {
    for (const char *word : {"band", "block", "quotient"}) names_.taken.insert(word);
    for (uint32_t l = 0; l <= form_.rows; ++l)
      for (const char *end : {"", "_shift"}) names_.taken.insert(inverse_name(l) + end);
  }
  const size_t pieces = k_.pieces.size();
  for (size_t p = 1; p <= pieces; ++p)
    for (const char *word : {"piece", "guard", "all"}) names_.taken.insert(word + num(p));
  for (size_t p = 1; in_words(k_.outputs[0]) && p <= pieces; ++p) names_.taken.insert("piece" + num(p) + "x4");
  // Pieces that share a bound share its parameter: the name is the first one's.
  std::map<std::pair<NodeId, uint8_t>, std::string> known;
  auto bound = [&](NodeId node, uint8_t axis, bool begin, std::string at) {
    std::string &local = known[{node, axis}];
    if (!local.empty()) return local;
    Local made{.flat = axis == flat_axis};
    if (k_[node].stage == Stage::Row) {
      made.row = node;
      small_rows_ &= small(node);
    } else {
      const SlotInfo &s = slots_[bound_slot(k_, slots_, node, axis)];
      at = num(s.index + 1) + box_suffix(s.box, s.range), begin = s.kind == SlotKind::Begin;
      made.parameter = (begin ? "begin" : "end") + at;
      names_.taken.insert(made.parameter);
    }
    made.name = (begin ? "b" : "e") + at;
    names_.taken.insert(made.name);
    locals_.push_back(made);
    return local = made.name;
  };
  for (size_t p = 0; p < count_; ++p) {
    bounds_.emplace_back();
    if (form_.segments) continue;
    for (size_t x = 0; x < k_.pieces[p].boxes.size(); ++x) {
      const auto &box = k_.pieces[p].boxes[x];
      Bound &all = bounds_.back().emplace_back();
      for (size_t r = 0; r < box.size(); ++r) {
        const std::string at = num(p + 1) + box_suffix(x, r);
        if (box[r].lo != no_node) all.lo.push_back(bound(box[r].lo, box[r].axis, true, at));
        if (box[r].hi != no_node) all.hi.push_back(bound(box[r].hi, box[r].axis, false, at));
      }
    }
  }
  for (int d = 0; d <= form_.rows; ++d)
    for (const char *word : {"r", "rest", "length", "pitch", "out_stride"}) names_.taken.insert(word + num(d));

  for (const Argument &a : k_.arguments) names_.args.push_back(names_.fresh(plain_name(a.name)));
  // Axes: as written, where a row's position or a device function's parameter may have that name.
  for (const Axis &axis : k_.axes) {
    const std::string wish = plain_name(axis.name);
    const bool free = is_body_word(wish) || (wish == "i" && !position_);
    names_.axes.push_back(free ? wish : names_.fresh(wish));
  }
  for (int d = 0; d < form_.rows; ++d) {
    const uint8_t axis = size_t(d) < form_.row_axes.size() ? form_.row_axes[d] : no_axis;
    std::string name = axis == no_axis ? "r" + num(d) : names_.axes[axis];
    if (is_body_word(name)) name = names_.fresh(name);
    row_names_.push_back(name);
  }
  column_ = form_.inner_axis == no_axis ? "column" : names_.axes[form_.inner_axis];
  if (is_body_word(column_)) column_ = names_.fresh(column_);
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
    else if (k_[u].op == Op::Len && k_[u].a == flat_axis) names_.uniforms.push_back("n");
    else if (k_[u].op == Op::Len) names_.uniforms.push_back(names_.fresh("len_" + plain_name(k_.axes[k_[u].a].name)));
    else if (k_[bare].op == Op::Origin && k_[bare].a == list_axis)
      names_.uniforms.push_back(names_.fresh("list_index"));
    else if (k_[u].op == Op::Origin)
      names_.uniforms.push_back(
          names_.fresh(k_[u].a == flat_axis ? "origin" : "origin_" + plain_name(k_.axes[k_[u].a].name)));
    else if (k_[u].op == Op::ArgLen && int32_t(k_[u].b) >= 0)
      names_.uniforms.push_back(names_.fresh("len_" + names_.args[k_[u].a] + (k_[u].b ? num(k_[u].b) : "")));
    else names_.uniforms.push_back(names_.fresh("u" + num(++number)));
  }
  for (size_t p = 0; p < count_; ++p)
    for (const Reads *r : {&values_read_[p], &guards_read_[p]})
      for (const uint32_t u : r->divisors)
        if (!names_.reciprocals.contains(u))
          names_.reciprocals[u] =
              names_.fresh(names_.uniforms[u] + (names_.uniforms[u].back() == '_' ? "inverse" : "_inverse"));
  for (const std::string &name : names_.args) {
    // The inner stride has the name itself, those of row axes a digit more.
    std::string stem = name + (name.back() == '_' ? "stride" : "_stride");
    auto taken = [&] {
      bool any = names_.taken.contains(stem);
      for (int d = 0; d < form_.rows; ++d) any |= names_.taken.contains(stem + num(d));
      return any;
    };
    while (taken()) stem += '_';
    names_.taken.insert(stem);
    for (int d = 0; d < form_.rows; ++d) names_.taken.insert(stem + num(d));
    strides_.push_back(stem);
  }
  for (uint32_t a = 0; a < k_.arguments.size(); ++a) {
    names_.tables.emplace_back(), names_.steps.emplace_back();
    if (!has(SlotKind::Table, a)) continue;
    const std::string &name = names_.args[a];
    // The element's pointer moves to the block's first position, and this one stays.
    names_.tables[a] =
        has(SlotKind::In, a) || same_view(a) ? names_.fresh(name + (name.back() == '_' ? "all" : "_all")) : name;
    for (int axis = 0; axis < k_.arguments[a].type.rank; ++axis)
      names_.steps[a].push_back(
          has_step(a, axis) ? names_.fresh(name + (name.back() == '_' ? "step" : "_step") + num(axis)) : "");
  }
  name_values();
  out_ = "out";
  for (uint32_t a = 0; a < k_.arguments.size() && out_ == "out"; ++a)
    if (same_view(a)) out_ = names_.args[a];
  outs_ = out_ == "out" ? "outs" : names_.fresh(out_ + "s");
  for (uint32_t a = 0; a < k_.arguments.size(); ++a) {
    const Access how = access(a);
    const bool whole = how == Access::Vector || (form_.flat && how == Access::Scalar);
    vectors_.push_back(whole && !same_view(a) ? names_.fresh(names_.args[a] + "v") : "v");
    pointers_.push_back(same_view(a) ? outs_ : how == Access::Vector ? names_.fresh(names_.args[a] + "s") : "");
    const char *of_row = how == Access::Broadcast ? "_value" : form_.flat && how == Access::Strided ? "_row" : "";
    values_.push_back(*of_row ? names_.fresh(names_.args[a] + of_row) : "");
    tiles_.push_back(how == Access::Tiled ? names_.fresh(names_.args[a] + "_tile") : "");
  }
}

} // namespace elsewise::cuda
