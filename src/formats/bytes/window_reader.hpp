// SPDX-License-Identifier: Apache-2.0
// Reads the numbers and texts of a header one after another, through a window of 64 KiB.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "dtype/try.hpp"
#include "io/memory_budget.hpp"
#include "tensorcast/byte_source.hpp"
#include "tensorcast/error.hpp"

namespace tensorcast::formats {

class WindowReader {
 public:
  using Malformed = Error (*)(std::string what);

  // `source` and `budget` outlive this. `malformed` makes the errors of bytes that contradict themselves.
  WindowReader(ByteSource& source, std::uint64_t position, io::MemoryBudget& budget, Malformed malformed)
      : source_(source), budget_(budget), malformed_(malformed), position_(position) {}

  [[nodiscard]] std::uint64_t position() const noexcept { return position_; }
  [[nodiscard]] std::uint64_t left() const noexcept { return source_.size() - position_; }
  [[nodiscard]] io::MemoryBudget& budget() noexcept { return budget_; }

  // Reads a little-endian integer or float. Errors: parse (the source ends here), io.
  template <class Number>
  [[nodiscard]] Result<Number> get() {
    std::byte bytes[sizeof(Number)];
    TRY(read(bytes));
    Number number{};
    std::memcpy(&number, bytes, sizeof number);
    return number;
  }
  // Reads `bytes` bytes, whose memory it takes from the budget. Errors: parse, unsupported, io.
  [[nodiscard]] Result<std::string> text(std::uint64_t bytes);
  // Reads up to a line feed, which it drops. Errors: parse (also a line of more than 64 KiB), io.
  [[nodiscard]] Result<std::string> line();

 private:
  [[nodiscard]] Result<void> read(std::span<std::byte> out);

  ByteSource& source_;
  io::MemoryBudget& budget_;
  Malformed malformed_;
  std::uint64_t position_;
  std::vector<std::byte> window_;
  std::uint64_t window_begin_ = 0;
};

}  // namespace tensorcast::formats
