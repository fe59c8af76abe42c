// SPDX-License-Identifier: Apache-2.0
// Conversions with a scale for each element, at the speed of a multiplication: products rounded to odd in float64, of
// which the one rounding to a narrower type is that of the exact products.
#pragma once

#include "scaled.hpp"

namespace tensorcast::python {

// Converts as cast_scaled(), or returns false: products of these types or numbers are not exact enough, neighbours
// share a scale, or an element fails. What was written is then of no use, and cast_scaled() has the result or the
// error. Errors: internal, if `stop` returns true.
[[nodiscard]] Result<bool> cast_products(const StridedArray& src, const StridedArray& dst, const Scales& scales,
                                         const CastOptions& options, bool (*stop)());

}  // namespace tensorcast::python
