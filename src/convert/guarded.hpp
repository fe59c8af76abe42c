// The library promises errors, not exceptions: what the standard library may throw ends here.
#pragma once

#include <new>
#include <system_error>

#include "tensorcast/error.hpp"

namespace tensorcast::convert {

// Calls `body`, which returns a Result.
template <class Body>
[[nodiscard]] auto guarded(Body body) -> decltype(body()) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return Error{.code = ErrorCode::internal, .message = "out of memory"};
  } catch (const std::system_error& problem) {  // no more threads
    return Error{.code = ErrorCode::internal, .message = problem.what()};
  }
}

}  // namespace tensorcast::convert
