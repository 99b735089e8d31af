// SPDX-License-Identifier: Apache-2.0
// Bytes in words: how a vector of bytes gives and takes its elements, and bodies that work four of them at once. It
// knows no byte's place in the row.
#include "compiler/emit/cuda_index.h"
#include "compiler/emit/cuda_kernel.h"
#include <optional>

namespace elsewise::cuda {

// Kept as an array, the compiler would take every byte of a vector to a register of its own, also where none is looked
// at, and put them together again to be stored.
void KernelPrinter::print_byte_vector(Lines &out, DType d) const {
  const std::string type(stored(d)), words = "unsigned word[" + num(v_ / 4) + "];";
  out.add(0, "struct alignas(" + num(std::min(16, v_)) + ") " + vector_type(d) + " {", "bytes in words");
  if (!byte_lanes_) out.add(2, "struct { " + words + " } at;");
  else {
    out.add(2, "struct Lane {");
    out.add(4, "unsigned &word;");
    out.add(4, "int bit;");
    out.add(4, "__device__ operator " + type + "() const { return (" + type + ")(word >> bit); }");
    out.add(4, "__device__ void operator=(" + type +
                   " x) { word = (word & ~(255u << bit)) | (unsigned)(unsigned char)x << bit; }");
    out.add(2, "};");
    out.add(2, "struct {");
    out.add(4, words);
    out.add(4, "__device__ Lane operator[](int k) { return {word[k / 4], k % 4 * 8}; }");
    out.add(2, "} at;");
  }
  out.add(0, "};");
}

/// Works a node on words of four bytes of its dtype: the text, or nothing where bytes would have to meet.
class KernelPrinter::Bytes {
public:
  Bytes(const KernelPrinter &printer) : printer_(printer), k_(printer.k_) {}

  std::optional<std::string> text(NodeId n) {
    const Inst &i = k_[n];
    if (++nodes_ > 24 || !is_byte(i.type)) return std::nullopt;
    switch (i.op) {
    case Op::Const:
      return every(uint8_t(k_.constants[i.a].integer));
    case Op::Load:
      if (!printer_.whole_bytes(i.a) || printer_.dtype(i.a) != i.type) return std::nullopt;
      return printer_.names_.args[i.a];
    case Op::Cast:
      return is_byte(k_[i.a].type) ? text(i.a) : std::nullopt; // the bits stay
    case Op::Unary:
      worked_ = true;
      if (UnaryOp(i.sub) == UnaryOp::BitNot)
        if (const auto a = text(i.a)) return "~" + fenced(*a);
      return std::nullopt;
    case Op::Binary:
      worked_ = true;
      return binary(i);
    default:
      return std::nullopt;
    }
  }
  bool worked() const { return worked_; }

private:
  static bool is_byte(DType d) { return d == DType::I8 || d == DType::U8; }
  static std::string every(uint8_t byte) {
    static constexpr char hex[] = "0123456789abcdef";
    std::string s = "0x";
    for (int k = 0; k < 4; ++k) s += hex[byte >> 4], s += hex[byte & 15];
    return s + "u";
  }
  static std::string fenced(const std::string &s) { return s.find(' ') == std::string::npos ? s : "(" + s + ")"; }

  std::optional<std::string> binary(const Inst &i) {
    const BinaryOp op = BinaryOp(i.sub);
    if (op == BinaryOp::Shl || op == BinaryOp::Shr) return shift(i, op == BinaryOp::Shl);
    const char *spelt = op == BinaryOp::BitAnd   ? " & "
                        : op == BinaryOp::BitOr  ? " | "
                        : op == BinaryOp::BitXor ? " ^ "
                                                 : "";
    if (!*spelt) return std::nullopt;
    const auto a = text(i.a), b = text(i.b);
    if (!a || !b) return std::nullopt;
    return fenced(*a) + spelt + fenced(*b);
  }

  // What crosses from a byte to the next is masked; a sign is spread over what it leaves behind.
  std::optional<std::string> shift(const Inst &i, bool left) {
    const auto by = known_integer(k_, i.b);
    if (!by || *by < 0 || *by > 7) return std::nullopt;
    const auto a = text(i.a);
    if (!a) return std::nullopt;
    const int n = int(*by);
    if (n == 0) return a;
    const std::string x = fenced(*a), steps = num(n);
    if (left) return "(" + x + " << " + steps + ") & " + every(uint8_t(0xff << n));
    const std::string moved = "(" + x + " >> " + steps + ") & " + every(uint8_t(0xff >> n));
    if (i.type == DType::U8) return moved;
    const std::string sign = "(" + x + " & 0x80808080u)";
    const std::string spread = n == 1 ? sign : "((" + sign + " - (" + sign + " >> " + steps + ")) << 1)";
    return "(" + moved + ") | " + spread;
  }

  const KernelPrinter &printer_;
  const Kernel &k_;
  int nodes_ = 0;
  bool worked_ = false;
};

// Bytes that whole vectors hold, as words.
bool KernelPrinter::whole_bytes(uint32_t a) const {
  return !form_.flat && !form_.tile && v_ % 4 == 0 && access(a) == Access::Vector && bytes(dtype(a)) == 1;
}

std::string KernelPrinter::packed(size_t p) const {
  if (form_.flat || form_.tile || form_.segments || v_ % 4 || bytes(k_.outputs[0]) != 1 || shares(p)) return "";
  if (residual(p) || (!masked_ && count_ > 1)) return ""; // no vector is this piece's alone
  if (!values_read_[p].tables.empty() || !values_read_[p].given.empty() || values_read_[p].entry) return "";
  Bytes words(*this);
  const auto text = words.text(k_.pieces[p].values[0]);
  return text && words.worked() ? *text : "";
}

void KernelPrinter::print_packed(size_t p, Lines &out) const {
  const std::string text = packed(p);
  if (text.empty()) return;
  std::string line = "__device__ unsigned " + function(p) + "x4(";
  for (size_t n = 0; n < values_read_[p].args.size(); ++n)
    line += (n ? ", unsigned " : "unsigned ") + names_.args[values_read_[p].args[n]];
  line += ") {";
  if (line.size() + text.size() + 12 <= columns) {
    out.add(0, line + " return " + text + "; }", "four bytes at once");
    return;
  }
  out.add(0, line, "four bytes at once");
  out.add(2, "return " + text + ";");
  out.add(0, "}");
}

std::string KernelPrinter::packed_call(size_t p) const {
  std::string s = "v.at.word[k] = " + function(p) + "x4(";
  bool first = true;
  for (const uint32_t a : values_read_[p].args) {
    s += (first ? "" : ", ") + (same_view(a) ? "v" : vector_name(a)) + ".at.word[k]";
    first = false;
  }
  return s + ");";
}

} // namespace elsewise::cuda
