// SPDX-License-Identifier: Apache-2.0
// How layouts store the weights of a scheme, as rows: what finds a layer and what writes one read the same row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "block/format/codings.hpp"
#include "quantized/layer/layer.hpp"
#include "quantized/layer/model_tensors.hpp"
#include "quantized/layout/written_layer.hpp"

namespace tensorcast::quantized {

using block::mx_coding;
using block::nvfp4_coding;

// The dimensions of scales in a file. One scale for the whole tensor has none; swizzled ones are a matrix of tiles.
enum class ScaleShape : std::uint8_t {
  grid,       // [..., rows of blocks, blocks of a row]
  rows,       // the same of blocks that are rows, without the last
  with_ones,  // of a matrix: [rows of blocks, 1, blocks of a row, 1]
};

struct StoredScheme {
  std::string_view scheme;
  std::string_view word = {};                              // what descriptions call it
  BlockCoding coding = {.element = DType::float8_e4m3fn};  // of codes in rows
  std::string_view codes = "weight";                       // the tensor's name after the module's, as those below
  DType packed_type = DType::uint8;                        // of codes under 8 bits
  std::string_view scales = "weight_scale";
  DType e8m0_type = DType::uint8;  // of scales that are E8M0, which may also be float8_e8m0fnu
  ScaleShape scale_shape = ScaleShape::grid;
  std::string_view global = {};  // "": no scale for the whole tensor

  [[nodiscard]] constexpr DType codes_type() const noexcept { return coding.bits < 8 ? packed_type : coding.element; }
  // Inputs that share a scale; 0: the weight tells.
  [[nodiscard]] constexpr std::int64_t block() const noexcept {
    constexpr std::int64_t nv_block = 16, mx_block = 32;
    return coding.scale == DType::undefined ? 0 : coding.scale == DType::float8_e4m3fn ? nv_block : mx_block;
  }
};

// Returns the row of a weight with this scheme, element and width; null if there is none.
[[nodiscard]] const StoredScheme* find_stored(std::span<const StoredScheme> rows, const LayerContent& content) noexcept;

// Gives a layer that is found the scheme, the coding and the blocks of a row, and the shape that its codes tell.
void read_as(const StoredScheme& row, LayerBuilder& builder, std::size_t most_dimensions = 3);

// Lists the tensors of a layer as a row has them.
void spell_as(const StoredScheme& row, const LayerContent& content, WrittenLayer& written);

// Adds the scale of activations that was calibrated, if there is one.
void add_input_scale(const LayerContent& content, WrittenLayer& written, std::string_view name = "input_scale",
                     std::vector<std::int64_t> shape = {});

}  // namespace tensorcast::quantized
