#include "convert/quantized/respelled_reader.hpp"
// SPDX-License-Identifier: Apache-2.0
#include <utility>

namespace tensorcast::quantized {

std::size_t RespelledReader::add(const Layer& source, std::shared_ptr<const RespelledLayer> layer, std::size_t tensor) {
  tensors_.push_back(layer->written.tensors[tensor].info);
  entries_.push_back({.source = source, .layer = std::move(layer), .tensor = tensor});
  return tensors_.size() - 1;
}

Result<void> RespelledReader::read(std::size_t index, std::uint64_t offset, std::span<std::byte> out) {
  const std::size_t count = inner_.tensors().size();
  if (index < count) return inner_.read(index, offset, out);
  const Entry& entry = entries_[index - count];
  if (open_ != index - count) {
    std::vector<formats::TensorInfo> parts;
    std::vector<std::size_t> places;
    for (const Part& part : entry.source.parts) {
      parts.push_back(inner_.tensors()[part.tensor]);
      places.push_back(part.tensor);
    }
    PartReader reader(entry.source, std::move(parts),
                      [this, places](std::size_t part, std::uint64_t at, std::span<std::byte> bytes) {
                        return inner_.read(places[part], at, bytes);
                      });
    auto codes = RespelledCodes::create(std::move(reader), entry.layer->content, entry.layer->change);
    if (!codes) return std::move(codes).error();
    packer_.reset();
    codes_ = std::move(codes).value();
    packer_ = std::make_unique<LayerPacker>(entry.layer->becomes, entry.layer->written, *codes_);
    open_ = index - count;
  }
  return packer_->read(entry.tensor, offset, out);
}

}  // namespace tensorcast::quantized
