// SPDX-License-Identifier: Apache-2.0
// How a list describes the members of a result, so that JSON and Python's results are made from one place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>

namespace tensorcast::options {

// What stands for an empty text, an unknown type, or another default.
enum class Empty : std::uint8_t {
  as_is,
  null,
  left_out,     // of JSON
  python_only,  // JSON never has the member
};

template <class Struct, class Value>
struct Field {
  const char* name;  // "from" is "from_" in Python
  Value Struct::*member;
  Empty empty = Empty::as_is;
};
template <class Struct, class Value>
Field(const char*, Value Struct::*) -> Field<Struct, Value>;
template <class Struct, class Value>
Field(const char*, Value Struct::*, Empty) -> Field<Struct, Value>;

// A tuple of the members of a result, in the order in which interfaces list them. Each kind of result specializes it.
template <class Struct>
inline constexpr std::nullptr_t fields = nullptr;

template <class Struct>
inline constexpr bool has_fields = !std::is_null_pointer_v<std::remove_cv_t<decltype(fields<Struct>)>>;

// Reports whether a member has its default: no text, no type, no elements.
template <class Struct, class Value>
bool is_empty(const Struct& result, const Field<Struct, Value>& field) {
  const Value& value = result.*field.member;
  if constexpr (requires { value.empty(); }) {
    return value.empty();
  } else if constexpr (requires { value.has_value(); }) {
    return !value.has_value();
  } else {
    return std::is_scalar_v<Value> && value == Struct{}.*field.member;
  }
}

}  // namespace tensorcast::options
