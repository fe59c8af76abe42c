// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "tensorcast/cast_options.hpp"

namespace tensorcast::file_conversion {

// The options of a tensor of a file: the random bits of stochastic rounding depend on its name, and not on where it is
// stored (D16).
[[nodiscard]] CastOptions with_seed_of(const CastOptions& options, std::string_view tensor);

}  // namespace tensorcast::file_conversion
