// SPDX-License-Identifier: Apache-2.0
// Turns exceptions of the standard library and of others into errors, which the library returns.
#pragma once

#include <exception>
#include <string>
#include <utility>

#include "dtype/float_environment.hpp"
#include "dtype/platform.hpp"
#include "tensorcast/error.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {

// `thrown` as an Error. Code: internal. Message: "out of memory" if an allocation failed, that no thread can be started
// if the system said so, otherwise the exception's own.
[[nodiscard]] Error error_of(const std::exception& thrown) noexcept;

// The same, with the file that was worked on, and a hint if memory or threads were short.
[[nodiscard]] Error error_of(const std::exception& thrown, const std::string& file) noexcept;

#if TENSORCAST_HAS_EXCEPTIONS

// Returns what `body` returns in the default floating-point environment, a Result, or an Error if `body` throws a
// std::exception.
// Other exceptions pass: they come from a caller's callback, or from pthread_exit(), which must not be caught.
template <class Body>
[[nodiscard]] auto guarded(Body&& body) -> decltype(std::forward<Body>(body)()) {
  const DefaultFloatEnvironment environment;
  try {
    return std::forward<Body>(body)();
  } catch (const std::exception& thrown) {
    return error_of(thrown);
  }
}

// As guarded(). The error of an exception names the file that `body` works on.
template <class Body>
[[nodiscard]] auto guarded(const std::string& file, Body&& body) -> decltype(std::forward<Body>(body)()) {
  const DefaultFloatEnvironment environment;
  try {
    return std::forward<Body>(body)();
  } catch (const std::exception& thrown) {
    return error_of(thrown, file);
  }
}

#else

template <class Body>
[[nodiscard]] auto guarded(Body&& body) -> decltype(std::forward<Body>(body)()) {
  const DefaultFloatEnvironment environment;
  return std::forward<Body>(body)();
}

#endif

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
