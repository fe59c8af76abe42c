// SPDX-License-Identifier: Apache-2.0
// The codes and scales of a layer that exists, for another spelling.
#pragma once

#include <memory>
#include <vector>

#include "block/format/code_matrix.hpp"
#include "block/format/gguf_block.hpp"
#include "quantized/layer/part_reader.hpp"
#include "quantized/rewrite/layer_packer.hpp"

namespace tensorcast::quantized {

// How scales change although the codes stay.
struct ScaleChange {
  enum class Kind : std::uint8_t {
    none,
    to_nvfp4,  // each scale of MXFP4, 2^k, becomes two of NVFP4, 2^(k - exponent)
    to_mxfp4,  // two equal scales of NVFP4, 2^k, become one of MXFP4, 2^(k + exponent)
  };
  Kind kind = Kind::none;
  std::vector<int> exponents;  // of the tensor, or of each matrix
};

// What a layer is, whatever its spelling; `parts` are the tensors of layer.parts. Errors: unsupported (codes that lie
// in no rows, such as those of GPTQ).
[[nodiscard]] Result<LayerContent> content_of(const Layer& layer, std::span<const formats::TensorInfo> parts);

// The same, also of codes in columns (GPTQ, AWQ), and of inputs with an index of groups, which must be in order.
[[nodiscard]] Result<LayerContent> stored_content(const Layer& layer, std::span<const formats::TensorInfo> parts);

// What such a layer is when its scales have changed.
[[nodiscard]] LayerContent rescaled(LayerContent content, ScaleChange::Kind change);

// Memory: zero points in words; of codes in columns all scales, and windows of at most 16 MiB of codes, or of 32
// outputs if those take more.
class RespelledCodes final : public LayerCodes {
 public:
  // `content` is stored_content() of the layer, before the change of scales. Errors: parse (sizes that do not fit; a
  // plan may lie).
  [[nodiscard]] static Result<std::unique_ptr<RespelledCodes>> create(PartReader reader, LayerContent content,
                                                                      ScaleChange change);
  [[nodiscard]] Result<void> codes(std::uint64_t first_row, std::span<std::byte> out) override;
  [[nodiscard]] Result<void> scales(std::uint64_t first_row, std::span<std::byte> out) override;
  [[nodiscard]] Result<void> zero_points(std::uint64_t first_row, std::span<std::byte> out) override;
  [[nodiscard]] Result<bool> packed(const BlockCoding& coding, std::uint64_t offset, std::span<std::byte> out) override;

 private:
  RespelledCodes(PartReader reader, LayerContent content, ScaleChange change)
      : reader_(std::move(reader)), content_(std::move(content)), change_(std::move(change)) {}
  [[nodiscard]] Result<void> check();
  // Reads the columns of words that have the output `row`.
  [[nodiscard]] Result<void> load_columns(std::uint64_t row);
  [[nodiscard]] Result<void> codes_of_columns(std::uint64_t first_row, std::span<std::byte> out);
  [[nodiscard]] Result<void> check_range(std::size_t part, std::uint64_t first,
                                         std::span<const std::byte> integers) const;
  [[nodiscard]] Result<void> stored_scales(std::uint64_t first_row, std::span<std::byte> out);
  [[nodiscard]] Result<void> unpack_zeros(std::size_t part);
  [[nodiscard]] Result<void> read_blocks(std::uint64_t first_row, std::uint64_t rows);

  PartReader reader_;
  LayerContent content_;
  ScaleChange change_;
  std::size_t scales_ = 0;
  const block::GgufRow* gguf_ = nullptr;  // of the codes; null: they are no blocks of ggml
  std::uint64_t row_bytes_ = 0;           // of codes
  std::vector<std::byte> buffer_, stored_;
  std::vector<std::byte> zeros_;          // that were packed, in rows of groups
  std::vector<std::byte> column_scales_;  // as they are stored
  block::CodeMatrices window_;            // codes in columns: [inputs, outputs], of outputs [begin_, end_)
  std::vector<std::byte> window_bytes_;
  std::uint64_t width_ = 32, begin_ = 0, end_ = 0;
};

// Checks that an index of groups, if there is one, says what is so without it. Errors: unsupported, naming the input;
// those of reading.
[[nodiscard]] Result<void> check_order(const PartReader& reader);
// Whether all zero points of the layer are the middle of the codes, as those of symmetric codes. Errors: those of
// reading.
[[nodiscard]] Result<bool> is_symmetric(LayerCodes& codes, const LayerContent& content);

inline constexpr int not_a_power = -10000;
// The exponent of a scale of NVFP4 that is a power of two; not_a_power: it is none.
[[nodiscard]] int exponent_of_e4m3(std::byte scale) noexcept;
// The scale 2^exponent of NVFP4; exponents from -9 to 8, others become the nearest of these.
[[nodiscard]] std::byte e4m3_of_exponent(int exponent) noexcept;
inline constexpr int least_e4m3_exponent = -9, most_e4m3_exponent = 8;
inline constexpr std::byte e8m0_nan{0xff}, e4m3_nan{0x7f};

}  // namespace tensorcast::quantized
