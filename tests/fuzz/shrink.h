// SPDX-License-Identifier: Apache-2.0
// A failing text made short. It knows where tokens end and nothing of what they mean: the caller says what still fails.
#pragma once
#include <functional>
#include <string>

namespace elsewise::fuzz {

/// The shortest text found that still `fails`, by leaving out runs of tokens and putting simpler ones in their place;
/// at most `tries` are asked for.
std::string shrink(const std::string &text, const std::function<bool(const std::string &)> &fails, int tries);

} // namespace elsewise::fuzz
