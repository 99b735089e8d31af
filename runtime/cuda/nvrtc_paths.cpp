// SPDX-License-Identifier: Apache-2.0
// The facade's way to tell where NVRTC may be. It looks nowhere itself.
#include "runtime/cuda/nvrtc.h"
#include "runtime/elsewise.h"

void elsewise::api::set_nvrtc_paths(const std::vector<std::string> &paths) noexcept {
  elsewise::set_nvrtc_paths(paths);
}
