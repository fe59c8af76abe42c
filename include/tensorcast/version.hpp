// SPDX-License-Identifier: Apache-2.0
// Component core. The version of these headers, and that of the library.
#pragma once

#include "tensorcast/export.hpp"

#define TENSORCAST_VERSION_MAJOR 0
#define TENSORCAST_VERSION_MINOR 1
#define TENSORCAST_VERSION_PATCH 0

namespace tensorcast {
inline namespace TENSORCAST_ABI {

[[nodiscard]] TENSORCAST_API const char* version() noexcept;  // "0.1.0"

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
