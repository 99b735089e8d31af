// SPDX-License-Identifier: Apache-2.0
// Straight bodies, lanes and the first-match chain: how elements are read, worked and stored once a thread knows its
// pieces. It compares positions only in the chain.
#include "compiler/emit/cuda_kernel.h"

namespace elsewise::cuda {

uint32_t KernelPrinter::shared(const std::vector<uint32_t> &args) const {
  for (uint32_t a : args)
    if (same_view(a)) return a;
  for (uint32_t a : args)
    if (access(a) == Access::Vector && dtype(a) == k_.outputs[0] && !beside_.contains(a)) return a;
  return ~0u;
}

std::string KernelPrinter::element(uint32_t a, bool lanes) const {
  const std::string &name = same_view(a) ? out_ : names_.args[a];
  if (form_.flat && access(a) != Access::Vector) return flat_element(a, lanes);
  switch (access(a)) {
  case Access::Broadcast:
    return values_[a];
  case Access::Vector:
    if (lanes) return (same_view(a) ? "v" : vector_name(a)) + ".at[k]";
    return name + "[p]";
  case Access::Scalar:
    return name + (lanes ? "[c + k]" : "[p]");
  case Access::Tiled:
    return tiles_[a] + (lanes ? "[c + k][row]" : "[p][row]");
  default:
    break;
  }
  return name + (lanes ? "[(c + k) * " : "[p * ") + (same_view(a) ? "out_stride" : strides_[a]) + "]";
}

std::string KernelPrinter::position(bool lanes) const {
  if (form_.flat) return "position";
  if (form_.rows == 0) return lanes ? "first + c + k" : "first + p";
  if (form_.unit_pitch) return lanes ? "start + c + k" : "start + p";
  return lanes ? "start + i64(c + k) * pitch" : "start + i64(p) * pitch";
}

std::string KernelPrinter::position_of_axis(uint32_t axis, bool lanes) const {
  for (size_t d = 0; d < form_.row_axes.size(); ++d)
    if (form_.row_axes[d] == axis) return row_names_[d];
  if (form_.flat) return column_;
  return lanes ? "first + c + k" : "first + p";
}

std::string KernelPrinter::call(const std::string &name, const Reads &r, bool lanes, size_t p,
                                const std::vector<NodeId> &named) const {
  std::vector<std::string> args;
  for (uint32_t a : r.args) args.push_back(element(a, lanes));
  for (uint32_t a : r.tables) {
    args.push_back(names_.tables[a]);
    for (const std::string &step : names_.steps[a])
      if (!step.empty()) args.push_back(step);
  }
  for (uint32_t u : r.uniforms) args.push_back(names_.uniforms[u]);
  for (uint32_t u : r.divisors) args.push_back(names_.reciprocals.at(u));
  for (NodeId n : r.given)
    args.push_back(std::find(named.begin(), named.end(), n) != named.end() ? names_.given.at(n) : given(n, lanes));
  if (r.position) args.push_back(position(lanes));
  for (uint32_t a : r.axes) args.push_back(position_of_axis(a, lanes));
  if (r.entry) args.push_back(form_.segments ? entry_ : num(k_.pieces[p].entry));
  std::string s = name + "(";
  for (size_t k = 0; k < args.size(); ++k) s += (k ? ", " : "") + args[k];
  return s + ")";
}

void KernelPrinter::conditional(Lines &out, int indent, const std::string &head, const std::string &body) const {
  const std::string line = head + (head.empty() ? "" : " ") + body;
  const size_t base = out.base();
  if (base + indent + line.size() <= columns) {
    out.add(indent, line);
    return;
  }
  const size_t last = head.rfind(" && ");
  if (base + indent + head.size() > columns && last != std::string::npos) {
    out.add(indent, head.substr(0, last + 3));
    out.add(indent + int(head.find('(')) + 1, head.substr(last + 4));
  } else if (!head.empty()) out.add(indent, head);
  const int inner = head.empty() ? indent : indent + 2;
  const size_t open = body.rfind("(", body.find(' ', body.find('(')));
  if (base + inner + body.size() <= columns || open == std::string::npos) {
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

// A vector of an operand, as its elements are worked with; empty if it is there already.
std::string KernelPrinter::loaded(uint32_t a) {
  const std::string name = same_view(a) ? "v" : vector_name(a);
  const bool early = early_.contains(a), wholly = bytes(dtype(a)) == 1 && v_ > 1;
  if (early && !wholly) return "";
  const std::string vector = early ? name : "*" + (same_view(a) ? outs_ : pointers_[a]);
  if (!wholly) return name + " = " + vector;
  whole_types_.insert(dtype(a));
  return name + " = whole(" + vector + ")";
}

// The piece of every position of a vector is known: whole vectors in, whole vector out, no position compared.
void KernelPrinter::print_straight(Lines &out, int indent, size_t p, bool have) {
  const Inst &root = k_[k_.pieces[p].values[0]];
  const Reads &r = values_read_[p];
  const bool bits = root.op == Op::Load && root.type == k_.outputs[0];
  if (bits && access(root.a) == Access::Vector && !same_view(root.a) && !have) {
    vector_pointers_.insert(root.a), vector_types_.insert(dtype(root.a));
    shared_ = shared({root.a});
    out.add(indent,
            "*" + outs_ + " = " + (early_.contains(root.a) ? vector_name(root.a) : "*" + pointers_[root.a]) + ";");
    if (early_.contains(root.a)) vector_operands_.insert(root.a);
    shared_ = ~0u;
    return;
  }
  const std::vector<uint32_t> args = arguments(r);
  shared_ = shared(args);
  std::set<std::string> loaded;
  std::vector<std::string> loads;
  for (uint32_t a : args) {
    if (access(a) != Access::Vector) continue;
    vector_types_.insert(dtype(a)), vector_operands_.insert(a);
    if (!same_view(a)) vector_pointers_.insert(a);
    const std::string load = this->loaded(a);
    if (!load.empty() && loaded.insert(load).second) loads.push_back(load);
  }
  if (!have) out.statements(indent, "", loads);
  if (const std::vector<NodeId> few = slow(r); !few.empty()) print_slow(out, indent, p, few);
  else if (!packed(p).empty())
    conditional(out, indent, "for (int k = 0; k < " + num(v_ / 4) + "; ++k)", packed_call(p));
  else if (!bits || shared_ != root.a)
    conditional(out, indent, "for (int k = 0; k < " + num(v_) + "; ++k)",
                "v.at[k] = " + call(function(p), r, true, p) + ";");
  out.add(indent, "*" + outs_ + " = v;");
  shared_ = ~0u;
}

// The first-match chain at p; by lane, the value goes to v.at[k] and stays in registers.
void KernelPrinter::print_matches(Lines &out, int indent, bool lanes) {
  const std::string target = lanes ? "v.at[k]" : out_ + (form_.out == Access::Strided ? "[p * out_stride]" : "[p]");
  const char *skip = v_ == 1 && !form_.tile ? "return;" : "continue;";
  for (size_t p = 0; p < count_; ++p) {
    std::string condition = always(p) ? "" : matches(p);
    if (residual(p)) {
      if (condition.find("||") != std::string::npos) condition = "(" + condition + ")";
      condition = conjunction(condition, call("guard" + num(p + 1), guards_read_[p], lanes, p));
    }
    if (p + 1 == count_ && identity(p)) return;
    const std::string head =
        condition.empty() ? (p ? "else" : "") : std::string(p ? "else if (" : "if (") + condition + ")";
    conditional(out, indent, head,
                identity(p) ? skip : target + " = " + call(function(p), values_read_[p], lanes, p) + ";");
  }
}

void KernelPrinter::print_chain(Lines &out, int indent) {
  print_loop(out, indent, "for (int p = c < lo ? lo : c; p < z && p < hi; ++p)", false);
}

// One statement stands on the loop's own line, where there is room.
void KernelPrinter::print_loop(Lines &out, int indent, const std::string &head, bool lanes) {
  Lines matches(out.base());
  print_matches(matches, indent + 2, lanes);
  const std::string text = matches.str();
  if (matches.count() == 1 && text.find("if (") == std::string::npos) {
    const size_t at = size_t(out.base()) + indent + 2;
    conditional(out, indent, head, text.substr(at, text.size() - at - 1));
    return;
  }
  out.add(indent, head);
  out.append(matches);
}

std::vector<std::string> KernelPrinter::vector_loads(std::vector<std::string> *gathered) {
  std::vector<uint32_t> args;
  bool keeps = false;
  for (size_t p = 0; p < count_; ++p) {
    keeps |= identity(p);
    for (const Reads *r : {&values_read_[p], &guards_read_[p]})
      for (const uint32_t a : arguments(*r)) args.push_back(a);
  }
  std::sort(args.begin(), args.end());
  args.erase(std::unique(args.begin(), args.end()), args.end());
  shared_ = shared(args);
  std::vector<std::string> loads, gathers;
  bool own = false;
  for (uint32_t a : args) {
    if (form_.flat && access(a) == Access::Scalar) {
      vector_types_.insert(dtype(a)), vector_operands_.insert(a);
      gathers.push_back(vectors_[a] + ".at[k] = " + names_.args[a] + "[c + k]");
    }
    if (access(a) != Access::Vector || (same_view(a) && own)) continue;
    own |= same_view(a);
    vector_types_.insert(dtype(a)), vector_operands_.insert(a);
    if (!same_view(a)) vector_pointers_.insert(a);
    if (const std::string load = loaded(a); !load.empty()) loads.push_back(load);
  }
  if (keeps && !own) loads.push_back("v = *" + outs_);
  if (gathered) *gathered = std::move(gathers);
  return loads;
}

void KernelPrinter::print_loads(Lines &out, int indent) {
  std::vector<std::string> gathers;
  out.statements(indent, "", vector_loads(&gathers));
  if (!gathers.empty()) out.statements(indent, "for (int k = 0; k < " + num(v_) + "; ++k) ", gathers);
}

void KernelPrinter::print_lanes(Lines &out, int indent) {
  print_loads(out, indent);
  const std::string steps = num(v_);
  print_loop(out, indent,
             locals_.empty() ? "for (int k = 0; k < " + steps + "; ++k)"
                             : "for (int k = 0, p = c; k < " + steps + "; ++k, ++p)",
             true);
  out.add(indent, "*" + outs_ + " = v;");
  shared_ = ~0u;
}

// What every piece reads is loaded as soon as a thread knows that its vector is inside the row: the mask is worked out
// while it comes. A variable must have one name in all bodies.
void KernelPrinter::choose_early() {
  if (!masked_) return;
  std::vector<std::vector<uint32_t>> needed;
  std::vector<uint32_t> all;
  for (size_t p = 0; p < count_; ++p) {
    needed.push_back(arguments(values_read_[p]));
    for (const Reads *r : {&values_read_[p], &guards_read_[p]})
      for (const uint32_t a : arguments(*r)) all.push_back(a);
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  if (lanes_) needed.push_back(all);
  for (const uint32_t a : all) {
    if (access(a) != Access::Vector || same_view(a)) continue;
    const bool shares = shared(needed[0]) == a;
    const bool every = std::all_of(needed.begin(), needed.end(), [&](const std::vector<uint32_t> &args) {
      return std::find(args.begin(), args.end(), a) != args.end() && (shared(args) == a) == shares;
    });
    if (every) early_.insert(a), vector_pointers_.insert(a), vector_operands_.insert(a), vector_types_.insert(dtype(a));
  }
}

void KernelPrinter::print_early(Lines &out) const {
  out.add(2, "const bool inside = lo <= c && z <= hi;");
  const uint32_t first = shared(arguments(values_read_[0]));
  std::vector<std::string> loads;
  for (const uint32_t a : early_) loads.push_back((first == a ? "v" : vectors_[a]) + " = *" + pointers_[a]);
  out.statements(2, "if (inside) ", loads);
}

void KernelPrinter::print_single(Lines &out) {
  out.add(2, "const int p = threadIdx.x;");
  out.add(2, "if (p >= hi) return;");
  print_matches(out, 2, false);
}

void KernelPrinter::print_body(Lines &out) {
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
  out.add(2, "switch (" + (early_.empty() ? inside : "inside") + " ? may : 0) {");
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

} // namespace elsewise::cuda
