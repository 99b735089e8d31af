// SPDX-License-Identifier: Apache-2.0
// The IR read from its text: kernels that the front end does not make, numbers in any order, and texts that somebody
// damaged. What is said of faults stands in lit/ir.
#include "compiler/emit/emit.h"
#include "compiler/ir/read.h"
#include "tests/fuzz/generate.h"
#include "tests/fuzz/ir_text.h"
#include "llvm/ADT/StringRef.h"
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>

namespace elsewise {
namespace {

Kernel kernel_of(const std::string &text, std::string *why = nullptr) {
  const Source source(text, "<ir>");
  Sink sink;
  Kernel k = read(source, sink);
  for (const Diagnostic &d : sink.diagnostics())
    if (why) *why += render(d, source);
  if (!why) {
    EXPECT_FALSE(sink.failed()) << render(sink.diagnostics().at(0), source);
  }
  return k;
}

std::string complaint(const std::string &text) {
  std::string why;
  (void)kernel_of(text, &why);
  return why;
}

// Everything that the text can say, as no one kernel would have it.
const char *const scheduled =
    R"(kernel (s: f32[2], x: f16, g: float, b: bool parameter, u: unknown) over [r: -2, c: -1] -> f32 "s[r,\n\tc] \"x\" \\"
  %0 = pos r : index row
  %1 = pos c : index element
  %2 = const -170141183460469231731687303715884105728 : index host
  %3 = const 0 : index host
  %4 = ge %1, %3 : bool element
  %5 = read s own(0) settled proved(0 1) not-empty(1) as-long(0 r) as-long(1 flat) free when %4, %0, %1 : f32 element @1..7
  %6 = param g : f64 host
  %7 = cast %6 : f32 host
  %8 = mul %5, %7 : f32 element
  %9 = load x : f16 element
  %10 = cast %9 : f32 element
  %11 = lt exact %8, %10 : bool element
  %12 = where %11, %8, %10 : f32 element
  %13 = len row : index host
  %14 = arglen s -1 : index host
  %15 = call min %13, %14 : index host
  piece 1:1 @0..3 c in [%3, %15) and row in [, %3) or flat in [%3, ) when %11 -> %12 "s"
  piece 2:1 -> %8
  check notnan %6 piece 0 guard @0..3
  check nonzero %14
  check fits i16 %15 piece 1
  form rows(2) vector 4 out strided s absent dense x scalar g absent b absent u absent inner c r1 r pitched narrow
  host %3 %6 %7 %13 %14 %15
  uniforms %7 %13
  rows %0
  guard 1:1 { %1 %4 %0 %5 under %11 %8 %9 %10 %11 }
  body 1:1 { %1 %4 %0 %5 %8 %9 %10 %11 %12 }
  body 2:1 { %1 %4 %0 %5 %8 }
)";

TEST(IrText, KernelsThatNoRuleMakes) {
  std::string text = scheduled;
  EXPECT_NE(complaint(text).find("the kernel is malformed: "), std::string::npos) << "no where stands below %11";
  Kernel k = kernel_of(text, &text); // its faults are the verifier's
  EXPECT_EQ(k.reads.size(), 1u);
  EXPECT_EQ(k.reads[0].premises.size(), 3u);
  EXPECT_EQ(k.reads[0].own, 1u);
  EXPECT_TRUE(k.reads[0].free);
  EXPECT_EQ(k.pieces[0].boxes.size(), 2u);
  EXPECT_EQ(k.pieces[0].boxes[0].size(), 2u);
  EXPECT_EQ(k.form.row_axes, (std::vector<uint8_t>{no_axis, 0}));
  EXPECT_EQ(k.form.dense, (std::vector<bool>{true, false, false, false, false}));
  EXPECT_EQ(k.source, "s[r,\n\tc] \"x\" \\");
  EXPECT_EQ(k.guards[0][3].under, 7u);
  EXPECT_EQ(print(k), scheduled) << "whatever the verifier says of it";
}

TEST(IrText, TablesAndEntries) {
  const std::string text = "kernel (x: f32, \"entry\": f32) over [\"entry\": -1] -> f32\n"
                           "  table f32 0.5, -0, 3\n"
                           "  table bool true, false\n"
                           "  %0 = load x : f32 element\n"
                           "  %1 = entry 0 : f32 element\n"
                           "  %2 = mul %0, %1 : f32 element\n"
                           "  %3 = entry 1 : bool element\n"
                           "  %4 = where %3, %2, %0 : f32 element\n"
                           "  %5 = const 7 : index host\n"
                           "  piece 1:1 \"entry\" in [, %5) -> %4\n"
                           "  piece 1:9 entry 2 -> %2\n"
                           "  form rows(0) vector 4 out vector x vector \"entry\" absent inner \"entry\" segments 3\n";
  const Kernel k = kernel_of(text);
  EXPECT_EQ(k.tables.size(), 2u);
  EXPECT_EQ(k.tables[0].entries.size(), 3u);
  EXPECT_EQ(k.pieces[1].entry, 2u);
  EXPECT_EQ(k.form.segments, 3);
  EXPECT_EQ(print(k), text);
  auto malformed = [&](const char *from, const char *to) {
    std::string other = text;
    other.replace(other.find(from), std::strlen(from), to);
    return complaint(other);
  };
  EXPECT_NE(malformed("entry 2 -> %2", "entry 3 -> %2").find("piece 1 takes a constant that its table lacks"),
            text.npos);
  EXPECT_NE(malformed("entry 2 -> %2", "entry 2 -> %4").find("piece 1 takes a constant that its table lacks"),
            text.npos);
  EXPECT_NE(malformed("piece 1:9 entry", "piece 1:9 when %3 entry").find("a guard that depends on the piece"),
            text.npos);
  EXPECT_NE(malformed("%1 = entry 0", "%1 = entry 2").find("%1 is not in the list of tables"), text.npos);
  EXPECT_NE(malformed("%1 = entry 0 : f32", "%1 = entry 0 : f64").find("not the type of its table"), text.npos);
  EXPECT_NE(malformed("segments 3", "segments 1").find("the form cuts rows into segments"), text.npos);
  EXPECT_NE(malformed("table bool true, false", "table bool true, 2").find("`2` is no value of bool"), text.npos);
}

TEST(IrText, NodesOfAnyNumberInAnyOrder) {
  const Kernel k = kernel_of("kernel (x: f32) -> f32\n"
                             "  %900 = load x : f32 element\n"
                             "\n"
                             "# a line that says nothing\n"
                             "  %7 = const 2 : f32 host\r\n"
                             "\t%30 = mul %900, %7 : f32 element\n"
                             "  piece 1:1 -> %30\n");
  EXPECT_EQ(print(k), "kernel (x: f32) -> f32\n  %0 = load x : f32 element\n  %1 = const 2 : f32 host\n"
                      "  %2 = mul %0, %1 : f32 element\n  piece 1:1 -> %2\n");
}

TEST(IrText, NamesThatAreWordsOfTheText) {
  const std::string text =
      "kernel (\"inner\": f32, \"same\": f32, r: f32, \"r0\": f32) over [\"flat\": -2, \"row\": -1] -> f32\n"
      "  %0 = pos \"flat\" : index row\n"
      "  %1 = pos flat : index element\n"
      "  %2 = len \"row\" : index host\n"
      "  %3 = len row : index host\n"
      "  %4 = load \"inner\" : f32 element\n"
      "  %5 = load \"same\" : f32 element\n"
      "  piece 1:1 \"row\" in [, %3) and row in [%2, ) -> %4\n"
      "  piece 1:9 -> %5\n"
      "  form rows(1) vector 4 out vector \"inner\" vector same \"same\" vector r absent \"r0\" absent "
      "inner \"row\" r0 \"flat\"\n";
  const Kernel k = kernel_of(text);
  EXPECT_EQ(print(k), text);
  EXPECT_EQ(k[0].a, 0u);
  EXPECT_EQ(k[1].a, flat_axis);
  EXPECT_EQ(k[2].a, 1u);
  EXPECT_EQ(k[3].a, no_axis);
  EXPECT_EQ(k.form.inner_axis, 1);
  EXPECT_EQ(k.form.same_view, (std::vector<bool>{true, false, false, false}));
}

TEST(IrText, ConstantsAreExact) {
  struct {
    const char *type, *text, *again;
  } const good[] = {{"f32", "0.1", "0.1"},
                    {"f64", "0.1", "0.1"},
                    {"f32", "-0", "-0"},
                    {"f64", "5e-324", "5e-324"},
                    {"f32", "1e-45", "1e-45"},
                    {"f32", "inf", "inf"},
                    {"f16", "65504", "65504"},
                    {"bf16", "-inf", "-inf"},
                    {"f64", "nan", "nan"},
                    {"u8", "255", "255"},
                    {"i64", "-9223372036854775808", "-9223372036854775808"},
                    {"f32", "0.10000000000000001", "0.1"},
                    {"bool", "true", "true"}};
  for (const auto &c : good) {
    const std::string head = "kernel () -> " + std::string(c.type) + "\n  %0 = const ";
    const std::string tail = std::string(" : ") + c.type + " host\n  piece 1:1 -> %0\n";
    EXPECT_EQ(print(kernel_of(head + c.text + tail)), head + c.again + tail);
  }
  struct {
    const char *type, *text;
  } const bad[] = {{"f16", "0.1"},      {"f16", "65520"},
                   {"f32", "1e39"},     {"f64", "1e999"},
                   {"u8", "256"},       {"u8", "-1"},
                   {"i8", "128"},       {"bool", "1"},
                   {"f32", "true"},     {"f32", "0x10"},
                   {"f32", "infinity"}, {"f64", "+1"},
                   {"i32", "1.0"},      {"index", "170141183460469231731687303715884105728"}};
  for (const auto &c : bad)
    EXPECT_NE(complaint("kernel () -> f32\n  %0 = const " + std::string(c.text) + " : " + c.type + " host\n")
                  .find("is no value of " + std::string(c.type)),
              std::string::npos)
        << c.type << " " << c.text;
}

// Every kernel of the generator's programs is the source of damaged ones.
TEST(IrText, DamagedTextsNeverCrash) {
  std::vector<std::string> corpus{scheduled};
  std::map<std::string, int> refused;
  for (uint64_t seed = 1; corpus.size() < 60; ++seed)
    if (auto c = fuzz::prepare(fuzz::generate(seed), refused))
      for (const std::string &text : fuzz::ir_texts(*c)) corpus.push_back(text);
  fuzz::Random random(7);
  int taken = 0;
  for (int round = 0; round < 30000; ++round) {
    std::string text = random.pick(corpus);
    const std::string other = random.pick(corpus);
    for (uint64_t times = 1 + random.below(4); times-- > 0 && !text.empty();) {
      const size_t at = random.below(text.size()), length = random.below(12);
      switch (random.below(7)) {
      case 0:
        text[at] = char(random.below(256));
        break;
      case 1:
        text.erase(at, length);
        break;
      case 2:
        text.insert(at, other.substr(random.below(other.size()), length));
        break;
      case 3: // another digit
        if (const size_t digit = text.find_first_of("0123456789", at); digit != text.npos)
          text[digit] = char('0' + random.below(10));
        break;
      case 4: { // a line goes, or stands twice
        const size_t begin = text.rfind('\n', at) + 1, end = text.find('\n', at);
        const std::string line = text.substr(begin, end == text.npos ? end : end + 1 - begin);
        if (random.chance(50)) text.erase(begin, line.size());
        else text.insert(begin, line);
        break;
      }
      case 5: { // one word for another
        const size_t from = text.find(' ', at), to = other.find(' ', random.below(other.size()));
        if (from == text.npos || to == other.npos) break;
        const size_t end = text.find(' ', from + 1), stop = other.find(' ', to + 1);
        text.replace(from, end == text.npos ? end : end - from,
                     other.substr(to, stop == other.npos ? stop : stop - to));
        break;
      }
      default:
        text.resize(at);
      }
    }
    std::string why;
    const Kernel k = kernel_of(text, &why);
    if (!why.empty()) continue;
    ++taken;
    ASSERT_EQ(verify(k), "") << text;
    ASSERT_EQ(fuzz::reread(k), "") << text;
  }
  EXPECT_GT(taken, 500) << "too few of the damaged texts are kernels still for this to say anything";
}

} // namespace
} // namespace elsewise
