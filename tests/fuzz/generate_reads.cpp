// SPDX-License-Identifier: Apache-2.0
// Programs about reads at indices that are in bounds by a hair, or out of them by one: guards, maps into range, ends of
// dtypes, lengths that are short or 0. Whether a program is right it leaves to the compiler and the oracle.
#include "tests/fuzz/generate_reads.h"
#include "tests/fuzz/oracle.h"
#include <algorithm>

namespace elsewise::fuzz {
namespace {

/// At and next to the ends of dtypes, and what lies between two of them.
const std::vector<std::string> ends = {"0",
                                       "1",
                                       "2",
                                       "3",
                                       "126",
                                       "127",
                                       "128",
                                       "129",
                                       "200",
                                       "254",
                                       "255",
                                       "256",
                                       "257",
                                       "32766",
                                       "32767",
                                       "32768",
                                       "32769",
                                       "40000",
                                       "65534",
                                       "65535",
                                       "65536",
                                       "65537",
                                       "1000000",
                                       "2147483646",
                                       "2147483647",
                                       "2147483648",
                                       "2147483649",
                                       "3000000000",
                                       "4294967295",
                                       "4294967296",
                                       "4294967297",
                                       "1099511627776",
                                       "9007199254740993",
                                       "4611686018427387904",
                                       "9223372036854775806",
                                       "9223372036854775807",
                                       "9223372036854775808",
                                       "10000000000000000000",
                                       "18446744073709551614",
                                       "18446744073709551615"};

__int128 of_decimal(const std::string &digits) {
  __int128 v = 0;
  for (const char c : digits) v = v * 10 + (c - '0');
  return v;
}

/// A whole number of `d` that is small, or at an end, or any.
Scalar whole_scalar(Random &random, DType d) {
  const uint64_t kind = random.below(10);
  __int128 v = int64_t(random.next());
  if (kind < 4) v = (__int128)random.below(26) - 5;
  else if (kind < 8) v = of_decimal(random.pick(ends)) * (random.chance(30) ? -1 : 1);
  else if (kind < 9) v = random.below(300);
  return convert({DType::Index, v, 0}, d);
}

class Risks {
public:
  Risks(Random &random, const Program &p) : random_(random), rank_(p.domain.size()) {
    if (random_.chance(35))
      for (size_t d = 0; d < rank_; ++d) axes_.push_back(std::string(1, "abcd"[d]));
    for (const Input &in : p.inputs)
      if (in.type.kind == ArgKind::Tensor && is_float(in.type.dtype) && in.name != "s" && in.name != "w")
        floats_.push_back(in.name);
  }

  std::string spec() {
    std::string body;
    for (uint64_t pieces = 1 + random_.below(2), p = 0; p < pieces; ++p) body += piece() + "; ";
    body += "else " + random_.pick<std::string>({"0", "0", "x", "1"});
    std::string header;
    for (const std::string &a : axes_) header += (header.empty() ? "[" : ", ") + a;
    return (header.empty() ? "" : header + "]; ") + lets_ + body;
  }

private:
  /// A tensor and an axis of it: what is written before and behind the index, and the axis's length.
  struct Target {
    std::string open, close, length;
  };

  /// Sometimes something that is nearly `right`.
  bool slips() { return random_.chance(14); }
  std::string slip(const std::string &right) {
    if (!slips()) return right;
    switch (random_.below(6)) {
    case 0:
      return "(" + right + " - " + small() + ")";
    case 1:
    case 2:
      return "(" + right + " + 1)";
    case 3:
      return "(" + right + " - 1)";
    default:
      return constant();
    }
  }
  std::string less() { return slips() ? "<=" : "<"; }
  std::string small() { return random_.pick<std::string>({"0", "1", "1", "2", "3", "4", "7"}); }
  std::string uniform() {
    return random_.pick<std::string>({"k", "k", "h", "len(s) - k", "h*k", "h*h", "n*k", "k - len(s)"});
  }
  std::string constant() {
    const uint64_t kind = random_.below(10);
    if (kind < 3) return small();
    if (kind < 7) return (random_.chance(20) ? "-" : "") + random_.pick(ends);
    return kind < 9 ? uniform() : length();
  }
  std::string length() { return random_.pick<std::string>({"len(s)", "len(u)", "n", "len(w)", "len(w, 1)"}); }
  std::string place() { return !axes_.empty() && random_.chance(75) ? random_.pick(axes_) : "i"; }

  Target target() {
    switch (random_.below(10)) {
    case 0:
      return {"w[", ", " + into("i", "len(w, 1)") + "]", "len(w)"};
    case 1:
      return {"w[" + into(place(), "len(w)") + ", ", "]", "len(w, 1)"};
    case 2:
      return rank_ == 1 ? Target{"x[", "]", "n"}
             : rank_    ? Target{"x[.., ", "]", "len(x, -1)"}
                        : Target{"s[", "]", "len(s)"};
    case 3:
      return {"u[", "]", "len(u)"};
    case 4:
      return rank_ ? Target{"y[.., ", "]", "len(y, -1)"} : Target{"s[", "]", "len(s)"};
    default:
      return {"s[", "]", "len(s)"};
    }
  }

