// SPDX-License-Identifier: Apache-2.0
// Verifies weights that were quantized: some recipe must make their bytes of the source's weights.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "tensorcast/checkpoint.hpp"
#include "tensorcast/error.hpp"

namespace tensorcast::checkpoint {

struct VerifiedWeights {
  std::vector<std::string> sentences = {};  // "4 weights are nvfp4 by modelopt"
  std::vector<Error> differences = {};      // internal: weights that no recipe makes, or not the recorded one
};

// Tries the recipes that the output's metadata record, or else all, on its layers of these names. Errors: those of
// detect_recipes().
[[nodiscard]] Result<VerifiedWeights> verify_quantized(const VerifyRequest& request,
                                                       const std::set<std::string>& weights);

}  // namespace tensorcast::checkpoint
