// SPDX-License-Identifier: Apache-2.0
// Lines of CUDA C laid out as the project's clang-format would: wrapped lists, aligned trailing comments. It knows
// nothing of kernels.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace elsewise::cuda {

inline constexpr size_t columns = 120;

class Lines {
public:
  /// `base`: of all lines, so that what prints at one indentation prints inside a loop as well.
  explicit Lines(int base = 0) : base_(base) {}
  int base() const { return base_; }
  /// One line of code; a comment that would pass the column limit goes above the line instead.
  void add(int indent, std::string code, std::string comment = "");
  /// `head item, item, item tail`, in as many statements as the column limit asks for. Nothing is printed without
  /// items.
  void statements(int indent, std::string_view head, const std::vector<std::string> &items, std::string comment = "");
  /// `open item, item) tail` as one construct, continued below the first item.
  void list(int indent, std::string_view open, const std::vector<std::string> &items, std::string_view tail,
            std::string comment = "");
  /// A comment on lines of its own, wrapped at blanks.
  void comment(int indent, std::string_view text);
  void blank() { lines_.push_back({}); }
  void append(const Lines &other) { lines_.insert(lines_.end(), other.lines_.begin(), other.lines_.end()); }
  size_t count() const { return lines_.size(); }
  std::string str() const;

private:
  struct Line {
    std::string code, comment; // code with its indentation; a comment alone has no code
    int indent = 0;
  };
  std::vector<Line> lines_;
  int base_;
};

/// `text` made safe inside a `//` comment: no line break, no control character, no backslash at the end.
std::string comment_text(std::string_view text);
/// True if `text` has the identifier `word`.
bool mentions(std::string_view text, std::string_view word);
/// `text` with every `from` replaced.
std::string replace(std::string text, std::string_view from, std::string_view to);

} // namespace elsewise::cuda
