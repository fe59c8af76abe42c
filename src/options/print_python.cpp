// Prints python/tensorcast/_option_list.py: the options of conversions as type checkers see them.
#include <cctype>
#include <cstdio>
#include <string>
// SPDX-License-Identifier: Apache-2.0
#include "options/cast_options.hpp"
#include "options/option_text.hpp"
#include "options/promote_options.hpp"

namespace {

using namespace tensorcast::options;

// "round_mode" -> "RoundMode".
std::string type_name(const std::string& name) {
  std::string result;
  bool upper = true;
  for (const char c : name) {
    if (c != '_') result += upper ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    upper = c == '_';
  }
  return result;
}

template <class Option>
std::string annotation(const Option& option) {
  using Value = typename Option::Type;
  if constexpr (Option::is_choice) return type_name(option.name);
  return std::is_same_v<Value, bool> ? "bool" : std::is_same_v<Value, int> ? "int" : "float";
}

// ("a", "b"), or ("a",).
std::string names_where(bool (*holds)(const Facts&)) {
  std::string list;
  for_each(cast_options, [&](const auto& option) {
    if (holds(option)) list += '"' + std::string(option.name) + "\", ";
  });
  if (!list.empty()) list.pop_back();
  if (list.find(' ') != std::string::npos) list.pop_back();  // one element keeps its comma
  return '(' + list + ')';
}

void print(const std::string& text) { std::fputs(text.c_str(), stdout); }

// An alias of the words of a choice.
void print_words(const std::string& alias, const Words& words) {
  std::string list;
  for (const char* word : words) list += (list.empty() ? "\"" : ", \"") + std::string(word) + '"';
  if (!list.empty()) print(alias + ": TypeAlias = Literal[" + list + "]\n");
}

void print_class(const char* head, bool with_arrays) {
  print(head);
  for_each(cast_options, [&](const auto& option) {
    if (option.may_be_array == with_arrays) print(std::string("    ") + option.name + ": " + annotation(option) + "\n");
  });
}

}  // namespace

int main() {
  print(R"("""The options of conversions. Printed by print_python_options from src/options/cast_options.hpp."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, TypedDict

)");
  for_each(cast_options, [](const auto& option) { print_words(type_name(option.name), option.words); });
  print_words("PromoteRules", promote_rules);
  print_class("\n\nclass CommonOptions(TypedDict, total=False):\n", false);
  print("    threads: int\n");
  print_class(R"(

class CastOptions(CommonOptions, total=False):
    """The options of every conversion. :func:`tensorcast.cast` describes them.

    For a function of your own that hands them on: ``def f(x, **options: Unpack[tensorcast.CastOptions])``.
    """

)",
              true);
  print("\n\nDEFAULTS: dict[str, Any] = {\n");
  for_each(cast_options, [](const auto& option) {
    print(std::string("    \"") + option.name + "\": " + python_default(option) + ",\n");
  });
  print("    \"threads\": 0,\n}\n");
  print("ONNX_ATTRIBUTES = " + names_where([](const Facts& facts) { return facts.since_opset != 0; }) + "\n");
  print("STRING_OPTIONS = " + names_where([](const Facts& facts) { return facts.for_strings; }) + "\n");
  return 0;
}
