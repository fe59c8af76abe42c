// When two casts in a row give the same bits as one.
#pragma once

#include "tensorcast/cast.hpp"
#include "tensorcast/dtype.hpp"

namespace tensorcast::graph {

// Whether every code of `from` survives a cast to `to`: value, sign of zero, infinity, and sign and payload of NaN, so
// that a further cast cannot tell the difference. Strings never do.
[[nodiscard]] bool keeps_every_code(DType from, DType to);

// Whether casting `from` to `middle` with `first` and the result to `to` with `second` equals, for every code of
// `from`, casting `from` to `to` with `second`. May say no where it would be true.
[[nodiscard]] bool fusible(DType from, const CastOptions& first, DType middle, const CastOptions& second, DType to);

}  // namespace tensorcast::graph
