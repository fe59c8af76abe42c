// SPDX-License-Identifier: Apache-2.0
#include "convert/plan/conversion_json.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "convert/convert_options.hpp"
#include "dtype/errors.hpp"
#include "options/cast_options.hpp"
#include "options/quantize_options.hpp"

namespace tensorcast::file_conversion {
namespace {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

// Thrown and caught in this file only.
struct NoSuchValue {};

void require_value(bool holds) {
  if (!holds) throw NoSuchValue{};
}

// Calls `visit` with each member of a rule but its pattern, and its key.
template <class Rule, class Visit>
void visit_rule(Rule& rule, const Visit& visit) {
  visit("to", rule.to);
  visit("ranks", rule.ranks);
  visit("smaller", rule.smaller);
  visit("keep", rule.keep);
  visit("scale", rule.scale);
  visit("scheme", rule.scheme);
  visit("recipe", rule.recipe);
  visit("kinds", rule.kinds);
}

OrderedJson member_json(DType type) { return name(type); }
OrderedJson member_json(const std::optional<double>& number) { return *number; }
OrderedJson member_json(const std::vector<TensorKind>& kinds) {
  OrderedJson names;
  for (const TensorKind kind : kinds) names.push_back(name(kind));
  return names;
}
OrderedJson member_json(const auto& value) { return value; }

OrderedJson rule_json(const ConvertRule& rule) {
  OrderedJson json = {{"pattern", rule.pattern}};
  visit_rule(rule, [&](const char* key, const auto& value) {
    if (value != std::decay_t<decltype(value)>()) json[key] = member_json(value);
  });
  return json;
}

template <class Option>
OrderedJson value_json(const Option& option, const typename Option::Type& value) {
  using Value = typename Option::Type;
  if constexpr (std::is_same_v<Value, DType>) {
    return name(value);
  } else if constexpr (Option::is_choice) {
    return option.word(value);
  } else if constexpr (std::is_same_v<Value, std::vector<ConvertRule>>) {
    OrderedJson rules = OrderedJson::array();
    for (const ConvertRule& rule : value) rules.push_back(rule_json(rule));
    return rules;
  } else if constexpr (std::is_same_v<Value, std::vector<Rename>>) {
    OrderedJson renames = OrderedJson::array();
    for (const Rename& rename : value) renames.push_back({rename.pattern, rename.replacement});
    return renames;
  } else {
    // A flag of two words is a bool.
    return value;
  }
}

template <class Option>
void append_given(OrderedJson& json, const Option& option, const typename Option::Type& value) {
  using Value = typename Option::Type;
  if constexpr (options::is_list<Value> || std::is_same_v<Value, std::string>) {
    if (value.empty()) return;
  } else {
    if (value == option.usual()) return;
  }
  json[option.name] = value_json(option, value);
}

void read(const Json& json, std::string& value) {
  require_value(json.is_string());
  value = json.get<std::string>();
  require_value(value.find('\0') == std::string::npos);
}

void read(const Json& json, bool& value) {
  require_value(json.is_boolean());
  value = json.get<bool>();
}

template <class Value>
  requires std::is_integral_v<Value>
void read(const Json& json, Value& value) {
  require_value(json.is_number_unsigned() && std::in_range<Value>(json.get<std::uint64_t>()));
  value = json.get<Value>();
}

void read(const Json& json, double& value) {
  require_value(json.is_number());
  value = json.get<double>();
}

template <class Value>
Value read_word(const Json& json, Result<Value> (*parse)(std::string_view)) {
  std::string text;
  read(json, text);
  const Result<Value> value = parse(text);
  require_value(value.ok());
  return *value;
}

void read(const Json& json, DType& value) { value = read_word(json, parse_dtype); }
void read(const Json& json, TensorKind& value) { value = read_word(json, parse_tensor_kind); }
void read(const Json& json, std::optional<double>& value) { read(json, value.emplace()); }

template <class Element>
void read(const Json& json, std::vector<Element>& values);

void read(const Json& json, Rename& value) {
  require_value(json.is_array() && json.size() == 2);
  read(json[0], value.pattern);
  read(json[1], value.replacement);
}

void read(const Json& json, ConvertRule& rule) {
  require_value(json.is_object() && json.contains("pattern"));
  read(json.at("pattern"), rule.pattern);
  std::size_t known = 1;
  visit_rule(rule, [&](const char* key, auto& value) {
    if (!json.contains(key)) return;
    read(json.at(key), value);
    ++known;
  });
  require_value(known == json.size());
}

template <class Element>
void read(const Json& json, std::vector<Element>& values) {
  require_value(json.is_array());
  values.clear();
  for (const Json& each : json) read(each, values.emplace_back());
}

template <class Option>
void read_option(const Json& json, const Option& option, typename Option::Type& value) {
  using Value = typename Option::Type;
  if constexpr (Option::is_choice && !std::is_same_v<Value, DType>) {
    std::string word;
    read(json, word);
    const int number = option.words.find(word);
    require_value(number >= 0);
    value = static_cast<Value>(number);
  } else {
    read(json, value);
    if constexpr (std::is_arithmetic_v<Value>) require_value(option.allows(value));
  }
}

// Sets an option that `json` has.
template <class Option>
void read_given(const Json& json, const Option& option, typename Option::Type& value) {
  if (const auto given = json.find(option.name); given != json.end()) read_option(*given, option, value);
}

template <class Visit>
bool has_values(Visit visit) {
  try {
    visit();
  } catch (const NoSuchValue&) {
    return false;
  }
  return true;
}

// Calls `visit` with each setting, and its value.
template <class Settings, class Visit>
void for_each_setting(Settings& settings, Visit visit) {
  options::for_each(options::cast_options, [&](const auto& option) { visit(option, settings.options.*option.member); });
  options::for_each(options::request_options, [&](const auto& option) {
    if constexpr (options::is_setting<std::decay_t<decltype(option)>>) visit(option, settings.*option.member);
  });
}

template <class Quantizing, class Visit>
void for_each_number(Quantizing& quantizing, Visit visit) {
  options::for_each(options::quantize_options, [&](const auto& option) {
    using Value = typename std::decay_t<decltype(option)>::Type;
    if constexpr (std::is_arithmetic_v<Value> || std::is_enum_v<Value>) visit(option, quantizing.*option.member);
  });
}

// Whether an option changes bytes of the output that is no ConversionSettings; else it decides what is refused, or what
// is replaced.
bool changes_bytes(std::string_view option) {
  return option != "dry_run" && option != "exact" && option != "overwrite" && option != "parents";
}

// Calls `visit` with each option that changes bytes, and its value.
template <class Visit>
void for_each_of_bytes(ConvertRequest& request, Visit visit) {
  options::for_each(options::cast_options, [&](const auto& option) { visit(option, request.options.*option.member); });
  options::for_each(options::request_options, [&](const auto& option) {
    if constexpr (!options::is_setting<std::decay_t<decltype(option)>>) {
      if (changes_bytes(option.name)) visit(option, options::value_of(request, option));
    }
  });
}

}  // namespace

OrderedJson conversion_json(const ConvertRequest& request) {
  ConvertRequest copy = request;
  OrderedJson json = OrderedJson::object();
  for_each_of_bytes(copy, [&](const auto& option, const auto& value) { append_given(json, option, value); });
  return json;
}

OrderedJson tensor_options_json(const ConvertRequest& request) {
  OrderedJson json = OrderedJson::object();
  options::for_each(options::cast_options,
                    [&](const auto& option) { append_given(json, option, request.options.*option.member); });
  options::for_each(options::quantize_targets,
                    [&](const auto& option) { append_given(json, option, request.*option.member); });
  return json;
}

OrderedJson settings_json(const ConversionSettings& settings) {
  OrderedJson json = OrderedJson::object();
  for_each_setting(settings, [&](const auto& option, const auto& value) { append_given(json, option, value); });
  return json;
}

bool read_settings(const Json& json, ConversionSettings& settings) {
  return has_values(
      [&] { for_each_setting(settings, [&](const auto& option, auto& value) { read_given(json, option, value); }); });
}

OrderedJson quantize_options_json(const QuantizeOptions& quantizing) {
  OrderedJson json = OrderedJson::object();
  for_each_number(quantizing, [&](const auto& option, const auto& value) { append_given(json, option, value); });
  return json;
}

bool read_quantize_options(const Json& json, QuantizeOptions& quantizing) {
  return has_values(
      [&] { for_each_number(quantizing, [&](const auto& option, auto& value) { read_given(json, option, value); }); });
}

Result<void> read_conversion(const Json& json, ConvertRequest& request) {
  if (!json.is_object()) return parse_error("the options of the conversion are not an object");
  std::set<std::string> known;
  std::string bad;
  for_each_of_bytes(request, [&](const auto& option, auto& value) {
    known.insert(option.name);
    if (!bad.empty() || !json.contains(option.name)) return;
    try {
      read_option(json.at(option.name), option, value);
    } catch (const NoSuchValue&) {
      bad = option.name;
    }
  });
  if (!bad.empty()) return parse_error(fmt::format("the option \"{}\" has no such value", bad));
  for (const auto& [key, value] : json.items()) {
    if (!known.contains(key)) return parse_error(fmt::format("\"{}\" is no option of this version", key));
  }
  return {};
}

}  // namespace tensorcast::file_conversion
