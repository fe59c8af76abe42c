// SPDX-License-Identifier: Apache-2.0
// Decoders that decode some elements together: ranges that cut such a piece are copied from it.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "dtype/try.hpp"
#include "quantized/layer/part_reader.hpp"
#include "tensorcast/block.hpp"

namespace tensorcast::quantized {

// Elements [begin, end) of a weight.
struct Piece {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;

  friend bool operator==(const Piece&, const Piece&) = default;
};

// Bounds of the magnitudes of products of scales and elements.
class MagnitudeBounds {
 public:
  // `least` and `most`: of elements other than 0.
  void set_elements(double least, double most) noexcept { least_ = least, most_ = most; }
  void add_scales(std::span<const float> scales) noexcept { scales_.add(scales); }
  void add_biases(std::span<const float> biases) noexcept { biases_.add(biases); }

  [[nodiscard]] formats::Magnitudes get() const noexcept {
    constexpr double rounding = 2.0;
    // A sum of two float32 numbers is 0 or a multiple of the last digit of the smaller one.
    constexpr double last_digit = 0x1p-24;
    const bool sums = biases_.most > 0;
    const double least = std::min(scales_.least * least_, double{biases_.least}) * (sums ? last_digit : 1.0);
    return {.least = least / rounding, .most = (scales_.most * most_ + biases_.most) * rounding};
  }

 private:
  struct Range {
    float least = std::numeric_limits<float>::infinity();
    float most = 0;

    void add(std::span<const float> numbers) noexcept {
      for (const float number : numbers) {
        const float magnitude = std::fabs(number);
        if (!(magnitude > 0) || magnitude > std::numeric_limits<float>::max()) continue;
        least = std::min(least, magnitude);
        most = std::max(most, magnitude);
      }
    }
  };

  double least_ = 1, most_ = 1;
  Range scales_, biases_;
};

class PieceDecoder : public LayerDecoder {
 public:
  Result<void> read(std::uint64_t first, DType to, std::span<std::byte> out) final;
  std::optional<formats::Magnitudes> magnitudes() const override { return bounds_.get(); }

 protected:
  explicit PieceDecoder(PartReader reader) : reader_(std::move(reader)) {}

  // Returns the piece that has `element`; if it begins there, it may be several that end at `limit` or before.
  [[nodiscard]] virtual Piece piece_at(std::uint64_t element, std::uint64_t limit) const = 0;
  // Decodes a piece that piece_at() returned.
  [[nodiscard]] virtual Result<void> decode(const Piece& piece, DType to, std::span<std::byte> out) = 0;

  // Decodes rows [first, ...) of a tensor in blocks, on this thread. Errors name the codes.
  [[nodiscard]] Result<void> decode_blocks(const BlockTensor& tensor, std::uint64_t first, std::uint64_t rows, DType to,
                                           std::span<std::byte> out) const;
  // Loads the group of each input, if the layer has such an index. Errors: parse (there is no such group).
  [[nodiscard]] Result<void> load_index(std::uint64_t inputs, std::uint64_t groups);

  PartReader reader_;
  MagnitudeBounds bounds_;
  std::vector<std::int32_t> index_;  // groups of inputs; empty: they are in order

 private:
  std::vector<std::byte> buffer_;  // the piece that was cut last
  Piece cut_;
  DType cut_type_ = DType::undefined;
};

// Makes a decoder that PartReader and `more` construct; its prepare() checks the sizes of the parts.
template <class Decoder, class... More>
Result<std::unique_ptr<LayerDecoder>> prepared(PartReader reader, const More&... more) {
  auto decoder = std::make_unique<Decoder>(std::move(reader), more...);
  TRY(decoder->prepare());
  return std::unique_ptr<LayerDecoder>(std::move(decoder));
}

}  // namespace tensorcast::quantized
