// SPDX-License-Identifier: Apache-2.0
#include "quantized/rewrite/respelled_reader.hpp"

#include <algorithm>
#include <utility>

#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"
#include "dtype/try.hpp"

namespace tensorcast::quantized {

std::size_t RespelledReader::add(formats::TensorInfo info, std::size_t layer, std::size_t tensor) {
  tensors_.push_back(std::move(info));
  entries_.push_back({.layer = layer, .tensor = tensor});
  return tensors_.size() - 1;
}

Result<std::shared_ptr<const RespelledSource>> RespelledReader::source_of(std::size_t layer) {
  if (loaded_ != layer) {
    loaded_.reset();
    source_ = std::make_shared<const RespelledSource>(TRY(load_(layer)));
    loaded_ = layer;
  }
  return source_;
}

Result<void> RespelledReader::read(std::size_t index, std::uint64_t offset, std::span<std::byte> out) {
  const std::size_t count = inner_.tensors().size();
  if (index < count) return inner_.read(index, offset, out);
  const Entry& entry = entries_[index - count];
  const auto source = TRY(source_of(entry.layer));
  const RespelledLayer& layer = *source->becomes;
  if (open_ != index - count) {
    packer_.reset();
    open_.reset();
    TRY(open(entry.layer));
    opened_ = source;
    written_ = layer.written();
    packer_ = std::make_unique<LayerPacker>(layer.becomes, written_, *codes_);
    open_ = index - count;
  }
  Result<void> done = packer_->read(entry.tensor, offset, out);
  if (!done && done.error().element && layer.quantizing && source->layer.is_transposed()) {
    done.error().element = transposed_element(source->layer, *done.error().element);
  }
  return layer.quantizing ? at_tensor(layer.becomes.name, std::move(done)) : done;
}

Result<void> RespelledReader::open(std::size_t index) {
  const auto source = TRY(source_of(index));
  const RespelledLayer& layer = *source->becomes;
  if (layer.quantizing && quantized_ == index) return {};
  keep_loss();
  quantized_.reset();
  if (layer.quantizing) {
    codes_ = TRY(quantizer(index, *source));
    quantized_ = index;
    return {};
  }
  codes_ = TRY(RespelledCodes::create(PartReader(inner_, source->layer), *layer.content, layer.change));
  return {};
}

Result<ReadNumbers> RespelledReader::numbers_of(const Layer& layer, DType& type) {
  if (!layer.is_quantized()) {
    const std::size_t tensor = layer.codes();
    type = inner_.tensors()[tensor].dtype;
    return stored_numbers(inner_, tensor);
  }
  auto decoder = TRY(LayerDecoder::create(layer, parts_of(inner_, layer)));
  type = DType::float32;
  return ReadNumbers(
      [shared = std::shared_ptr<LayerDecoder>(std::move(decoder))](std::uint64_t first, std::span<std::byte> out) {
        // Buffers of quantizers are those of vectors, which are aligned.
        return shared->read(first, DType::float32, out);
      });
}

Result<float> RespelledReader::maximum_of(const RespelledSource& source) {
  std::vector<const Layer*> weights = {&source.layer};
  for (const Layer& sibling : source.siblings) weights.push_back(&sibling);
  float largest = 0.0F;
  for (const Layer* weight : weights) {
    auto known = magnitudes_.find(weight->name);
    if (known == magnitudes_.end()) {
      Quantizing quantizing = *source.becomes->quantizing;
      const ReadNumbers read = TRY(numbers_of(*weight, quantizing.numbers));
      const block::SharedLayout layout = TRY(layout_of(quantizing, Shape(weight->shape)));
      const float found = TRY(of_tensor(weight->name, largest_magnitude(*layout, read, execution_)));
      known = magnitudes_.emplace(weight->name, found).first;
    }
    largest = std::max(largest, known->second);
  }
  return largest;
}

Result<std::unique_ptr<LayerCodes>> RespelledReader::quantizer(std::size_t index, const RespelledSource& source) {
  const RespelledLayer& layer = *source.becomes;
  DType type = DType::undefined;
  ReadNumbers read = TRY(numbers_of(source.layer, type));
  const bool plain = !source.layer.is_quantized();
  if (type != layer.quantizing->numbers || shape_to_quantize(source.layer) != layer.becomes.shape ||
      (plain && inner_.tensors()[source.layer.codes()].shape != source.layer.shape)) {
    return of_tensor(layer.becomes.name, parse_error("its plan names another weight"));
  }
  if (source.layer.is_transposed()) read = transposed_numbers(type, source.layer, std::move(read));
  const auto maximum = [this, index]() -> Result<float> { return maximum_of(*TRY(source_of(index))); };
  auto codes = TRY(NumberCodes::create(*layer.quantizing, layer.becomes, std::move(read), maximum, execution_));
  if (measures_ && !losses_.contains(index)) {
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
  if (entry.tensor != 0) return std::nullopt;  // the codes are first
  if (quantized_ == entry.layer) keep_loss();
  const auto found = losses_.find(entry.layer);
  return found == losses_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace tensorcast::quantized
