// SPDX-License-Identifier: Apache-2.0
// Decides when two casts in a row give the same bits as one.
#pragma once

#include "tensorcast/cast_options.hpp"
#include "tensorcast/dtype.hpp"

namespace tensorcast::graph {

// Reports whether every code of `from` survives a cast to `to`: value, sign of zero, infinity, and sign and payload of
// NaN, so that a further cast gives the same result. False for strings.
[[nodiscard]] bool keeps_every_code(DType from, DType to);

// Reports whether casting `from` to `middle` with `first` and the result to `to` with `second` equals, for every code
// of `from`, casting `from` to `to` with `second`. May return false although it is true.
[[nodiscard]] bool fusible(DType from, const CastOptions& first, DType middle, const CastOptions& second, DType to);

}  // namespace tensorcast::graph
