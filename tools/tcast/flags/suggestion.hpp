// SPDX-License-Identifier: Apache-2.0
// "Did you mean ...?"
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tcast {

// Returns the candidate with the fewest edits, or "" if none is near.
[[nodiscard]] std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace tcast
