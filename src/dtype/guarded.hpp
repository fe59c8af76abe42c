// Turns exceptions of the standard library and of others into errors, which the library returns.
#pragma once

#include <exception>
#include <utility>

#include "tensorcast/error.hpp"

namespace tensorcast::inline TENSORCAST_ABI {

// `thrown` as an Error. Code: internal. Message: "out of memory" if an allocation failed, otherwise the exception's
// own.
[[nodiscard]] Error error_of(const std::exception& thrown) noexcept;

// Returns what `body` returns, a Result, or an Error if `body` throws a std::exception.
// Other exceptions pass: they come from a caller's callback, or from pthread_exit(), which must not be caught.
template <class Body>
[[nodiscard]] auto guarded(Body&& body) -> decltype(std::forward<Body>(body)()) {
  try {
    return std::forward<Body>(body)();
  } catch (const std::exception& thrown) {
    return error_of(thrown);
  }
}

}  // namespace tensorcast::inline TENSORCAST_ABI
