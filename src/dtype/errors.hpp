// SPDX-License-Identifier: Apache-2.0
// Errors by name. Who knows the file, the tensor or the element adds it.
#pragma once

#include <string>
#include <utility>

#include "tensorcast/error.hpp"

namespace tensorcast {

inline Error invalid(std::string message, std::string hint = {}) {
  return {.code = ErrorCode::invalid_argument, .message = std::move(message), .hint = std::move(hint)};
}

inline Error unsupported(std::string message, std::string hint = {}) {
  return {.code = ErrorCode::unsupported, .message = std::move(message), .hint = std::move(hint)};
}

inline Error parse_error(std::string message, std::string hint = {}) {
  return {.code = ErrorCode::parse, .message = std::move(message), .hint = std::move(hint)};
}

inline Error io_failure(std::string message, std::string hint = {}) {
  return {.code = ErrorCode::io, .message = std::move(message), .hint = std::move(hint)};
}

inline Error out_of_range(std::string message, std::string hint = {}) {
  return {.code = ErrorCode::out_of_range, .message = std::move(message), .hint = std::move(hint)};
}

inline Error internal_error(std::string message, std::string hint = {}) {
  return {.code = ErrorCode::internal, .message = std::move(message), .hint = std::move(hint)};
}

inline Error cancelled(std::string message = "cancelled; nothing was written") {
  return {.code = ErrorCode::cancelled, .message = std::move(message)};
}

// Of an object that another took the state of.
inline Error moved_from(const char* type) { return invalid("this " + std::string(type) + " was moved from"); }

}  // namespace tensorcast
