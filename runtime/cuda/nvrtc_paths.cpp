// SPDX-License-Identifier: Apache-2.0
// The facade's way to tell where NVRTC may be, and to ask where it is. It looks nowhere itself.
#include "runtime/cuda/nvrtc.h"
#include "runtime/elsewise.h"

void elsewise::api::set_nvrtc_paths(const std::vector<std::string> &paths) noexcept {
  elsewise::set_nvrtc_paths(paths);
}

std::vector<elsewise::api::Fact> elsewise::api::nvrtc_places() noexcept try {
  std::vector<Fact> facts;
  for (const NvrtcPlace &place : elsewise::nvrtc_places()) facts.push_back({place.named_by, place.path, ""});
  return facts;
} catch (const std::exception &) {
  return {};
}
