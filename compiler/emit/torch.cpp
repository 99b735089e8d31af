// SPDX-License-Identifier: Apache-2.0
// A rule as a Python function in plain torch: what its results are compared with. It reads syntax and types, and never
// the IR.
#include "compiler/check/kinds.h"
#include "compiler/emit/emit.h"
#include "compiler/emit/torch_expr.h"
#include "compiler/emit/torch_helpers.h"
#include <algorithm>

namespace elsewise {
namespace {

/// On one line, fit for a Python comment.
std::string comment(std::string_view text) {
  std::string line;
  bool blank = false;
  for (char c : text) {
    if ((unsigned char)c <= ' ' || c == 0x7f) {
      blank = !line.empty();
      continue;
    }
    if (blank) line += ' ';
    blank = false;
    line += c;
  }
  return line;
}

class TorchRule {
public:
  TorchRule(const Source &source, const Ast &ast, const Names &names, const Signature &signature, const Typed &typed,
            bool window)
      : source_(source), ast_(ast), names_(names), signature_(signature), typed_(typed), window_(window),
        code_(ast, names, signature, typed, window) {}

  std::string print() {
    for (size_t a = 0; a < signature_.args.size(); ++a)
      if (signature_.args[a].kind == ArgKind::Tensor && names_.elementwise[a])
        (signature_.args[a].zero_dim ? zero_dim_ : tensors_).push_back(names_.arguments[a]);
      else if (signature_.args[a].kind == ArgKind::Tensor) measured_.push_back(names_.arguments[a]);
    const std::vector<std::string> body = pieces();
    const std::string ranked = ast_.header.present ? code_.helper("_ranked") : "";
    std::string text;
    const bool shape = code_.uses_length || code_.uses_position;
    if (shape || code_.uses_math || code_.helpers.count("_whole")) text += import("math");
    if (code_.helpers.count("_positions") || code_.helpers.count("_positions_in")) text += import("itertools");
    text += import("torch") + "\n\n";
    if (!code_.axes.empty()) (void)code_.helper("_axis");
    if (code_.uses_position) (void)code_.positions(flat_axis); // the helpers that it takes
    for (const TorchHelper &h : torch_helpers)
      if (needed(h)) text += renamed(std::string(h.text)) + "\n\n";
    text += "def rule(" + parameters() + "):\n";
    text += "    \"\"\"" + describe() + "\"\"\"\n";
    text += "    # " + comment(source_.text()) + "\n";
    if (has_tensors())
      for (const std::string &z : zero_dim_)
        if (z + ".device" != code_.device()) text += "    " + z + " = " + z + ".to(" + code_.device() + ")\n";
    text += domain();
    if (window_) {
      text += "    domain = shape if domain is None else (*domain,)\n";
      text += "    offset = (0,) * len(domain) if offset is None else (*offset,)\n";
    }
    if (!ranked.empty())
      text += "    shape = " + ranked + "(shape, " + std::to_string(ast_.header.axes.size()) + ", " +
              (ast_.header.dots < 0 ? "False" : "True") + ")\n";
    const std::string &n = code_.length_name();
    if (code_.uses_length || code_.uses_position)
      text += "    " + n + " = " + code_.global("math") + ".prod(" + code_.whole() + ")\n";
    if (code_.uses_position)
      text += "    " + code_.position_name(flat_axis) + " = " + code_.positions(flat_axis) + "\n";
    for (const uint32_t axis : code_.axes)
      text += "    " + code_.position_name(axis) + " = " + code_.positions(axis) + "\n";
    for (const std::string &line : code_.statements) text += "    " + line + "\n";
    for (const std::string &line : body) text += "    " + line + "\n";
    return text + "    return out.expand(shape)\n";
  }

private:
  std::string import(const std::string &module) {
    const std::string name = code_.global(module);
    return "import " + module + (name == module ? "" : " as " + name) + "\n";
  }

  bool needed(const TorchHelper &h) const {
    if (code_.helpers.count(std::string(h.name))) return true;
    for (const TorchHelper &other : torch_helpers)
      if (code_.helpers.count(std::string(other.name)) &&
          (" " + std::string(other.needs) + " ").find(" " + std::string(h.name) + " ") != std::string::npos)
        return true;
    return false;
  }

  /// Helpers under the names that no argument hides.
  std::string renamed(std::string text) {
    std::vector<std::string> globals = {"torch", "math", "itertools"};
    for (const TorchHelper &h : torch_helpers) globals.emplace_back(h.name);
    for (const std::string &name : globals) {
      const std::string other = code_.global(name);
      if (other == name) continue;
      for (size_t at = 0; (at = text.find(name, at)) != std::string::npos; at += other.size()) {
        const auto part = [&](size_t p) {
          return p < text.size() && (isalnum((unsigned char)text[p]) || text[p] == '_');
        };
        if ((at && part(at - 1)) || part(at + name.size())) continue;
        text.replace(at, name.size(), other);
      }
    }
    return text;
  }

  std::string parameters() const {
    std::string list;
    for (const std::string &a : names_.arguments) list += a + ", ";
    list += window_ ? "*, shape=None, domain=None, offset=None" : "*, shape=None";
    if (!has_tensors()) list += ", device=None";
    return list;
  }

