// SPDX-License-Identifier: Apache-2.0
// Formats text with {fmt}. Only formatted.cpp contains code of {fmt}, so that programs need not link it. Including this
// header takes half as long as <fmt/format.h>.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include <fmt/core.h>

#include "tensorcast/export.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {

// As fmt::vformat().
[[nodiscard]] std::string formatted_arguments(fmt::string_view format, fmt::format_args arguments);

// formatted("{} of {}", 3, "x") is "3 of x"; a format that does not fit its arguments does not compile.
template <class... Arguments>
[[nodiscard]] std::string formatted(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  return formatted_arguments(format, fmt::make_format_args(arguments...));
}

// {"a", "b"} is "a, b".
[[nodiscard]] std::string joined(std::span<const std::string_view> words);

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
