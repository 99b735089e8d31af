// SPDX-License-Identifier: Apache-2.0
// Numbers as text, the same way in every message, IR, comment and emitted program.
#pragma once
#include "compiler/types/types.h"
#include <string>

namespace elsewise {

std::string decimal(__int128);
/// The fewest digits that read back as `v`, of F64 or, for any narrower float, of F32; "inf", "-inf", "nan".
std::string shortest(DType, double v);
/// The same as a literal that C and Python take for a float: with a point or an exponent, unless it is not finite.
std::string shortest_literal(DType, double v);

} // namespace elsewise