  std::string describe() const {
    std::string kinds;
    for (size_t a = 0; a < signature_.args.size(); ++a) {
      const ArgType &t = signature_.args[a];
      const char *kind = t.kind == ArgKind::Int     ? "int"
                         : t.kind == ArgKind::Float ? "float"
                         : t.kind == ArgKind::Bool  ? "bool"
                                                    : torch_name(t.dtype);
      kinds += (kinds.empty() ? "" : ", ") + names_.arguments[a] + ": " + kind;
      if (t.kind == ArgKind::Tensor) kinds += t.zero_dim ? " tensor of no dimensions" : " tensor";
    }
    const bool tensors = !shaping().empty();
    return (kinds.empty() ? "" : kinds + ". ") + "Gives " + torch_name(typed_.result) + " of `shape`" +
           (tensors ? ", by default the tensors' common one" : "") +
           (window_ ? ", from `offset` on in `domain`." : ".");
  }

  bool has_tensors() const { return !tensors_.empty() || !zero_dim_.empty() || !measured_.empty(); }

  /// The tensors that say the shape: those read elementwise, or the only other one.
  std::vector<std::string> shaping() const {
    if (!tensors_.empty()) return tensors_;
    if (!zero_dim_.empty()) return zero_dim_;
    return measured_.size() == 1 ? measured_ : std::vector<std::string>{};
  }

  std::string domain() {
    const std::vector<std::string> from = shaping();
    if (from.empty()) return "    shape = (*shape,)\n";
    std::string common = from[0] + ".shape";
    if (from.size() > 1) {
      common = code_.global("torch") + ".broadcast_shapes(";
      for (size_t k = 0; k < from.size(); ++k) common += (k ? ", " : "") + from[k] + ".shape";
      common += ")";
    }
    return "    shape = " + common + " if shape is None else (*shape,)\n";
  }

  std::string place(const SpecPiece &piece) const {
    const LineColumn at = source_.position(piece.where.begin);
    return "  # " + std::to_string(at.line) + ":" + std::to_string(at.column) + " " +
           comment(source_.slice(piece.where));
  }

  /// From the last piece to the first, each over what comes behind it: the first that matches wins.
  std::vector<std::string> pieces() {
    if (reads()) return pieces_that_read();
    std::vector<std::string> lines;
    for (size_t p = ast_.pieces.size(); p-- > 0;) {
      if (!typed_.reachable[p]) continue;
      const SpecPiece &piece = ast_.pieces[p];
      const Python value = code_.stored(piece.value, typed_.result);
      // Whatever its guard, the last one takes the rest: that was proved.
      const Python guard = lines.empty() ? Python{} : code_.value(piece.guard, Use::Value);
      lines.push_back("out = " + chosen(guard, value, lines.empty()) + place(piece));
    }
    return lines;
  }

  std::string chosen(const Python &guard, const Python &value, bool last) {
    const std::string torch = code_.global("torch");
    if (last && value.tensor) return value.text;
    if (last)
      return torch + ".full(shape, " + value.text + ", dtype=" + code_.dtype(typed_.result) +
             ", device=" + code_.device() + ")";
    if (guard.tensor) return torch + ".where(" + guard.text + ", " + value.text + ", out)";
    const std::string all =
        value.tensor ? TorchExpressions::at(value, Level::Or) : torch + ".full_like(out, " + value.text + ")";
    return all + " if " + TorchExpressions::at(guard, Level::Or) + " else out";
  }

  bool reads() const {
    for (const SpecPiece &piece : ast_.pieces)
      for (const ExprId e : {piece.guard, piece.value})
        if (e != no_expr && code_.holds_read(e)) return true;
    return false;
  }

  /// Guards come first then, since a read stands under those that do not hold before its piece, and under its own.
  std::vector<std::string> pieces_that_read() {
    std::vector<std::string> lines;
    size_t last = 0;
    for (size_t p = 0; p < ast_.pieces.size(); ++p)
      if (typed_.reachable[p]) last = p;
    for (size_t p = 0; p <= last; ++p) {
      if (!typed_.reachable[p]) continue;
      const SpecPiece &piece = ast_.pieces[p];
      Python guard;
      if (p != last) guard = code_.condition(piece.guard, "guard");
      if (p != last) code_.assume(guard, true);
      const Python value = code_.stored(piece.value, typed_.result);
      if (p != last) code_.forget(), code_.assume_rest(guard);
      lines.insert(lines.begin(), "out = " + chosen(guard, value, p == last) + place(piece));
    }
    return lines;
  }

  const Source &source_;
  const Ast &ast_;
  const Names &names_;
  const Signature &signature_;
  const Typed &typed_;
  const bool window_;
  TorchExpressions code_;
  std::vector<std::string> tensors_, zero_dim_;
  std::vector<std::string> measured_; // only for their lengths
};

} // namespace

std::string emit_torch(const Source &source, const Ast &ast, const Names &names, const Signature &signature,
                       const Typed &typed, bool window) {
  return TorchRule(source, ast, names, signature, typed, window).print();
}

} // namespace elsewise
