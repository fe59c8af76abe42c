// SPDX-License-Identifier: Apache-2.0
#include "formats/onnx/tensor_proto_outline.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"
#include "dtype/text_parts.hpp"
#include "dtype/try.hpp"
#include "formats/onnx/wire_reader.hpp"
#include "io/memory_budget.hpp"
#include "tensorcast/tensor.hpp"

namespace tensorcast::formats::onnx {
namespace {

using protozero::pbf_wire_type;

constexpr std::size_t max_rank = 1024;
constexpr std::uint64_t max_text_bytes = std::uint64_t{32} << 20;  // of names, documentation and metadata together

class OutlineReader {
 public:
  OutlineReader(const io::InputFile& file, ByteRange message)
      : wire_(file, message.offset, message.offset + message.length), budget_(message.length) {}

  Result<Outline> read() {
    while (!wire_.at_end()) {
      const WireField field = TRY(wire_.next());
      TRY(take(field));
    }
    TRY(of_tensor(outline_.info.name, complete_info()));
    TRY(of_tensor(outline_.info.name, place_data()));
    return std::move(outline_);
  }

 private:
  Result<void> take(const WireField& field) {
    switch (static_cast<Field>(field.number)) {
      case Field::dims:
        return take_varints(field, [&](std::uint64_t value) { return add_dimension(value); });
      case Field::data_type:
        return take_varint(field, data_type_);
      case Field::data_location:
        return take_varint(field, data_location_);
      case Field::segment:
        return unsupported("tensors in segments are not supported");
      case Field::float_data:
        return take_fixed(field, pbf_wire_type::fixed32, 4);
      case Field::double_data:
        return take_fixed(field, pbf_wire_type::fixed64, 8);
      case Field::int32_data:
      case Field::int64_data:
      case Field::uint64_data:
        return take_varints(field, [&](std::uint64_t) {
          ++values_[field.number];
          return Result<void>();
        });
      case Field::string_data:
        return take_string(field);
      case Field::raw_data:
        TRY(expect(field, pbf_wire_type::length_delimited));
        outline_.raw = {.offset = field.offset, .length = field.length};
        return wire_.skip(field);
      case Field::name:
        return take_text(field, outline_.info.name);
      case Field::doc_string:
        return take_text(field, doc_string_.emplace());
      case Field::external_data:
        return take_entry(field, [&](std::string key, std::string value) { return add_external(key, value); });
      case Field::metadata_props:
        return take_entry(field, [&](std::string key, std::string value) {
          outline_.metadata.emplace_back(std::move(key), std::move(value));
          return budget_.take_grown<Metadata::value_type>();
        });
    }
    return wire_.skip(field);  // unknown fields come from later versions
  }

  static Result<void> expect(const WireField& field, pbf_wire_type type) {
    if (field.type == type) return {};
    return malformed_message(field.offset,
                             fmt::format("{} has wire type {}, so this is not a TensorProto",
                                         field_name(static_cast<Field>(field.number)), static_cast<int>(field.type)));
  }

  Result<void> take_varint(const WireField& field, std::uint64_t& value) {
    TRY(expect(field, pbf_wire_type::varint));
    value = TRY(wire_.varint());
    return {};
  }

  // Reads one value, or many packed into one field.
  template <class Take>
  Result<void> take_varints(const WireField& field, Take take_value) {
    const bool packed = field.type == pbf_wire_type::length_delimited;
    if (!packed) {
      TRY(expect(field, pbf_wire_type::varint));
    }
    const std::uint64_t end = field.offset + field.length;
    while (!packed || wire_.position() < end) {
      const std::uint64_t value = TRY(wire_.varint());
      if (packed && wire_.position() > end) return malformed_message(end, "a varint runs off the end of its field");
      TRY(take_value(value));
      if (!packed) break;
    }
    return {};
  }

  Result<void> take_fixed(const WireField& field, pbf_wire_type type, std::uint64_t width) {
    if (field.type != pbf_wire_type::length_delimited) {
      TRY(expect(field, type));
    }
    if (field.length % width != 0) {
      return malformed_message(field.offset, fmt::format("{} bytes are not a whole number of values", field.length));
    }
    values_[field.number] += field.length / width;
    return wire_.skip(field);
  }

  Result<void> take_string(const WireField& field) {
    TRY(expect(field, pbf_wire_type::length_delimited));
    ++values_[field.number];
    outline_.info.bytes += field.length;
    return wire_.skip(field);
  }

  Result<void> take_text(const WireField& field, std::string& text) {
    TRY(expect(field, pbf_wire_type::length_delimited));
    TRY(spend_text(field.length));
    text = TRY(wire_.text(field.length));
    return {};
  }

