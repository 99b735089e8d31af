// SPDX-License-Identifier: Apache-2.0
// Delta debugging over tokens (Zeller and Hildebrandt, Simplifying and isolating failure-inducing input, 2002). It
// keeps whatever fails, for whatever reason the caller has.
#include "tests/fuzz/shrink.h"
#include "compiler/lex/lex.h"
#include <vector>

namespace elsewise::fuzz {
namespace {

using Words = std::vector<std::string>;

Words words(const std::string &text) {
  const Source source(text, "<spec>");
  Sink sink;
  Words list;
  for (const Token &t : lex(source, sink))
    if (t.where.end > t.where.begin) list.emplace_back(source.slice(t.where));
  return list;
}

bool joins(char c) { return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

std::string join(const Words &list) {
  std::string text;
  for (const std::string &w : list) {
    const bool apart = !text.empty() && !w.empty() && (joins(text.back()) || text.back() == '.') &&
                       (joins(w.front()) || w.front() == '.');
    text += (apart ? " " : "") + w;
  }
  return text;
}

} // namespace

std::string shrink(const std::string &text, const std::function<bool(const std::string &)> &fails, int tries) {
  Words best = words(text);
  if (!fails(join(best))) return text; // a blank that matters
  auto better = [&](Words candidate) {
    if (tries-- <= 0 || !fails(join(candidate))) return false;
    best = std::move(candidate);
    return true;
  };
  bool changed = true;
  while (changed && tries > 0) {
    changed = false;
    for (size_t run = best.size(); run > 0; run = run > 8 ? run / 2 : run - 1)
      for (size_t at = 0; at + run <= best.size() && tries > 0;) {
        Words shorter = best;
        shorter.erase(shorter.begin() + long(at), shorter.begin() + long(at + run));
        if (!shorter.empty() && better(std::move(shorter))) changed = true;
        else ++at;
      }
    for (size_t at = 0; at < best.size(); ++at) // an expression in parentheses, or a long word, for one letter
      for (const char *simple : {"0", "1", "x", "i"}) {
        const bool long_one = best[at].size() > 1 && joins(best[at][0]);
        if (best[at] != "(" && !long_one) break;
        size_t end = at + 1;
        if (best[at] == "(")
          for (int open = 1; end < best.size() && open > 0; ++end) open += best[end] == "(", open -= best[end] == ")";
        Words simpler = best;
        simpler.erase(simpler.begin() + long(at), simpler.begin() + long(end));
        simpler.insert(simpler.begin() + long(at), simple);
        if (better(std::move(simpler))) {
          changed = true;
          break;
        }
      }
  }
  return join(best);
}

} // namespace elsewise::fuzz
