// SPDX-License-Identifier: Apache-2.0
// What a run on this CPU depends on apart from the code. Nothing here may change a result.
#pragma once
#include <cstdint>

namespace elsewise {

/// Bytes of the last-level cache, or a guess.
int64_t cache_bytes();

} // namespace elsewise
