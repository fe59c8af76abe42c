// SPDX-License-Identifier: Apache-2.0
#include "c_api/json_writer.hpp"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>

namespace tensorcast::c_api {

void JsonWriter::next() {
  if (!text_.empty() && text_.back() != '{' && text_.back() != '[') text_ += ',';
}

void JsonWriter::key(std::string_view name) {
  next();
  string(name);
  text_ += ':';
}

void JsonWriter::string(std::string_view value) {
  text_ += '"';
  for (const char c : value) {
    if (c == '"' || c == '\\') {
      text_ += '\\';
      text_ += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      constexpr const char* digits = "0123456789abcdef";
      text_ += "\\u00";
      text_ += digits[static_cast<unsigned char>(c) >> 4];
      text_ += digits[static_cast<unsigned char>(c) & 15];
    } else {
      text_ += c;
    }
  }
  text_ += '"';
}

void JsonWriter::number(double value) {
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  text_ += std::isfinite(value) ? std::string_view(digits, static_cast<std::size_t>(end - digits)) : "null";
}

Result<void> JsonWriter::hand_over(char** json) const {
  auto* const block = static_cast<char*>(std::malloc(text_.size() + 1));
  if (block == nullptr) return Error{.code = ErrorCode::internal, .message = "out of memory"};
  std::memcpy(block, text_.c_str(), text_.size() + 1);
  *json = block;
  return {};
}

}  // namespace tensorcast::c_api
