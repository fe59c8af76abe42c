// SPDX-License-Identifier: Apache-2.0
#include "formats/gguf/gguf_metadata.hpp"

#include <fmt/format.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <set>
#include <unordered_set>

#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"
#include "dtype/try.hpp"
#include "formats/npy/npy_text.hpp"

namespace tensorcast::formats::gguf {
namespace {

constexpr std::string_view alignment_key = "general.alignment";
constexpr std::string_view file_type_key = "general.file_type";
constexpr int max_array_depth = 16;

enum class ValueType : std::uint32_t {
  uint8,
  int8,
  uint16,
  int16,
  uint32,
  int32,
  float32,
  boolean,
  string,
  array,
  uint64,
  int64,
  float64,
};

using Json = nlohmann::json;

// Returns `text` in quotes, with U+FFFD for bytes that are not UTF-8.
std::string quoted(const std::string& text) { return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace); }

// Appends the text of values to a string, whose memory it takes from the budget.
class ValueReader {
 public:
  explicit ValueReader(WindowReader& reader) : reader_(reader) {}

  Result<void> append_value(std::uint32_t type, int depth, std::string& text) {
    switch (static_cast<ValueType>(type)) {
      case ValueType::uint8:
        return append_number<std::uint8_t>(text);
      case ValueType::int8:
        return append_number<std::int8_t>(text);
      case ValueType::uint16:
        return append_number<std::uint16_t>(text);
      case ValueType::int16:
        return append_number<std::int16_t>(text);
      case ValueType::uint32:
        return append_number<std::uint32_t>(text);
      case ValueType::int32:
        return append_number<std::int32_t>(text);
      case ValueType::float32:
        return append_number<float>(text);
      case ValueType::boolean:
        return append_bool(text);
      case ValueType::string:
        return append_string(depth, text);
      case ValueType::array:
        return append_array(depth, text);
      case ValueType::uint64:
        return append_number<std::uint64_t>(text);
      case ValueType::int64:
        return append_number<std::int64_t>(text);
      case ValueType::float64:
        return append_number<double>(text);
    }
    return malformed(fmt::format("metadata of type {}, which GGUF does not have", type));
  }

 private:
  Result<void> append(std::string& text, std::string_view part) {
    TRY(reader_.budget().take(2 * part.size()));  // a growing string
    text += part;
    return {};
  }

  template <class Number>
  Result<void> append_number(std::string& text) {
    const Number number = TRY(reader_.get<Number>());
    return append(text, fmt::format("{}", number));
  }

  Result<void> append_bool(std::string& text) {
    const std::uint8_t value = TRY(reader_.get<std::uint8_t>());
    return append(text, value != 0 ? "true" : "false");
  }

  Result<void> append_string(int depth, std::string& text) {
    const std::string string = TRY(read_text(reader_));
    if (depth > 0) return append(text, quoted(string));
    return append(text, npy::is_utf8(string) ? string : Json::parse(quoted(string)).get<std::string>());
  }

  Result<void> append_array(int depth, std::string& text) {
    if (depth == max_array_depth) return malformed(fmt::format("arrays nested deeper than {}", max_array_depth));
    const std::uint32_t type = TRY(reader_.get<std::uint32_t>());
    const std::uint64_t count = TRY(reader_.get<std::uint64_t>());
    if (count > reader_.left()) return malformed(fmt::format("an array claims {} elements", count));
    TRY(append(text, "["));
    for (std::uint64_t i = 0; i < count; ++i) {
      if (i > 0) {
        TRY(append(text, ","));
      }
      TRY(append_value(type, depth + 1, text));
    }
    return append(text, "]");
  }

