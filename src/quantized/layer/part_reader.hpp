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

#include "quantized/layer/layer_decoder.hpp"

namespace tensorcast::quantized {

class PartReader {
 public:
  PartReader(Layer layer, std::vector<formats::TensorInfo> parts, ReadPart read)
      : layer_(std::move(layer)), parts_(std::move(parts)), read_(std::move(read)) {}

  [[nodiscard]] const Layer& layer() const noexcept { return layer_; }
  [[nodiscard]] const formats::TensorInfo& info(std::size_t part) const noexcept { return parts_[part]; }
  // Returns the place of a role among the parts, if there is one.
  [[nodiscard]] std::optional<std::size_t> find(PartRole role) const noexcept { return layer_.place_of(role); }

  [[nodiscard]] Result<void> bytes(std::size_t part, std::uint64_t offset, std::span<std::byte> out) const {
    return read_(part, offset, out);
  }
  // Reads elements of a part as float32, exactly. `type`: what they are, if not what the file says.
  [[nodiscard]] Result<void> numbers(std::size_t part, DType type, std::uint64_t first, std::span<float> out);
  // Reads all elements of a part of at most `most` elements.
  [[nodiscard]] Result<std::vector<float>> all_numbers(std::size_t part, std::uint64_t most);
  // The type of the scales' elements: bytes may be E8M0 or E4M3.
  [[nodiscard]] DType scale_type(std::size_t part) const noexcept;

  [[nodiscard]] Error wrong(std::size_t part, std::string message) const {
    return Error{.code = ErrorCode::parse, .message = std::move(message), .tensor = parts_[part].name};
  }

 private:
  Layer layer_;
  std::vector<formats::TensorInfo> parts_;
  ReadPart read_;
  std::vector<std::byte> buffer_;
};

// The tensors of a layer, and how they are read. `reader` outlives it.
struct LayerParts {
  std::vector<formats::TensorInfo> infos;
  ReadPart read;
};
[[nodiscard]] LayerParts parts_of(formats::Reader& reader, const Layer& layer);

// Returns the numbers that the codes of an element of 8 bits or fewer stand for: 2 to the power of `bits` of them.
[[nodiscard]] std::vector<float> code_numbers(const BlockCoding& coding, std::string_view scheme);

// The code of `bits` bits that begins at bit `bit` of a dense stream, lowest first. At most 8 bits; reads the bytes
// that have it, no more.
[[nodiscard]] inline unsigned code_at(const std::byte* bytes, std::uint64_t bit, int bits) noexcept {
  const std::uint64_t byte = bit / 8;
  const unsigned shift = static_cast<unsigned>(bit % 8);
  unsigned value = std::to_integer<unsigned>(bytes[byte]) >> shift;
  if (shift + static_cast<unsigned>(bits) > 8) value |= std::to_integer<unsigned>(bytes[byte + 1]) << (8 - shift);
  return value & ((1u << bits) - 1);
}

// The kinds of decoders. Errors: as LayerDecoder::create.
[[nodiscard]] Result<std::unique_ptr<LayerDecoder>> create_row_decoder(PartReader reader);
[[nodiscard]] Result<std::unique_ptr<LayerDecoder>> create_gguf_decoder(PartReader reader);
[[nodiscard]] Result<std::unique_ptr<LayerDecoder>> create_transposed_decoder(PartReader reader);

}  // namespace tensorcast::quantized
