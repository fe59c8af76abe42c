// SPDX-License-Identifier: Apache-2.0
// Passing errors on.
#pragma once

#include <type_traits>
#include <utility>

#include "tensorcast/error.hpp"

namespace tensorcast::detail {

template <class T>
T taken(Result<T> result) {
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

}  // namespace tensorcast::detail

// The value of a Result; or ends the function with its error. A statement, or what a variable begins with or becomes:
//
//   const std::size_t count = TRY(element_count(shape));
//   TRY(file.write(bytes));
//
// Not between the braces of an aggregate: GCC 12 and Clang 16 do not destroy the members before it.
#define TRY(...) TENSORCAST_TRY_AS(TENSORCAST_TRY_NAME(tried_, __COUNTER__), __VA_ARGS__)
#define TENSORCAST_TRY_NAME(name, number) TENSORCAST_TRY_JOINED(name, number)
#define TENSORCAST_TRY_JOINED(name, number) name##number
#define TENSORCAST_TRY_AS(name, ...)              \
  __extension__({                                 \
    auto name = (__VA_ARGS__);                    \
    if (!name) return std::move(name).error();    \
    ::tensorcast::detail::taken(std::move(name)); \
  })
