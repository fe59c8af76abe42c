// SPDX-License-Identifier: Apache-2.0
// Memory of results.
#pragma once

#include <cstddef>
#include <memory>

#include "tensorcast/execution.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {

// `bytes` uninitialised bytes, aligned for a cache line, of `execution.memory`, which the last owner gives back.
// Throws std::bad_alloc.
[[nodiscard]] std::shared_ptr<std::byte> allocate(std::size_t bytes, const Execution& execution);

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
