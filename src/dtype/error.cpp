// SPDX-License-Identifier: Apache-2.0
#include "tensorcast/error.hpp"

#include "dtype/formatted.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {

std::string_view name(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::invalid_argument:
      return "invalid_argument";
    case ErrorCode::unsupported:
      return "unsupported";
    case ErrorCode::out_of_range:
      return "out_of_range";
    case ErrorCode::parse:
      return "parse";
    case ErrorCode::io:
      return "io";
    case ErrorCode::internal:
      return "internal";
    case ErrorCode::cancelled:
      return "cancelled";
  }
  return "unknown";
}

std::string Error::describe() const {
  std::string text;
  if (!file.empty()) text += formatted("{}: ", file);
  if (!tensor.empty()) text += formatted("tensor \"{}\": ", tensor);
  if (element) text += formatted("element {}: ", *element);
  text += message;
  if (!hint.empty()) text += formatted("; {}", hint);
  return text;
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
