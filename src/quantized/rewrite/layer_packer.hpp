// SPDX-License-Identifier: Apache-2.0
// Makes the bytes of a written layer's tensors from element codes and scales, range by range.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "quantized/layout/written_layer.hpp"

namespace tensorcast::quantized {

// Element codes and scales of a layer before they are packed. Rows are counted over all matrices.
class LayerCodes {
 public:
  virtual ~LayerCodes() = default;
  // Codes of whole rows from `first_row` on, one a byte; integers as two's complement in the low bits.
  [[nodiscard]] virtual Result<void> codes(std::uint64_t first_row, std::span<std::byte> out) = 0;
  // Scales of whole rows of blocks from `first_row` on, in the type LayerContent::scales, without padding.
  [[nodiscard]] virtual Result<void> scales(std::uint64_t first_row, std::span<std::byte> out) = 0;
  // As many as LayerContent::globals, and as it says: factors or divisors; the packer inverts what a spelling wants.
  [[nodiscard]] virtual Result<std::vector<float>> global_scales() { return std::vector<float>(); }
  // Zero points of whole rows of blocks, as two's complement in bytes.
  [[nodiscard]] virtual Result<void> zero_points(std::uint64_t first_row, std::span<std::byte> out);
  // Reads bytes of packed codes if they are at hand in this packing; false: they are not.
  [[nodiscard]] virtual Result<bool> packed(const BlockCoding& /*coding*/, std::uint64_t /*offset*/,
                                            std::span<std::byte> /*out*/) {
    return false;
  }
};

class LayerPacker {
 public:
  // All outlive it. Memory: a few rows of codes; all zero points; 128 rows of scales if they are swizzled; of spellings
  // that have the transpose, all scales, and at most 64 MiB of packed codes.
  LayerPacker(const LayerContent& content, const WrittenLayer& written, LayerCodes& codes)
      : content_(content), written_(written), codes_(codes) {}
  // Reads bytes of a tensor of the written layer; any range, best in order. Precondition: inside the tensor.
  [[nodiscard]] Result<void> read(std::size_t tensor, std::uint64_t offset, std::span<std::byte> out);

 private:
  // Makes bytes_ of a tensor: all, or those around `offset`.
  [[nodiscard]] Result<void> make(const WrittenTensor& written, std::uint64_t offset);
  [[nodiscard]] Result<void> make_codes(DType stored, std::uint64_t offset);
  [[nodiscard]] Result<void> make_scales(DType stored, std::uint64_t offset);
  // Whole rows; a spelling may store float32 scales in 16 bits.
  [[nodiscard]] Result<void> read_scale_rows(DType stored, std::uint64_t row, std::span<std::byte> out);
  [[nodiscard]] Result<void> make_tiles(std::uint64_t offset);
  [[nodiscard]] Result<void> make_zero_points(DType stored);
  // Of spellings that have the transpose.
  [[nodiscard]] Result<void> make_column_codes(std::uint64_t offset);
  [[nodiscard]] Result<void> make_column_scales(DType stored);

  const LayerContent& content_;
  const WrittenLayer& written_;
  LayerCodes& codes_;
  std::vector<std::byte> rows_, scales_;
  std::optional<std::size_t> made_;  // the tensor of bytes_
  std::uint64_t begin_ = 0;          // of bytes_ in it
  std::vector<std::byte> bytes_;
};

// Packs whole rows of codes, of `columns` codes each, as `coding` has them: a stream or high_nibble_first, in rows of
// whole words of `word_bits`, which are 8 or 32. Integers that are not signed get coding.offset added, in place.
void pack_rows(const BlockCoding& coding, int word_bits, std::uint64_t columns, std::span<std::byte> codes,
               std::span<std::byte> out);

}  // namespace tensorcast::quantized
