// SPDX-License-Identifier: Apache-2.0
// Two positions above 46340 are enough for a product, and sums come from literals and numbers of the call, which may be
// beyond 64 bits.
#include "tests/fuzz/generate_far.h"
#include "tests/fuzz/generate_reads.h"
#include <cmath>

namespace elsewise::fuzz {
namespace {

class Far {
public:
  Far(Random &random, size_t rank) : random_(random) {
    if (rank > 1 || random_.chance(30))
      for (size_t d = 0; d < rank; ++d) {
        positions_.push_back(std::string(1, char('a' + d)));
        axes_ += (d ? ", " : "") + positions_.back();
      }
  }

  std::string spec() {
    std::string text = axes_.empty() ? "" : "[" + axes_ + "]\n";
    if (random_.chance(30)) text += "let w = " + index(2) + "\n", positions_.push_back("w");
    const int pieces = int(random_.below(3));
    for (int p = 0; p < pieces; ++p) text += condition() + ": " + value() + "\n";
    return text + (pieces ? "else " : "") + value();
  }

private:
  std::string leaf() {
    switch (random_.below(10)) {
    case 0:
      return "n";
    case 1:
      return "k";
    case 2:
      return "m";
    case 3:
      return random_.chance(50) ? "len(s)" : "len(x, 0)";
    case 4:
      return random_.pick<std::string>({"1", "2", "3", "7", "100", "1000", "46341", "65536", "1000003", "2147483647"});
    default:
      return random_.pick(positions_);
    }
  }

  /// `a * (b * (c * d))`: positions, of 32 bits, and numbers of the call, which may have 64.
  std::string chain() {
    const std::string op = random_.chance(70) ? " * " : " + ";
    std::string text = random_.chance(60) ? random_.pick<std::string>({"k", "m", "len(s)"}) : leaf();
    for (uint64_t links = 1 + random_.below(3); links-- > 0;)
      text = (random_.chance(75) ? random_.pick(positions_) : leaf()) + op + "(" + text + ")";
    return text;
  }

  /// Both sides in parentheses as often as not: what stands on the right is worked first.
  std::string index(int depth) {
    if (depth == 0 || random_.chance(12)) return leaf();
    const auto side = [&] { return "(" + index(depth - 1) + ")"; };
    switch (random_.below(16)) {
    case 0:
    case 1:
    case 2:
      return leaf() + " * " + side();
    case 3:
    case 4:
      return leaf() + " + " + side();
    case 5:
      return side() + " * " + leaf();
    case 6:
      return leaf() + " - " + side();
    case 7:
      return side() + (random_.chance(50) ? " // " : " % ") + random_.pick<std::string>({"3", "64", "1000", "46341"});
    case 8:
      return random_.pick<std::string>({"min(", "max("}) + index(depth - 1) + ", " + leaf() + ")";
    case 9:
      return "where(" + condition() + ", " + index(depth - 1) + ", " + leaf() + ")";
    case 10:
      return "-" + side();
    case 11:
      return side() + " + " + side();
    default:
      return chain();
    }
  }

  std::string condition() {
    const std::string op = random_.pick<std::string>({" < ", " <= ", " > ", " >= ", " == ", " != "});
    if (random_.chance(15)) return real() + op + (random_.chance(60) ? index(2) : real());
    const std::string one = index(2) + op + (random_.chance(40) ? leaf() : index(2));
    return random_.chance(80) ? one : "(" + one + (random_.chance(50) ? " and " : " or ") + condition() + ")";
  }

  /// A float in which no tensor stands: it is compared exactly with whole numbers of any size.
  std::string real() {
    switch (random_.below(6)) {
    case 0:
      return "(" + index(2) + ")*" + random_.pick<std::string>({"0.5", "1.0", "1e15", "g"});
    case 1:
      return "where(" + index(1) + " % 2 == 0, " + (random_.chance(50) ? "g" : leaf()) + ", 2.5)";
    case 2:
      return random_.pick<std::string>({"float(", "sqrt(", "floor(0.75*"}) + index(2) + ")";
    case 3:
      return "min(" + index(1) + ", g)";
    case 4:
      return "(" + leaf() + " - g)";
    default:
      return "g*" + leaf();
    }
  }

