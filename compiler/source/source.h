// SPDX-License-Identifier: Apache-2.0
// A spec's text and places in it. Counts bytes inside and characters only when a person will read the number.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace elsewise {

/// Half-open byte range [begin, end) of a Source's text.
struct Span {
  uint32_t begin = 0, end = 0;
  bool operator==(const Span &) const = default;
};
inline Span join(Span a, Span b) { return {a.begin < b.begin ? a.begin : b.begin, a.end > b.end ? a.end : b.end}; }

/// 1-based; columns count Unicode code points, not bytes.
struct LineColumn {
  uint32_t line = 1, column = 1;
};

class Source {
public:
  Source(std::string text, std::string name);
  std::string_view text() const { return text_; }
  const std::string &name() const { return name_; }
  std::string_view slice(Span s) const { return std::string_view(text_).substr(s.begin, s.end - s.begin); }
  LineColumn position(uint32_t byte) const;
  /// The whole line (without its newline) that holds `byte`.
  std::string_view line(uint32_t byte) const;

private:
  std::string text_, name_;
  std::vector<uint32_t> starts_; // byte offset of each line
  bool valid_ = true;            // the whole text is UTF-8
};

} // namespace elsewise
