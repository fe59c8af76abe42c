// SPDX-License-Identifier: Apache-2.0
// Limits how much memory a reader may use for a file.
#pragma once

#include <cstdint>

#include "dtype/errors.hpp"
#include "tensorcast/error.hpp"

namespace tensorcast::io {

// The budget is proportional to the file's size, so a small file cannot take a large machine's memory. A reader takes
// from the budget before it allocates. Ordinary files stay far below it.
class MemoryBudget {
 public:
  explicit MemoryBudget(std::uint64_t file_bytes) noexcept : left_(base_bytes + bytes_per_byte * file_bytes) {}

  [[nodiscard]] bool try_take(std::uint64_t bytes) noexcept {
    if (bytes > left_) return false;
    left_ -= bytes;
    return true;
  }
  // Errors: unsupported.
  [[nodiscard]] Result<void> take(std::uint64_t bytes) {
    if (try_take(bytes)) return {};
    return exceeded();
  }
  // Takes memory for a growing vector of `count` elements: its old and new buffers exist together while it moves.
  template <class T>
  [[nodiscard]] Result<void> take_grown(std::uint64_t count = 1) {
    return take(count * grown_bytes<T>);
  }

  [[nodiscard]] static Error exceeded() {
    return unsupported("the file would take far more memory than its size explains",
                       "at most 64 MiB and 8 to 96 bytes for each of the file's are taken");
  }

  template <class T>
  static constexpr std::uint64_t grown_bytes = 3 * sizeof(T);

 private:
  static constexpr std::uint64_t base_bytes = std::uint64_t{64} << 20;
  static constexpr std::uint64_t bytes_per_byte = 8;

  std::uint64_t left_;
};

}  // namespace tensorcast::io
