// SPDX-License-Identifier: Apache-2.0
// The nearest of some known words to one that is not known. It guesses only where the guess is near, and knows no words
// of its own.
#include "compiler/diagnostics/diagnostic.h"
#include <llvm/ADT/StringExtras.h>

namespace elsewise {
namespace {

/// Whether two neighbouring letters changed places: one slip of the fingers, two for the edit distance.
bool swapped(llvm::StringRef a, llvm::StringRef b) {
  if (a.size() != b.size()) return false;
  size_t k = 0;
  while (k < a.size() && a[k] == b[k]) ++k;
  return k + 1 < a.size() && a[k] == b[k + 1] && a[k + 1] == b[k] && a.substr(k + 2) == b.substr(k + 2);
}

} // namespace

std::string did_you_mean(std::string_view word, const std::vector<std::string> &known) {
  const llvm::StringRef seen(word.data(), word.size());
  for (const std::string &k : known)
    if (seen.equals_insensitive(k)) return k;
  // A third of the letters may differ. One or two letters are near to too many others, so they are near to none.
  const unsigned most = word.size() < 3 ? 0 : unsigned(word.size() + 1) / 3;
  unsigned best = most + 1;
  std::string nearest;
  const std::string lower = seen.take_front(64).lower();
  for (const std::string &k : known) {
    if (word.size() > 64 || k.size() < 2) continue;
    if (word.size() < 4 && lower[0] != llvm::toLower(k[0])) continue; // sin is not min
    const std::string candidate = llvm::StringRef(k).lower();
    const unsigned distance =
        swapped(lower, candidate) ? 1 : llvm::StringRef(lower).edit_distance(candidate, true, best);
    if (distance < best) best = distance, nearest = k;
  }
  return nearest;
}

} // namespace elsewise
