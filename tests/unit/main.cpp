// SPDX-License-Identifier: Apache-2.0
// Entry of ew_tests: GoogleTest, or with `fuzz` as first argument the fuzzer. It holds no test of its own.
#include <gtest/gtest.h>
#include <string_view>

/// Where tests/fuzz is linked in; gets the arguments after `fuzz`. Weak, so that the unit tests also link without it.
extern "C" __attribute__((weak)) int ew_fuzz_main(int argc, char **argv);

int main(int argc, char **argv) {
  if (argc > 1 && std::string_view(argv[1]) == "fuzz") {
    if (ew_fuzz_main) return ew_fuzz_main(argc - 1, argv + 1);
    std::fputs("ew_tests was built without the fuzzer\n", stderr);
    return 2;
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