  /// What an index is made of.
  std::string subject() {
    std::string s;
    switch (random_.below(12)) {
    case 0:
    case 1:
    case 2:
    case 3:
      s = "v";
      break;
    case 4:
    case 5:
      s = "u[" + into(place(), "len(u)") + "]";
      break;
    case 6:
      s = random_.pick<std::string>({"i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "int"}) + "(v)";
      break;
    case 7:
      s = random_.chance(60) || floats_.empty() ? uniform() : "int(" + random_.pick(floats_) + ")";
      break;
    case 8:
      s = "v " + random_.pick<std::string>({"+", "-", "*"}) + " " +
          random_.pick<std::string>({"1", "2", "3", "100", "127", "v", "k"});
      break;
    default:
      return place();
    }
    if (s.size() < 3 || !random_.chance(60)) return s.size() < 3 ? s : "(" + s + ")";
    const std::string name = "q" + std::to_string(lets_count_++);
    lets_ += "let " + name + " = " + s + "; ";
    return name;
  }

  /// What arithmetic makes of it.
  std::string worked(const std::string &s) {
    const std::string c = random_.chance(60) ? small() : constant();
    switch (random_.below(22)) {
    case 0:
    case 1:
      return s + " + " + c;
    case 2:
    case 3:
      return s + " - " + c;
    case 4:
      return s + "*" + c;
    case 5:
      return s + " // " + c;
    case 6:
      return s + " % " + c;
    case 7:
      return "(" + s + " & " + c + ")";
    case 8:
      return "(" + s + " >> " + small() + ")";
    case 9:
      return "abs(" + s + ")";
    case 10:
      return "-" + s;
    case 11:
      return c + " - " + s;
    case 12:
      return "min(" + s + ", " + c + ")";
    case 13:
      return "max(" + s + ", " + c + ")";
    case 14:
      return "where(" + s + " < " + c + ", " + s + ", " + small() + ")";
    case 15:
      return random_.pick<std::string>({"i8", "u8", "i16", "i32", "i64", "u16", "u32"}) + "(" + s + ")";
    case 16:
      return "~" + s;
    case 17:
      return s + random_.pick<std::string>({" + ", " - ", "*"}) + place();
    case 18:
      return "clip(" + s + ", " + c + ", " + constant() + ")";
    default:
      return s;
    }
  }

  /// An index that was brought into range, as people do.
  std::string into(const std::string &s, const std::string &length) {
    const std::string l = slip(length), zero = slips() ? "-1" : "0";
    switch (random_.below(13)) {
    case 0:
    case 1:
      return "clip(" + s + ", " + zero + ", " + l + " - 1)";
    case 2:
    case 3:
      return "wrap(" + s + ", " + l + ")";
    case 4:
    case 5:
      return s + " % " + (slips() ? uniform() : l);
    case 6:
      return "reflect(" + s + ", " + l + ")";
    case 7:
      return "min(max(" + s + ", " + zero + "), " + l + " - 1)";
    case 8:
      return l + " - 1 - wrap(" + s + ", " + length + ")";
    case 9:
      return "where(" + (slips() ? "" : zero + " <= " + s + " and ") + s + " " + less() + " " + l + ", " + s + ", 0)";
    case 10:
      return "max(" + s + ", " + zero + ") % " + l;
    case 11:
      return "min(abs(" + s + "), " + l + " - 1)";
    default:
      return "clip(" + s + ", " + zero + ", " + l + " - 1) // " + random_.pick<std::string>({"2", "3", "k"});
    }
  }

  /// Conditions that keep `e` in [0, length).
  std::string within(const std::string &e, const std::string &length) {
    const std::string l = slip(length), zero = slip("0");
    if (slips()) return e + " " + less() + " " + l; // which is enough for what is not negative
    if (slips()) return e + " >= " + zero;
    switch (random_.below(8)) {
    case 0:
    case 1:
      return zero + " <= " + e + " and " + e + " " + less() + " " + l;
    case 2:
    case 3:
      return zero + " <= " + e + " " + less() + " " + l;
    case 4:
      return "not (" + e + " < " + zero + " or " + e + " " + (slips() ? ">" : ">=") + " " + l + ")";
    case 5:
      return "-1 < " + e + " and " + e + " <= " + l + " - 1";
    case 6:
      return e + " " + less() + " " + l + " and " + e + " > " + slip("-1");
    default:
      return e + " >= " + zero + " and " + constant() + " > " + e + " and " + e + " " + less() + " " + l;
    }
  }

  /// Conditions about ends alone.
  std::string at_ends(const std::string &s) {
    const std::string order = random_.pick<std::string>({"<", "<=", ">", ">=", "==", ">", "<"});
    std::string text = s + " " + order + " " + constant();
    if (random_.chance(40))
      text += random_.pick<std::string>({" and ", " and ", " or "}) + s + " " +
              random_.pick<std::string>({"<", "<=", ">", ">=", "!="}) + " " + constant();
    return random_.chance(12) ? "not (" + text + ")" : text;
  }

  std::string rest() { return random_.pick<std::string>({"0", "1", "x", "2"}); }

  /// A piece or some.
  std::string piece() {
    const std::string s = subject();
    const Target t = target();
    auto at = [&](const std::string &e) { return t.open + e + t.close; };
    switch (random_.below(16)) {
    case 0:
    case 1:
    case 2: {
      const std::string e = worked(s);
      return within(e, t.length) + ": " + at(e);
    }
    case 3:
    case 4: { // a shift between the guard and the index
      const std::string c = random_.chance(70) ? small() : constant();
      if (random_.chance(50))
        return slip(c) + " <= " + s + " and " + s + " " + less() + " " + t.length + ": " + at(s + " - " + c);
      return "0 <= " + s + " and " + s + " " + less() + " " + slip(t.length) + " - " + c + ": " +
             at(s + " + " + slip(c));
    }
    case 5: { // a scale
      const std::string c = random_.pick<std::string>({"2", "3", "4", "k"});
      return s + " >= " + slip("0") + " and " + s + "*" + c + " + 1 " + less() + " " + t.length + ": " +
             at(random_.chance(50) ? s + "*" + c : s + "*" + c + " + 1");
    }
    case 6:
    case 7:
      return (random_.chance(40) ? at_ends(s) : "f") + ": " + at(into(s, t.length));
    case 8: // by the guards before
      return s + " < " + slip("0") + ": " + rest() + "; " + s + " " + (slips() ? ">" : ">=") + " " + t.length + ": " +
             rest() + "; f: " + at(s);
    case 9:
      return "f: where(" + within(s, t.length) + ", " + at(s) + ", " + small() + ")";
    case 10:
      return within(s, t.length) + " and " + at(s) + " > 0: " + rest();
    case 11:
      return s + " < " + slip("0") + " or " + s + " >= " + slip(t.length) + " or " + at(s) + " > 0: " + rest();
    case 12: { // the element of one is the index of another
      const std::string e = "u[" + into(s, "len(u)") + "]";
      return within(e, t.length) + ": " + at(e);
    }
    case 13:
      return within(worked(s), t.length) + ": " + at(s);
    default:
      return at_ends(s) + ": " + at(random_.chance(50) ? s : worked(s));
    }
  }

  Random &random_;
  size_t rank_;
  std::vector<std::string> axes_, floats_;
  std::string lets_;
  int lets_count_ = 0;
};

} // namespace

void risk_reads(Random &random, Program &p) {
  static const std::vector<DType> wholes = {DType::U8,  DType::I8,  DType::I16, DType::I32,
                                            DType::I64, DType::U16, DType::U32, DType::U64};
  const size_t rank = p.domain.size();
  const int64_t last = rank ? p.domain.back() : 1;
  const auto length = [&] {
    return random.pick<int64_t>({0, 1, 2, 3, 5, 8, 17, 100, 128, 256, last, std::max<int64_t>(last - 1, 0), last + 1});
  };
  const std::vector<std::pair<const char *, std::vector<int64_t>>> shapes = {
      {"v", p.domain}, {"s", {length()}}, {"u", {length()}}, {"w", {length() % 40, length() % 40}}};
  for (const auto &[name, shape] : shapes) {
    Input in{.name = name};
    in.type = {ArgKind::Tensor, random.pick(wholes), false};
    if (*name == 's' && random.chance(60)) in.type.dtype = DType::F32;
    in.shape = shape;
    if (*name == 'v')
      for (int64_t &d : in.shape)
        if (random.chance(8)) d = 1;
    in.type.zero_dim = in.shape.empty();
    lay_out(random, in);
    const int size = bytes(in.type.dtype);
    if (!is_float(in.type.dtype))
      for (size_t e = 0; e < in.buffer.size() / size_t(size); ++e)
        encode(whole_scalar(random, in.type.dtype), in.buffer.data() + e * size_t(size));
    p.inputs.push_back(std::move(in));
  }
  const __int128 huge = of_decimal(random.pick(ends)) * (random.chance(50) ? -1 : 1);
  p.inputs.push_back({.name = "h", .type = {ArgKind::Int}, .integer = huge});
  p.text = Risks(random, p).spec();
}

} // namespace elsewise::fuzz
