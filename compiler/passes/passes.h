// SPDX-License-Identifier: Apache-2.0
// The pipeline of pure functions Kernel -> Kernel, in the order of passes.def, which `--print-after=` reads.
#pragma once
#include "compiler/ir/ir.h"
#include <functional>
#include <optional>

namespace elsewise {
struct PassOptions {
  Form form;                     // what the form pass sets
  bool has_form = false;         // take `form` as it is, also for a kernel without arguments
  size_t parameter_bytes = 4096; // that a launch's parameters may have: what a table in them has room for
  std::optional<std::vector<std::string>> only; // names of passes to run, in this order, instead of the table
  bool verify_each = false;
  std::function<void(std::string_view pass, const Kernel &)> observe; // called after each pass, if set
};
/// Runs the whole table, or `only`, whose names are pass_names()'; `error` gets the verifier's complaint (our bug), if
/// any.
Kernel run_passes(Kernel, const PassOptions &, std::string *error = nullptr);
std::vector<std::string_view> pass_names();
} // namespace elsewise
