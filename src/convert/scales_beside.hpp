// Weights whose codes are numbers only together with a tensor of scales beside them.
#pragma once

#include <optional>
#include <string>
#include <unordered_set>

namespace tensorcast::convert {

// The name in `names` that has the scales of `weight`, by the naming of the usual quantizers.
[[nodiscard]] std::optional<std::string> scales_beside(const std::string& weight,
                                                       const std::unordered_set<std::string>& names);

}  // namespace tensorcast::convert
