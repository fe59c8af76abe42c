// SPDX-License-Identifier: Apache-2.0
// Buffers of the caller that must not share memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "dtype/errors.hpp"
#include "dtype/formatted.hpp"
#include "tensorcast/error.hpp"

namespace tensorcast::block {

struct NamedBytes {
  const char* name;
  std::span<const std::byte> bytes;

  [[nodiscard]] bool overlaps(const NamedBytes& other) const noexcept {
    const auto begin = reinterpret_cast<std::uintptr_t>(bytes.data());
    const auto others = reinterpret_cast<std::uintptr_t>(other.bytes.data());
    if (bytes.empty() || other.bytes.empty()) return false;
    return begin < others ? others - begin < bytes.size() : begin - others < other.bytes.size();
  }
};

[[gnu::cold]] inline Error overlap(const char* written, const char* other) {
  return invalid(formatted("{} and {} overlap", written, other), "give each a buffer of its own");
}

// Errors: invalid_argument: one of `others` shares a byte with `written`.
template <class... Others>
[[nodiscard]] Result<void> check_disjoint(const NamedBytes& written, const Others&... others) {
  const char* shared = nullptr;
  (void)((written.overlaps(others) && (shared = others.name, true)) || ...);
  if (shared != nullptr) [[unlikely]]
    return overlap(written.name, shared);
  return {};
}

}  // namespace tensorcast::block
