// SPDX-License-Identifier: Apache-2.0
#include "formats/onnx/value_stream.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "codec/packing.hpp"
#include "dtype/try.hpp"

namespace tensorcast::formats::onnx {
namespace {

constexpr std::size_t codes_block_bytes = std::size_t{64} << 10;

bool is_fixed(Field field) { return field == Field::float_data || field == Field::double_data; }

// int32_data and uint64_data also hold narrower types: as signed or unsigned numbers, or as codes.
bool fits(std::uint64_t value, Field field, std::uint64_t width) {
  if (field == Field::int32_data) {
    const auto number = static_cast<std::int32_t>(static_cast<std::uint32_t>(value));
    if (width == 4) return true;
    const std::int64_t range = std::int64_t{1} << (8 * width);
    return number >= -range / 2 && number < range;
  }
  return width == 8 || value >> (8 * width) == 0;
}

}  // namespace

ValueStream::ValueStream(const io::InputFile& file, ByteRange message, DType dtype)
    : message_(message),
      dtype_(dtype),
      field_(typed_field(dtype)),
      wire_(file, message.offset, message.offset + message.length) {}

void ValueStream::rewind() {
  wire_.seek(message_.offset);
  run_end_ = 0;
  values_ = 0;
  block_.clear();
  block_begin_ = 0;
}

Result<void> ValueStream::read(std::uint64_t offset, std::span<std::byte> out) {
  if (offset < block_begin_) rewind();
  while (!out.empty()) {
    while (offset - block_begin_ >= block_.size()) {
      TRY(load_block());
    }
    const auto begin = static_cast<std::size_t>(offset - block_begin_);
    const std::size_t count = std::min(out.size(), block_.size() - begin);
    std::memcpy(out.data(), block_.data() + begin, count);
    out = out.subspan(count);
    offset += count;
  }
  return {};
}

// Moves to the next field with values, unless values of this one are left; false at the end of the message.
Result<bool> ValueStream::find_values() {
  while (wire_.position() >= run_end_) {
    if (wire_.at_end()) return false;
    const WireField field = TRY(wire_.next());
    if (field.number != static_cast<std::uint32_t>(field_)) {
      TRY(wire_.skip(field));
      continue;
    }
    const bool single_varint = field.type == protozero::pbf_wire_type::varint;
    run_end_ = field.offset + (single_varint ? 1 : field.length);
  }
  return true;
}

Result<void> ValueStream::load_block() {
  const std::uint64_t width = bytes_per_value(dtype_);
  std::vector<std::byte> block(codes_block_bytes);  // holds a whole number of bytes of packed codes
  std::size_t filled = 0;
  while (filled < block.size()) {
    const bool found = TRY(find_values());
    if (!found) break;
    if (is_fixed(field_)) {
      const std::uint64_t bytes = std::min<std::uint64_t>(run_end_ - wire_.position(), block.size() - filled);
      TRY(wire_.read(std::span(block).subspan(filled, bytes)));
      filled += bytes;
      continue;
    }
    TRY(decode(std::span(block).subspan(filled, width)));
    filled += width;
  }
  if (filled == 0) return malformed_message(wire_.position(), "the message ends before its data does");
  block.resize(filled);
  if (has_value_per_code(dtype_)) pack(block);
  block_begin_ += block_.size();
  block_ = std::move(block);
  return {};
}

// Packs codes of one byte each into storage.
void ValueStream::pack(std::vector<std::byte>& codes) const {
  std::vector<std::byte> packed(storage_bytes(dtype_, codes.size()));
  for (std::size_t i = 0; i < codes.size(); ++i) {
    codec::store_code(dtype_, packed.data(), i, std::to_integer<std::uint64_t>(codes[i]));
  }
  codes = std::move(packed);
}

Result<void> ValueStream::decode(std::span<std::byte> value) {
  const std::uint64_t number = TRY(wire_.varint());
  const bool is_code = !has_value_per_code(dtype_) || number >> bit_width(dtype_) == 0;
  if (!is_code || !fits(number, field_, value.size())) {
    const bool is_signed_field = field_ == Field::int32_data;
    return Error{
        .code = ErrorCode::parse,
        .message = is_signed_field ? fmt::format("{} holds {}, which is not a value of {}", field_name(field_),
                                                 static_cast<std::int32_t>(number), name(dtype_))
                                   : fmt::format("{} holds {}, which is not a value of {}", field_name(field_), number,
                                                 name(dtype_)),
        .element = bit_width(dtype_) < 8 && !has_value_per_code(dtype_) ? std::nullopt : std::optional(values_)};
  }
  std::memcpy(value.data(), &number, value.size());  // the low bytes: all targets are little-endian
  ++values_;
  return {};
}

Result<StringBuffer> ValueStream::read_strings(const TensorInfo& info, std::uint64_t first, std::size_t block_bytes) {
  if (first != values_) rewind();
  StringBuffer strings;
  strings.offsets.push_back(0);
  while (values_ < info.count) {
    if (wire_.at_end()) return malformed_message(wire_.position(), "the file changed while it was read");
    const WireField field = TRY(wire_.next());
    if (field.number != static_cast<std::uint32_t>(Field::string_data) || values_ < first) {
      if (field.number == static_cast<std::uint32_t>(Field::string_data)) ++values_;
      TRY(wire_.skip(field));
      continue;
    }
    const std::size_t begin = strings.data.size();
    strings.data.resize(begin + field.length);
    const std::span<std::byte> text = std::as_writable_bytes(std::span(strings.data)).subspan(begin);
    TRY(wire_.read(text));
    strings.offsets.push_back(static_cast<std::int64_t>(strings.data.size()));
    ++values_;
    if (is_full_block(strings, block_bytes)) break;
  }
  return strings;
}

}  // namespace tensorcast::formats::onnx
