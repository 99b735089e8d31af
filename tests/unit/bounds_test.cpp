// SPDX-License-Identifier: Apache-2.0
// What the bounds pass proves, checks and refuses, and whether it is right: random rules at every position, with
// lengths and elements that are meant to break a proof. It runs no code.
#include "compiler/parse/parser.h"
#include "compiler/passes/bounds.h"
#include "tests/unit/interpret.h"
#include <gtest/gtest.h>
#include <random>

namespace elsewise::test {
namespace {

/// What stands between `read s` and `when` or `:`, of each read.
std::vector<std::string> readings(const std::string &spec, const std::vector<std::string> &arguments) {
  const Kernel k = bounds(lowered(spec, arguments), {});
  std::vector<std::string> all;
  std::string text = print(k);
  for (size_t at = 0; (at = text.find("= read ", at)) != std::string::npos; ++at) {
    const size_t begin = text.find(" settled", at) + 8;
    size_t end = std::min(text.find(" :", at), text.find(" %", at));
    end = std::min(end, text.find(" when", at));
    all.push_back(begin < end ? text.substr(begin + 1, end - begin - 1) : "");
  }
  return all;
}
std::string reading(const std::string &spec, const std::vector<std::string> &arguments) {
  const auto all = readings(spec, arguments);
  return all.size() == 1 ? all[0] : std::to_string(all.size()) + " reads";
}
using Arguments = std::vector<std::string>;
const Arguments both{"x: f32[1]", "s: f32[1]"};

TEST(Bounds, ProvedFromGuards) {
  EXPECT_EQ(reading("i > 0: x[i-1]; else 0", both), "proved(0) checked(0) as-long(0 flat)");
  EXPECT_EQ(reading("i == 0: 0; else x[i-1]", both), "proved(0) checked(0) as-long(0 flat)");
  EXPECT_EQ(reading("i < len(s): s[i]; else 0", both), "proved(0)");
  EXPECT_EQ(reading("i >= len(s): x; else s[i]", both), "proved(0)");
  EXPECT_EQ(reading("where(i < len(s), s[i], x)", both), "proved(0) free");
  EXPECT_EQ(reading("i >= len(s) or s[i] > 0: x; else 0", both), "proved(0) free");
  EXPECT_EQ(reading("where(0 <= a < len(s), s[a], x)", {"x: f32[1]", "s: f32[1]", "a: i32"}), "proved(0) free");
}

TEST(Bounds, ProvedOfDataThatMayBeBeyondAnIndex) {
  const Arguments whole{"x: u64", "s: f32[1]"};
  EXPECT_EQ(reading("0 <= x < len(s): s[x]; else 0", whole), "proved(0)");
  EXPECT_EQ(reading("where(x < len(s), s[x], 0)", whole), "proved(0) free");
  EXPECT_EQ(reading("x >= len(s): 0; else s[x]", whole), "proved(0)");
  EXPECT_EQ(reading("s[int(min(x, len(s)-1))]", whole), "proved(0) not-empty(0) free");
  EXPECT_EQ(reading("s[min(x, len(s)-1)]", whole), ""); // an i64 first, and so less than 0
  EXPECT_EQ(reading("where(x <= len(s), s[x], 0)", whole), "");
  EXPECT_EQ(reading("where(0 <= k < len(s), s[u8(k)], 0)", {"k: i32", "s: f32[1]"}), "proved(0) free");
}

TEST(Bounds, ProvedByMapping) {
  const std::string table = "proved(0) not-empty(0) free";
  EXPECT_EQ(reading("s[clip(int(x), 0, len(s)-1)]", both), table);
  EXPECT_EQ(reading("s[wrap(int(x), len(s))]", both), table);
  EXPECT_EQ(reading("s[reflect(int(x), len(s))]", both), table);
  EXPECT_EQ(reading("s[min(abs(int(u)), len(s)-1)]", {"u: u8", "s: f32[1]"}), table);
  EXPECT_EQ(reading("s[i % len(s)]", both), "proved(0) checked(0) not-empty(0) free");
  EXPECT_EQ(reading("x[n-1-i]", both), "proved(0) checked(0) as-long(0 flat) free");
  EXPECT_EQ(reading("x[i/2]", both), "proved(0) checked(0) as-long(0 flat) free");
  EXPECT_EQ(reading("[b, t]; t < lens[b]: x; else 0", {"x: f32[2]", "lens: i64[1]", "rank: 2"}),
            "proved(0) checked(0) as-long(0 b) free");
}

TEST(Bounds, OneElementUnderTwoConditions) {
  const Arguments rows{"x: f32[2]", "start: i64[1]"};
  EXPECT_TRUE(unproved(bounds(lowered("[b, t]; 0 <= start[b] < len(t): x[b, start[b]]; else x", rows), {})).empty());
  EXPECT_TRUE(
      unproved(bounds(lowered("[b, t]; 0 <= t + start[b] < len(t): x[b, t + start[b]]; else x", rows), {})).empty());
  EXPECT_FALSE(unproved(bounds(lowered("[b, t]; 0 <= start[0] < len(t): x[b, start[b]]; else x", rows), {})).empty());
}

TEST(Bounds, LeftToTheCall) {
  EXPECT_EQ(reading("s[i/128]", both), "proved(0) checked(0) as-long(0 flat) free");
  EXPECT_EQ(reading("s[2*i]", both), "checked(0)");
  EXPECT_EQ(reading("s[i-1]", both), "checked(0)");
  EXPECT_EQ(reading("s[m]", {"s: f32[1]", "m: int"}), "checked(0)");
}

bool refused(const std::string &spec, const Arguments &arguments) {
  return !unproved(bounds(lowered(spec, arguments), {})).empty();
}

TEST(Bounds, Refused) {
  EXPECT_TRUE(refused("s[int(x)]", both));
  EXPECT_TRUE(refused("s[clip(int(x), 0, len(s))]", both));
  EXPECT_TRUE(refused("s[clip(int(x), -1, len(s)-1)]", both));
  EXPECT_TRUE(refused("s[min(int(x), len(s)-1)]", both));
  EXPECT_TRUE(refused("s[int(x) % m]", {"x: f32[1]", "s: f32[1]", "m: int"})); // m may be negative, or beyond
  EXPECT_TRUE(refused("a < len(s): s[a]; else 0", {"s: f32[1]", "a: i64"}));
  EXPECT_TRUE(refused("0 <= a+b < len(s): s[a]; else 0", {"s: f32[1]", "a: i64", "b: i64"}));
  // Data arithmetic that may wrap proves nothing: a = 2**63 - 1 passes this guard.
  EXPECT_TRUE(refused("a >= 0 and a + 1 < len(s): s[a]; else 0", {"s: f32[1]", "a: i64"}));
  EXPECT_TRUE(refused("s[clip(a, 0, b)]", {"s: f32[1]", "a: i64", "b: i64"}));
  EXPECT_TRUE(refused("s[int(sin(i)*3) + 3 + int(x)]", both));
  EXPECT_TRUE(refused("s[int(sin(float(i))*3)]", both)); // not the same on every device
  EXPECT_FALSE(refused("s[int(i*0.5)]", both));
}

TEST(Bounds, SaysWhichSide) {
  const auto all = unproved(bounds(lowered("s[min(int(x), len(s)-1)]", both), {}));
  ASSERT_EQ(all.size(), 1u);
  EXPECT_TRUE(all[0].below);
  EXPECT_FALSE(all[0].above);
  const auto other = unproved(bounds(lowered("s[abs(int(a))]", {"a: i32", "s: f32[1]"}), {}));
  ASSERT_EQ(other.size(), 1u);
  EXPECT_FALSE(other[0].below);
  EXPECT_TRUE(other[0].above);
}

/// Random rules over one axis.
struct Rules {
  std::mt19937 random;
  explicit Rules(uint32_t seed) : random(seed) {}
  int pick(int n) { return int(random() % uint32_t(n)); }
  std::string one_of(std::initializer_list<const char *> list) { return list.begin()[pick(int(list.size()))]; }

