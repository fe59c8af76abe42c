// SPDX-License-Identifier: Apache-2.0
// Sentences of help that name what a list has.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace tensorcast::options {

// One text after the other, ended by 0. The texts are constants with a name.
template <const std::string_view&... texts>
inline constexpr auto joined_text = [] {
  std::array<char, (texts.size() + ... + 1)> all{};
  char* to = all.data();
  ((to = std::ranges::copy(texts, to).out), ...);
  return all;
}();

}  // namespace tensorcast::options
