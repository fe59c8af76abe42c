// SPDX-License-Identifier: Apache-2.0
// Options in a plan.json, as their lists describe them.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>

#include "options/option.hpp"
#include "tensorcast/dtype.hpp"
#include "tensorcast/error.hpp"

namespace tensorcast::checkpoint {

// Whether options of this type are written here: not texts and lists, whose owners write them.
template <class Value>
inline constexpr bool is_planned = std::is_arithmetic_v<Value> || std::is_enum_v<Value>;

template <class Option>
void append_json(nlohmann::ordered_json& json, const Option& option, const typename Option::Type& value) {
  using Value = typename Option::Type;
  if constexpr (is_planned<Value>) {
    if (option.planned_if_given && value == option.usual()) return;
    if constexpr (std::is_same_v<Value, DType>) {
      json[option.in_plan()] = name(value);
    } else if constexpr (Option::is_choice) {
      json[option.in_plan()] = static_cast<int>(value);
    } else {
      json[option.in_plan()] = option.actual(value);
    }
  }
}

// Returns false if the option has no such value. Throws nlohmann::json::exception: there is none, or of another type.
template <class Option>
[[nodiscard]] bool read_json(const nlohmann::json& json, const Option& option, typename Option::Type& value) {
  using Value = typename Option::Type;
  if constexpr (is_planned<Value>) {
    if (option.planned_if_given && !json.contains(option.in_plan())) return true;
    const nlohmann::json& given = json.at(option.in_plan());
    if constexpr (std::is_same_v<Value, DType>) {
      const Result<DType> dtype = parse_dtype(given.template get<std::string>());
      if (dtype) value = *dtype;
      return dtype.ok();
    } else if constexpr (Option::is_choice || std::is_same_v<Value, int>) {
      const auto number = given.template get<std::int64_t>();
      if (number < 0 || number > option.last()) return false;
      value = static_cast<Value>(number);
    } else {
      value = given.template get<Value>();
      return option.allows(value);
    }
  }
  return true;
}

}  // namespace tensorcast::checkpoint
