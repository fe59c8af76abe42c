// SPDX-License-Identifier: Apache-2.0
// Component files. Chooses a scheme for each weight of a model within an average size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tensorcast/error.hpp"
#include "tensorcast/export.hpp"
#include "tensorcast/file.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {

// A weight, and what each candidate would make of it: TensorStats::schemes, the same candidates for all weights.
struct BudgetWeight {
  std::string name = {};
  std::uint64_t count = 0;  // elements
  std::vector<SchemeFit> candidates = {};
  // For each candidate whether a rule names another scheme; its `problem` says so, too. Empty: for none.
  std::vector<bool> ruled_out = {};
};

// Returns the candidate of each weight, so that the sum of squared errors is small and the bits of all elements are at
// most `bits` on average, scales included. Weights that loaders join (q, k and v; gate and up) get one candidate.
// Candidates with a problem are not chosen. Begins with the smallest candidates, makes the steps that take away the
// most error per bit while they fit, then exchanges pairs while the error falls. Equal gains: the first weight, the
// first candidate. Cost: O(n c log(n c)) for n weights of c candidates, and O(n^2 c^2) for each of at most 64 rounds of
// exchanges. Errors: invalid_argument: the smallest candidates are larger, a weight has none, or another number of
// them.
[[nodiscard]] TENSORCAST_API Result<std::vector<std::size_t>> choose_within_budget(
    std::span<const BudgetWeight> weights, double bits);

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