  WindowReader& reader_;
};

Result<std::uint32_t> parse_alignment(std::uint32_t type, const std::string& text) {
  if (static_cast<ValueType>(type) != ValueType::uint32) {
    return malformed(fmt::format("{} is not an integer of type uint32", alignment_key));
  }
  const unsigned long value = std::stoul(text);
  if (value == 0 || (value & (value - 1)) != 0) {
    return malformed(fmt::format("{} is {}, which is not a power of two", alignment_key, value));
  }
  if (value > max_alignment) {
    return unsupported(fmt::format("{} is {}; {} is allowed", alignment_key, value, max_alignment));
  }
  return static_cast<std::uint32_t>(value);
}

void put_text(std::string& bytes, std::string_view text) {
  put(bytes, std::uint64_t{text.size()});
  bytes += text;
}

}  // namespace

Error malformed(std::string what, const std::string& tensor) {
  return of_tensor(tensor, parse_error("malformed GGUF header: " + std::move(what)));
}

Result<std::string> read_text(WindowReader& reader) {
  const std::uint64_t bytes = TRY(reader.get<std::uint64_t>());
  return reader.text(bytes);
}

Result<HeaderMetadata> read_metadata(WindowReader& reader, std::uint64_t count) {
  constexpr std::uint64_t least_bytes = 8 + 4 + 1;  // of a key and its value
  if (count > reader.left() / least_bytes) return malformed(fmt::format("{} keys do not fit into the file", count));
  HeaderMetadata metadata;
  std::unordered_set<std::string> keys;
  for (std::uint64_t i = 0; i < count; ++i) {
    std::string key = TRY(read_text(reader));
    if (!npy::is_utf8(key)) return malformed("a key that is not UTF-8");
    // A text, a second copy of the key, and the nodes of the set.
    TRY(reader.budget().take(key.size() + 3 * sizeof(Metadata::value_type) + 64));
    if (!keys.insert(key).second) return malformed(fmt::format("the key \"{}\" occurs twice", key));
    const std::uint32_t type = TRY(reader.get<std::uint32_t>());
    std::string text;
    const std::uint64_t value_at = reader.position();
    TRY(ValueReader(reader).append_value(type, 0, text));
    if (key == file_type_key && static_cast<ValueType>(type) == ValueType::uint32) metadata.file_type_at = value_at;
    if (key == alignment_key) {
      metadata.alignment = TRY(parse_alignment(type, text));
    }
    metadata.texts.emplace_back(std::move(key), std::move(text));
  }
  return metadata;
}

Result<std::string> with_added(std::string_view native, const Metadata& added) {
  const std::string more = TRY(format_metadata(added));
  std::uint64_t count = 0;
  std::uint64_t more_count = 0;
  std::memcpy(&count, native.data(), sizeof count);
  std::memcpy(&more_count, more.data(), sizeof more_count);
  std::string bytes;
  put(bytes, count + more_count);
  bytes += native.substr(sizeof count);
  return bytes + more.substr(sizeof more_count);
}

std::string with_quantization_version(std::string_view native) {
  std::uint64_t count = 0;
  std::memcpy(&count, native.data(), sizeof count);
  std::string bytes;
  put(bytes, count + 1);
  bytes += native.substr(sizeof count);
  put_text(bytes, quantization_version_key);
  put(bytes, static_cast<std::uint32_t>(ValueType::uint32));
  put(bytes, static_cast<std::uint32_t>(block_version.front() - '0'));
  return bytes;
}

Result<std::string> format_metadata(const Metadata& texts) {
  std::set<std::string_view> keys;
  std::string pairs;
  for (const auto& [key, value] : texts) {
    if (key == alignment_key) continue;
    if (!keys.insert(key).second) {
      return unsupported(fmt::format("the metadata have \"{}\" twice, and GGUF can hold it once", key));
    }
    put_text(pairs, key);
    put(pairs, static_cast<std::uint32_t>(ValueType::string));
    put_text(pairs, value);
  }
  std::string bytes;
  put(bytes, std::uint64_t{keys.size()});
  return bytes + pairs;
}

}  // namespace tensorcast::formats::gguf
