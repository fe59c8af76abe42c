// The largest lane of each of many registers, in one.
#pragma once
// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "kernels/simd/simd.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

constexpr int quarter = 4;  // lanes of 128 bits

// For each 128 bits: two lanes of `a`, then two of `b`; the even ones or the odd ones.
template <int odd, int... lane>
SIMD_INLINE I32 every_other_lane(I32 a, I32 b, std::integer_sequence<int, lane...>) {
  return __builtin_shufflevector(
      a, b, (lane / quarter * quarter + lane % 2 * 2 + odd + (lane % quarter < 2 ? 0 : kLanes))...);
}
// The even or the odd 128 bits of both.
template <int odd, int... lane>
SIMD_INLINE I32 every_other_quarter(I32 a, I32 b, std::integer_sequence<int, lane...>) {
  return __builtin_shufflevector(a, b, ((lane / quarter * 2 + odd) * quarter + lane % quarter)...);
}

SIMD_INLINE I32 max_of_lane_pairs(I32 a, I32 b) {
  constexpr auto lanes = std::make_integer_sequence<int, kLanes>{};
  return max(every_other_lane<0>(a, b, lanes), every_other_lane<1>(a, b, lanes));
}
SIMD_INLINE I32 max_of_quarter_pairs(I32 a, I32 b) {
  constexpr auto lanes = std::make_integer_sequence<int, kLanes>{};
  return max(every_other_quarter<0>(a, b, lanes), every_other_quarter<1>(a, b, lanes));
}

// Lane i is the largest lane of register(first + i): each step halves how many lanes a register has.
template <int registers = kLanes, class Register>
SIMD_INLINE I32 max_of_each(std::size_t first, const Register& register_at) {
  if constexpr (registers == 1) {
    return register_at(first);
  } else {
    const I32 a = max_of_each<registers / 2>(first, register_at);
    const I32 b = max_of_each<registers / 2>(first + registers / 2, register_at);
    if constexpr (registers <= quarter) {
      return max_of_lane_pairs(a, b);
    } else {
      return max_of_quarter_pairs(a, b);
    }
  }
}

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
