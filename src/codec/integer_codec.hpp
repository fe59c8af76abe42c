// SPDX-License-Identifier: Apache-2.0
// Integers of any width, two's complement, to exact values and back.
#pragma once

#include <cstdint>

#include "codec/encoded.hpp"
#include "codec/policy.hpp"
#include "codec/real.hpp"
#include "tensorcast/dtype.hpp"

namespace tensorcast::codec {

// Precondition of both: the type is of the integer family.
[[nodiscard]] Real decode_integer(DType from, std::uint64_t bits) noexcept;
[[nodiscard]] Encoded encode_integer(const Real& value, DType to, const Policy& policy) noexcept;

}  // namespace tensorcast::codec
