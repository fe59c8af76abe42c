// SPDX-License-Identifier: Apache-2.0
// Prints the lists of options as modules of the Python package, which type checkers read.
// scripts/make/print-options writes them.
//   print_python_options cast       python/tensorcast/_option_list.py
//   print_python_options quantize   python/tensorcast/_quantize_options.py
//   print_python_options files      python/tensorcast/_convert_options.py
//   print_python_options onnx       python/tensorcast/onnx/_option_list.py

#include <cctype>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>

#include "convert/convert_options.hpp"
#include "models/onnx/model_options.hpp"
#include "options/cast_options.hpp"
#include "options/option_text.hpp"
#include "options/promote_options.hpp"
#include "options/quantize_options.hpp"

namespace {

using namespace tensorcast::options;

template <class Option>
inline constexpr bool is_in_request =
    std::is_base_of_v<typename Option::Owner, tensorcast::ConvertRequest> || is_filter<Option>;

template <class Option>
inline constexpr bool is_of_quantize = std::is_same_v<typename Option::Owner, tensorcast::QuantizeOptions>;

// "round_mode" -> "RoundMode".
std::string type_name(std::string_view name) {
  std::string result;
  bool upper = true;
  for (const char c : name) {
    if (c != '_') result += upper ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    upper = c == '_';
  }
  return result;
}

// Returns the type of an option that is a text: the names that editors complete, or any text.
std::string text_annotation(std::string_view name) {
  return name == "recipe" ? "RecipeName | str | None" : name == "spelling" ? "SpellingName | str | None" : "str | None";
}

template <class Option>
std::string annotation(const Option& option) {
  using Value = typename Option::Type;
  if constexpr (is_of_quantize<Option>) {
    if (option.words.size() != 0) return type_name(option.name);
    if constexpr (std::is_same_v<Value, tensorcast::DType>) return "DTypeLike | None";
    if constexpr (std::is_same_v<Value, std::string_view>) return text_annotation(option.name);
    if constexpr (std::is_same_v<Value, std::span<const float>>) return "Any";
    return std::is_same_v<Value, bool> ? "bool | None" : std::is_integral_v<Value> ? "int | None" : "float | None";
  }
  if constexpr (is_in_request<Option>) {
    if constexpr (std::is_same_v<Value, tensorcast::DType>) return "DTypeLike | None";
    if constexpr (Option::is_choice) return type_name(option.name) + " | None";
    if constexpr (std::is_same_v<Value, std::vector<std::string>>) {
      return option.kind == ValueKind::list ? "str | Iterable[str]" : "Patterns";
    }
    if constexpr (std::is_same_v<Value, std::vector<tensorcast::Rename>>) return "Renames";
    if constexpr (std::is_same_v<Value, std::vector<tensorcast::ConvertRule>>) return "Rules";
    if constexpr (std::is_same_v<Value, std::vector<std::int64_t>>) return "int | Iterable[int]";
    if constexpr (std::is_same_v<Value, bool>) return "bool";
    if constexpr (std::is_same_v<Value, std::string>) {
      return option.kind == ValueKind::file ? "str | os.PathLike[str] | None" : text_annotation(option.name);
    }
    if (option.kind == ValueKind::size) return "int | str | None";
    if (option.kind == ValueKind::bits) return "float | str | None";
  }
  if (option.words.size() != 0) return type_name(option.name);
  if constexpr (is_io_types<Option>) return "bool | str | Iterable[str] | Mapping[str, DTypeLike | None]";
  if constexpr (is_weights_scheme<Option>) return "bool | str";
  if constexpr (std::is_same_v<Value, std::vector<std::string>>) return "str | Iterable[str]";
  if constexpr (std::is_same_v<Value, std::vector<tensorcast::DType>>) return "DTypeLike | Iterable[DTypeLike]";
  return std::is_same_v<Value, bool> ? "bool" : std::is_integral_v<Value> ? "int" : "float";
}

const char* name_of(ValueKind kind) {
  switch (kind) {
    case ValueKind::text:
      return "text";
    case ValueKind::pattern:
      return "pattern";
    case ValueKind::glob:
      return "glob";
    case ValueKind::list:
      return "list";
    case ValueKind::size:
      return "size";
    case ValueKind::bits:
      return "bits";
    case ValueKind::share:
      return "share";
    case ValueKind::file:
      return "file";
  }
  return "";
}

// "texts", "flag": how Python's command line and keywords take the value.
template <class Option>
const char* kind(const Option& option) {
  using Value = typename Option::Type;
  if constexpr (is_io_types<Option>) return "io_types";
  if constexpr (is_weights_scheme<Option>) return "flag_or_text";
  if (option.kind != ValueKind::text) return name_of(option.kind);
  if constexpr (std::is_same_v<Value, tensorcast::Preset>) return "preset";
  if constexpr (std::is_same_v<Value, tensorcast::DType>) return "type";
  if constexpr (Option::is_choice) return "choice";
  if constexpr (std::is_same_v<Value, std::vector<tensorcast::ConvertRule>>) return "rules";
  if constexpr (std::is_same_v<Value, std::vector<tensorcast::Rename>>) return "renames";
  if constexpr (std::is_same_v<Value, std::vector<std::int64_t>>) return "ranks";
  if constexpr (std::is_same_v<Value, std::vector<std::string>>) return "texts";
  if constexpr (std::is_same_v<Value, std::vector<tensorcast::DType>>) return "types";
  if constexpr (std::is_same_v<Value, std::string>) return "text";
  if constexpr (std::is_same_v<Value, std::int64_t>) return "opset";
  return std::is_same_v<Value, bool> ? "flag" : std::is_integral_v<Value> ? "count" : "number";
}

// ("a", "b"), or ("a",): the names of the options that `holds`.
template <class List, class Holds>
std::string names_where(const List& list, Holds holds) {
  std::string names;
  for_each(list, [&](const auto& option) {
    if (holds(option)) names += '"' + std::string(option.name) + "\", ";
  });
  if (!names.empty()) names.pop_back();
  if (names.find(' ') != std::string::npos) names.pop_back();  // one element keeps its comma
  return '(' + names + ')';
}

void print(const std::string& text) { std::fputs(text.c_str(), stdout); }

std::string quoted_words(const Words& words) {
  std::string list;
  for (const char* word : words) list += (list.empty() ? "\"" : ", \"") + std::string(word) + '"';
  return list;
}

constexpr auto is_of_plan = [](const auto& option) { return option.in_python && !option.of_one_run; };
constexpr auto is_of_filter = [](const auto& option) { return is_filter<std::decay_t<decltype(option)>>; };
constexpr auto is_of_mappings = [](const auto& option) {
  return is_choice_of_tensors<std::decay_t<decltype(option)>> && !is_of_filter(option) && option.in_python &&
         !option.of_files;
};

// An alias of the words of a choice.
void print_words(const std::string& alias, const Words& words) {
  if (words.size() != 0) print(alias + ": TypeAlias = Literal[" + quoted_words(words) + "]\n");
}

// Prints the members that `holds`.
template <class List, class Holds>
void print_members(const List& list, Holds holds) {
  for_each(list, [&](const auto& option) {
    if (holds(option)) print(std::string("    ") + option.name + ": " + annotation(option) + "\n");
  });
}

// What Python's functions have if the option is not given.
template <class Option>
std::string default_in_python(const Option& option) {
  if constexpr (is_io_types<Option> || is_weights_scheme<Option>) return "False";
  if constexpr (is_of_quantize<Option>) return option.words.size() == 0 ? "None" : python_default(option);
  if constexpr (is_in_request<Option>) {
    const bool is_text = std::is_same_v<typename Option::Type, std::string>;
    const bool is_size = option.kind == ValueKind::size || option.kind == ValueKind::bits;
    if (Option::is_choice || is_text || is_size) return "None";
    if constexpr (std::is_same_v<typename Option::Type, bool>) return option.usual() ? "True" : "False";
    if constexpr (std::is_same_v<typename Option::Type, tensorcast::DType>) return "None";
  }
  return python_default(option);
}

template <class List>
void print_defaults(const char* name, const List& list, const std::string& more = {}) {
  print(std::string("\n") + name + ": dict[str, Any] = {\n");
  for_each(list, [](const auto& option) {
    if (option.in_python) print(std::string("    \"") + option.name + "\": " + default_in_python(option) + ",\n");
  });
  print(more + "}\n");
}

// Breaks a text between words so that no line is longer than 118 columns; lines after the first are indented deeper.
std::string wrapped(std::string_view text, std::size_t indent) {
  constexpr std::size_t columns = 118;
  std::string result;
  std::string line(indent, ' ');
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    if (line.size() + word.size() > columns) {
      line.pop_back();
      result += line + '\n';
      line.assign(indent + 4, ' ');
    }
    line.append(word).append(" ");
  }
  line.pop_back();
  return result + line + '\n';
}

