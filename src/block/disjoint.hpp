// SPDX-License-Identifier: Apache-2.0
// Buffers of the caller that must not share memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>

#include "dtype/errors.hpp"
#include "dtype/formatted.hpp"
#include "tensorcast/error.hpp"

namespace tensorcast::block {

struct NamedBytes {
  std::string_view name;
  std::span<const std::byte> bytes;

  [[nodiscard]] bool overlaps(const NamedBytes& other) const noexcept {
    const auto begin = reinterpret_cast<std::uintptr_t>(bytes.data());
    const auto others = reinterpret_cast<std::uintptr_t>(other.bytes.data());
    if (bytes.empty() || other.bytes.empty()) return false;
    return begin < others ? others - begin < bytes.size() : begin - others < other.bytes.size();
  }
};

// Errors: invalid_argument: one of `others` shares a byte with `written`.
[[nodiscard]] inline Result<void> check_disjoint(const NamedBytes& written, std::initializer_list<NamedBytes> others) {
  for (const NamedBytes& other : others) {
    if (!written.overlaps(other)) continue;
    return invalid(formatted("{} and {} overlap", written.name, other.name), "give each a buffer of its own");
  }
  return {};
}

}  // namespace tensorcast::block
