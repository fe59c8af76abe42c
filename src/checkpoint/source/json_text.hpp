// SPDX-License-Identifier: Apache-2.0
// Positions of values in JSON text, so that single values change and everything else stays byte for byte.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tensorcast/error.hpp"

namespace tensorcast::checkpoint {

enum class JsonKind { object, array, string, other };

struct JsonValue {
  JsonKind kind = JsonKind::other;
  std::string_view text;  // of the value, in the document, with its quotes
  std::size_t begin = 0;  // of `text` in the document
  std::string_view key;   // of a member, in the document, with its quotes; "": an element, or the document
  std::size_t key_begin = 0;
  bool inside_array = false;  // an element, or something inside one
};

// The keys that lead to a value; an element of an array has the key "[]".
using JsonPath = std::vector<std::string>;
using JsonVisitor = std::function<void(const JsonPath& path, const JsonValue& value)>;

// Calls `visit` for every value; an object or array comes after its members. Memory: proportional to the depth.
// Errors: parse, if `text` is not JSON or too deep; without a file.
[[nodiscard]] Result<void> visit_json(std::string_view text, const JsonVisitor& visit);

// Returns a string value without quotes and escapes.
[[nodiscard]] std::string unquoted(std::string_view text);
[[nodiscard]] std::string json_quoted(std::string_view text);  // precondition: UTF-8

struct JsonEdit {
  std::size_t begin = 0;
  std::size_t length = 0;  // 0: an insertion
  std::string text;
};
// Returns `text` with non-overlapping edits.
[[nodiscard]] std::string edited(std::string_view text, std::vector<JsonEdit> edits);

}  // namespace tensorcast::checkpoint
