// SPDX-License-Identifier: Apache-2.0
// What interfaces say of an option. In a header, so that programs outside of the library have it, too.
#pragma once

#include <charconv>
#include <string>

#include "options/option.hpp"

namespace tensorcast::options {

// "up, down, nearest".
inline std::string word_list(const Words& words) {
  std::string list;
  for (const char* word : words) list.append(list.empty() ? "" : ", ").append(word);
  return list;
}

// The default: a word, "true", "28", "1".
template <class Option>
std::string default_text(const Option& option) {
  using Value = typename Option::Type;
  if constexpr (Option::is_choice) {
    return option.word(option.usual());
  } else if constexpr (std::is_same_v<Value, bool>) {
    return option.usual() ? "true" : "false";
  } else if constexpr (!std::is_arithmetic_v<Value>) {
    return "";
  } else if (option.words.size() != 0) {
    return option.words.word[0];
  } else {
    char text[64];
    return {text, std::to_chars(text, text + sizeof text, option.actual(option.usual())).ptr};
  }
}

// The default as Python writes it.
template <class Option>
std::string python_default(const Option& option) {
  using Value = typename Option::Type;
  std::string text = default_text(option);
  if (!std::is_arithmetic_v<Value> && !Option::is_choice) return "()";
  if (option.words.size() != 0) return '"' + text + '"';
  if constexpr (std::is_same_v<Value, bool>) return option.usual() ? "True" : "False";
  if constexpr (std::is_integral_v<Value>) return std::to_string(option.usual());
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

// Returns the word that the command's help shows for the value; "" for flags, and for choices, whose words it shows
// unless they have a metavar.
template <class Option>
std::string value_name(const Option& option) {
  if (*option.metavar != '\0') return option.metavar;
  switch (option.kind) {
    case ValueKind::text:
    case ValueKind::list:
      break;
    case ValueKind::pattern:
      return "REGEX";
    case ValueKind::glob:
      return "GLOB";
    case ValueKind::size:
      return "SIZE";
    case ValueKind::bits:
      return "BITS";
    case ValueKind::share:
      return "SHARE";
    case ValueKind::file:
      return "FILE";
  }
  return std::is_same_v<typename Option::Type, std::uint64_t> ? "N" : "";
}

// The sentence of help with the default in it.
template <class Option>
std::string help_text(const Option& option) {
  std::string text = option.help;
  const std::size_t place = text.find("{}");
  return place == std::string::npos ? text : text.replace(place, 2, default_text(option));
}

}  // namespace tensorcast::options
