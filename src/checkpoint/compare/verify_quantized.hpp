// SPDX-License-Identifier: Apache-2.0
// Verifies weights that were quantized: some recipe must make their bytes of the source's weights.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "tensorcast/checkpoint.hpp"
#include "tensorcast/error.hpp"

namespace tensorcast::checkpoint {

// Tries all recipes on the output's layers of these names. Returns what was found, in sentences: "4 weights are nvfp4
// by modelopt". Errors: internal, naming a weight that no recipe makes; those of detect_recipes().
[[nodiscard]] Result<std::vector<std::string>> verify_quantized(const VerifyRequest& request,
                                                                const std::set<std::string>& weights);

}  // namespace tensorcast::checkpoint
