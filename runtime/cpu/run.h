// SPDX-License-Identifier: Apache-2.0
// What a run on this CPU depends on apart from the code. Nothing here may change a result.
#pragma once
#include <cstdint>

namespace elsewise {

/// Bytes of output from which it is better written past the caches: most of the last one, so that nobody would find it
/// there anyway.
int64_t stream_from();

} // namespace elsewise
