// SPDX-License-Identifier: Apache-2.0
// The nearest of some known words to one that is not known. It guesses only where the guess is near, and knows no words
// of its own.
#include "compiler/diagnostics/diagnostic.h"
#include <llvm/ADT/StringExtras.h>

namespace elsewise {

std::string did_you_mean(std::string_view word, const std::vector<std::string> &known) {
  const llvm::StringRef seen(word.data(), word.size());
  for (const std::string &k : known)
    if (seen.equals_insensitive(k)) return k;
  // A third of the letters may differ; two of them if a word of four has letters swapped. One letter is near to every
  // other one, so it is near to none.
  const unsigned most = word.size() < 2 ? 0 : std::max<unsigned>(1, unsigned(word.size() + 1) / 3);
  unsigned best = most + 1;
  std::string nearest;
  const std::string lower = seen.take_front(64).lower();
  for (const std::string &k : known) {
    if (word.size() > 64 || k.size() < 2) continue;
    if (word.size() < 4 && lower[0] != llvm::toLower(k[0])) continue; // sin is not min
    const unsigned distance = llvm::StringRef(lower).edit_distance(llvm::StringRef(k).lower(), true, best);
    if (distance < best) best = distance, nearest = k;
  }
  return nearest;
}

} // namespace elsewise
