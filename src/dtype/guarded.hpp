// Where exceptions end: the library returns errors, while the standard library and others throw.
#pragma once

#include <exception>
#include <utility>

#include "tensorcast/error.hpp"

namespace tensorcast {

// `thrown` as an Error. Code: internal. Message: "out of memory" if an allocation failed, otherwise the exception's
// own.
[[nodiscard]] Error error_of(const std::exception& thrown) noexcept;

// Returns what `body` returns, a Result, or an Error if `body` throws a std::exception.
// Others pass: they are not the library's, but of a caller's callback, or of pthread_exit(), which must not be caught.
template <class Body>
[[nodiscard]] auto guarded(Body&& body) -> decltype(std::forward<Body>(body)()) {
  try {
    return std::forward<Body>(body)();
  } catch (const std::exception& thrown) {
    return error_of(thrown);
  }
}

}  // namespace tensorcast
