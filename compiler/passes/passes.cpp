// SPDX-License-Identifier: Apache-2.0
// Runs passes.def from top to bottom, or of it what `only` names. It knows no pass but by its row.
#include "compiler/passes/passes.h"
#include "compiler/passes/axes.h"
#include "compiler/passes/bounds.h"
#include "compiler/passes/clips.h"
#include "compiler/passes/dead.h"
#include "compiler/passes/fold.h"
#include "compiler/passes/form.h"
#include "compiler/passes/lift.h"
#include "compiler/passes/ranges.h"
#include "compiler/passes/schedule.h"
#include "compiler/passes/window.h"
#include <algorithm>

namespace elsewise {
namespace {

struct Pass {
  std::string_view name;
  Kernel (*run)(const Kernel &, const PassOptions &);
};
constexpr Pass table[] = {
#define PASS(name, function) {name, function},
#include "compiler/passes/passes.def"
};

#ifdef NDEBUG
constexpr bool always_verify = false;
#else
constexpr bool always_verify = true;
#endif

} // namespace

std::vector<std::string_view> pass_names() {
  std::vector<std::string_view> names;
  for (const Pass &p : table) names.push_back(p.name);
  return names;
}

Kernel run_passes(Kernel k, const PassOptions &options, std::string *error) {
  auto complain = [&](std::string_view after) {
    const std::string why = options.verify_each || always_verify ? verify(k) : "";
    if (why.empty()) return false;
    if (error) *error = "after " + std::string(after) + ": " + why + "\n" + print(k);
    return true;
  };
  if (complain("lowering")) return k;
  std::vector<Pass> list(std::begin(table), std::end(table));
  if (options.only) {
    list.clear();
    for (const std::string &name : *options.only)
      list.push_back(*std::find_if(std::begin(table), std::end(table), [&](const Pass &p) { return p.name == name; }));
  }
  for (const Pass &p : list) {
    k = p.run(k, options);
    if (options.observe) options.observe(p.name, k);
    if (complain(p.name)) return k;
  }
  return k;
}

} // namespace elsewise
