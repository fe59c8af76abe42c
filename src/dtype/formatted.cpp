// SPDX-License-Identifier: Apache-2.0
#define FMT_HEADER_ONLY                     // defines the functions here
#define FMT_STATIC_THOUSANDS_SEPARATOR ','  // and leaves the locale out
#include <fmt/format.h>

#include "dtype/formatted.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {

std::string formatted_arguments(fmt::string_view format, fmt::format_args arguments) {
  return fmt::vformat(format, arguments);
}

std::string joined(std::span<const std::string_view> words) {
  std::string text;
  for (const std::string_view word : words) {
    if (!text.empty()) text += ", ";
    text += word;
  }
  return text;
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