// The options as a docstring describes arguments.
template <class List>
std::string argument_lines(const List& list) {
  std::string text;
  for_each(list, [&](const auto& option) {
    if (!option.in_python) return;
    std::string sentence = std::string(option.name) + ": " + help_text(option) + '.';
    if (*option.more != '\0') sentence += ' ' + std::string(option.more) + '.';
    text += wrapped(sentence, 8);
  });
  return text;
}

// The other spellings of words, of options that have some.
void print_synonyms() {
  print("SYNONYMS: dict[str, dict[str, str]] = {\n");
  for_each(cast_options, [](const auto& option) {
    std::string pairs;
    for (const Synonym& other : option.words.synonyms) {
      if (other.word == nullptr) continue;
      const std::string meant = option.words.word[static_cast<std::size_t>(other.number)];
      pairs += "        \"" + std::string(other.word) + "\": \"" + meant + "\",\n";
    }
    if (!pairs.empty()) print("    \"" + std::string(option.name) + "\": {\n" + pairs + "    },\n");
  });
  print("}\n");
}

void print_cast() {
  print(R"("""The options of conversions. Printed by print_python_options from src/options/cast_options.hpp."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, TypedDict

)");
  for_each(cast_options, [](const auto& option) { print_words(type_name(option.name), option.words); });
  print_words("PromoteRules", promote_rules);
  print("\n\nclass CommonOptions(TypedDict, total=False):\n");
  print_members(cast_options, [](const Facts& facts) { return !facts.may_be_array; });
  print("    threads: int\n");
  print(R"(

class CastOptions(CommonOptions, total=False):
    """The options of every conversion. :func:`tensorcast.cast` describes them.

    For a function of your own that hands them on: ``def f(x, **options: Unpack[tensorcast.CastOptions])``.

    Examples:
        >>> options: tc.CastOptions = {"rounding": "nearest_even", "out_of_range": "saturate"}
        >>> tc.cast(np.float32([2.7, 300]), "uint8", **options)
        array([  3, 255], dtype=uint8)
    """

)");
  print_members(cast_options, [](const Facts& facts) { return facts.may_be_array; });
  print("\n");
  print_defaults("DEFAULTS", cast_options, "    \"threads\": 0,\n");
  print("ONNX_ATTRIBUTES = " + names_where(cast_options, [](const Facts& facts) { return facts.since_opset != 0; }) +
        "\n");
  print("STRING_OPTIONS = " + names_where(cast_options, [](const Facts& facts) { return facts.for_strings; }) + "\n");
  print_synonyms();
}

