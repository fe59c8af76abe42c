// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "formats/format.hpp"

namespace tensorcast::formats {

// Returns the text of a key; null: it is not there.
[[nodiscard]] inline const std::string* find_text(const Metadata& metadata, std::string_view key) noexcept {
  const auto found = std::ranges::find(metadata, key, &Metadata::value_type::first);
  return found == metadata.end() ? nullptr : &found->second;
}

}  // namespace tensorcast::formats
