// SPDX-License-Identifier: Apache-2.0
// Decodes a layer range by range, with the operations of the tool that wrote it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "formats/format.hpp"
#include "quantized/layer/layer.hpp"
#include "tensorcast/error.hpp"

namespace tensorcast::quantized {

// Reads bytes of a part of a layer, by its place in Layer::parts.
using ReadPart = std::function<Result<void>(std::size_t part, std::uint64_t offset, std::span<std::byte> out)>;

// The tensors of a layer, in the order of Layer::parts, and how they are read.
struct LayerParts {
  std::vector<formats::TensorInfo> infos;
  ReadPart read;
};
// `reader` outlives them.
[[nodiscard]] LayerParts parts_of(formats::Reader& reader, const Layer& layer);

// Every result is one float32 operation after the other, rounded to nearest even, then one rounding to the type that is
// asked for. Memory: a few MiB, or the codes that 32 rows need of a weight that is transposed.
class LayerDecoder {
 public:
  // What the parts are must fit the layer, which may come from a file that lies.
  // Errors: parse, unsupported, naming a tensor.
  [[nodiscard]] static Result<std::unique_ptr<LayerDecoder>> create(Layer layer, LayerParts parts);
  virtual ~LayerDecoder() = default;
  // Decodes elements of the weight from `first` on, to a floating-point type of 8 to 32 bits. `out` has whole elements
  // and is aligned to them. Precondition: they are in the weight.
  // Errors: those of reading; parse (a group that does not exist).
  [[nodiscard]] virtual Result<void> read(std::uint64_t first, DType to, std::span<std::byte> out) = 0;
  [[nodiscard]] Result<void> read(std::uint64_t first, std::span<float> out) {
    return read(first, DType::float32, std::as_writable_bytes(out));
  }
  // Bounds of the numbers that were read, NaN and infinity aside; nullopt: not known.
  [[nodiscard]] virtual std::optional<formats::Magnitudes> magnitudes() const { return std::nullopt; }

 protected:
  LayerDecoder() = default;
};

// The float32 numbers of a weight: its elements and 4 bytes each. Precondition: the layer has no problem.
[[nodiscard]] formats::TensorInfo decoded_info(const Layer& layer);

}  // namespace tensorcast::quantized
