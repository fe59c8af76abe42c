// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tensorcast/error.hpp"

namespace tensorcast::checkpoint {

// Returns the first difference, whose message names the other files that differ, relative to `folder`; no error if
// there is none.
[[nodiscard]] Result<void> first_difference(std::vector<Error> differences, const std::string& folder);

}  // namespace tensorcast::checkpoint
