// SPDX-License-Identifier: Apache-2.0
// Reads parts of a layer as bytes, words and float32 numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "block/format/scale_grid.hpp"
#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"
#include "quantized/layer/layer_decoder.hpp"

namespace tensorcast::quantized {

class PartReader {
 public:
  PartReader(Layer layer, LayerParts parts) : layer_(std::move(layer)), parts_(std::move(parts)) {}
  // `reader` outlives it.
  PartReader(formats::Reader& reader, const Layer& layer) : PartReader(layer, parts_of(reader, layer)) {}

  [[nodiscard]] const Layer& layer() const noexcept { return layer_; }
  [[nodiscard]] const LayerParts& parts() const noexcept { return parts_; }
  [[nodiscard]] const formats::TensorInfo& info(std::size_t part) const noexcept { return parts_.infos[part]; }
  [[nodiscard]] std::span<const formats::TensorInfo> infos() const noexcept { return parts_.infos; }
  // Returns the place of a role among the parts, if there is one.
  [[nodiscard]] std::optional<std::size_t> find(PartRole role) const noexcept { return layer_.place_of(role); }

  [[nodiscard]] Result<void> bytes(std::size_t part, std::uint64_t offset, std::span<std::byte> out) const {
    return parts_.read(part, offset, out);
  }
  // Reads `width` bytes from `begin` on of each row of `row_bytes`, from the row `first` on.
  [[nodiscard]] Result<void> columns(std::size_t part, std::uint64_t row_bytes, std::uint64_t begin,
                                     std::uint64_t width, std::span<std::byte> out, std::uint64_t first = 0) const;
  // Loads rows of blocks of a part from `first` on, whose numbers have this type; of tiles, `first` begins a row. The
  // grid is valid until the next call.
  [[nodiscard]] Result<block::ScaleGrid> grid(std::size_t part, DType type, const block::GridSize& size,
                                              std::uint64_t first, bool swizzled);
  // Reads elements of a part as float32, exactly. `type`: what they are, if not what the file says.
  [[nodiscard]] Result<void> numbers(std::size_t part, DType type, std::uint64_t first, std::span<float> out);
  // Reads all elements of a part of at most `most` elements.
  [[nodiscard]] Result<std::vector<float>> all_numbers(std::size_t part, std::uint64_t most);
  // The type of the scales' elements: bytes may be E8M0 or E4M3.
  [[nodiscard]] DType scale_type(std::size_t part) const noexcept;

  [[nodiscard]] Error wrong(std::size_t part, std::string message) const {
    return of_tensor(parts_.infos[part].name, parse_error(std::move(message)));
  }

 private:
  Layer layer_;
  LayerParts parts_;
  std::vector<std::byte> buffer_;
};

// Converts numbers of a type to float32, exactly.
[[nodiscard]] Result<void> to_float(DType type, std::span<const std::byte> bytes, std::span<float> out);

// Returns the numbers that the codes of an element of 8 bits or fewer stand for: 2 to the power of `bits` of them.
[[nodiscard]] std::vector<float> code_numbers(const BlockCoding& coding, std::string_view scheme);

// The kinds of decoders. Errors: as LayerDecoder::create.
[[nodiscard]] Result<std::unique_ptr<LayerDecoder>> create_row_decoder(PartReader reader);
[[nodiscard]] Result<std::unique_ptr<LayerDecoder>> create_gguf_decoder(PartReader reader);
[[nodiscard]] Result<std::unique_ptr<LayerDecoder>> create_transposed_decoder(PartReader reader);

}  // namespace tensorcast::quantized
