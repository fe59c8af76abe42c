// SPDX-License-Identifier: Apache-2.0
// A reader whose quantized layers are also there as weights of float32, and of other types.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "formats/wrapped_reader.hpp"
#include "quantized/layer/layer_decoder.hpp"

namespace tensorcast::quantized {

// After the tensors of `inner` come the weights of `layers`, in order, each decoded while it is read.
class DecodedReader final : public formats::WrappedReader {
 public:
  // `inner` outlives it, and parts of layers are its tensors. Layers with a problem are not read.
  DecodedReader(formats::Reader& inner, std::vector<Layer> layers);

  // Adds a layer's weight, rounded once to another type, and returns its place among the tensors.
  // Precondition: is_plain_float(type).
  [[nodiscard]] std::size_t add_rounded(std::size_t layer, DType type);

  // Precondition, of a layer: whole elements.
  [[nodiscard]] Result<void> read(std::size_t index, std::uint64_t offset, std::span<std::byte> out) override;
  [[nodiscard]] std::optional<formats::Magnitudes> magnitudes(std::size_t index) const override;

 private:
  std::vector<Layer> layers_;
  std::vector<std::size_t> layer_of_;  // of the tensors after those of `inner`
  std::optional<std::size_t> open_;    // the tensor of decoder_
  std::unique_ptr<LayerDecoder> decoder_;
};

}  // namespace tensorcast::quantized