  std::string whole(int depth) {
    if (depth == 0 || pick(5) == 0)
      return one_of({"i", "n", "len(s)", "len(x)", "m", "a", "c", "0", "1", "2", "3", "-1", "7", "int(f)"});
    const std::string l = whole(depth - 1), r = whole(depth - 1);
    switch (pick(14)) {
    case 0:
    case 1:
      return "(" + l + " + " + r + ")";
    case 2:
    case 3:
      return "(" + l + " - " + r + ")";
    case 4:
      return "(" + one_of({"2", "3", "-1", "-2"}) + " * " + l + ")";
    case 5:
      return "(" + l + " // " + one_of({"2", "3", "-2", "m", "len(s)", "a"}) + ")";
    case 6:
      return "(" + l + " % " + one_of({"2", "5", "-3", "m", "len(s)", "len(x)", "n", "c"}) + ")";
    case 7:
      return "min(" + l + ", " + r + ")";
    case 8:
      return "max(" + l + ", " + r + ")";
    case 9:
      return "clip(" + l + ", 0, " + one_of({"len(s)-1", "len(s)", "n-1", "m", "a"}) + ")";
    case 10:
      return "where(" + truth(depth - 1) + ", " + l + ", " + r + ")";
    case 11:
      return one_of({"wrap", "reflect"}) + "(" + l + ", " + one_of({"len(s)", "n", "m", "a"}) + ")";
    case 12:
      return "abs(" + l + ")";
    default:
      return "(" + l + one_of({" >> 1", " & 3", " & (len(s)-1)", " << 1", " | 1"}) + ")";
    }
  }
  std::string truth(int depth) {
    if (depth > 0 && pick(3) == 0) return "(" + truth(depth - 1) + one_of({" and ", " or "}) + truth(depth - 1) + ")";
    if (pick(6) == 0) return "not " + truth(0);
    return "(" + whole(depth > 0 ? 1 : 0) + one_of({" < ", " <= ", " > ", " >= ", " == ", " != "}) +
           whole(depth > 0 ? 1 : 0) + ")";
  }
  std::string index() { // likely to be proved
    const std::string e = whole(1 + pick(3));
    switch (pick(5)) {
    case 0:
      return "clip(" + e + ", 0, len(s)-1)";
    case 1:
      return "wrap(" + e + ", len(s))";
    case 2:
      return "min(max(" + e + ", 0), len(s)-1)";
    default:
      return e;
    }
  }
  std::string rule() {
    std::string s;
    for (int p = pick(3); p >= 0; --p) {
      const std::string e = index();
      const std::string guard = pick(2) ? "0 <= " + e + " < len(s)" : truth(2);
      s += guard + ": s[" + (pick(3) ? e : index()) + "]; ";
    }
    return s + "else where(" + truth(2) + ", s[" + index() + "], 0)";
  }
};

/// The rule lowered, or no piece if it is refused, as some random ones are.
Kernel whatever(const std::string &spec, DType narrow) {
  const Source source(spec, "<spec>");
  Sink sink;
  const Ast ast = parse(source, lex(source, sink), sink);
  const Names names = resolve(ast, sink);
  Signature signature;
  for (const std::string &name : names.arguments) {
    if (name == "m") signature.args.push_back({ArgKind::Int});
    else if (name == "a") signature.args.push_back({ArgKind::Tensor, DType::I64});
    else if (name == "c") signature.args.push_back({ArgKind::Tensor, narrow});
    else if (name == "f") signature.args.push_back({ArgKind::Tensor, DType::F32});
    else signature.args.push_back({ArgKind::Tensor, DType::F32, false, 1});
  }
  const Typed typed = specialise(source, ast, names, signature, sink);
  return sink.failed() || !typed.complete ? Kernel{} : lower(source, ast, names, signature, typed);
}

/// One position of a kernel, worked as apply() says, every arm of everything.
struct Walk {
  const Kernel &k;
  std::vector<Constant> leaves; // by argument: the element or the parameter
  std::vector<int64_t> lengths; // by argument
  int64_t i, n;
  std::vector<Constant> values;

