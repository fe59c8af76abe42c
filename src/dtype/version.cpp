// SPDX-License-Identifier: Apache-2.0
#include "tensorcast/version.hpp"

#define TENSORCAST_TEXT(x) #x
#define TENSORCAST_DOTTED(major, minor, patch) \
  TENSORCAST_TEXT(major) "." TENSORCAST_TEXT(minor) "." TENSORCAST_TEXT(patch)

namespace tensorcast {
inline namespace TENSORCAST_ABI {

const char* version() noexcept {
  return TENSORCAST_DOTTED(TENSORCAST_VERSION_MAJOR, TENSORCAST_VERSION_MINOR, TENSORCAST_VERSION_PATCH);
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
