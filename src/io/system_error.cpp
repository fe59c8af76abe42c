#include "io/system_error.hpp"
// SPDX-License-Identifier: Apache-2.0
#include <cstring>

namespace tensorcast::io {
namespace {

std::string_view describe(int error_number) {
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 32)
  const char* text = strerrordesc_np(error_number);  // strerror() would translate
  return text != nullptr ? text : "unknown system error";
#else
  return std::strerror(error_number);
#endif
}

}  // namespace

Error system_error(std::string_view doing, const std::string& path, int error_number) {
  std::string message = "cannot ";
  message += doing;
  message += ": ";
  message += describe(error_number);
  return Error{.code = ErrorCode::io, .message = std::move(message), .file = path, .system_error = error_number};
}

}  // namespace tensorcast::io
