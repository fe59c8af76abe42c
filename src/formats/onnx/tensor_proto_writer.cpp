// SPDX-License-Identifier: Apache-2.0
#include "formats/onnx/tensor_proto_writer.hpp"

#include <fmt/format.h>
#include <protozero/pbf_writer.hpp>
#include <protozero/varint.hpp>

#include <iterator>

#include "dtype/errors.hpp"
#include "dtype/try.hpp"
#include "formats/bytes/buffer_bytes.hpp"
#include "formats/onnx/tensor_proto_outline.hpp"
#include "formats/onnx/tensor_proto_schema.hpp"

namespace tensorcast::formats::onnx {
namespace {

constexpr protozero::pbf_tag_type tag(Field field) { return static_cast<protozero::pbf_tag_type>(field); }

std::span<const std::byte> as_bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

// doc_string has a field of its own; everything else becomes metadata_props.
std::string encode_metadata(const Metadata& metadata) {
  std::string text;
  protozero::pbf_writer message(text);
  const auto doc_string =
      std::ranges::find_if(metadata, [](const auto& entry) { return entry.first == doc_string_key; });
  if (doc_string != metadata.end()) message.add_string(tag(Field::doc_string), doc_string->second);
  for (auto entry = metadata.begin(); entry != metadata.end(); ++entry) {
    if (entry == doc_string) continue;
    protozero::pbf_writer property(message, tag(Field::metadata_props));
    property.add_string(static_cast<protozero::pbf_tag_type>(EntryField::key), entry->first);
    property.add_string(static_cast<protozero::pbf_tag_type>(EntryField::value), entry->second);
  }
  return text;
}

Error too_large() {
  return unsupported("a TensorProto cannot be larger than protobuf's limit of 2 GiB",
                     "npy, npz and safetensors have no such limit");
}

}  // namespace

TensorProtoWriter::TensorProtoWriter(io::OutputFile& file, TensorInfo info, const Metadata& metadata)
    : file_(file), info_(std::move(info)) {
  if (info_.dtype == DType::string && !info_.name.empty()) {
    protozero::pbf_writer(tail_).add_string(tag(Field::name), info_.name);
  }
  tail_ += encode_metadata(metadata);
}

// Encodes all fields before the data, including the key and length of raw_data.
std::string TensorProtoWriter::head() const {
  std::string text;
  protozero::pbf_writer message(text);
  for (const std::int64_t dimension : info_.shape) message.add_int64(tag(Field::dims), dimension);
  message.add_int32(tag(Field::data_type), static_cast<std::int32_t>(info_.dtype));
  if (info_.dtype == DType::string) return text;
  if (!info_.name.empty()) message.add_string(tag(Field::name), info_.name);
  protozero::write_varint(std::back_inserter(text), tag(Field::raw_data) << 3 | 2u);
  protozero::write_varint(std::back_inserter(text), info_.bytes);
  return text;
}

Result<void> TensorProtoWriter::begin() {
  const std::string text = head();
  const std::uint64_t bytes = info_.dtype == DType::string ? 0 : info_.bytes;  // strings are counted as they come
  if (bytes > max_message_bytes || text.size() + bytes + tail_.size() > max_message_bytes) return too_large();
  return file_.append(as_bytes(text));
}

Result<void> TensorProtoWriter::append_strings(const StringBuffer& strings) {
  std::string text;
  protozero::pbf_writer message(text);
  for (std::size_t i = 0; i + 1 < strings.offsets.size(); ++i) {
    const auto begin = static_cast<std::size_t>(strings.offsets[i]);
    const std::size_t length = static_cast<std::size_t>(strings.offsets[i + 1]) - begin;
    message.add_bytes(tag(Field::string_data), strings.data.data() + begin, length);
    if (text.size() < buffer_bytes) continue;
    if (file_.size() + text.size() > max_message_bytes) return too_large();
    TRY(file_.append(as_bytes(text)));
    text.clear();
  }
  if (file_.size() + text.size() > max_message_bytes) return too_large();
  return file_.append(as_bytes(text));
}

Result<void> TensorProtoWriter::finish() {
  if (file_.size() + tail_.size() > max_message_bytes) return too_large();
  return file_.append(as_bytes(tail_));
}

}  // namespace tensorcast::formats::onnx
