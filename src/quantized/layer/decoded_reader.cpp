// SPDX-License-Identifier: Apache-2.0
#include "quantized/layer/decoded_reader.hpp"

#include <utility>

#include "dtype/try.hpp"
#include "quantized/layer/part_reader.hpp"

namespace tensorcast::quantized {

DecodedReader::DecodedReader(formats::Reader& inner, std::vector<Layer> layers)
    : WrappedReader(inner, inner.tensors()), layers_(std::move(layers)) {
  for (const Layer& layer : layers_) {
    layer_of_.push_back(layer_of_.size());
    tensors_.push_back(decoded_info(layer));
  }
}

std::size_t DecodedReader::add_rounded(std::size_t layer, DType type) {
  formats::TensorInfo info = decoded_info(layers_[layer]);
  info.dtype = type;
  info.bytes = storage_bytes(type, info.count);
  layer_of_.push_back(layer);
  tensors_.push_back(std::move(info));
  return tensors_.size() - 1;
}

Result<void> DecodedReader::read(std::size_t index, std::uint64_t offset, std::span<std::byte> out) {
  const std::size_t count = inner_.tensors().size();
  if (index < count) return inner_.read(index, offset, out);
  if (open_ != index || decoder_ == nullptr) {
    decoder_.reset();  // if the next one cannot be made, the last one is of another layer
    open_ = index;
    const Layer& layer = layers_[layer_of_[index - count]];
    decoder_ = TRY(LayerDecoder::create(layer, parts_of(inner_, layer)));
  }
  const DType type = tensors_[index].dtype;
  return decoder_->read(offset / static_cast<std::uint64_t>(bit_width(type) / 8), type, out);
}

std::optional<formats::Magnitudes> DecodedReader::magnitudes(std::size_t index) const {
  return open_ == index && decoder_ != nullptr ? decoder_->magnitudes() : std::nullopt;
}

}  // namespace tensorcast::quantized
