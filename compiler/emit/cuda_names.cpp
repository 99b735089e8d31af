// SPDX-License-Identifier: Apache-2.0
// Names in emitted kernels: those of the spec stay as they are unless C++, CUDA or the kernel itself has them. It
// prints nothing.
#include "compiler/emit/cuda_kernel.h"

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
    "elsewise", "Live", "live", "at", "out", "outs", "extent", "rows", "row", "shift", "blocks", "first", "start",
    "rowbase", "head", "pitch", "out_stride", "lo", "hi", "c", "z", "p", "k", "v", "i", "n", "may"};

void KernelPrinter::choose_names() {
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
    for (const char *word : {"r", "rest", "length", "pitch", "out_stride"}) names_.taken.insert(word + num(d));

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

} // namespace elsewise::cuda
