// SPDX-License-Identifier: Apache-2.0
// The codes, scales and zero points of a layer of GPTQ, AWQ or auto-round, for another spelling.
#pragma once

#include <memory>
#include <vector>

#include "quantized/layer/part_reader.hpp"
#include "quantized/rewrite/column_words.hpp"
#include "quantized/rewrite/layer_packer.hpp"

namespace tensorcast::quantized {

// Memory: scales and zero points, and windows of at most 16 MiB of codes, or of 32 outputs if those take more.
class ColumnCodes final : public LayerCodes {
 public:
  // `content` is that of the layer. Errors: parse (sizes that do not fit; a plan may lie).
  [[nodiscard]] static Result<std::unique_ptr<LayerCodes>> create(PartReader reader, LayerContent content);
  [[nodiscard]] Result<void> codes(std::uint64_t first_row, std::span<std::byte> out) override;
  [[nodiscard]] Result<void> scales(std::uint64_t first_row, std::span<std::byte> out) override;
  [[nodiscard]] Result<void> zero_points(std::uint64_t first_row, std::span<std::byte> out) override;
  [[nodiscard]] Result<bool> packed(const BlockCoding& coding, std::uint64_t offset, std::span<std::byte> out) override;

 private:
  ColumnCodes(PartReader reader, LayerContent content)
      : reader_(std::move(reader)),
        content_(std::move(content)),
        columns_(reader_.layer().coding, content_.rows(), content_.columns()) {}
  [[nodiscard]] Result<void> check();
  // Reads the columns of words that have the output `row`.
  [[nodiscard]] Result<void> load(std::uint64_t row);

  PartReader reader_;
  LayerContent content_;
  ColumnWords columns_;
  std::size_t scales_part_ = 0, zeros_part_ = 0;
  std::uint64_t width_ = 32, begin_ = 0, end_ = 0;  // of the window, in outputs
  std::vector<std::uint32_t> words_;                // the window
  std::vector<std::byte> scales_, zeros_;           // as they are stored; in rows of groups
};

}  // namespace tensorcast::quantized
