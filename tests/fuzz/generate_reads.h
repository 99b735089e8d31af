// SPDX-License-Identifier: Apache-2.0
// Programs whose reads at indices are just in bounds or just not, with tables and numbers to match. It refuses none
// that the compiler refuses.
#pragma once
#include "tests/fuzz/generate.h"

namespace elsewise::fuzz {

/// Gives a program that has its domain and elementwise inputs another text, and the tables and the number it names.
void risk_reads(Random &, Program &);

/// A view of a fresh buffer with random elements: contiguous, permuted, sliced, negative, expanded or offset.
void lay_out(Random &, Input &);

} // namespace elsewise::fuzz
