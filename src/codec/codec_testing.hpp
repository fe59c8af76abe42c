// SPDX-License-Identifier: Apache-2.0
// What tests of the codecs share.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

#include "codec/reference_cast.hpp"

namespace tensorcast::codec {

inline constexpr double infinity = std::numeric_limits<double>::infinity();
inline constexpr double nan = std::numeric_limits<double>::quiet_NaN();

inline Encoded from_double(double value, DType to, const Policy& policy = {}) {
  return cast_code(DType::float64, std::bit_cast<std::uint64_t>(value), to, policy);
}

// A policy as kernels get it: of the words of D16, they know nearest_even to integers.
inline Policy without_word(Policy policy, DType to) {
  if (family(to) != Family::integer) policy.rounding = Rounding::automatic;
  return policy;
}

}  // namespace tensorcast::codec
