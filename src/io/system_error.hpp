// SPDX-License-Identifier: Apache-2.0
// An errno as an Error.
#pragma once

#include <string>
#include <string_view>

#include "tensorcast/error.hpp"

namespace tensorcast::io {

// Example message: "cannot write: No space left on device", in English for any locale.
[[nodiscard]] Error system_error(std::string_view doing, const std::string& path, int error_number);

}  // namespace tensorcast::io
