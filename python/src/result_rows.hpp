// SPDX-License-Identifier: Apache-2.0
// Results as dictionaries, by the lists that describe their members.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include "convert/result_fields.hpp"
#include "options/option.hpp"

namespace tensorcast::python {

namespace nb = nanobind;

template <class Value>
nb::object value_row(const Value& value);

// The arguments of a result of the Python package.
template <class Result>
nb::dict result_row(const Result& result) {
  nb::dict row;
  options::for_each(options::fields<Result>, [&](const auto& field) {
    const auto& value = result.*field.member;
    const char* name = std::strcmp(field.name, "from") == 0 ? "from_" : field.name;
    if (field.empty == options::Empty::null && is_empty(result, field)) {
      row[name] = nb::none();
      return;
    }
    row[name] = value_row(value);
  });
  return row;
}

// Lists of results are lists, others tuples.
template <class Value>
nb::object value_row(const Value& value) {
  if constexpr (options::has_fields<Value>) {
    return result_row(value);
  } else if constexpr (std::is_enum_v<Value>) {
    return nb::cast(name(value));
  } else if constexpr (requires { value.has_value(); }) {
    return value ? value_row(*value) : nb::none();
  } else if constexpr (std::is_same_v<Value, std::vector<std::pair<DType, std::size_t>>>) {
    nb::dict row;
    for (const auto& [dtype, count] : value) row[nb::cast(name(dtype))] = count;
    return row;
  } else if constexpr (options::is_list<Value>) {
    nb::list rows;
    for (const auto& item : value) rows.append(value_row(item));
    if constexpr (options::has_fields<typename Value::value_type>) return rows;
    return nb::tuple(rows);
  } else {
    return nb::cast(value);
  }
}

inline nb::dict layer_row(const QuantizedLayer& layer) {
  nb::dict row = result_row(layer);
  row["block"] = nb::make_tuple(layer.block_rows, layer.block_columns);
  return row;
}

// Adds what inspect() says of quantized layers.
template <class Summary>
void add_layers(const Summary& found, nb::dict& row) {
  nb::list layers;
  for (const QuantizedLayer& layer : found.layers) layers.append(layer_row(layer));
  row["layers"] = layers;
  row["warnings"] = value_row(found.warnings);
  row["notes"] = value_row(found.notes);
}

}  // namespace tensorcast::python
