// arguments.hpp for functions that nanobind binds: errors leave as nanobind's exceptions.
#pragma once
// SPDX-License-Identifier: Apache-2.0
#include "arguments.hpp"

#include <nanobind/nanobind.h>

#include <type_traits>
#include <utility>

namespace tensorcast::python {

namespace nb = nanobind;

inline DType dtype_of(nb::handle argument) {
  const DType dtype = dtype_argument(argument.ptr());
  if (dtype == DType::undefined) throw nb::python_error();
  return dtype;
}
inline DType dtype_or_undefined(nb::handle argument) {
  return argument.is_none() ? DType::undefined : dtype_of(argument);
}

// Returns the value, or throws the error as Python's exception.
template <class T>
T checked(Result<T>&& result) {
  if (!result) {
    raise_error(result.error());
    throw nb::python_error();
  }
  if constexpr (!std::is_void_v<T>) return std::move(result).value();
}

// Reads the keywords of a call. TypeError for one that is not an option.
inline CastOptions options_of(const nb::dict& keywords) {
  CastOptions options;
  for (const auto& [key, value] : keywords) {
    const int taken = option_argument(key.ptr(), value.ptr(), options);
    if (taken == 0) raise_unknown_option(key.ptr());
    if (taken != 1) throw nb::python_error();
  }
  return options;
}

}  // namespace tensorcast::python
