// SPDX-License-Identifier: Apache-2.0
// Floating-point codes to exact values and back, for every FloatFormat.
#pragma once

#include <cstdint>

#include "codec/encoded.hpp"
#include "codec/policy.hpp"
#include "codec/real.hpp"
#include "tensorcast/dtype.hpp"

namespace tensorcast::codec {

// Precondition of both: the type is of the floating family. `random`: the element's word, of stochastic rounding.
[[nodiscard]] Real decode_float(DType from, std::uint64_t bits) noexcept;
[[nodiscard]] Encoded encode_float(const Real& value, DType to, const Policy& policy,
                                   std::uint32_t random = 0) noexcept;

}  // namespace tensorcast::codec
