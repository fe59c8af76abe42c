// SPDX-License-Identifier: Apache-2.0
// Converts tensors to and from strings block by block: memory is bounded, whatever their size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "convert/plan/file_plan.hpp"
#include "formats/format.hpp"
#include "tensorcast/cast_options.hpp"
#include "tensorcast/error.hpp"
#include "tensorcast/string_buffer.hpp"

namespace tensorcast::file_conversion {

// A tensor that is read block by block.
class TensorBlocks {
 public:
  // All references but the options outlive this.
  TensorBlocks(const CastOptions& options, const PlannedTensor& tensor, formats::Reader& reader,
               std::size_t bytes_at_once)
      : options_(options), tensor_(tensor), reader_(reader), block_bytes_(bytes_at_once) {}

  // Returns how many elements next() has returned.
  [[nodiscard]] std::uint64_t done() const noexcept { return done_; }
  [[nodiscard]] bool at_end() const noexcept { return done_ == tensor_.target.count; }

 protected:
  CastOptions options_;
  const PlannedTensor& tensor_;
  formats::Reader& reader_;
  std::size_t block_bytes_;
  std::uint64_t done_ = 0;
};

// The strings that a tensor of the input becomes; it has strings or numbers. `bytes_at_once` is a multiple of 512.
class StringBlocks : public TensorBlocks {
 public:
  using TensorBlocks::TensorBlocks;

  // Returns the next strings, at least one. Precondition: !at_end(). Errors: those of the reader and of the cast.
  [[nodiscard]] Result<StringBuffer> next();

 private:
  [[nodiscard]] Result<StringBuffer> print_numbers();

  std::vector<std::byte> numbers_;
};

// The numbers that a tensor of strings of the input becomes. `bytes_at_once` is a multiple of 64.
class NumberBlocks : public TensorBlocks {
 public:
  using TensorBlocks::TensorBlocks;

  // Writes the next numbers to the beginning of `block`, of bytes_at_once or more, and returns them: whole bytes unless
  // they are the last. Precondition: !at_end(). Errors: those of the reader and of the cast.
  [[nodiscard]] Result<std::span<std::byte>> next(std::span<std::byte> block);
};

// Compares strings that arrive in blocks, which need not end at the same strings.
class StringComparison {
 public:
  // Reads a tensor of strings, `index` in `reader`, which outlives this.
  StringComparison(formats::Reader& reader, std::size_t index, std::size_t bytes_at_once)
      : reader_(reader), index_(index), block_bytes_(bytes_at_once) {}

  // Returns how many of the strings equal the next of the tensor, up to the first that differs. Precondition: the
  // tensor has so many left. Errors: those of the reader.
  [[nodiscard]] Result<std::size_t> count_equal(const StringBuffer& strings);

 private:
  formats::Reader& reader_;
  std::size_t index_;
  std::size_t block_bytes_;
  StringBuffer block_;
  std::size_t next_ = 0;  // in block_
  std::uint64_t read_ = 0;
};

}  // namespace tensorcast::file_conversion
