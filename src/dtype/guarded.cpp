#include "dtype/guarded.hpp"

#include <new>
#include <stdexcept>

namespace tensorcast::inline TENSORCAST_ABI {

Error error_of(const std::exception& thrown) noexcept {
  Error error{.code = ErrorCode::internal, .message = "out of memory"};  // short enough to need no memory of its own
  const bool no_memory = dynamic_cast<const std::bad_alloc*>(&thrown) != nullptr ||
                         dynamic_cast<const std::length_error*>(&thrown) != nullptr;  // more than could ever exist
  if (no_memory) return error;
  try {
    error.message = thrown.what();
  } catch (const std::bad_alloc&) {  // the message stays "out of memory"
  }
  return error;
}

}  // namespace tensorcast::inline TENSORCAST_ABI
