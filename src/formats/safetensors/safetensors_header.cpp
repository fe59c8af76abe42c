// SPDX-License-Identifier: Apache-2.0
#include "formats/safetensors/safetensors_header.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"
#include "dtype/lookup.hpp"
#include "dtype/try.hpp"
#include "formats/safetensors/safetensors_dtypes.hpp"
#include "formats/safetensors/safetensors_header_parser.hpp"
#include "tensorcast/tensor.hpp"

namespace tensorcast::formats::safetensors {
namespace {

Error header_error(std::string message, const std::string& tensor = {}) {
  return of_tensor(tensor, parse_error(std::move(message)));
}

// Fills in the fields that follow from type and shape, and compares them with the offsets.
Result<TensorInfo> check_entry(HeaderEntry& entry) {
  const auto fail = [&](std::string message) { return header_error(std::move(message), entry.name); };
  const DTypeEntry* dtype = find_dtype(entry.dtype);
  if (dtype == nullptr) return fail(fmt::format("\"{}\" is not a type of safetensors", entry.dtype));
  const Result<std::size_t> count = element_count(entry.shape);
  if (!count) return fail(count.error().message);
  std::uint64_t bits = 0;
  if (__builtin_mul_overflow(std::uint64_t{*count}, static_cast<std::uint64_t>(dtype->bits), &bits)) {
    return fail("the shape has more bytes than can be counted");
  }
  if (bits % 8 != 0) return fail(fmt::format("{} elements of {} are not whole bytes", *count, dtype->spelling));
  if (entry.end < entry.begin) return fail(fmt::format("data_offsets [{}, {}] go backwards", entry.begin, entry.end));
  if (entry.end - entry.begin != bits / 8) {
    return fail(fmt::format("data_offsets [{}, {}] span {} bytes, but type and shape take {}", entry.begin, entry.end,
                            entry.end - entry.begin, bits / 8));
  }
  TensorInfo tensor{.name = std::move(entry.name),
                    .dtype = dtype->dtype,
                    .shape = std::move(entry.shape),
                    .count = *count,
                    .bytes = bits / 8};
  if (dtype->dtype == DType::undefined) tensor.foreign_dtype = dtype->spelling;
  return tensor;
}

void append_string(std::string& json, const std::string& text) { json += nlohmann::json(text).dump(); }

}  // namespace

Result<Header> parse_header(std::string_view json, std::uint64_t data_bytes) {
  ParsedHeader parsed = TRY(parse_header_json(json));
  std::vector<HeaderEntry>& entries = parsed.entries;
  if (const auto twice = find_repeated(entries, &HeaderEntry::name)) {
    return header_error("the name occurs twice", std::string(*twice));
  }
  std::ranges::stable_sort(entries, [](const HeaderEntry& a, const HeaderEntry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });

  Header header{.tensors = {}, .begin_offsets = {}, .metadata = std::move(parsed.metadata)};
  header.tensors.reserve(entries.size());
  header.begin_offsets.reserve(entries.size());
  std::uint64_t expected = 0;
  for (HeaderEntry& entry : entries) {
    const std::uint64_t begin = entry.begin;
    const std::uint64_t end = entry.end;
    TensorInfo tensor = TRY(check_entry(entry));
    if (begin < expected) {
      return header_error(fmt::format("the data overlap those of another tensor at byte {}", begin), tensor.name);
    }
    if (begin > expected) {
      return header_error(fmt::format("a hole of {} byte(s) before the data", begin - expected), tensor.name);
    }
    if (end > data_bytes) {
      return header_error(fmt::format("the data end at byte {}, but the file has only {}", end, data_bytes),
                          tensor.name);
    }
    expected = end;
    header.tensors.push_back(std::move(tensor));
    header.begin_offsets.push_back(begin);
  }
  if (expected != data_bytes) {
    return header_error(fmt::format("{} byte(s) follow the last tensor", data_bytes - expected));
  }
  return header;
}

std::uint64_t load_length(std::span<const std::byte> head) noexcept {
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < length_bytes; ++i) length |= std::to_integer<std::uint64_t>(head[i]) << (8 * i);
  return length;
}

Result<FileHeader> read_file_header(std::uint64_t file_bytes, const ReadBytes& read) {
  if (file_bytes < length_bytes) return header_error("the file is too short for a safetensors header");
  std::array<std::byte, length_bytes> head{};
  TRY(read(0, head));
  const std::uint64_t length = load_length(head);
  if (length > max_header_bytes) {
    return header_error(fmt::format("the header claims {} bytes; safetensors allows {}", length, max_header_bytes));
  }
  if (length > file_bytes - length_bytes) {
    return header_error(
        fmt::format("the header claims {} bytes, but the file has only {} more", length, file_bytes - length_bytes));
  }
  FileHeader file{.header = {}, .json = std::string(length, '\0'), .data_begin = length_bytes + length};
  TRY(read(length_bytes, std::as_writable_bytes(std::span(file.json))));
  if (!file.json.starts_with('{')) return header_error("the header does not begin with {");
  file.header = TRY(parse_header(file.json, file_bytes - file.data_begin));
  return file;
}

Result<std::string> format_header(std::span<const TensorInfo> tensors, const Metadata& metadata) {
  std::set<std::string_view> keys;
  for (const auto& [key, value] : metadata) {
    if (keys.insert(key).second) continue;
    return unsupported(fmt::format("the metadata have \"{}\" twice, and safetensors can hold it once", key));
  }
  std::string json(length_bytes, '\0');
  json += '{';
  std::string_view comma = "";
  std::uint64_t begin = 0;
  try {
    if (!metadata.empty()) {
      json += "\"__metadata__\":{";
      for (const auto& [key, value] : metadata) {
        json += comma;
        append_string(json, key);
        json += ':';
        append_string(json, value);
        comma = ",";
      }
      json += '}';
    }
    for (const TensorInfo& tensor : tensors) {
      const DTypeEntry* dtype = find_dtype(tensor.dtype);
      json += comma;
      append_string(json, tensor.name);
      json += fmt::format(":{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}",
                          dtype != nullptr ? dtype->spelling : tensor.foreign_dtype, fmt::join(tensor.shape, ","),
                          begin, begin + tensor.bytes);
      begin += tensor.bytes;
      comma = ",";
    }
  } catch (const nlohmann::json::type_error&) {
    return invalid("a tensor's name or a metadata text is not UTF-8");
  }
  json += '}';
  json.append((data_alignment - json.size() % data_alignment) % data_alignment, ' ');
  const std::uint64_t header_bytes = json.size() - length_bytes;
  if (header_bytes > max_header_bytes) {
    return unsupported(
        fmt::format("the header would take {} bytes; safetensors allows {}", header_bytes, max_header_bytes));
  }
  for (std::size_t i = 0; i < length_bytes; ++i) json[i] = static_cast<char>(header_bytes >> (8 * i));
  return json;
}

}  // namespace tensorcast::formats::safetensors
