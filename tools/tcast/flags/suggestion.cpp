// SPDX-License-Identifier: Apache-2.0
#include "flags/suggestion.hpp"

#include <algorithm>
#include <numeric>

namespace tcast {
namespace {

// Levenshtein's distance, one row at a time.
std::size_t edits_between(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (const char wanted : a) {
    std::size_t above_left = row[0]++;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = above_left + (wanted == b[j] ? 0 : 1);
      above_left = row[j + 1];
      row[j + 1] = std::min({row[j] + 1, above_left + 1, replaced});
    }
  }
  return row.back();
}

}  // namespace

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  std::size_t fewest = word.size() / 3 + 2;
  std::string best;
  for (const std::string& candidate : candidates) {
    const std::size_t edits = edits_between(word, candidate);
    if (edits < fewest) {
      fewest = edits;
      best = candidate;
    }
  }
  return best;
}

}  // namespace tcast
