// SPDX-License-Identifier: Apache-2.0
// Programs of index arithmetic over so many positions that a product of two leaves 32 bits, as rules over real tensors
// do: emitted code works positions in 32 bits where it may.
#pragma once
#include "tests/fuzz/generate.h"

namespace elsewise::fuzz {

/// Fills in a program that has a seed: domain, arguments and text.
void go_far(Random &, Program &);

} // namespace elsewise::fuzz