  // A StringStringEntryProto: a key and a value.
  template <class Add>
  Result<void> take_entry(const WireField& entry, Add add) {
    TRY(expect(entry, pbf_wire_type::length_delimited));
    std::string key;
    std::string value;
    const std::uint64_t end = entry.offset + entry.length;
    while (wire_.position() < end) {
      const WireField field = TRY(wire_.next());
      if (field.offset + field.length > end) return malformed_message(end, "a field runs off the end of its message");
      const bool is_key = field.number == static_cast<std::uint32_t>(EntryField::key);
      const bool is_value = field.number == static_cast<std::uint32_t>(EntryField::value);
      if (is_key || is_value) {
        if (field.type != pbf_wire_type::length_delimited) return malformed_message(field.offset, "no text");
        TRY(spend_text(field.length));
        std::string text = TRY(wire_.text(field.length));
        (is_key ? key : value) = std::move(text);
      } else {
        TRY(wire_.skip(field));
      }
    }
    if (wire_.position() != end) return malformed_message(end, "a field runs off the end of its message");
    return add(std::move(key), std::move(value));
  }

  Result<void> spend_text(std::uint64_t bytes) {
    text_bytes_ += bytes;
    if (text_bytes_ <= max_text_bytes) return budget_.take(bytes);
    return unsupported("the names and texts of the tensor are too long");
  }

  Result<void> add_dimension(std::uint64_t value) {
    const auto dimension = static_cast<std::int64_t>(value);
    if (dimension < 0) return parse_error(fmt::format("dims has the negative dimension {}", dimension));
    if (outline_.info.shape.size() == max_rank) return parse_error(fmt::format("dims has over {} entries", max_rank));
    outline_.info.shape.push_back(dimension);
    return {};
  }

  Result<void> add_external(const std::string& key, const std::string& value) {
    if (key == "location") {
      outline_.external.location = value;
      return {};
    }
    if (key != "offset" && key != "length") return {};  // "checksum", and what later versions add
    const std::optional<std::uint64_t> number = parse_whole<std::uint64_t>(value);
    if (!number) return parse_error(fmt::format("external_data has the {} \"{}\"", key, value.substr(0, 40)));
    if (key == "offset") {
      outline_.external.offset = *number;
    } else {
      outline_.external.length = *number;
    }
    return {};
  }

  Result<void> complete_info() {
    TensorInfo& info = outline_.info;
    const DType dtype = TRY(parse_data_type(data_type_));
    info.dtype = dtype;
    const Result<std::size_t> count = element_count(info.shape);
    if (!count) return parse_error("dims has more elements than any file can hold");
    info.count = *count;
    if (family(dtype) != Family::text) {
      info.bytes = storage_bytes(dtype, *count);
      if (info.bytes == SIZE_MAX) return parse_error("dims has more elements than any file can hold");
    }
    if (doc_string_) outline_.metadata.emplace(outline_.metadata.begin(), doc_string_key, std::move(*doc_string_));
    return {};
  }

  Result<void> place_data() {
    const TensorInfo& info = outline_.info;
    const Field typed = typed_field(info.dtype);
    for (std::uint32_t number = 0; number < values_.size(); ++number) {
      if (values_[number] == 0 || number == static_cast<std::uint32_t>(typed)) continue;
      return parse_error(
          fmt::format("data in {}, where {} has none", field_name(static_cast<Field>(number)), name(info.dtype)));
    }
    const std::uint64_t values = values_[static_cast<std::size_t>(typed)];
    if (data_location_ == external_location) return place_external(values);
    if (data_location_ != 0) return parse_error(fmt::format("data_location {} is unknown", data_location_));
    if (outline_.raw.length != 0 && values != 0) {
      return parse_error(fmt::format("data both in raw_data and in {}", field_name(typed)));
    }
    if (info.dtype == DType::string) {
      if (outline_.raw.length != 0) return parse_error("strings in raw_data");
      outline_.storage = Outline::Storage::typed;
      return expect_amount(field_name(typed), values, info.count, "strings");
    }
    if (values == 0) return expect_amount("raw_data", outline_.raw.length, info.bytes, "bytes");
    outline_.storage = Outline::Storage::typed;
    return expect_amount(field_name(typed), values, value_count(info.dtype, info.count), "values");
  }

  Result<void> place_external(std::uint64_t values) {
    if (outline_.info.dtype == DType::string) return parse_error("strings in external data");
    if (outline_.raw.length != 0 || values != 0) return parse_error("data both in the message and in an external file");
    if (outline_.external.location.empty()) return parse_error("external_data has no location");
    if (outline_.external.length) {
      TRY(expect_amount("external_data", *outline_.external.length, outline_.info.bytes, "bytes"));
    }
    outline_.storage = Outline::Storage::external;
    return {};
  }

  static Result<void> expect_amount(std::string_view where, std::uint64_t there, std::uint64_t needed,
                                    std::string_view of) {
    if (there == needed) return {};
    return parse_error(fmt::format("{} has {} {}, but the shape needs {}", where, there, of, needed));
  }

  WireReader wire_;
  Outline outline_;
  std::uint64_t data_type_ = 0;
  std::uint64_t data_location_ = 0;
  std::uint64_t text_bytes_ = 0;
  io::MemoryBudget budget_;
  std::optional<std::string> doc_string_;
  std::array<std::uint64_t, static_cast<std::size_t>(Field::metadata_props) + 1> values_{};  // by field number
};

}  // namespace

Result<Outline> read_outline(const io::InputFile& file, ByteRange message) {
  if (message.length > max_message_bytes) return parse_error("the file is larger than protobuf's limit of 2 GiB");
  return OutlineReader(file, message).read();
}

}  // namespace tensorcast::formats::onnx
