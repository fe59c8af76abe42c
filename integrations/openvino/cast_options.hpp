// SPDX-License-Identifier: Apache-2.0
// The attributes of an operation that are options of tc_cast(), by the names and values of the Python package.
#pragma once

#include <tensorcast/c_api.h>

#include <cstdint>
#include <openvino/core/attribute_visitor.hpp>
#include <string>
#include <tuple>
#include <type_traits>

#include "options/cast_options.hpp"

namespace tensorcast::openvino {

class CastOptions {
 public:
  CastOptions();

  void visit(ov::AttributeVisitor& visitor);

  // Fails on a value that an attribute does not have.
  [[nodiscard]] tc_cast_options checked() const;

 private:
  // As OpenVINO holds the value of an attribute.
  template <class Value>
  using Attribute = std::conditional_t<
      std::is_enum_v<Value>, std::string,
      std::conditional_t<std::is_integral_v<Value> && !std::is_same_v<Value, bool>, std::int64_t, Value>>;
  template <class... Options>
  static std::tuple<Attribute<typename Options::Type>...> attributes_of(const std::tuple<Options...>&);

  // Calls `visit` with each option of conversions between numbers and with its value.
  template <class Values, class Visit>
  static void for_each(Values& values, Visit visit) {
    std::apply(
        [&](auto&... value) {
          const auto each = [&](const auto& option, auto& attribute) {
            if (!option.for_strings) visit(option, attribute);
          };
          std::apply([&](const auto&... option) { (each(option, value), ...); }, options::cast_options);
        },
        values);
  }

  decltype(attributes_of(options::cast_options)) values_;
  std::int64_t threads_ = 0;
};

}  // namespace tensorcast::openvino
