// SPDX-License-Identifier: Apache-2.0
// Writes JSON. The texts are ASCII: names, messages, digits.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "tensorcast/error.hpp"

namespace tensorcast::c_api {

// Appends values to a text. Inside an array or an object, begin each value with next() or key().
class JsonWriter {
 public:
  void open(char bracket) { text_ += bracket; }
  void close(char bracket) { text_ += bracket; }
  // Separates a value from the one before it, if there is one.
  void next();
  void key(std::string_view name);

  void string(std::string_view value);
  // The shortest digits that read back. JSON has no infinity and no NaN: null.
  void number(double value);
  void integer(long long value) { text_ += std::to_string(value); }
  void unsigned_integer(unsigned long long value) { text_ += std::to_string(value); }
  void boolean(bool value) { text_ += value ? "true" : "false"; }

  void member(std::string_view name, std::string_view value) { key(name), string(value); }
  void member(std::string_view name, const char* value) { key(name), string(value); }
  void member(std::string_view name, double value) { key(name), number(value); }
  void member(std::string_view name, int value) { key(name), integer(value); }
  void member(std::string_view name, bool value) { key(name), boolean(value); }

  // Copies the text, and a zero byte, to a block that tc_free releases. Errors: internal: out of memory.
  [[nodiscard]] Result<void> hand_over(char** json) const;

 private:
  std::string text_;
};

}  // namespace tensorcast::c_api
