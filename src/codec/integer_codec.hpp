// Integers of any width, two's complement, to exact values and back.
#pragma once

#include <cstdint>

#include "codec/encoded.hpp"
#include "codec/policy.hpp"
#include "codec/real.hpp"
#include "tensorcast/dtype.hpp"

namespace tensorcast::codec {

// Precondition of all: the types are of the integer family, `from` of integer_to_integer() may also be bool.
[[nodiscard]] Real decode_integer(DType from, std::uint64_t bits) noexcept;
[[nodiscard]] Encoded encode_integer(const Real& value, DType to, const Policy& policy) noexcept;  // D6
[[nodiscard]] Encoded integer_to_integer(DType from, std::uint64_t bits, DType to) noexcept;       // D7

}  // namespace tensorcast::codec
