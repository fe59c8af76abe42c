// Checks paths that callers give.
#pragma once

#include <string>

#include "tensorcast/error.hpp"

namespace tensorcast::io {

// Errors: invalid_argument if the path has a zero byte, at which the system would cut it: "out\0.tmp" would be "out".
[[nodiscard]] Result<void> check_path(const std::string& path);

}  // namespace tensorcast::io
