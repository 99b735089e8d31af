// SPDX-License-Identifier: Apache-2.0
// A seam for tests: who takes a CUDA launch when no driver does. Plans, slots and geometry stay the run time's own, so
// that emitted text can be run without a device exactly as a device would run it. The facade does not show it.
#pragma once
#include "compiler/ir/ir.h"
#include "runtime/cuda/geometry.h"
#include "runtime/layout/layout.h"
#include <functional>
#include <span>

namespace elsewise::api {

/// A launch: the scheduled kernel, its blocks and threads, and pointers to its arguments in the order of slots(kernel,
/// Backend::Cuda).
using LaunchTaker = std::function<void(const Kernel &, const Geometry &, std::span<void *const>)>;

/// While one lives, CUDA plans of this thread need no driver, compile nothing, and hand their launches to it.
class TakeLaunches {
public:
  /// `longest`: rows of more positions never run in the flat form.
  explicit TakeLaunches(const LaunchTaker &, int64_t longest = longest_flat_row);
  ~TakeLaunches();
  TakeLaunches(const TakeLaunches &) = delete;
};

/// The taker of this thread, or null.
const LaunchTaker *launch_taker();
/// What TakeLaunches says of this thread, else longest_flat_row.
int64_t longest_flat();

} // namespace elsewise::api
