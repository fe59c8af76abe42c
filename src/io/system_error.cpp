// SPDX-License-Identifier: Apache-2.0
#include "io/system_error.hpp"

#include <cstring>

#if defined(__GLIBC__)
#define TENSORCAST_HAS_STRERRORDESC __GLIBC_PREREQ(2, 32)  // no macro of other C libraries
#else
#define TENSORCAST_HAS_STRERRORDESC 0
#endif

namespace tensorcast::io {
namespace {

std::string_view describe(int error_number) {
#if TENSORCAST_HAS_STRERRORDESC
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
  message += path.empty() ? "the path is empty" : describe(error_number);
  return Error{.code = ErrorCode::io, .message = std::move(message), .file = path, .system_error = error_number};
}

}  // namespace tensorcast::io
