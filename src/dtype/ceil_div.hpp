// SPDX-License-Identifier: Apache-2.0
// Division that rounds up.
#pragma once

#include <cstdint>

namespace tensorcast {

// How many units hold `count`; right for every count, as nothing is added to it.
constexpr std::uint64_t ceil_div(std::uint64_t count, std::uint64_t unit) noexcept {
  return count / unit + (count % unit != 0 ? 1 : 0);
}

}  // namespace tensorcast
