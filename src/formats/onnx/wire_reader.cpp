// SPDX-License-Identifier: Apache-2.0
#include "formats/onnx/wire_reader.hpp"

#include <fmt/format.h>
#include <protozero/exception.hpp>
#include <protozero/varint.hpp>

#include <algorithm>
#include <cstring>

#include "dtype/errors.hpp"
#include "dtype/try.hpp"
#include "formats/bytes/buffer_bytes.hpp"

namespace tensorcast::formats::onnx {
namespace {}  // namespace

Error malformed_message(std::uint64_t offset, std::string_view what) {
  return parse_error(fmt::format("malformed protobuf at byte {}: {}", offset, what));
}

WireReader::WireReader(const io::InputFile& file, std::uint64_t begin, std::uint64_t end)
    : file_(file), position_(begin), end_(end), whole_end_(end) {}

Result<std::span<const char>> WireReader::window(std::size_t bytes) {
  const std::uint64_t left = end_ - position_;
  const bool inside = position_ >= buffer_begin_ && position_ - buffer_begin_ <= buffer_.size();
  std::uint64_t have = inside ? buffer_begin_ + buffer_.size() - position_ : 0;
  if (have < std::min<std::uint64_t>(bytes, left)) {
    buffer_.resize(std::min<std::uint64_t>(buffer_bytes, whole_end_ - position_));
    if (auto got = file_.read(position_, std::as_writable_bytes(std::span(buffer_))); !got) {
      buffer_.clear();
      return std::move(got).error();
    }
    buffer_begin_ = position_;
    have = buffer_.size();
  }
  return std::span<const char>(buffer_).subspan(position_ - buffer_begin_, std::min(have, left));
}

Result<std::uint64_t> WireReader::varint() {
  const std::span<const char> bytes = TRY(window(protozero::max_varint_length));
  const char* begin = bytes.data();
  try {
    const std::uint64_t value = protozero::decode_varint(&begin, bytes.data() + bytes.size());
    position_ += static_cast<std::uint64_t>(begin - bytes.data());
    return value;
  } catch (const protozero::varint_too_long_exception&) {
    return malformed_message(position_, "a varint of over 10 bytes");
  } catch (const protozero::exception&) {
    return malformed_message(position_, "a varint runs off the end");
  }
}

Result<WireField> WireReader::next() {
  const std::uint64_t key_offset = position_;
  const std::uint64_t key = TRY(varint());
  const std::uint64_t number = key >> 3;
  if (number == 0 || number > 0x1FFFFFFF) return malformed_message(key_offset, "no field has this number");
  WireField field{.number = static_cast<std::uint32_t>(number),
                  .type = static_cast<protozero::pbf_wire_type>(key & 7),
                  .begin = key_offset,
                  .offset = position_,
                  .length = 0};
  switch (field.type) {
    case protozero::pbf_wire_type::varint:
      return field;
    case protozero::pbf_wire_type::fixed32:
      field.length = 4;
      break;
    case protozero::pbf_wire_type::fixed64:
      field.length = 8;
      break;
    case protozero::pbf_wire_type::length_delimited: {
      field.length = TRY(varint());
      field.offset = position_;
      break;
    }
    default:
      return malformed_message(key_offset, "no wire type has this number");
  }
  if (field.length > end_ - position_) {
    return malformed_message(key_offset, fmt::format("field {} claims {} bytes, but only {} follow", field.number,
                                                     field.length, end_ - position_));
  }
  return field;
}

Result<void> WireReader::read(std::span<std::byte> out) {
  if (out.empty()) return {};
  if (out.size() > end_ - position_) return malformed_message(position_, "the message ends too early");
  if (out.size() >= buffer_bytes) {
    TRY(file_.read(position_, out));
  } else {
    const std::span<const char> bytes = TRY(window(out.size()));
    std::memcpy(out.data(), bytes.data(), out.size());
  }
  position_ += out.size();
  return {};
}

Result<std::string> WireReader::text(std::uint64_t length) {
  if (length > end_ - position_) return malformed_message(position_, "the message ends too early");
  std::string content(length, '\0');
  TRY(read(std::as_writable_bytes(std::span(content))));
  return content;
}

Result<void> WireReader::skip(const WireField& field) {
  if (field.type == protozero::pbf_wire_type::varint) {
    TRY(varint());
    return {};
  }
  position_ = field.offset + field.length;
  return {};
}

}  // namespace tensorcast::formats::onnx
