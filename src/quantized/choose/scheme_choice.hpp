// SPDX-License-Identifier: Apache-2.0
// Chooses a scheme for each weight within an average size.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace tensorcast::file_conversion {

// What one candidate would make of a weight, or of weights that get one scheme together.
struct SchemeCost {
  double bits = 0.0;   // of all elements, scales included
  double error = 0.0;  // sum of squares
};

// Options of each item; nullopt: the item cannot have this candidate.
using SchemeCosts = std::vector<std::vector<std::optional<SchemeCost>>>;

// Returns the candidate of each item, so that the bits sum up to at most `budget`; nullopt: nothing is small enough.
//
// Begins with the smallest candidate of each item, then makes the step that takes away the most error per bit while it
// fits, along the lower hull of each item's candidates; then fills what is left with any better candidate, and
// exchanges: one item gets a better candidate as another gets a smaller one, if the sum of errors falls. Equal gains:
// the first item, the first candidate. Cost: O(n c log(n c)) for n items of c candidates, and O(n^2 c^2) for each round
// of exchanges, of which there are at most 64; above 2000 items only those near each other in order are exchanged.
[[nodiscard]] std::optional<std::vector<std::size_t>> choose_schemes(const SchemeCosts& items, double budget);

}  // namespace tensorcast::file_conversion
