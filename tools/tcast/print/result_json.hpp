// SPDX-License-Identifier: Apache-2.0
// Results as JSON, by the lists that describe their members.
#pragma once

#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "models/onnx/model_results.hpp"
#include "options/option.hpp"
#include "print/report_json.hpp"

namespace tcast {

template <class Value>
Json value_json(const Value& value);

template <class Result>
Json result_json(const Result& result) {
  namespace options = tensorcast::options;
  Json json = Json::object();
  options::for_each(options::fields<Result>, [&](const auto& field) {
    if (field.empty == options::Empty::python_only) return;
    const bool empty = is_empty(result, field);
    if (empty && field.empty == options::Empty::left_out) return;
    json[field.name] = empty && field.empty == options::Empty::null ? Json() : value_json(result.*field.member);
  });
  return json;
}

template <class Value>
Json value_json(const Value& value) {
  if constexpr (tensorcast::options::has_fields<Value>) {
    return result_json(value);
  } else if constexpr (std::is_same_v<Value, tensorcast::CastReport>) {
    return to_json(value);
  } else if constexpr (std::is_same_v<Value, double>) {
    return finite_or_null(value);
  } else if constexpr (std::is_enum_v<Value>) {
    return name(value);
  } else if constexpr (requires { value.has_value(); }) {
    return value ? value_json(*value) : Json();
  } else if constexpr (std::is_same_v<Value, std::vector<std::pair<tensorcast::DType, std::size_t>>>) {
    Json json = Json::object();
    for (const auto& [dtype, count] : value) json[std::string(name(dtype))] = count;
    return json;
  } else if constexpr (tensorcast::options::is_list<Value>) {
    Json json = Json::array();
    for (const auto& item : value) json.push_back(value_json(item));
    return json;
  } else {
    return value;
  }
}

}  // namespace tcast
