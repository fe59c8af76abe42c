// SPDX-License-Identifier: Apache-2.0
#include "quantized/layer/layer_decoder.hpp"

#include <fmt/format.h>

#include <limits>
#include <utility>

#include "block/format/scale_tiles.hpp"
#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"
#include "dtype/try.hpp"
#include "quantized/layer/part_reader.hpp"
#include "tensorcast/block.hpp"
#include "tensorcast/cast.hpp"
#include "tensorcast/tensor.hpp"

namespace tensorcast::quantized {

Result<void> PartReader::columns(std::size_t part, std::uint64_t row_bytes, std::uint64_t begin, std::uint64_t width,
                                 std::span<std::byte> out, std::uint64_t first) const {
  const std::uint64_t each = width == row_bytes ? out.size() : width;
  for (std::uint64_t done = 0; done < out.size(); done += each) {
    TRY(bytes(part, (first + done / width) * row_bytes + begin, out.subspan(done, each)));
  }
  return {};
}

Result<block::ScaleGrid> PartReader::grid(std::size_t part, DType type, const block::GridSize& size,
                                          std::uint64_t first, bool swizzled) {
  const auto bytes_of = [&](std::uint64_t rows) {
    return swizzled ? block::scales_in_tiles(rows, size.columns) : storage_bytes(type, rows * size.columns);
  };
  buffer_.resize(bytes_of(size.rows));
  TRY(bytes(part, bytes_of(first), buffer_));
  Result<block::ScaleGrid> made = block::scale_grid({type, {}, buffer_}, size, DType::undefined, swizzled, "scales");
  if (!made) return wrong(part, std::move(made).error().message);
  return made;
}

Result<void> to_float(DType type, std::span<const std::byte> bytes, std::span<float> out) {
  const std::int64_t shape[] = {static_cast<std::int64_t>(out.size())};
  return cast({type, shape, bytes}, {DType::float32, shape, std::as_writable_bytes(out)}, {}, {.threads = 1});
}

Result<void> PartReader::numbers(std::size_t part, DType type, std::uint64_t first, std::span<float> out) {
  if (out.empty()) return {};
  buffer_.resize(storage_bytes(type, out.size()));
  TRY(bytes(part, storage_bytes(type, first), buffer_));
  return to_float(type, buffer_, out);
}

Result<std::vector<float>> PartReader::all_numbers(std::size_t part, std::uint64_t most) {
  if (info(part).count > most) {
    return wrong(part, fmt::format("it has {} elements, and at most {} are of use", info(part).count, most));
  }
  std::vector<float> values(info(part).count);
  TRY(numbers(part, info(part).dtype, 0, values));
  return values;
}

DType PartReader::scale_type(std::size_t part) const noexcept {
  return layer_.coding.scale == DType::undefined ? parts_.infos[part].dtype : layer_.coding.scale;
}

std::vector<float> code_numbers(const BlockCoding& coding, std::string_view scheme) {
  std::vector<float> numbers(std::size_t{1} << coding.bits);
  const BlockFormat* const format = find_block_format(scheme);
  const std::span<const float> table = format == nullptr || format->table.empty() ? nf4_table() : format->table;
  for (std::size_t code = 0; code < numbers.size(); ++code) {
    const auto value = static_cast<int>(code);
    if (coding.element == DType::undefined) {
      numbers[code] = table[code % table.size()];
    } else if (is_integer(coding.element)) {
      const int half = 1 << (coding.bits - 1);
      numbers[code] =
          static_cast<float>(coding.element == DType::int8 && value >= half ? value - 2 * half : value - coding.offset);
    } else {
      const std::int64_t one[] = {1};
      const auto byte = static_cast<std::byte>(code);
      const Result<void> done = cast({coding.element, one, std::span(&byte, 1)},
                                     {DType::float32, one, std::as_writable_bytes(std::span(&numbers[code], 1))});
      if (!done) numbers[code] = std::numeric_limits<float>::quiet_NaN();
      if (coding.positive_zero && numbers[code] == 0.0F) numbers[code] = 0.0F;
    }
  }
  return numbers;
}

LayerParts parts_of(formats::Reader& reader, const Layer& layer) {
  LayerParts parts;
  std::vector<std::size_t> places;
  for (const Part& part : layer.parts) {
    parts.infos.push_back(reader.tensors()[part.tensor]);
    places.push_back(part.tensor);
  }
  parts.read = [&reader, places = std::move(places)](std::size_t part, std::uint64_t at, std::span<std::byte> bytes) {
    return reader.read(places[part], at, bytes);
  };
  return parts;
}

formats::TensorInfo decoded_info(const Layer& layer) {
  const Result<std::size_t> count = element_count(layer.shape);
  formats::TensorInfo info{.name = layer.name, .dtype = DType::float32, .shape = layer.shape};
  info.count = count ? *count : 0;
  info.bytes = storage_bytes(DType::float32, info.count);
  return info;
}

Result<std::unique_ptr<LayerDecoder>> LayerDecoder::create(Layer layer, LayerParts parts) {
  const Result<std::size_t> count = element_count(layer.shape);
  constexpr std::size_t most_elements = std::size_t{1} << 56;  // products with bits and bytes cannot overflow
  const BlockPacking packing = layer.coding.packing;
  const bool is_known = layer.is_quantized() && packing != BlockPacking::row_pairs &&
                        (packing == BlockPacking::stream || !layer.deviations.has_whole_codes);
  const bool fits = count && *count <= most_elements && is_known;
  if (!fits || parts.infos.empty() || parts.infos.size() != layer.parts.size() || layer.coding.bits < 1 ||
      layer.coding.bits > 8) {
    return of_tensor(layer.name, parse_error("its description is not that of a layer"));
  }
  const bool transposed = layer.coding.transposed || is_in_columns(layer.coding);
  const bool gguf = packing == BlockPacking::gguf;
  PartReader reader(std::move(layer), std::move(parts));
  if (gguf) return create_gguf_decoder(std::move(reader));
  return transposed ? create_transposed_decoder(std::move(reader)) : create_row_decoder(std::move(reader));
}

}  // namespace tensorcast::quantized
