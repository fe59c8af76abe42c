// SPDX-License-Identifier: Apache-2.0
#include "quantized/rewrite/respelled_codes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "block/format/scale_grid.hpp"
#include "block/format/scale_tiles.hpp"
#include "cast/transpose.hpp"
#include "dtype/ceil_div.hpp"
#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"
#include "dtype/try.hpp"
#include "quantized/layer/code_layout.hpp"
#include "quantized/layer/model_tensors.hpp"
#include "tensorcast/block.hpp"

namespace tensorcast::quantized {
namespace {

constexpr int e8m0_bias = 127;

// ggml's block of a scheme whose elements and scales lie in it as such; null: there is none.
const block::GgufRow* float4_block(const std::string& scheme) {
  const auto gguf = block::gguf_block_of(scheme);
  return block::is_float4(gguf) ? &block::row(gguf) : nullptr;
}

std::string_view order_of(BlockPacking packing) {
  switch (packing) {
    case BlockPacking::words_down:
    case BlockPacking::awq:
      return "those of the transpose";
    case BlockPacking::flat:
      return "in blocks over the whole tensor";
    default:
      return "those of a block format that has no other spelling";
  }
}

}  // namespace

int exponent_of_e4m3(std::byte scale) noexcept {
  const unsigned code = std::to_integer<unsigned>(scale);
  if (code >= 8 && code < 0x78 + 8 && code % 8 == 0) return static_cast<int>(code / 8) - 7;
  return code == 4 ? -7 : code == 2 ? -8 : code == 1 ? -9 : not_a_power;
}

std::byte e4m3_of_exponent(int exponent) noexcept {
  constexpr int least_normal = -6;
  exponent = std::clamp(exponent, least_e4m3_exponent, most_e4m3_exponent);
  if (exponent >= least_normal) return static_cast<std::byte>((exponent + 7) * 8);
  return static_cast<std::byte>(1 << (exponent - least_e4m3_exponent));
}

Result<LayerContent> content_of(const Layer& layer, std::span<const formats::TensorInfo> parts) {
  const BlockCoding& coding = layer.coding;
  LayerContent content{layer};
  content.coding = {.element = signed_element(coding.element), .bits = layer.bits(), .scale = coding.scale};
  content.deviations = {.rotation = layer.deviations.rotation};
  // A row without columns has its scale, too.
  if (content.columns() == 0 && layer.block_columns == whole_row(layer.shape)) content.block_columns = 0;
  const block::GgufRow* const gguf = coding.packing == BlockPacking::gguf ? float4_block(layer.scheme) : nullptr;
  const bool in_rows = !layer.deviations.has_whole_codes &&
                       (coding.packing == BlockPacking::stream || coding.packing == BlockPacking::high_nibble_first);
  const bool other = layer.find(PartRole::biases) || layer.find(PartRole::group_index) ||
                     layer.find(PartRole::nested_scales) || (in_rows && coding.element == DType::undefined);
  if ((!in_rows && gguf == nullptr) || other || coding.factor != 1.0F) {
    return of_tensor(layer.name,
                     unsupported(fmt::format("its codes ({} {}) are {}", layer.spelling, layer.scheme,
                                             in_rows ? "decoded with more than scales" : order_of(coding.packing))));
  }
  if (coding.transposed) std::swap(content.shape[content.shape.size() - 1], content.shape[content.shape.size() - 2]);
  if (gguf != nullptr) {
    if (content.columns() % static_cast<std::uint64_t>(gguf->size.elements) != 0) {
      return of_tensor(layer.name, unsupported("its rows, in the shape of comfy.gguf.orig_shape, are no whole blocks"));
    }
    content.coding = {.element = DType::float4_e2m1fn, .bits = 4};
    content.coding.scale = coding.gguf == GgufBlock::nvfp4 ? DType::float8_e4m3fn : DType::float8_e8m0fnu;
    content.block_columns = gguf->run;
  }
  for (std::size_t i = 0; i < layer.parts.size(); ++i) {
    switch (layer.parts[i].role) {
      case PartRole::scales:
        if (coding.scale == DType::undefined) content.set_scales(parts[i].dtype);
        break;
      case PartRole::global_scale:
        content.coding.global = global_kind(coding);
        content.globals = parts[i].count;
        break;
      case PartRole::zero_points:
        content.zero_points = true;
        break;
      default:
        break;
    }
  }
  return content;
}

Result<LayerContent> stored_content(const Layer& layer, std::span<const formats::TensorInfo> parts) {
  if (is_in_columns(layer.coding)) {
    const std::int64_t inputs = layer.shape.back(), group = std::min(layer.block_columns, inputs);
    LayerContent content{layer};
    content.scheme = fmt::format("int{}-{}", layer.coding.bits, group == inputs ? "channel" : "group");
    content.coding = {.element = DType::int8, .bits = layer.coding.bits};
    content.deviations = {};
    content.block_rows = 1;
    content.block_columns = group;
    content.zero_points = true;
    if (const std::optional<std::size_t> scales = layer.place_of(PartRole::scales))
      content.set_scales(parts[*scales].dtype);
    return content;
  }
  const std::optional<std::size_t> index = layer.place_of(PartRole::group_index);
  if (!index) return content_of(layer, parts);
  Layer in_order = layer;
  std::vector<formats::TensorInfo> others(parts.begin(), parts.end());
  in_order.parts.erase(in_order.parts.begin() + static_cast<std::ptrdiff_t>(*index));
  others.erase(others.begin() + static_cast<std::ptrdiff_t>(*index));
  return content_of(in_order, others);
}

Result<void> check_order(const PartReader& reader) {
  const std::optional<std::size_t> index = reader.find(PartRole::group_index);
  if (!index) return {};
  const formats::TensorInfo& info = reader.info(*index);
  const std::int64_t group = reader.layer().block_columns;
  if (info.dtype != DType::int32 || group < 1) {
    return of_tensor(info.name, unsupported("its groups are in no known order"));
  }
  std::vector<std::int32_t> groups(info.count);
  TRY(reader.bytes(*index, 0, std::as_writable_bytes(std::span(groups))));
  for (std::size_t input = 0; input < groups.size(); ++input) {
    if (groups[input] == static_cast<std::int64_t>(input) / group) continue;
    Error error = unsupported(
        fmt::format("input {} is of group {}: groups in act order have no other spelling", input, groups[input]));
    error.tensor = info.name;
    error.element = input;
    return error;
  }
  return {};
}

Result<bool> is_symmetric(LayerCodes& codes, const LayerContent& content) {
  std::vector<std::byte> zeros(content.grid_rows() * content.grid_columns());
  TRY(codes.zero_points(0, zeros));
  return std::ranges::all_of(zeros, [](std::byte zero) { return zero == std::byte{0}; });
}

LayerContent rescaled(LayerContent content, ScaleChange::Kind change) {
  switch (change) {
    case ScaleChange::Kind::none:
      break;
    case ScaleChange::Kind::to_nvfp4:
      content.scheme = "nvfp4";
      content.block_columns = 16;
      content.coding.scale = DType::float8_e4m3fn;
      content.coding.global = GlobalScale::factor;
      content.globals = 1;
      break;
    case ScaleChange::Kind::to_mxfp4:
      content.scheme = "mxfp4";
      content.block_columns = 32;
      content.coding.scale = DType::float8_e8m0fnu;
      content.coding.global = GlobalScale::none;
      break;
  }
  return content;
}

Result<std::unique_ptr<RespelledCodes>> RespelledCodes::create(PartReader reader, LayerContent content,
                                                               ScaleChange change) {
  auto codes =
      std::unique_ptr<RespelledCodes>(new RespelledCodes(std::move(reader), std::move(content), std::move(change)));
  TRY(codes->check());
  return codes;
}

Result<void> RespelledCodes::check() {
  constexpr std::uint64_t window_bytes = std::uint64_t{16} << 20, unit = 32;
  const BlockCoding& coding = reader_.layer().coding;
  TRY(LayerDecoder::create(reader_.layer(), reader_.parts()));  // which checks all sizes
  if (coding.packing == BlockPacking::gguf) {
    gguf_ = float4_block(content_.scheme);
    if (gguf_ == nullptr || content_.columns() % gguf_->size.elements != 0) {
      return reader_.wrong(0, "its blocks are not whole");
    }
    row_bytes_ = content_.columns() / gguf_->size.elements * gguf_->size.bytes;
  } else {
    const std::optional<std::size_t> part = reader_.find(PartRole::scales);
    if (!part) return reader_.wrong(0, "it has no scales");
    scales_ = *part;
    row_bytes_ = code_layout(coding, bit_width(reader_.info(0).dtype), 1, content_.columns()).row_bytes;
  }
  if (is_in_columns(coding)) {
    if (!reader_.find(PartRole::zero_points)) return reader_.wrong(0, "it has no zero points");
    const std::uint64_t outputs = content_.rows();
    row_bytes_ = code_layout(coding, 32, content_.columns(), outputs).row_bytes;
    const std::uint64_t unit_bytes = code_layout(coding, 32, content_.columns(), unit).matrix_bytes;
    width_ = std::clamp(window_bytes / std::max<std::uint64_t>(unit_bytes, 1) * unit, unit,
                        std::max(ceil_div(outputs, unit) * unit, unit));
  }
  if (change_.kind == ScaleChange::Kind::none) return {};
  const std::size_t count = change_.exponents.size();
  if (count != 1 && count != content_.matrices()) return reader_.wrong(0, "its scales change in an unknown way");
  return {};
}

Result<void> RespelledCodes::load_columns(std::uint64_t row) {
  const std::uint64_t outputs = content_.rows(), begin = row / width_ * width_, end = std::min(begin + width_, outputs);
  end_ = begin_;  // until it is loaded
  window_ = code_layout(reader_.layer().coding, 32, content_.columns(), end - begin);
  window_bytes_.resize(window_.matrix_bytes);
  window_.data = window_bytes_.data();
  TRY(reader_.columns(0, row_bytes_, row_bytes_ * begin / outputs, window_.row_bytes, window_bytes_));
  begin_ = begin;
  end_ = end;
  return {};
}

Result<void> RespelledCodes::codes_of_columns(std::uint64_t first_row, std::span<std::byte> out) {
  constexpr std::uint64_t together = 256, unit = 8;
  const std::uint64_t inputs = content_.columns();
  const int middle = 1 << (content_.coding.bits - 1);
  for (std::uint64_t row = first_row; !out.empty();) {
    if (row < begin_ || row >= end_) TRY(load_columns(row));
    const std::uint64_t column = row - begin_, skipped = column % unit;  // AWQ has eight columns a word
    const std::uint64_t count = std::min({end_ - row, out.size() / inputs, together - skipped});
    buffer_.resize(inputs * (skipped + count));
    for (std::uint64_t input = 0; input < inputs; ++input) {
      const auto to = std::span(buffer_).subspan(input * (skipped + count), skipped + count);
      window_.unpack(0, input, column - skipped, to);
    }
    Transposer<std::uint8_t>::run(buffer_.data() + skipped, skipped + count, inputs, count, out.data(),
                                  static_cast<std::int64_t>(inputs));
    add_to_codes(content_.coding.bits, -middle, out.first(count * inputs));
    out = out.subspan(count * inputs);
    row += count;
  }
  return {};
}

Result<bool> RespelledCodes::packed(const BlockCoding& coding, std::uint64_t offset, std::span<std::byte> out) {
  const BlockCoding& own = reader_.layer().coding;
  const auto is_in_rows = [](const BlockCoding& one) {
    return one.packing == BlockPacking::stream || one.packing == BlockPacking::high_nibble_first;
  };
  const bool words = own.packing == BlockPacking::stream && bit_width(reader_.info(0).dtype) != 8;
  const bool same = own.element == coding.element && own.bits == coding.bits && own.gguf == coding.gguf && !words;
  if (!same || !(own.packing == coding.packing || (is_in_rows(own) && is_in_rows(coding)))) return false;
  TRY(reader_.bytes(0, offset, out));
  if (own.packing == coding.packing) return true;
  for (std::byte& pair : out) pair = pair >> 4 | pair << 4;
  return true;
}

Result<void> RespelledCodes::read_blocks(std::uint64_t first_row, std::uint64_t rows) {
  buffer_.resize(rows * row_bytes_);
  return reader_.bytes(0, first_row * row_bytes_, buffer_);
}

Result<void> RespelledCodes::codes(std::uint64_t first_row, std::span<std::byte> out) {
  if (out.empty()) return {};
  const BlockCoding& coding = reader_.layer().coding;
  if (is_in_columns(coding)) return codes_of_columns(first_row, out);
  const std::uint64_t columns = content_.columns(), rows = out.size() / columns;
  TRY(read_blocks(first_row, rows));
  if (gguf_ != nullptr) {
    block::split_float4_blocks(*gguf_, buffer_, out.data(), nullptr);
  } else {
    block::CodeMatrices packed = code_layout(coding, bit_width(reader_.info(0).dtype), rows, columns);
    packed.data = buffer_.data();
    for (std::uint64_t row = 0; row < rows; ++row) packed.unpack(0, row, 0, out.subspan(row * columns, columns));
    if (coding.element == DType::uint8) add_to_codes(coding.bits, -coding.offset, out);
  }
  return check_range(0, first_row * columns, out);
}

Result<void> RespelledCodes::zero_points(std::uint64_t first_row, std::span<std::byte> out) {
  const std::size_t part = *reader_.find(PartRole::zero_points);
  const std::uint64_t first = first_row * content_.grid_columns();
  if (reader_.info(part).dtype != DType::int8) {
    if (zeros_.empty()) TRY(unpack_zeros(part));
    std::copy_n(zeros_.begin() + static_cast<std::ptrdiff_t>(first), out.size(), out.begin());
    return {};
  }
  TRY(reader_.bytes(part, first, out));
  return check_range(part, first, out);
}

// Words, to whose codes the middle was added.
Result<void> RespelledCodes::unpack_zeros(std::size_t part) {
  const BlockCoding& coding = reader_.layer().coding;
  const bool in_columns = is_in_columns(coding);
  const std::uint64_t rows = content_.grid_rows(), columns = content_.grid_columns();
  block::CodeMatrices packed = in_columns ? zero_layout(coding, columns, rows) : zero_layout(coding, rows, columns);
  std::vector<std::byte> words(packed.matrix_bytes), zeros(rows * columns);
  TRY(reader_.bytes(part, 0, words));
  packed.data = words.data();
  if (in_columns) {
    const block::ScaleGrid grid = TRY(block::zero_grid({DType::int32, {}, words}, {1, columns, rows},
                                                       {.element = DType::uint8,
                                                        .bits = coding.bits,
                                                        .packing = coding.packing,
                                                        .zero_added = coding.zero_added,
                                                        .zeros = packed.packing}));
    std::vector<float> of_group(rows);
    for (std::uint64_t group = 0; group < columns; ++group) {
      grid.read(0, group, 0, of_group);
      for (std::uint64_t row = 0; row < rows; ++row) {
        const int zero = static_cast<int>(of_group[row]) - (1 << (coding.bits - 1));
        zeros[row * columns + group] = static_cast<std::byte>(zero);
      }
    }
  } else {
    for (std::uint64_t row = 0; row < rows; ++row) {
      packed.unpack(0, row, 0, std::span(zeros).subspan(row * columns, columns));
    }
    for (std::byte& zero : zeros) zero = static_cast<std::byte>(std::to_integer<int>(zero) - coding.offset);
  }
  zeros_ = std::move(zeros);
  return {};
}

// Integers under 8 bits may be stored in whole bytes, which could be more.
Result<void> RespelledCodes::check_range(std::size_t part, std::uint64_t first,
                                         std::span<const std::byte> integers) const {
  if (!is_integer(content_.coding.element) || reader_.layer().deviations.integer_bits == 0) {
    return {};
  }
  const int end = 1 << (content_.coding.bits - 1);
  const auto wrong = std::ranges::find_if(integers, [=](std::byte byte) {
    const int value = static_cast<std::int8_t>(byte);
    return value < -end || value >= end;
  });
  if (wrong == integers.end()) return {};
  Error error = reader_.wrong(
      part, fmt::format("{} is no integer of {} bits", static_cast<std::int8_t>(*wrong), content_.coding.bits));
  error.element = first + static_cast<std::uint64_t>(wrong - integers.begin());
  return error;
}

// Scales as the layer has them, in rows.
Result<void> RespelledCodes::stored_scales(std::uint64_t first_row, std::span<std::byte> out) {
  const BlockCoding& coding = reader_.layer().coding;
  const std::uint64_t columns = content_.grid_columns();
  if (coding.packing == BlockPacking::gguf) {
    TRY(read_blocks(first_row, out.size() / columns));
    block::split_float4_blocks(*gguf_, buffer_, nullptr, out.data());
    if (content_.scales() != DType::float8_e4m3fn) return {};
    // ggml reads no sign, and takes the code of NaN for 0.
    for (std::byte& scale : out) scale = (scale & e4m3_nan) == e4m3_nan ? std::byte{0} : scale & e4m3_nan;
    return {};
  }
  if (coding.swizzled) {
    const std::uint64_t rows = out.size() / columns, skipped = first_row % block::tile_rows;
    const block::ScaleGrid grid = TRY(reader_.grid(
        scales_, content_.scales(), {.rows = skipped + rows, .columns = columns}, first_row - skipped, true));
    for (std::uint64_t row = 0; row < rows; ++row) {
      grid.read_codes(0, skipped + row, 0, out.subspan(row * columns, columns));
    }
    return {};
  }
  const auto item = static_cast<std::uint64_t>(bit_width(content_.scales()) / 8);
  if (!is_in_columns(coding)) return reader_.bytes(scales_, first_row * columns * item, out);
  if (column_scales_.empty()) {
    std::vector<std::byte> all(reader_.info(scales_).bytes);
    TRY(reader_.bytes(scales_, 0, all));
    column_scales_ = std::move(all);
  }
  for (std::uint64_t i = 0; i < out.size() / item; ++i) {
    const std::uint64_t from = i % columns * content_.rows() + first_row + i / columns;
    std::memcpy(out.data() + i * item, column_scales_.data() + from * item, item);
  }
  return {};
}

Result<void> RespelledCodes::scales(std::uint64_t first_row, std::span<std::byte> out) {
  if (change_.kind == ScaleChange::Kind::none) return stored_scales(first_row, out);
  const bool to_nvfp4 = change_.kind == ScaleChange::Kind::to_nvfp4;
  const std::uint64_t columns = content_.grid_columns();  // of the stored scales
  const std::uint64_t new_columns = to_nvfp4 ? 2 * columns : columns / 2;
  const std::uint64_t rows = out.size() / new_columns, matrix_rows = content_.grid_rows() / content_.matrices();
  stored_.resize(rows * columns);
  TRY(stored_scales(first_row, stored_));
  for (std::uint64_t i = 0; i < out.size(); ++i) {
    const std::uint64_t row = i / new_columns, column = i % new_columns;
    const std::uint64_t matrix = change_.exponents.size() == 1 ? 0 : (first_row + row) / matrix_rows;
    const int exponent = change_.exponents[matrix];
    if (to_nvfp4) {
      const std::byte scale = stored_[row * columns + column / 2];
      const int power = std::to_integer<int>(scale) - e8m0_bias - exponent;
      out[i] = scale == e8m0_nan ? e4m3_nan : e4m3_of_exponent(power);
    } else {
      const std::byte scale = stored_[row * columns + 2 * column];
      const int power = exponent_of_e4m3(scale) + exponent + e8m0_bias;
      out[i] = scale == e4m3_nan ? e8m0_nan : static_cast<std::byte>(std::clamp(power, 0, 254));
    }
  }
  return {};
}

}  // namespace tensorcast::quantized
