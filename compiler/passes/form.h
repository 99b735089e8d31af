// SPDX-License-Identifier: Apache-2.0
// The layout class enters the kernel here, so that everything before is independent of layouts and everything after can
// look at one place.
#pragma once
#include "compiler/passes/passes.h"

namespace elsewise {

/// The kernel with `options.form`, or contiguous_form() if none was given. Arguments that no node loads any more are
/// Absent. With many pieces that the host can tell apart, Form::segments has room for all of their bounds, if the
/// launch's parameters have.
Kernel form(const Kernel &, const PassOptions &);

/// Everything contiguous and distinct, and the vector that suits the dtypes: min(16 / widest output, 32 / widest input)
/// bytes. One row; a kernel with axes has the last of them inside and a row axis for each other.
Form contiguous_form(const Kernel &);

} // namespace elsewise
