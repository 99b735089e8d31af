// SPDX-License-Identifier: Apache-2.0
// The deterministic functions that rows of the builtin table are on a CPU: SLEEF's `finz` family, whose scalar, AVX2
// and AVX-512 variants give the same bits. It generates no code and knows no function by name; the rows do.
#pragma once
#include "compiler/types/types.h"
#include "grammar/builtins.h"
#include <string>
#include <unordered_map>

namespace elsewise::functions {

/// Of `exp_u10` for f32 in 8 lanes: "Sleef_finz_expf8_u10avx2". Lanes: 1, 4, 8, 16 of f32; 1, 2, 4, 8 of f64.
std::string symbol(std::string_view cpu, DType, unsigned lanes);

/// Empty if the functions can be called here, else why not: the library is not there, or this CPU is older than
/// x86-64-v3.
const std::string &unavailable();

/// Every function of every row in every variant, with its address: all that generated code may call of the library.
using Addresses = std::unordered_map<std::string, void *>; // by symbol
const Addresses &addresses();

/// The row's value on operands that are exact in `type` (F32 or F64), with the bits that generated code gives; from the
/// row's reference where the functions are unavailable.
double evaluate(const Builtin &, DType type, const double *operands);

} // namespace elsewise::functions
