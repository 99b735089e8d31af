// SPDX-License-Identifier: Apache-2.0
// Which pieces can be reached, and whether all together take every position. It decides from text and kinds, never from
// a value.
#pragma once
#include "compiler/check/kinds.h"

namespace elsewise {

/// Fills `reachable` and `assumed`; warns of pieces that are never reached, and reports positions that no piece takes.
/// `typed.by_use` must be filled. After an error it takes every piece for reachable and says nothing.
void check_coverage(const Source &, const Ast &, const Names &, const Kinds &, Typed &, Sink &);

} // namespace elsewise
