// SPDX-License-Identifier: Apache-2.0
// Component core. Strings that own their text, as casts make them.
#pragma once

#include <cstdint>
#include <vector>

#include "tensorcast/export.hpp"
#include "tensorcast/view.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {

// Strings in the layout of StringView, owned.
struct StringBuffer {
  std::vector<char> data = {};
  std::vector<std::int64_t> offsets = {};  // count + 1

  [[nodiscard]] StringView view() const& noexcept TENSORCAST_LIFETIMEBOUND {
    return {{data.data(), data.size()}, {offsets.data(), offsets.size()}};
  }
  StringView view() const&& = delete;  // of a temporary
};

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
