// SPDX-License-Identifier: Apache-2.0
#include "quantized/layer/piece_decoder.hpp"

#include <fmt/format.h>

#include <cstring>

namespace tensorcast::quantized {

Result<void> PieceDecoder::read(std::uint64_t first, DType to, std::span<std::byte> out) {
  const auto item = static_cast<std::uint64_t>(bit_width(to)) / 8;
  for (const std::uint64_t limit = first + out.size() / item; first != limit;) {
    const Piece piece = piece_at(first, limit);
    const std::uint64_t bytes = (piece.end - piece.begin) * item;
    if (piece.begin == first && piece.end <= limit) {
      TRY(decode(piece, to, out.first(bytes)));
      out = out.subspan(bytes);
      first = piece.end;
      continue;
    }
    if (piece != cut_ || to != cut_type_) {
      cut_type_ = DType::undefined;  // until it is complete
      buffer_.resize(bytes);
      TRY(decode(piece, to, buffer_));
      cut_ = piece;
      cut_type_ = to;
    }
    const std::uint64_t end = std::min(piece.end, limit);
    std::memcpy(out.data(), buffer_.data() + (first - piece.begin) * item, (end - first) * item);
    out = out.subspan((end - first) * item);
    first = end;
  }
  return {};
}

Result<void> PieceDecoder::decode_blocks(const BlockTensor& tensor, std::uint64_t first, std::uint64_t rows, DType to,
                                         std::span<std::byte> out) const {
  const std::int64_t shape[] = {static_cast<std::int64_t>(rows), tensor.shape.back()};
  Result<void> done =
      dequantize(tensor, static_cast<std::int64_t>(first), {to, shape, out}, {}, nullptr, {.threads = 1});
  if (!done) return reader_.wrong(0, std::move(done.error().message));
  return done;
}

Result<void> PieceDecoder::load_index(std::uint64_t inputs, std::uint64_t groups) {
  const std::optional<std::size_t> found = reader_.find(PartRole::group_index);
  if (!found) return {};
  const std::size_t part = *found;
  if (reader_.info(part).dtype != DType::int32 || reader_.info(part).count != inputs) {
    return reader_.wrong(part, "it is not one group an input");
  }
  index_.resize(inputs);
  TRY(reader_.bytes(part, 0, std::as_writable_bytes(std::span(index_))));
  for (std::uint64_t k = 0; k < inputs; ++k) {
    if (index_[k] >= 0 && static_cast<std::uint64_t>(index_[k]) < groups) continue;
    Error error = reader_.wrong(part, fmt::format("there is no group {}", index_[k]));
    error.element = k;
    return error;
  }
  return {};
}

}  // namespace tensorcast::quantized
