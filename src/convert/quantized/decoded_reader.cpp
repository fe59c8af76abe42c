#include "convert/quantized/decoded_reader.hpp"
// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "convert/quantized/part_reader.hpp"

namespace tensorcast::quantized {

DecodedReader::DecodedReader(formats::Reader& inner, std::vector<Layer> layers)
    : inner_(inner), layers_(std::move(layers)), tensors_(inner.tensors()) {
  for (const Layer& layer : layers_) tensors_.push_back(decoded_info(layer));
}

Result<void> DecodedReader::read(std::size_t index, std::uint64_t offset, std::span<std::byte> out) {
  const std::size_t count = inner_.tensors().size();
  if (index < count) return inner_.read(index, offset, out);
  if (open_ != index - count || decoder_ == nullptr) {
    decoder_.reset();  // if the next one cannot be made, the last one is of another layer
    open_ = index - count;
    const Layer& layer = layers_[open_];
    LayerParts parts = parts_of(inner_, layer);
    auto decoder = LayerDecoder::create(layer, std::move(parts.infos), std::move(parts.read));
    if (!decoder) return std::move(decoder).error();
    decoder_ = std::move(decoder).value();
  }
  // Buffers of conversions are aligned.
  const std::span<float> numbers(reinterpret_cast<float*>(out.data()), out.size() / sizeof(float));
  return decoder_->read(offset / sizeof(float), numbers);
}

}  // namespace tensorcast::quantized
