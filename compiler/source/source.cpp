// SPDX-License-Identifier: Apache-2.0
// A spec's text and places in it. It reads no files and judges no characters.
#include "compiler/source/source.h"
#include "compiler/source/utf8.h"
#include <algorithm>

namespace elsewise {

Source::Source(std::string text, std::string name) : text_(std::move(text)), name_(std::move(name)), starts_{0} {
  for (size_t at = 0; at < text_.size(); ++at)
    if (text_[at] == '\n') starts_.push_back(uint32_t(at + 1));
  for (size_t at = 0; at < text_.size() && valid_;) {
    const utf8::Character c = utf8::next(text_, at);
    valid_ = c.valid;
    at += c.bytes;
  }
}

LineColumn Source::position(uint32_t byte) const {
  byte = std::min<size_t>(byte, text_.size());
  const auto line = std::upper_bound(starts_.begin(), starts_.end(), byte) - 1;
  uint32_t column = 1;
  if (valid_) // printing asks for the place of every piece and token: one plain pass over the bytes
    for (uint32_t at = *line; at < byte; ++at) column += (uint8_t(text_[at]) & 0xc0) != 0x80;
  else
    for (uint32_t at = *line; at < byte; ++column) at += utf8::next(text_, at).bytes;
  return {uint32_t(line - starts_.begin()) + 1, column};
}

std::string_view Source::line(uint32_t byte) const {
  byte = std::min<size_t>(byte, text_.size());
  const auto start = std::upper_bound(starts_.begin(), starts_.end(), byte) - 1;
  const size_t end = start + 1 == starts_.end() ? text_.size() : *(start + 1) - 1;
  std::string_view line = std::string_view(text_).substr(*start, end - *start);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

} // namespace elsewise
