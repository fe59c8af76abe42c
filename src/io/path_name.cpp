#include "io/path_name.hpp"

namespace tensorcast::io {

Result<void> check_path(const std::string& path) {
  if (path.find('\0') == std::string::npos) return {};
  return Error{.code = ErrorCode::invalid_argument, .message = "the path contains a zero byte", .file = path};
}

}  // namespace tensorcast::io
