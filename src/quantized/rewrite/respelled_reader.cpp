// SPDX-License-Identifier: Apache-2.0
#include "quantized/rewrite/respelled_reader.hpp"

#include <algorithm>
#include <utility>

#include "dtype/error_places.hpp"
#include "dtype/try.hpp"

namespace tensorcast::quantized {

std::size_t RespelledReader::add(Layer source, std::vector<Layer> siblings, std::shared_ptr<const RespelledLayer> layer,
                                 std::size_t tensor) {
  tensors_.push_back(layer->written.tensors[tensor].info);
  entries_.push_back(
      {.source = std::move(source), .siblings = std::move(siblings), .layer = std::move(layer), .tensor = tensor});
  return tensors_.size() - 1;
}

Result<void> RespelledReader::read(std::size_t index, std::uint64_t offset, std::span<std::byte> out) {
  const std::size_t count = inner_.tensors().size();
  if (index < count) return inner_.read(index, offset, out);
  const Entry& entry = entries_[index - count];
  if (open_ != index - count) {
    packer_.reset();
    open_ = SIZE_MAX;
    TRY(open(index - count));
    packer_ = std::make_unique<LayerPacker>(entry.layer->becomes, entry.layer->written, *codes_);
    open_ = index - count;
  }
  Result<void> done = packer_->read(entry.tensor, offset, out);
  if (!done && done.error().element && entry.layer->quantizing && is_turned(entry.source)) {
    done.error().element = turned_element(entry.source, *done.error().element);
  }
  return entry.layer->quantizing ? at_tensor(entry.layer->becomes.name, std::move(done)) : done;
}

Result<void> RespelledReader::open(std::size_t index) {
  const Entry& entry = entries_[index];
  const RespelledLayer& layer = *entry.layer;
  if (layer.quantizing && quantized_ == layer.becomes.name) return {};
  keep_loss();
  quantized_.reset();
  if (layer.quantizing) {
    codes_ = TRY(quantizer(index));
    quantized_ = layer.becomes.name;
    return {};
  }
  LayerParts parts = parts_of(inner_, entry.source);
  codes_ = TRY(RespelledCodes::create(PartReader(entry.source, std::move(parts.infos), std::move(parts.read)),
                                      layer.content, layer.change));
  return {};
}

Result<ReadNumbers> RespelledReader::numbers_of(const Layer& layer, DType& type) {
  if (!layer.is_quantized()) {
    const std::size_t tensor = layer.codes();
    type = inner_.tensors()[tensor].dtype;
    return ReadNumbers([this, tensor, type](std::uint64_t first, std::span<std::byte> out) {
      return inner_.read(tensor, storage_bytes(type, first), out);
    });
  }
  LayerParts parts = parts_of(inner_, layer);
  auto decoder = TRY(LayerDecoder::create(layer, std::move(parts.infos), std::move(parts.read)));
  type = DType::float32;
  return ReadNumbers(
      [shared = std::shared_ptr<LayerDecoder>(std::move(decoder))](std::uint64_t first, std::span<std::byte> out) {
        // Buffers of quantizers are those of vectors, which are aligned.
        return shared->read(first, DType::float32, out);
      });
}

Result<float> RespelledReader::maximum_of(std::size_t index) {
  const Entry& entry = entries_[index];
  std::vector<const Layer*> weights = {&entry.source};
  for (const Layer& sibling : entry.siblings) weights.push_back(&sibling);
  float largest = 0.0F;
  for (const Layer* weight : weights) {
    auto known = magnitudes_.find(weight->name);
    if (known == magnitudes_.end()) {
      Quantizing quantizing = *entry.layer->quantizing;
      const ReadNumbers read = TRY(numbers_of(*weight, quantizing.numbers));
      const block::Quantizer quantizer = TRY(quantizer_of(quantizing, Shape(weight->shape)));
      const std::uint64_t count = decoded_info(*weight).count;
      const float found =
          TRY(of_tensor(weight->name, largest_magnitude(quantizer, quantizing.numbers, count, read, execution_)));
      known = magnitudes_.emplace(weight->name, found).first;
    }
    largest = std::max(largest, known->second);
  }
  return largest;
}

Result<std::unique_ptr<LayerCodes>> RespelledReader::quantizer(std::size_t index) {
  const Entry& entry = entries_[index];
  const RespelledLayer& layer = *entry.layer;
  DType type = DType::undefined;
  ReadNumbers read = TRY(numbers_of(entry.source, type));
  const bool plain = !entry.source.is_quantized();
  if (type != layer.quantizing->numbers || shape_to_quantize(entry.source) != layer.becomes.shape ||
      (plain && inner_.tensors()[entry.source.codes()].shape != entry.source.shape)) {
    return Error{.code = ErrorCode::parse, .message = "its plan names another weight", .tensor = layer.becomes.name};
  }
  if (is_turned(entry.source)) read = turned_numbers(type, entry.source, std::move(read));
  auto codes = TRY(NumberCodes::create(
      *layer.quantizing, layer.becomes, std::move(read), [this, index] { return maximum_of(index); }, execution_));
  if (measures_ && !losses_.contains(layer.becomes.name)) {
    measured_ = codes.get();
    measured_->measure_loss();
  }
  return std::unique_ptr<LayerCodes>(std::move(codes));
}

void RespelledReader::keep_loss() {
  if (measured_ == nullptr) return;
  if (std::optional<QuantizedLoss> loss = measured_->loss()) losses_.emplace(*quantized_, std::move(*loss));
  measured_ = nullptr;
}

std::optional<QuantizedLoss> RespelledReader::loss(std::size_t index) {
  const std::size_t count = inner_.tensors().size();
  if (index < count) return std::nullopt;
  const Entry& entry = entries_[index - count];
  if (entry.layer->written.tensors[entry.tensor].role != PartRole::codes) return std::nullopt;
  if (quantized_ == entry.layer->becomes.name) keep_loss();
  const auto found = losses_.find(entry.layer->becomes.name);
  return found == losses_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace tensorcast::quantized
