// SPDX-License-Identifier: Apache-2.0
// A reader whose quantized layers are also there in another spelling.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "formats/wrapped_reader.hpp"
#include "quantized/layer/part_reader.hpp"
#include "quantized/rewrite/layer_packer.hpp"
#include "quantized/rewrite/respelling.hpp"

namespace tensorcast::quantized {

// A layer in its new spelling or scheme.
struct RespelledSource {
  Layer layer;                  // as it is read
  std::vector<Layer> siblings;  // with which it shares its tensor scale
  std::shared_ptr<const RespelledLayer> becomes;
};

// Makes a layer when one of its tensors is read: the layers of a large model are not in memory together.
using LoadLayer = std::function<Result<RespelledSource>(std::size_t layer)>;

// After the tensors of `inner` come written ones, in the order of add().
class RespelledReader final : public formats::WrappedReader {
 public:
  // `inner` outlives it. Layers, and their siblings, have parts that are tensors of `inner`.
  RespelledReader(formats::Reader& inner, const Execution& execution, LoadLayer load)
      : WrappedReader(inner, inner.tensors()), execution_(execution), load_(std::move(load)) {}
  // Adds a written tensor of a layer, RespelledLayer::written(); returns its index.
  std::size_t add(formats::TensorInfo info, std::size_t layer, std::size_t tensor);

  // Measures what weights lose while they are quantized.
  void measure_losses() { measures_ = true; }
  // What the weight of these codes lost; nullopt: they are not codes of a weight that was quantized and read whole.
  [[nodiscard]] std::optional<QuantizedLoss> loss(std::size_t index);

  [[nodiscard]] std::optional<formats::Magnitudes> magnitudes(std::size_t index) const override {
    return index < inner_.tensors().size() ? inner_.magnitudes(index) : std::nullopt;
  }
  [[nodiscard]] Result<void> read(std::size_t index, std::uint64_t offset, std::span<std::byte> out) override;

 private:
  struct Entry {
    std::size_t layer = 0;   // of load_
    std::size_t tensor = 0;  // in RespelledLayer::written
  };

  [[nodiscard]] Result<std::shared_ptr<const RespelledSource>> source_of(std::size_t layer);
  // Makes the codes of a layer.
  [[nodiscard]] Result<void> open(std::size_t layer);
  [[nodiscard]] Result<std::unique_ptr<LayerCodes>> quantizer(std::size_t index, const RespelledSource& source);
  // Reads the numbers of a weight, or of a layer that is decoded; sets their type.
  [[nodiscard]] Result<ReadNumbers> numbers_of(const Layer& layer, DType& type);
  [[nodiscard]] Result<float> maximum_of(const RespelledSource& source);
  // Keeps what was measured of the weight at hand.
  void keep_loss();

  Execution execution_;
  std::vector<Entry> entries_;
  LoadLayer load_;
  std::optional<std::size_t> loaded_;              // the layer of source_
  std::shared_ptr<const RespelledSource> source_;  // what was used last
  std::optional<std::size_t> open_;                // the entry of packer_
  std::shared_ptr<const RespelledSource> opened_;  // the layer of packer_
  std::optional<std::size_t> quantized_;           // the layer of codes_, if they are made of its numbers
  std::map<std::string, float> magnitudes_;        // the largest ones of weights
  std::unique_ptr<LayerCodes> codes_;
  NumberCodes* measured_ = nullptr;  // codes_, if they are measured
  bool measures_ = false;
  std::map<std::size_t, QuantizedLoss> losses_;  // of layers
  WrittenLayer written_;                         // of packer_
  std::unique_ptr<LayerPacker> packer_;
};

}  // namespace tensorcast::quantized