  Constant work(NodeId node) {
    const Inst &inst = k[node];
    const auto list = operands(k, node);
    std::vector<Constant> v;
    for (const NodeId o : list) v.push_back(values[o]);
    Constant out;
    switch (inst.op) {
    case Op::Const:
      return k.constants[inst.a];
    case Op::Param:
    case Op::Load:
      return leaves[inst.a];
    case Op::Len:
      return {n, 0};
    case Op::Pos:
      return {i, 0};
    case Op::ArgLen:
      return {lengths[inst.a], 0};
    case Op::Read:
      return {1, 1};
    case Op::Where:
      return v[0].integer ? v[1] : v[2];
    case Op::Logic:
      if (LogicOp(inst.sub) == LogicOp::Not) return {!v[0].integer, 0};
      return {LogicOp(inst.sub) == LogicOp::And ? v[0].integer && v[1].integer : v[0].integer || v[1].integer, 0};
    default:
      (void)apply(inst, k[list[0]].type, v, out);
      return out;
    }
  }
  void run() {
    for (NodeId node = 0; node < k.insts.size(); ++node) values.push_back(work(node));
  }
};

TEST(Bounds, NoProofIsWrong) {
  int proved = 0, rules = 0;
  for (uint32_t seed = 0; seed < 1500; ++seed) {
    Rules random(seed);
    const std::string spec = random.rule();
    const DType narrow = random.pick(2) ? DType::I8 : DType::I32, wide = DType::I64;
    const Kernel lowered = whatever(spec, narrow);
    if (lowered.pieces.empty()) continue;
    const Kernel k = bounds(lowered, {});
    ++rules;
    for (const Reading &r : k.reads) proved += (r.proved & 1) != 0;
    // Which nodes each piece reaches.
    auto below = [&](NodeId root) {
      std::vector<bool> seen(k.insts.size());
      std::vector<NodeId> todo{root};
      while (!todo.empty()) {
        const NodeId node = todo.back();
        todo.pop_back();
        if (node == no_node || seen[node]) continue;
        seen[node] = true;
        for (const NodeId o : operands(k, node)) todo.push_back(o);
      }
      return seen;
    };
    for (int round = 0; round < 12; ++round) {
      const int64_t n = 1 + random.pick(9), s = random.pick(3) ? n + random.pick(3) - 1 : random.pick(9),
                    x = random.pick(2) ? n : random.pick(9);
      for (int64_t i = 0; i < n; ++i) {
        Walk walk{k, {}, {}, i, n, {}};
        for (const Argument &a : k.arguments) {
          walk.lengths.push_back(a.name == "s" ? s : x);
          Constant leaf;
          if (a.type.kind == ArgKind::Int) leaf.integer = random.pick(13) - 6;
          else if (a.name == "a" || a.name == "c") {
            const DType d = a.name == "a" ? wide : narrow;
            const __int128 end = (__int128)1 << (8 * bytes(d) - 1);
            const __int128 some[] = {-end, -end + 1, end - 1, end - 2, end / 2};
            leaf.integer = random.pick(4) ? random.pick(17) - 8 : some[random.pick(5)];
          } else leaf.real = random.pick(3) ? double(random.pick(17) - 8) : 3e38;
          walk.leaves.push_back(leaf);
        }
        walk.run();
        bool taken = false;
        for (size_t p = 0; p < k.pieces.size(); ++p) {
          const NodeId guard = k.pieces[p].guard;
          const bool mine = guard == no_node || walk.values[guard].integer;
          const auto in_guard = below(guard), in_value = below(k.pieces[p].values[0]);
          for (NodeId node = 0; node < k.insts.size(); ++node) {
            if (k[node].op != Op::Read || !(in_guard[node] || in_value[node])) continue;
            const Reading &r = k.reads[k[node].c];
            const auto list = operands(k, node);
            if (!(r.proved & 1) || (k[node].sub && !walk.values[list[0]].integer)) continue;
            const bool reached = !taken && (in_guard[node] || mine);
            if (!reached && !r.free) continue;
            bool premises = true;
            for (const Premise &q : r.premises) premises &= q.what == Premise::NotEmpty ? s >= 1 : s >= n;
            if (!premises) continue;
            const __int128 at = walk.values[list.back()].integer;
            ASSERT_TRUE(0 <= at && at < s) << spec << "\n"
                                           << print(k) << "%" << node << " is " << int64_t(at) << " at " << i << " of "
                                           << n << ", len(s) " << s << ", len(x) " << x;
          }
          taken |= mine;
        }
      }
    }
  }
  EXPECT_GT(rules, 1000);
  EXPECT_GT(proved, rules / 2);
}

} // namespace
} // namespace elsewise::test
