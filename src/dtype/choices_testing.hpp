// SPDX-License-Identifier: Apache-2.0
// Random choices for tests and fuzzers, made from bytes.
#pragma once
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>

#include "tensorcast/dtype.hpp"
#include "tensorcast/export.hpp"

namespace tensorcast::testing {

// Where the bytes are used up, others are made from them, so that a few bytes are a whole test.
class Choices {
 public:
  explicit Choices(std::span<const std::uint8_t> bytes) : bytes_(bytes) {
    for (const std::uint8_t byte : bytes) state_ = next_state(state_) ^ byte;
  }

  [[nodiscard]] std::uint64_t below(std::uint64_t count) {
    if (count == 0) return 0;
    std::uint64_t value = 0;
    for (std::uint64_t most = count - 1; most > 0; most /= 256) value = value * 256 + next_byte();
    return value % count;
  }
  [[nodiscard]] bool one_in(std::uint64_t count) { return below(count) == count - 1; }

  template <class T>
  [[nodiscard]] T one_of(std::initializer_list<T> values) {
    return values.begin()[below(values.size())];
  }

  // A numeric type or bool.
  [[nodiscard]] DType dtype() {
    const auto types = all_dtypes();
    return types[below(types.size() - 1)];  // the last one is string
  }

  // Any number of bytes, made from a few.
  void fill(std::span<std::byte> bytes) {
    std::uint64_t state = below(std::uint64_t{1} << 32) + 1;
    for (std::byte& byte : bytes) {
      state = next_state(state);
      byte = static_cast<std::byte>(state >> 56);
    }
  }

 private:
  static std::uint64_t next_state(std::uint64_t state) { return state * 6364136223846793005u + 1442695040888963407u; }

  std::uint8_t next_byte() {
    if (next_ < bytes_.size()) return bytes_[next_++];
    state_ = next_state(state_);
    return static_cast<std::uint8_t>(state_ >> 56);
  }

  std::span<const std::uint8_t> bytes_;
  std::size_t next_ = 0;
  std::uint64_t state_ = 0;
};

}  // namespace tensorcast::testing