void print_files() {
  print(
      R"("""The options of conversions of files. Printed by print_python_options from src/convert/convert_options.hpp."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, Literal, TypeAlias, TypedDict

from ._names import RecipeName, SpellingName
from ._option_list import CastOptions
from ._options import DTypeLike
from ._request_types import Patterns, Preset, Renames, Rules

)");
  for_each(request_options, [](const auto& option) {
    if (option.in_python && std::decay_t<decltype(option)>::is_choice && std::string_view(option.name) != "preset") {
      print_words(type_name(option.name), option.words);
    }
  });
  print(R"(

class FilterOptions(TypedDict, total=False):
    """What of the input is written, and under which names; :class:`ConvertOptions` describes them."""

)");
  print_members(request_options, is_of_filter);
  print(R"(

class MappingOptions(TypedDict, total=False):
    """What becomes of the arrays of a mapping; :class:`ConvertOptions` describes them."""

)");
  print_members(request_options, is_of_mappings);
  print(R"(

class VerifyOptions(FilterOptions, CastOptions, total=False):
    """The options of :func:`tensorcast.checkpoint.verify`; :class:`ConvertOptions` describes them."""


class PlanOptions(FilterOptions, MappingOptions, CastOptions, total=False):
    """The options of :func:`tensorcast.checkpoint.plan`; :class:`ConvertOptions` describes them."""

)");
  print_members(request_options, [](const auto& option) {
    return is_of_plan(option) && !is_of_filter(option) && !is_of_mappings(option);
  });
  print(
      "\n\nclass ConvertOptions(PlanOptions, total=False):\n"
      "    r\"\"\"The options of :func:`tensorcast.convert`, with those of :func:`tensorcast.cast`.\n\n"
      "    Examples:\n"
      "        >>> options: tc.ConvertOptions = {\"exclude\": \"norm\", \"verify\": True}\n"
      "        >>> done = tc.convert(\"model.safetensors\", \"half.safetensors\", \"float16\", **options)\n"
      "        >>> done.tensors[2].reason, done.verified\n"
      "        ('excluded', True)\n"
      "\n"
      "    Args:\n");
  print(argument_lines(request_options) + "    \"\"\"\n\n");
  print_members(request_options, [](const auto& option) { return option.in_python && option.of_one_run; });
  print("\n\nConvertOptions.__module__ = \"tensorcast\"\n");
  print_defaults("REQUEST_DEFAULTS", request_options);
  print("# How their values are read.\nREQUEST_KINDS: dict[str, str] = {\n");
  for_each(request_options, [](const auto& option) {
    if (option.in_python) print(std::string("    \"") + option.name + "\": \"" + kind(option) + "\",\n");
  });
  print("}\n");
  print("PLAN_OPTIONS = " + names_where(request_options, is_of_plan) + "\n");
  print("FILTER_OPTIONS = " + names_where(request_options, is_of_filter) + "\n");
  print("OF_MAPPINGS = " + names_where(request_options, is_of_mappings) + "\n");
}

