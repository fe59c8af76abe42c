// SPDX-License-Identifier: Apache-2.0
// Paths that callers give.
#pragma once

#include <string>
#include <string_view>

#include "tensorcast/error.hpp"

namespace tensorcast::io {

// Errors: invalid_argument if the path has a zero byte, at which the system would cut it: "out\0.tmp" would be "out".
[[nodiscard]] Result<void> check_path(const std::string& path);

// Reports whether a path is a URL, such as s3://bucket/model.
[[nodiscard]] bool is_url(std::string_view path) noexcept;

}  // namespace tensorcast::io