  /// Elements among positions and literals: whole data wrap, as their own dtype says.
  std::string data_chain() {
    std::string text = random_.chance(70) ? "x" : "(x % 7)";
    for (uint64_t links = 1 + random_.below(4); links-- > 0;) {
      const std::string one = random_.chance(30) ? "x"
                              : random_.chance(40)
                                  ? random_.pick<std::string>({"100", "3", "2000000000", "65536", "-7"})
                              : random_.chance(50) ? "i64(" + index(1) + ")"
                                                   : "(" + index(1) + " % 1000)";
      const std::string op = random_.pick<std::string>({" + ", " - ", " * ", " * "});
      text = random_.chance(70) ? one + op + "(" + text + ")" : "(" + text + ")" + op + one;
    }
    return text;
  }

  std::string value() {
    switch (random_.below(12)) {
    case 9:
    case 10:
      return data_chain();
    case 11:
      return "where(" + condition() + ", s[min(" + index(1) + ", len(s)-1)*0], 7)";
    case 0:
      return index(3);
    case 1:
      return "f64(" + index(3) + ")";
    case 2:
      return random_.pick<std::string>({"i32(", "i64(", "f32(", "u8("}) + index(3) + ")";
    case 3:
      return "x + f32((" + index(2) + ") % 1000)";
    case 4:
      return "s[(" + index(3) + ") % max(len(s), 1)]";
    case 5: {
      const std::string at = index(2) + " // " + random_.pick<std::string>({"1000", "65536", "1000003"});
      return "where(0 <= " + at + " and " + at + " < len(s), s[" + at + "], 0)";
    }
    case 6:
      return "s[clip(" + index(3) + ", 0, len(s)-1)]";
    case 7:
      return condition() + " and x > 0";
    default:
      return random_.chance(50) ? "x" : leaf();
    }
  }

  Random &random_;
  std::string axes_;
  std::vector<std::string> positions_{"i"};
};

} // namespace

void go_far(Random &random, Program &p) {
  static const std::vector<int64_t> lengths = {46342, 46400, 50000, 65537, 92700};
  switch (random.below(4)) {
  case 0:
    p.domain = {random.pick<int64_t>({2, 3}), random.pick(lengths)};
    break;
  case 1:
    p.domain = {random.pick<int64_t>({300, 1500}), random.pick<int64_t>({64, 200})};
    break;
  default:
    p.domain = {random.pick(lengths)};
  }
  static const std::vector<DType> dtypes = {DType::F32, DType::F16, DType::U8, DType::I8, DType::I32, DType::I64};
  const std::vector<std::pair<const char *, std::vector<int64_t>>> shapes = {
      {"x", p.domain}, {"s", {random.pick<int64_t>({1, 300, 2600, 50000})}}};
  for (const auto &[name, shape] : shapes) {
    Input in{.name = name, .type = {ArgKind::Tensor, random.pick(dtypes), false}, .shape = shape};
    lay_out(random, in);
    p.inputs.push_back(std::move(in));
  }
  __int128 k = (__int128)random.below(5) - 1, m = random.below(100000);
  double g = double(random.below(2000)) / 10 - 50;
  if (random.chance(40)) { // at an end of 32, 53, 63 or 64 bits, or beyond
    const auto huge = [&] {
      const __int128 end = (__int128)1 << random.pick<int>({31, 53, 62, 63, 63, 64, 65, 100});
      const __int128 near = end + (__int128)random.below(5) - 2;
      return random.chance(30) ? -near : near;
    };
    if (random.chance(70)) k = huge();
    if (random.chance(30)) m = huge();
    if (random.chance(70))
      g = random.pick<double>(
          {1e30, -1e30, 0x1p63, -0x1p63, 9.3e18, 0x1p53, 1e-300, std::nan(""), HUGE_VAL, -HUGE_VAL});
  }
  p.inputs.push_back({.name = "k", .type = {ArgKind::Int}, .integer = k});
  p.inputs.push_back({.name = "m", .type = {ArgKind::Int}, .integer = m});
  p.inputs.push_back({.name = "g", .type = {ArgKind::Float}, .real = g});
  p.text = Far(random, p.domain.size()).spec();
  p.in_place = random.chance(40);
  p.out_layout = int(random.below(4));
}

} // namespace elsewise::fuzz
