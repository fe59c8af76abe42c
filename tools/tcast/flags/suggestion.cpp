// SPDX-License-Identifier: Apache-2.0
#include "flags/suggestion.hpp"

#include "dtype/edit_distance.hpp"

namespace tcast {

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  std::size_t fewest = word.size() / 3 + 2;
  std::string best;
  for (const std::string& candidate : candidates) {
    const std::size_t edits = tensorcast::edit_distance(word, candidate);
    if (edits < fewest) {
      fewest = edits;
      best = candidate;
    }
  }
  return best;
}

}  // namespace tcast
