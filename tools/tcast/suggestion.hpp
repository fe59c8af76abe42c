// "Did you mean ...?"
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tcast {

// The candidate that takes the fewest edits to reach, or "" if none is near.
[[nodiscard]] std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace tcast
