// SPDX-License-Identifier: Apache-2.0
#include "convert/run/conversion_source.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "dtype/try.hpp"

namespace tensorcast::file_conversion {

Result<ConversionSource> ConversionSource::create(std::span<PlannedTensor* const> tensors, formats::Reader& stored,
                                                  quantized::LoadLayer load, const Execution& execution) {
  ConversionSource source(stored);
  TRY(source.read_decoded(tensors, load));
  source.read_rewritten(tensors, std::move(load), execution);
  return source;
}

Result<void> ConversionSource::read_decoded(std::span<PlannedTensor* const> tensors, const quantized::LoadLayer& load) {
  std::vector<quantized::Layer> layers;
  for (const PlannedTensor* tensor : tensors) {
    if (tensor->decodes()) layers.push_back(TRY(load(tensor->decoded()->layer)).layer);
  }
  if (layers.empty()) return {};
  std::size_t layer = 0, source = reader_->tensors().size();
  decoded_ = std::make_unique<quantized::DecodedReader>(*reader_, std::move(layers));
  for (PlannedTensor* tensor : tensors) {
    if (!tensor->decodes()) continue;
    tensor->source = source++;
    // In its target's type, if the reader knows it.
    const DType to = tensor->target.dtype;
    auto& fate = std::get<Decoded>(tensor->fate);
    if (quantized::is_plain_float(to)) fate.rounded = decoded_->add_rounded(layer, to);
    ++layer;
  }
  reader_ = decoded_.get();
  return {};
}

void ConversionSource::read_rewritten(std::span<PlannedTensor* const> tensors, quantized::LoadLayer load,
                                      const Execution& execution) {
  const auto is_rewritten = [](const PlannedTensor* tensor) { return tensor->rewritten() != nullptr; };
  if (std::ranges::none_of(tensors, is_rewritten)) return;
  respelled_ = std::make_unique<quantized::RespelledReader>(*reader_, execution, std::move(load));
  for (PlannedTensor* tensor : tensors) {
    const Rewritten* fate = tensor->rewritten();
    if (fate == nullptr) continue;
    formats::TensorInfo written = tensor->target;
    written.dtype = tensor->from;
    written.bytes = tensor->bytes_in;
    tensor->source = respelled_->add(std::move(written), fate->layer, fate->place);
  }
  reader_ = respelled_.get();
}

void ConversionSource::measure_losses() {
  if (respelled_ != nullptr) respelled_->measure_losses();
}

std::optional<quantized::QuantizedLoss> ConversionSource::loss(const PlannedTensor& tensor) {
  return tensor.rewritten() == nullptr ? std::nullopt : respelled_->loss(tensor.source);
}

}  // namespace tensorcast::file_conversion