void print_quantize() {
  print(R"("""The options of quantize(). Printed by print_python_options from src/options/quantize_options.hpp."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, TypedDict

from ._names import RecipeName
from ._options import DTypeLike

)");
  for_each(quantize_options, [](const auto& option) { print_words(type_name(option.name), option.words); });
  print(
      "\n\nclass QuantizeOptions(TypedDict, total=False):\n"
      "    \"\"\"The options of :func:`tensorcast.quantize`.\n\n"
      "    Examples:\n"
      "        >>> options: tc.QuantizeOptions = {\"recipe\": \"even\"}\n"
      "        >>> tc.quantize(weight, \"mxfp4\", **options).recipe\n"
      "        'even'\n"
      "\n"
      "    Args:\n");
  print(argument_lines(quantize_options) + "    \"\"\"\n\n");
  print_members(quantize_options, [](const Facts&) { return true; });
  print("\n\nQuantizeOptions.__module__ = \"tensorcast\"\n");
  print_defaults("DEFAULTS", quantize_options);
}

void print_onnx() {
  print(
      R"("""The options of a model's conversion. Printed by print_python_options from src/models/onnx/model_options.hpp."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeAlias, TypedDict

from .._options import DTypeLike

)");
  for_each(model_options, [](const auto& option) {
    if constexpr (std::decay_t<decltype(option)>::is_choice) {
      print_words(type_name(option.name), option.words);
    } else if (option.words.size() != 0) {
      print(type_name(option.name) + ": TypeAlias = int | Literal[" + quoted_words(option.words) + "]\n");
    }
  });
  print(R"(

class SearchOptions(TypedDict, total=False):
    """Those of :func:`tensorcast.onnx.search`; :class:`ConvertOptions` describes them."""

)");
  print_members(model_options, [](const Facts& facts) { return !facts.of_one_run; });
  print(
      "\n\nclass ConvertOptions(SearchOptions, total=False):\n"
      "    \"\"\"The options of :func:`tensorcast.onnx.convert`.\n\n"
      "    Examples:\n"
      "        >>> options: tc.onnx.ConvertOptions = {\"keep_io_types\": True, \"dry_run\": True}\n"
      "        >>> tc.onnx.convert(\"model.onnx\", to=\"float16\", **options).casts_added\n"
      "        2\n"
      "\n"
      "    Args:\n");
  print(argument_lines(model_options) + "    \"\"\"\n\n");
  print_members(model_options, [](const Facts& facts) { return facts.of_one_run; });
  print("\n\nConvertOptions.__module__ = \"tensorcast.onnx\"\n");
  print_defaults("DEFAULTS", model_options);
  print("OF_ONE_RUN = " + names_where(model_options, [](const Facts& facts) { return facts.of_one_run; }) + "\n");
  print(
      "# Keyword, flag, kind, name of the value, words, help.\n"
      "ROWS: tuple[tuple[str, str, str, str, tuple[str, ...], str], ...] = (\n");
  for_each(model_options, [](const auto& option) {
    std::string flag = *option.flag != '\0' ? option.flag : option.name;
    for (char& c : flag) c = c == '_' ? '-' : c;
    const bool is_choice = std::decay_t<decltype(option)>::is_choice;
    print("    (\"" + std::string(option.name) + "\", \"--" + flag + "\", \"" + kind(option) + "\", \"" +
          value_name(option) + "\", (" + (is_choice ? quoted_words(option.words) : "") + "),\n     \"" +
          help_text(option) + "\"),\n");
  });
  print(")  # fmt: skip\n");
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view list = argc == 2 ? argv[1] : "";
  if (list == "cast") {
    print_cast();
  } else if (list == "quantize") {
    print_quantize();
  } else if (list == "files") {
    print_files();
  } else if (list == "onnx") {
    print_onnx();
  } else {
    return 2;
  }
  return 0;
}
