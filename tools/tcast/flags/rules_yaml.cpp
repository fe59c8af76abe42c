// SPDX-License-Identifier: Apache-2.0
#include "flags/rules_yaml.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <string_view>
#include <type_traits>
#include <vector>

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include "convert/convert_options.hpp"
#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"
#include "dtype/text_parts.hpp"
#include "flags/convert_rules.hpp"
#include "options/cast_options.hpp"
#include "options/value_text.hpp"
#include "process/printable.hpp"

namespace tcast {
namespace {

using tensorcast::ConvertRequest;
using tensorcast::ConvertRule;
using tensorcast::DType;
namespace options = tensorcast::options;

// A mistake in the file; thrown and caught here, as yaml-cpp's own.
struct Mistake {
  std::string message;
  YAML::Mark mark;
};

std::string word_of(const YAML::Node& node) {
  if (!node.IsScalar()) throw Mistake{"one word is expected here", node.Mark()};
  return node.Scalar();
}

// Options may be written with dashes or underscores.
std::string dashed(std::string word) {
  std::replace(word.begin(), word.end(), '_', '-');
  return word;
}

std::string key_of(const YAML::Node& node) { return dashed(word_of(node)); }

DType type_of(const YAML::Node& node) {
  const auto dtype = tensorcast::parse_dtype(word_of(node));
  if (!dtype) throw Mistake{dtype.error().message, node.Mark()};
  return *dtype;
}

std::string pattern_of(const YAML::Node& node) {
  std::string pattern = word_of(node);
  if (std::string complaint = regex_complaint(pattern); !complaint.empty()) {
    throw Mistake{std::move(complaint), node.Mark()};
  }
  return pattern;
}

std::uint64_t number_of(const YAML::Node& node) {
  const std::string word = word_of(node);
  const std::optional<std::uint64_t> number = tensorcast::parse_whole<std::uint64_t>(word);
  if (!number) throw Mistake{fmt::format("\"{}\" is not a whole number", word), node.Mark()};
  return *number;
}

double scale_of(const YAML::Node& node) {
  const std::string word = word_of(node);
  const std::optional<double> scale = tensorcast::parse_whole<double>(word);
  if (!scale || !std::isfinite(*scale)) throw Mistake{fmt::format("\"{}\" is not a finite number", word), node.Mark()};
  return *scale;
}

double bits_of(const YAML::Node& node) {
  const std::string word = word_of(node);
  const std::optional<double> bits = options::parse_bits(word);
  if (!bits) throw Mistake{fmt::format("\"{}\" is not a size such as 4.5bits", word), node.Mark()};
  return *bits;
}

bool truth_of(const YAML::Node& node) {
  const std::string word = word_of(node);
  if (word == "true" || word == "yes") return true;
  if (word == "false" || word == "no") return false;
  throw Mistake{fmt::format("\"{}\" is neither true nor false", word), node.Mark()};
}

// Calls `add` for each element of a list, or for a single value.
template <class Add>
void for_each(const YAML::Node& node, Add add) {
  if (!node.IsSequence()) return add(node);
  for (const YAML::Node& element : node) add(element);
}

// A type or a scheme.
tensorcast::ConvertTarget target_of(const YAML::Node& node) {
  auto target = tensorcast::parse_target(word_of(node));
  if (!target) throw Mistake{target.error().message, node.Mark()};
  return *std::move(target);
}

tensorcast::TensorKind kind_of(const YAML::Node& node) {
  auto kind = tensorcast::parse_tensor_kind(key_of(node));
  if (!kind) throw Mistake{kind.error().message, node.Mark()};
  return *kind;
}

ConvertRule rule_of(const YAML::Node& node) {
  if (node.IsScalar()) {
    const auto rule = parse_rule(node.Scalar());
    if (!rule) throw Mistake{rule.error().message, node.Mark()};
    return *rule;
  }
  if (!node.IsMap()) throw Mistake{"a rule is REGEX=DTYPE or {match: REGEX, to: DTYPE}", node.Mark()};
  ConvertRule rule;
  bool has_condition = false;
  for (const auto& entry : node) {
    const std::string key = key_of(entry.first);
    has_condition = has_condition || key == "match" || key == "kind" || key == "rank" || key == "smaller";
    if (key == "match") {
      rule.pattern = pattern_of(entry.second);
    } else if (key == "rank") {
      for_each(entry.second,
               [&](const YAML::Node& rank) { rule.ranks.push_back(static_cast<std::int64_t>(number_of(rank))); });
    } else if (key == "kind") {
      for_each(entry.second, [&](const YAML::Node& kind) { rule.kinds.push_back(kind_of(kind)); });
    } else if (key == "smaller") {
      rule.smaller = number_of(entry.second);
    } else if (key == "keep") {
      rule.keep = truth_of(entry.second);
    } else if (key == "to") {
      const tensorcast::ConvertTarget target = target_of(entry.second);
      rule.to = target.to;
      rule.scheme = target.scheme;
      if (!target.recipe.empty()) rule.recipe = target.recipe;
    } else if (key == "recipe") {
      rule.recipe = word_of(entry.second);
    } else if (key == "scale") {
      rule.scale = scale_of(entry.second);
    } else {
      throw Mistake{fmt::format("a rule has match, kind, rank, smaller, to, recipe, scale and keep, not \"{}\"", key),
                    entry.first.Mark()};
    }
  }
  if (!has_condition) throw Mistake{"the rule has no match, kind, rank or smaller", node.Mark()};
  if (rule.keep == (rule.to != DType::undefined || !rule.scheme.empty()))
    throw Mistake{"a rule has either to or keep", node.Mark()};
  if (!rule.recipe.empty() && tensorcast::find_quantize_recipe(rule.scheme, rule.recipe) == nullptr) {
    throw Mistake{fmt::format("\"{}\" has no recipe \"{}\"", rule.scheme, rule.recipe), node.Mark()};
  }
  if (rule.keep && rule.scale) throw Mistake{"a rule with keep has no use for scale", node.Mark()};
  return rule;
}

tensorcast::Rename rename_of(const YAML::Node& node) {
  auto rename = parse_rename(word_of(node));
  if (!rename) throw Mistake{rename.error().message, node.Mark()};
  return *std::move(rename);
}

void add_rules_of(const YAML::Node& node, ConvertRequest& request) {
  for_each(node, [&](const YAML::Node& rule) { request.rules.push_back(rule_of(rule)); });
}

// Reads the value of an option. Lists grow, and what the command line says stays.
template <class Option>
void read(const YAML::Node& node, const Option& option, typename Option::Type& value) {
  using Value = typename Option::Type;
  if constexpr (std::is_same_v<Value, std::vector<ConvertRule>>) {
    for_each(node, [&](const YAML::Node& rule) { value.push_back(rule_of(rule)); });
  } else if constexpr (std::is_same_v<Value, std::vector<tensorcast::Rename>>) {
    for_each(node, [&](const YAML::Node& rename) { value.push_back(rename_of(rename)); });
  } else if constexpr (std::is_same_v<Value, std::vector<std::int64_t>>) {
    for_each(node, [&](const YAML::Node& rank) { value.push_back(static_cast<std::int64_t>(number_of(rank))); });
  } else if constexpr (std::is_same_v<Value, std::vector<std::string>>) {
    const bool is_pattern = option.kind == options::ValueKind::pattern;
    for_each(node, [&](const YAML::Node& text) { value.push_back(is_pattern ? pattern_of(text) : word_of(text)); });
  } else if constexpr (std::is_same_v<Value, DType>) {
    const DType dtype = type_of(node);
    if (value == DType::undefined) value = dtype;
  } else if constexpr (std::is_same_v<Value, std::string>) {
    if (value.empty()) value = word_of(node);
  } else if constexpr (std::is_same_v<Value, bool>) {
    const bool truth = truth_of(node);
    if (value == option.usual()) value = truth;
  } else if constexpr (Option::is_choice) {
    const std::string word = dashed(word_of(node));
    int found = option.words.find(word);
    std::string known;
    for (int number = 0; found < 0 && number <= option.last(); ++number) {
      const std::string each = dashed(option.word(static_cast<Value>(number)));
      if (each == word) found = number;
      known += (known.empty() ? "" : ", ") + each;
    }
    if (found < 0) {
      throw Mistake{fmt::format("\"{}\" is not a {}; there are {}", word_of(node), option.name, known), node.Mark()};
    }
    if (value == Value{}) value = static_cast<Value>(found);
  } else if constexpr (std::is_same_v<Value, double>) {
    const double number = option.kind == options::ValueKind::bits ? bits_of(node) : scale_of(node);
    if (value == option.usual()) value = number;
  } else {
    const std::uint64_t number = number_of(node);
    if (number > static_cast<std::uint64_t>(std::numeric_limits<Value>::max())) {
      throw Mistake{fmt::format("{} is too large for {}", number, option.name), node.Mark()};
    }
    if (value == 0) value = static_cast<Value>(number);
  }
}

// Calls visit(option) for each option that a file may have, until it returns false. Reports whether it never did.
template <class Visit>
bool all_choices(Visit&& visit) {
  return options::all_of(options::request_options, [&](const auto& option) {
    if constexpr (options::is_choice_of_tensors<std::decay_t<decltype(option)>>) return visit(option);
    return true;
  });
}

void add_entry(const std::string& key, const YAML::Node& key_node, const YAML::Node& node, ConvertRequest& request) {
  if (key == "to") {
    const tensorcast::ConvertTarget target = target_of(node);
    if (request.to != DType::undefined || !request.scheme.empty() || request.budget != 0.0)
      return;  // the command line's
    request.to = target.to;
    request.scheme = target.scheme;
    if (request.recipe.empty()) request.recipe = target.recipe;
    return;
  }
  const bool unknown = all_choices([&](const auto& option) {
    if (key != dashed(option.name) && !(key == "rule" && std::string_view(option.name) == "rules")) return true;
    read(node, option, value_of(request, option));
    return false;
  });
  const bool is_of_casts = !options::all_of(options::cast_options, [&](const auto& option) {
    if (key != dashed(option.name) && key != dashed(option.flag)) return true;
    read(node, option, request.options.*option.member);
    return false;
  });
  if (!unknown || is_of_casts) return;
  std::string known;
  all_choices([&](const auto& option) {
    known += (known.empty() ? "" : ", ") + dashed(option.name);
    return true;
  });
  options::for_each(options::cast_options, [&](const auto& option) { known += ", " + dashed(option.name); });
  throw Mistake{fmt::format("\"{}\" is not one of {}", key, known), key_node.Mark()};
}

}  // namespace

tensorcast::Result<void> add_yaml_rules(const std::string& text, const std::string& path, ConvertRequest& request) {
  const auto fail = [&](const std::string& message, const YAML::Mark& mark) {
    return tensorcast::in_file(path, tensorcast::parse_error(fmt::format("line {}: {}", mark.line + 1, message)));
  };
  try {
    const YAML::Node document = YAML::Load(text);
    if (document.IsSequence()) {
      add_rules_of(document, request);
    } else if (document.IsMap()) {
      std::set<std::string> keys;
      for (const auto& entry : document) {
        const std::string key = key_of(entry.first);
        if (!keys.insert(key).second) return fail(fmt::format("\"{}\" occurs twice", key), entry.first.Mark());
        add_entry(key, entry.first, entry.second, request);
      }
    } else if (!document.IsNull()) {
      return fail("a list of rules, or words of options, are expected", document.Mark());
    }
  } catch (const Mistake& mistake) {
    return fail(mistake.message, mistake.mark);
  } catch (const YAML::Exception& error) {
    return fail(error.msg, error.mark);
  }
  return {};
}

}  // namespace tcast
