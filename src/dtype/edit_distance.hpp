// SPDX-License-Identifier: Apache-2.0
// How far a misspelled word is from one that is known.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <numeric>
#include <string_view>
#include <vector>

namespace tensorcast {

// Levenshtein's distance: how many characters differ, are missing or are too many.
template <class Same = std::equal_to<>>
[[nodiscard]] std::size_t edit_distance(std::string_view a, std::string_view b, const Same& same = {}) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (const char wanted : a) {
    std::size_t above_left = row[0]++;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = above_left + (same(wanted, b[j]) ? 0 : 1);
      above_left = row[j + 1];
      row[j + 1] = std::min({row[j] + 1, above_left + 1, replaced});
    }
  }
  return row.back();
}

}  // namespace tensorcast
