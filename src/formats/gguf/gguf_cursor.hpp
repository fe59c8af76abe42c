// Reads the header of a GGUF file from front to back, through a window.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "io/input_file.hpp"
#include "io/memory_budget.hpp"
#include "tensorcast/error.hpp"

namespace tensorcast::formats::gguf {

class Cursor {
 public:
  // `file` and `budget` outlive the cursor.
  Cursor(const io::InputFile& file, std::uint64_t position, io::MemoryBudget& budget)
      : file_(file), budget_(budget), position_(position) {}

  [[nodiscard]] std::uint64_t position() const noexcept { return position_; }
  [[nodiscard]] std::uint64_t left() const noexcept { return file_.size() - position_; }
  [[nodiscard]] io::MemoryBudget& budget() noexcept { return budget_; }

  // Reads a little-endian integer or float. Errors: parse (the file ends here), io.
  template <class Number>
  [[nodiscard]] Result<Number> get() {
    std::byte bytes[sizeof(Number)];
    if (Result<void> got = read(bytes); !got) return std::move(got).error();
    Number number{};
    std::memcpy(&number, bytes, sizeof number);
    return number;
  }
  // Reads a length of 8 bytes and as many bytes of text. Takes the text's memory from the budget. Errors: parse,
  // unsupported, io.
  [[nodiscard]] Result<std::string> text();

 private:
  [[nodiscard]] Result<void> read(std::span<std::byte> out);

  const io::InputFile& file_;
  io::MemoryBudget& budget_;
  std::uint64_t position_;
  std::vector<std::byte> window_;
  std::uint64_t window_begin_ = 0;
};

// The error for a header that contradicts itself or the file.
[[nodiscard]] Error malformed(std::string what, std::string tensor = {});

}  // namespace tensorcast::formats::gguf
