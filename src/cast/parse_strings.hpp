// SPDX-License-Identifier: Apache-2.0
// cast_from_strings() of a part of a tensor.
#pragma once

#include <cstdint>

#include "tensorcast/cast_options.hpp"
#include "tensorcast/error.hpp"
#include "tensorcast/view.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {

// `first`: the place of the first string in its tensor, on which stochastic rounding depends.
[[nodiscard]] Result<void> parse_strings(const StringView& src, const MutableTensorView& dst,
                                         const CastOptions& options, std::uint64_t first);

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
