// SPDX-License-Identifier: Apache-2.0
#include "dtype/guarded.hpp"

#include <cerrno>
#include <new>
#include <stdexcept>
#include <system_error>

#if TENSORCAST_HAS_EXCEPTIONS

namespace tensorcast {
inline namespace TENSORCAST_ABI {

Error error_of(const std::exception& thrown) noexcept {
  Error error{.code = ErrorCode::internal, .message = "out of memory"};  // short enough to need no memory of its own
  const bool no_memory = dynamic_cast<const std::bad_alloc*>(&thrown) != nullptr ||
                         dynamic_cast<const std::length_error*>(&thrown) != nullptr;  // more than could ever exist
  if (no_memory) return error;
  try {
    const auto* system = dynamic_cast<const std::system_error*>(&thrown);
    const bool no_thread = system != nullptr && system->code() == std::errc::resource_unavailable_try_again;
    error.message =
        no_thread ? "cannot start a thread: the memory or the threads that are allowed are used up" : thrown.what();
    if (no_thread) error.system_error = EAGAIN;
  } catch (const std::bad_alloc&) {  // the message stays "out of memory"
  }
  return error;
}

Error error_of(const std::exception& thrown, const std::string& file) noexcept {
  Error error = error_of(thrown);
  try {
    error.file = file;
    const bool short_of = error.message == "out of memory" || error.system_error == EAGAIN;
    if (short_of) error.hint = "fewer `threads` need less memory";
  } catch (const std::bad_alloc&) {  // the message alone will do
  }
  return error;
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast

#endif
