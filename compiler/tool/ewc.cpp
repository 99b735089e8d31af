// SPDX-License-Identifier: Apache-2.0
// The program ewc: hands its arguments to the driver in libelsewise. It decides nothing itself.
#include "runtime/elsewise.h"

int main(int argc, char **argv) { return ew_main(argc, argv); }
