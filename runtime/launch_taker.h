// SPDX-License-Identifier: Apache-2.0
// Seams for tests: who takes a CUDA launch when no driver does, and where forms begin. Plans, slots and geometry stay
// the run time's own, so that emitted text can be run without a device exactly as a device would run it. The facade
// does not show them.
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
  explicit TakeLaunches(const LaunchTaker &);
  ~TakeLaunches();
  TakeLaunches(const TakeLaunches &) = delete;
};

/// The taker of this thread, or null.
const LaunchTaker *launch_taker();

/// While one lives, new plans of this thread have forms within these limits. Plans are kept: one that was made before
/// is found again, whatever the limits.
class MoveLimits {
public:
  explicit MoveLimits(const FormLimits &);
  ~MoveLimits();
  MoveLimits(const MoveLimits &) = delete;
};

/// The limits of this thread.
const FormLimits &form_limits();

} // namespace elsewise::api
