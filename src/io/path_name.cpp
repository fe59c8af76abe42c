// SPDX-License-Identifier: Apache-2.0
#include "io/path_name.hpp"

namespace tensorcast::io {

Result<void> check_path(const std::string& path) {
  if (path.find('\0') == std::string::npos) return {};
  return Error{.code = ErrorCode::invalid_argument, .message = "the path contains a zero byte", .file = path};
}

bool is_url(std::string_view path) noexcept {
  const std::size_t colon = path.find("://");
  return colon != std::string_view::npos && colon != 0 && path.find('/') == colon + 1;
}

}  // namespace tensorcast::io
