// SPDX-License-Identifier: Apache-2.0
// The shrinker of the fuzz, on failures that are known: what is left must be what was planted. It runs no program.
#include "tests/fuzz/shrink.h"
#include <gtest/gtest.h>

namespace elsewise::test {
namespace {

constexpr const char *program =
    "[a, .., b]; let w0 = n-k\n"
    "i < n/4 and not (a == 3): x*0.5 + min(y, 7, k); 2*b >= len(b): where(x > 0, (x + y) % 3, "
    "-x); else x // 2";

TEST(Shrink, LeavesWhatFails) {
  int asked = 0;
  const std::string left = fuzz::shrink(
      program,
      [&](const std::string &text) {
        ++asked;
        return text.find("min(") != std::string::npos && text.find('%') != std::string::npos;
      },
      2000);
  EXPECT_EQ(left, "min(%");
  EXPECT_LT(asked, 500);
}

TEST(Shrink, PutsSimpleThingsInPlace) {
  const std::string left = fuzz::shrink(
      program,
      [](const std::string &text) { // a call of where with three operands
        const size_t at = text.find("where(");
        if (at == std::string::npos) return false;
        int open = 0, commas = 0;
        for (size_t k = at + 5; k < text.size(); ++k) {
          open += text[k] == '(', open -= text[k] == ')';
          commas += text[k] == ',' && open == 1;
          if (open == 0) return commas == 2 && text[k - 1] != ',';
        }
        return false;
      },
      2000);
  EXPECT_LE(left.size(), 10u) << left;
}

TEST(Shrink, StopsAndGivesBackWhatItMayNotRead) {
  int asked = 0;
  EXPECT_NE(fuzz::shrink(program, [&](const std::string &) { return ++asked, true; }, 3), "");
  EXPECT_LE(asked, 4);
  EXPECT_EQ(fuzz::shrink("x  +  y", [](const std::string &text) { return text == "x  +  y"; }, 100), "x  +  y");
}

} // namespace
} // namespace elsewise::test
