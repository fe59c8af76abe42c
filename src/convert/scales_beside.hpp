// Finds weights that need another tensor of scales.
#pragma once

#include <optional>
#include <string>
#include <unordered_set>

namespace tensorcast::conversion {

// Returns the name in `names` of the scales of `weight`, by the naming of common quantizers.
[[nodiscard]] std::optional<std::string> scales_beside(const std::string& weight,
                                                       const std::unordered_set<std::string>& names);

}  // namespace tensorcast::conversion
