// SPDX-License-Identifier: Apache-2.0
// The grammar of the random programs, and the random arguments. Values lean towards what breaks arithmetic: NaN,
// infinities, signed zeros, subnormals, ends of ranges.
#include "tests/fuzz/generate.h"
#include "grammar/builtins.h"
#include "tests/fuzz/generate_far.h"
#include "tests/fuzz/generate_reads.h"
#include "tests/fuzz/oracle.h"
#include <algorithm>
#include <cmath>
#include <limits>

namespace elsewise::fuzz {

uint64_t Random::next() {
  uint64_t z = state_ += 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

namespace {

class Writer {
public:
  /// `alone`: the dtype of all whole data, if it is one that goes with no other; else nullptr. `reads`: it reads
  /// tensors at indices too, of which `inputs` has the tables then.
  Writer(Random &random, const std::vector<Input> &inputs, size_t rank, const char *alone, bool reads)
      : random_(random), alone_(alone), rank_(rank), reads_(reads) {
    if (random_.chance(50)) name_axes(rank);
    for (const Input &in : inputs) {
      if (in.name == "s" || in.name == "u" || in.name == "w") continue; // tables
      if (in.type.kind == ArgKind::Tensor) {
        if (in.type.dtype == DType::Bool) booleans_.push_back(in.name);
        else (is_float(in.type.dtype) ? floats_ : integers_).push_back(in.name);
      }
    }
  }

  std::string spec() {
    const int pieces = 1 + int(random_.below(5));
    std::string text = header_ + lets();
    if (random_.chance(8)) return text + ladder() + "else " + value();
    for (int p = 0; p + 1 < pieces; ++p) {
      text += reads_ && random_.chance(20) ? neighbour() : guard() + ": " + value();
      text += random_.chance(80) ? "; " : "\n";
    }
    if (pieces == 1 && random_.chance(50)) return text + value();
    return text + (random_.chance(50) ? "else " : "else: ") + value();
  }

private:
  /// `[a, b]`, `[a, .., b]`: some of the axes' names, in order.
  void name_axes(size_t rank) {
    const bool dots = random_.chance(40);
    const size_t named = dots ? random_.below(rank + 1) : rank, before = random_.below(named + 1);
    for (size_t k = 0; k <= named; ++k) {
      if (dots && k == before) header_ += header_.empty() ? ".." : ", ..";
      if (k == named) break;
      axes_.push_back(std::string(1, "abcd"[k]));
      header_ += (header_.empty() ? "" : ", ") + axes_.back();
    }
    header_ = "[" + header_ + "]" + (random_.chance(50) ? "\n" : "; ");
  }

  /// Each sees the ones before it.
  std::string lets() {
    std::string text;
    for (uint64_t count = random_.chance(40) ? 1 + random_.below(3) : 0, k = 0; k < count; ++k) {
      const std::string name = "w" + std::to_string(k);
      std::string is;
      switch (random_.below(4)) {
      case 0:
        is = integer(2), integers_.push_back(name);
        break;
      case 1:
        is = boolean(2), booleans_.push_back(name);
        break;
      case 2:
        is = uniform(), uniforms_.push_back(name);
        break;
      default:
        is = floating(2), floats_.push_back(name);
      }
      text += "let " + name + " = " + is + (random_.chance(50) ? "\n" : "; ");
    }
    return text;
  }

  std::string length() {
    if (!axes_.empty() && random_.chance(60)) return "len(" + random_.pick(axes_) + ")";
    return random_.pick<std::string>({"len(x)", "len(x, -1)", "len(y, -1)", "len(x, 1)"});
  }
  std::string border() {
    std::string list;
    if (!axes_.empty() && random_.chance(60))
      for (const std::string &axis : axes_)
        if (random_.chance(60)) list += (list.empty() ? "" : ", ") + axis;
    return "border(" + list + ")";
  }
  /// A position: flat, or along an axis.
  std::string place() { return !axes_.empty() && random_.chance(75) ? random_.pick(axes_) : "i"; }

  /// Conditions of positions along axes.
  std::string along_axes() {
    const std::string p = place();
    switch (random_.below(7)) {
    case 0:
      return border() + " " + order() + " " + literal();
    case 1:
      return p + " " + order() + " " + place();
    case 2:
      return p + " - " + place() + " < " + literal();
    case 3:
      return p + " < " + length() + "/" + std::to_string(1 + random_.below(4));
    case 4:
      return length() + " - " + p + " " + order() + " " + uniform();
    case 5:
      return "(" + p + " + " + place() + ") % 3 == " + std::to_string(random_.below(3));
    default:
      return uniform() + " <= " + p + " < " + uniform();
    }
  }

  /// More pieces than a mask would be worth, with bounds that the host knows; most of one shape.
  std::string ladder() {
    const std::string p = axes_.empty() || random_.chance(30) ? "i" : axes_.back();
    const auto &data = floats_.empty() || random_.chance(30) ? integers_ : floats_;
    const std::string left = !data.empty() && random_.chance(80) ? random_.pick(data) : number(1),
                      op = random_.pick<std::string>({" * ", " + "});
    const uint64_t step = 1 + random_.below(4);
    std::string text;
    for (uint64_t count = 12 + random_.below(10), k = 0; k < count; ++k) {
      // Ascending, so that no piece takes all positions of a later one.
      const std::string end = random_.chance(90) ? std::to_string((k + 1) * step) : uniform();
      const std::string guard = random_.chance(60) ? p + " < " + end : literal() + " <= " + p + " < " + end;
      text += guard + ": " + (random_.chance(95) ? left + op + std::to_string(k + 2) : value()) + "; ";
    }
    return text;
  }

  /// A piece whose guard says that its read is in bounds.
  std::string neighbour() {
    const bool last = rank_ > 1 || random_.chance(30); // along the last axis of some
    const std::string by = std::to_string(random_.below(4)), length = last ? "len(x, -1)" : "n";
    const std::string p = last && !axes_.empty() ? axes_.back() : "i";
    const std::string open = last ? "x[.., " : "x[";
    switch (random_.below(5)) {
    case 0:
      return p + " >= " + by + ": " + open + p + " - " + by + "]";
    case 1:
      return p + " + " + by + " < " + length + ": " + open + p + " + " + by + "] * 2";
    case 2:
      return "0 < " + p + " < " + length + "-1: " + open + p + "-1] + " + open + p + "+1]";
    case 3:
      return p + " > 0 and " + open + p + "-1] > " + literal() + ": " + value();
    default:
      return p + " < " + by + ": " + value() + "; " + p + " < " + length + ": " + open + p + " - " + by + "]";
    }
  }

  /// An index of an axis as long as `length`: brought into range, or left to the proof and the call.
  std::string index(const std::string &length, int depth) {
    const std::string e = random_.chance(40) ? place() : integer(depth);
    switch (random_.below(12)) {
    case 0:
    case 1:
      return "clip(" + e + ", 0, " + length + "-1)";
    case 2:
    case 3:
      return "wrap(" + e + ", " + length + ")";
    case 4:
      return "(" + e + ") % " + length;
    case 5:
    case 6:
      return "reflect(" + e + ", " + length + ")";
    case 7:
      return "min(max(" + e + ", 0), " + length + " - 1)";
    case 8:
      return length + "-1-wrap(" + e + ", " + length + ")";
    case 9:
      return place() + "/" + std::to_string(1 + random_.below(70));
    case 10:
      return random_.pick<std::string>({"0", "1", "2", length + "-1", "k", place(), "i", "i//2", "n-1-i"});
    default:
      return random_.chance(20) ? e : "clip(" + e + ", 0, " + length + "-1) // 2";
    }
  }

  std::string read(int depth) {
    const auto along_last = [&](const std::string &s) {
      return s + "[.., " + index("len(" + s + ", -1)", depth) + "]";
    };
    const std::string e = random_.chance(50) ? place() : integer(depth);
    switch (random_.below(8)) {
    case 0:
      return "w[" + index("len(w)", depth) + ", " + index("len(w, 1)", depth) + "]";
    case 1:
      return rank_ > 1 ? along_last("w") : "w[0, " + index("len(w, 1)", depth) + "]";
    case 2:
      return rank_ == 1 ? "x[" + index("n", depth) + "]" : along_last("x");
    case 3:
      return along_last("y");
    case 4:
      return "where(0 <= " + e + " < len(s), s[" + e + "], " + number(depth) + ")";
    case 5:
      return rank_ > 0 && random_.chance(50) ? "x[..]" : "s[.., " + index("len(s)", depth) + "]";
    default:
      return "s[" + index("len(s)", depth) + "]";
    }
  }
  /// A table of whole numbers: its elements are indices of others.
  std::string whole_read(int depth) { return "u[" + index("len(u)", depth) + "]"; }

  std::string value() {
    if (random_.chance(4)) {
      const std::string end = random_.pick<std::string>({"lowest", "highest"});
      if (random_.chance(30)) return end;
      const std::string choice = "where(" + boolean(1) + ", " + number(1) + ", " + end + ")";
      return random_.chance(70) ? choice : "where(" + boolean(1) + ", " + choice + ", " + number(1) + ")";
    }
    if (alone_) return random_.chance(50) ? integer(3) : random_.chance(50) ? number(3) : random_.pick(integers_);
    switch (random_.below(8)) {
    case 0:
      return boolean(2);
    case 1:
      return integer(2);
    case 2:
      return random_.pick<std::string>({"x", "x", "y", "0", "1", "-1", "0.5", "i", "n", "inf", "nan"});
    case 3:
      return floating(3);
    default:
      return random_.chance(50) ? floating(2) : number(2);
    }
  }

  std::string guard() { return random_.chance(70) ? position() : boolean(2); }

  std::string literal() {
    return random_.pick<std::string>({"0", "1", "2", "3", "4", "5", "7", "11", "31", "100", "127"});
  }
  std::string uniform() { // an index without a position
    if (!uniforms_.empty() && random_.chance(30)) return random_.pick(uniforms_);
    if (random_.chance(15)) return length();
    switch (random_.below(9)) {
    case 0:
      return "n/4";
    case 1:
      return "n-n/4";
    case 2:
      return "k";
    case 3:
      return "n//" + std::string(random_.chance(50) ? "3" : "(k*k+1)");
    case 4:
      return "n-k";
    case 5:
      return "n/" + std::to_string(1 + random_.below(6));
    case 6:
      return "min(k, n)";
    case 7:
      return "n*k - 3";
    default:
      return literal();
    }
  }
  std::string order() { return random_.pick<std::string>({"<", "<=", ">", ">="}); }

  std::string position() {
    if (random_.chance(axes_.empty() ? 8 : 50)) return along_axes();
    switch (random_.below(15)) {
    case 0:
    case 1:
    case 2:
      return "i < " + uniform();
    case 3:
      return "i >= " + uniform();
    case 4:
      return "i " + order() + " " + uniform();
    case 5:
      return uniform() + " <= i < " + uniform();
    case 6:
      return "i == " + uniform();
    case 7:
      return "2*i " + order() + " n";
    case 8:
      return "n-1-i < " + uniform();
    case 9:
      return "i % " + std::to_string(2 + random_.below(4)) + " == " + std::to_string(random_.below(3));
    case 10:
      return "i " + order() + " g*n";
    case 12:
      return "i*i*k*4611686018427387904 " + order() + " n*" + std::to_string(1 + random_.below(9)) +
             "000000000000000000"; // beyond 64 bits
    case 11:
      return position() + random_.pick<std::string>({" and ", " or ", " && ", " || "}) + position();
    case 13:
      return "not (" + position() + ")";
    default:
      return "i != " + uniform();
    }
  }

  std::string boolean(int depth) {
    if (reads_ && random_.chance(6))
      return random_.chance(50) ? "(" + place() + " < " + whole_read(0) + ")"
                                : "(" + place() + " >= len(s) or s[" + place() + "] > 0)";
    if (depth == 0) {
      if (!booleans_.empty() && random_.chance(40)) return random_.pick(booleans_);
      return random_.pick<std::string>({"f", "true", "false", "x > 0", "x == y", "i < 3"});
    }
    switch (random_.below(11)) {
    case 0:
      return "(" + boolean(depth - 1) + " and " + boolean(depth - 1) + ")";
    case 1:
      return "(" + boolean(depth - 1) + " or " + boolean(depth - 1) + ")";
    case 2:
      return "not (" + boolean(depth - 1) + ")";
    case 3:
      return row(depth, [](const Builtin &r) { return r.rule == Rule::Predicate || r.rule == Rule::WholeTest; });
    case 4:
      return "(" + integer(depth - 1) + " == " + integer(depth - 1) + ")";
    case 5:
      return "(" + position() + ")";
    case 6:
      return "bool(" + number(depth - 1) + ")";
    case 7:
      return "(" + boolean(depth - 1) + ") " + random_.pick<std::string>({"&", "|", "^"}) + " (" + boolean(depth - 1) +
             ")";
    case 8:
      return "(" + floating(depth - 1) + " != " + number(depth - 1) + ")";
    default:
      return "(" + number(depth - 1) + " " + order() + " " + number(depth - 1) + ")";
    }
  }

  std::string number(int depth) { return random_.chance(55) ? floating(depth) : integer(depth); }

  std::string floating(int depth) {
    if (reads_ && random_.chance(12)) return read(depth ? depth - 1 : 0);
    if (depth == 0) {
      if (!floats_.empty() && random_.chance(65)) return random_.pick(floats_);
      return random_.pick<std::string>({"0.5", "2.0", "0.1", "1e-3", "g", "float(i)", "float(n)", "1.5", "inf", "nan",
                                        "pi", "float(k)", "3e38", "65519.0"});
    }
    switch (random_.below(16)) {
    case 0:
    case 1:
      return "(" + floating(depth - 1) + " + " + number(depth - 1) + ")";
    case 2:
      return "(" + number(depth - 1) + " - " + floating(depth - 1) + ")";
    case 3:
    case 4:
      return floating(depth - 1) + " * " + number(depth - 1);
    case 5:
      return "(" + floating(depth - 1) + " / " + floating(depth - 1) + ")";
    case 6:
      return "(" + floating(depth - 1) + " " + random_.pick<std::string>({"//", "%"}) + " " + floating(depth - 1) + ")";
    case 7:
      return "-(" + floating(depth - 1) + ")";
    case 8:
      return row(depth, [](const Builtin &r) {
        return r.rule == Rule::Float || r.rule == Rule::Ratio || r.rule == Rule::Noise;
      });
    case 14:
      return row(depth, [](const Builtin &r) { return r.rule == Rule::Numeric || r.rule == Rule::Rounding; });
    case 9:
      return random_.pick<std::string>({"min", "max"}) + "(" + number(depth - 1) + ", " + floating(depth - 1) +
             (random_.chance(25) ? ", " + number(depth - 1) : "") + ")";
    case 10:
      return "clip(" + floating(depth - 1) + ", " + number(0) + ", " + number(0) + ")";
    case 11:
      return "where(" + boolean(depth - 1) + ", " + floating(depth - 1) + ", " + number(depth - 1) + ")";
    case 12:
      return random_.pick<std::string>({"f16", "bf16", "f32", "f64", "float"}) + "(" + number(depth - 1) + ")";
    case 13:
      return "(" + floating(depth - 1) + ")**" + random_.pick<std::string>({"2", "3", "0.7", "(-1.5)", "g"});
    default:
      return floating(0);
    }
  }

  /// A call of some row of the table that `wanted` picks; a new row is drawn without a word here.
  template <class Wanted> std::string row(int depth, Wanted wanted, bool whole = false) {
    std::vector<const Builtin *> rows;
    for (const Builtin &r : builtins())
      if (wanted(r)) rows.push_back(&r);
    const Builtin &r = *random_.pick(rows);
    const bool integers = whole || r.rule == Rule::Whole || r.rule == Rule::WholeTest || r.rule == Rule::Noise;
    const int count = r.min_arguments + (r.max_arguments > r.min_arguments && random_.chance(25));
    std::string text = std::string(r.name) + "(";
    for (int k = 0; k < count; ++k)
      text += (k ? ", " : "") + (integers ? integer(depth - 1) : k == 0 ? floating(depth - 1) : number(depth - 1));
    return text + ")";
  }

  std::string integer(int depth) {
    if (reads_ && depth > 0 && random_.chance(10)) return whole_read(depth - 1);
    if (depth == 0) {
      if (!integers_.empty() && random_.chance(60)) return random_.pick(integers_);
      if (alone_)
        return random_.chance(60) ? literal()
                                  : random_.pick<std::string>({std::string(alone_) + "(" + place() + ")", "n", length(),
                                                               std::string(alone_) + "(i - 3)", "abs(k)"});
      return random_.chance(40)
                 ? literal()
                 : random_.pick<std::string>({"i", "n", "k", "(i - 3)", "(-2)", place(), length(), border()});
    }
    switch (random_.below(13)) {
    case 0:
    case 1:
      return "(" + integer(depth - 1) + " + " + integer(depth - 1) + ")";
    case 2:
      return "(" + integer(depth - 1) + " - " + integer(depth - 1) + ")";
    case 3:
      return integer(depth - 1) + " * " + integer(depth - 1);
    case 4:
      return "(" + integer(depth - 1) + " // " + integer(depth - 1) + ")";
    case 5:
      return "(" + integer(depth - 1) + " % " + integer(depth - 1) + ")";
    case 6:
      return "((" + integer(depth - 1) + ") " + random_.pick<std::string>({"&", "|", "^"}) + " (" + integer(depth - 1) +
             "))";
    case 7:
      return "((" + integer(depth - 1) + ") " + random_.pick<std::string>({"<<", ">>"}) + " (" +
             (random_.chance(70) ? literal() : integer(depth - 1)) + "))";
    case 8:
      return random_.chance(30) ? random_.pick<std::string>({"~", "-", "+"}) + "(" + integer(depth - 1) + ")"
                                : row(
                                      depth,
                                      [](const Builtin &r) {
                                        return r.rule == Rule::Whole || r.rule == Rule::Rounding ||
                                               (r.rule == Rule::Numeric && r.meaning != Meaning::Power);
                                      },
                                      true);
    case 9:
      return random_.pick<std::string>({"min", "max"}) + "(" + integer(depth - 1) + ", " + integer(depth - 1) + ")";
    case 10:
      return (alone_ ? alone_ : random_.pick<std::string>({"u8", "i8", "i16", "i32", "i64", "int"})) + "(" +
             number(depth - 1) + ")";
    case 11:
      return "where(" + boolean(depth - 1) + ", " + integer(depth - 1) + ", " + integer(depth - 1) + ")";
    default:
      return "(" + integer(depth - 1) + ")**" + random_.pick<std::string>({"0", "1", "2", "3", "5"});
    }
  }

  Random &random_;
  const char *alone_;
  size_t rank_;
  bool reads_;
  std::vector<std::string> floats_, integers_, booleans_;
  std::vector<std::string> axes_, uniforms_; // names of a header; lets without a position
  std::string header_;
};

Scalar random_scalar(Random &random, DType d) {
  Scalar s{d};
  if (is_float(d)) {
    static const std::vector<double> special = {0.0,
                                                -0.0,
                                                1.0,
                                                -1.0,
                                                0.5,
                                                -0.5,
                                                1.5,
                                                2.5,
                                                0.1,
                                                std::numeric_limits<double>::infinity(),
                                                -std::numeric_limits<double>::infinity(),
                                                std::numeric_limits<double>::quiet_NaN(),
                                                65504.0,
                                                3e38,
                                                1e-40,
                                                6e-8,
                                                1e300,
                                                2147483648.0,
                                                9.3e18,
                                                255.5,
                                                127.49,
                                                -32769.0};
    const double v = random.chance(25)
                         ? random.pick(special)
                         : (double(random.below(1 << 24)) / (1 << 20) - 8) * (random.chance(10) ? 1e4 : 1);
    return convert({DType::F64, 0, v}, d);
  }
  if (d == DType::Bool) s.integer = random.chance(50);
  else if (random.chance(60)) s = convert({DType::Index, (__int128)random.below(19) - 9, 0}, d);
  else if (random.chance(30))
    s = convert({DType::Index, ((__int128)1 << (8 * bytes(d) - 1)) - (random.chance(50) ? 1 : 0), 0}, d);
  else s = convert({DType::Index, (int64_t)random.next(), 0}, d);
  return s;
}

} // namespace

void lay_out(Random &random, Input &in) {
  const size_t rank = in.shape.size();
  in.stride.assign(rank, 0);
  std::vector<size_t> axes(rank);
  for (size_t d = 0; d < rank; ++d) axes[d] = rank - 1 - d;      // fastest first
  if (random.chance(20)) std::reverse(axes.begin(), axes.end()); // transposed
  else if (random.chance(25))
    for (size_t d = 1; d < rank; ++d) std::swap(axes[d], axes[random.below(d + 1)]);
  int64_t step = 1, least = 0, greatest = 0;
  for (size_t d : axes) {
    int64_t s = step * (random.chance(12) ? 2 : 1);
    if (random.chance(8)) s = 0;
    if (random.chance(8)) s = -s;
    in.stride[d] = s;
    const int64_t reach = s * std::max<int64_t>(in.shape[d] - 1, 0);
    (reach < 0 ? least : greatest) += reach;
    if (s) step = std::abs(s) * std::max<int64_t>(in.shape[d], 1) + (random.chance(10) ? 1 : 0);
  }
  const int64_t lead = random.chance(30) ? int64_t(random.below(16)) : 0;
  in.offset = lead - least;
  const bool empty = std::find(in.shape.begin(), in.shape.end(), 0) != in.shape.end();
  if (empty) in.offset = 0; // of nothing at all
  const int64_t count = empty ? 0 : in.offset + greatest + 1;
  in.buffer.resize(size_t(count) * bytes(in.type.dtype));
  for (int64_t e = 0; e < count; ++e)
    encode(random_scalar(random, in.type.dtype), in.buffer.data() + e * bytes(in.type.dtype));
}

namespace {

/// `s` of any dtype, `u` of whole numbers, `w` of two axes, the first of which may be the domain's last but one.
void add_tables(Random &random, Program &p, const std::vector<DType> &dtypes) {
  const auto length = [&] { return random.pick<int64_t>({0, 1, 2, 3, 8, 17, 64, 1030, 3000}); };
  const size_t rank = p.domain.size();
  const int64_t rows = rank < 2 || random.chance(20) ? int64_t(random.below(5)) : p.domain[rank - 2];
  const std::vector<std::pair<const char *, std::vector<int64_t>>> shapes = {
      {"s", {length()}}, {"u", {std::max<int64_t>(length(), 1)}}, {"w", {rows, std::min<int64_t>(length(), 64)}}};
  for (const auto &[name, shape] : shapes) {
    const DType whole = random.pick<DType>({DType::U8, DType::I8, DType::I16, DType::I32, DType::I64});
    Input in{.name = name};
    in.type = {ArgKind::Tensor, *name == 'u' ? whole : random.pick(dtypes), false};
    in.shape = shape;
    lay_out(random, in);
    p.inputs.push_back(std::move(in));
  }
}

} // namespace

Program generate(uint64_t seed, int far) {
  Random random(seed * 0x2545f4914f6cdd1d + 1);
  Program p;
  p.seed = seed;
  if (Random of_far(seed ^ 0xfa4); of_far.chance(far)) return go_far(of_far, p), p;
  const size_t rank = random.pick<size_t>({0, 1, 1, 1, 1, 2, 2, 3, 4});
  for (size_t d = 0; d < rank; ++d)
    p.domain.push_back(rank == 1 ? random.pick<int64_t>({1, 2, 5, 17, 64, 100, 257, 1030, 2100, 0})
                                 : int64_t(random.pick<int>({1, 2, 3, 5, 8, 17, 33})));
  static const std::vector<DType> dtypes = {DType::F32, DType::F32, DType::F32, DType::F64, DType::F16, DType::BF16,
                                            DType::I32, DType::I64, DType::U8,  DType::I8,  DType::I16, DType::Bool};
  const DType alone = random.pick<DType>({DType::U16, DType::U32, DType::U64});
  const bool only = random.chance(20);
  for (const char *name : {"x", "y", "z"}) {
    Input in{.name = name};
    in.type = {ArgKind::Tensor, random.pick(dtypes), false};
    if (only && (*name == 'x' || !is_float(in.type.dtype))) in.type.dtype = alone;
    in.shape = p.domain;
    if (*name != 'x') {
      for (int64_t &d : in.shape)
        if (random.chance(15)) d = 1;
      const size_t drop = random.chance(20) ? random.below(rank + 1) : 0;
      in.shape.erase(in.shape.begin(), in.shape.begin() + drop);
    }
    in.type.zero_dim = in.shape.empty();
    lay_out(random, in);
    p.inputs.push_back(std::move(in));
  }
  p.inputs.push_back({.name = "k", .type = {ArgKind::Int}, .integer = (__int128)random.below(21) - 4});
  p.inputs.push_back({.name = "g", .type = {ArgKind::Float}, .real = double(random.below(2000)) / 1000 - 0.5});
  p.inputs.push_back({.name = "f", .type = {ArgKind::Bool}, .integer = random.chance(50)});
  Random risk(seed ^ 0xb07d5);
  Random tables(seed ^ 0x7ab1e5); // of their own, so that programs without reads stay what they are
  const bool risky = risk.chance(20), reads = !risky && tables.chance(30);
  if (reads) add_tables(tables, p, dtypes);
  p.text = Writer(random, p.inputs, p.domain.size(), only ? spelling(alone) : nullptr, reads).spec();
  if (risky) risk_reads(risk, p);
  p.in_place = random.chance(20);
  p.out_layout = int(random.below(4));
  return p;
}

} // namespace elsewise::fuzz
