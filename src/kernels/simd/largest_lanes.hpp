// SPDX-License-Identifier: Apache-2.0
// The largest lane of each of many registers, in one.
#pragma once

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

// `Lanes`: I32, or I16 for two numbers in each lane.
template <class Lanes>
SIMD_INLINE Lanes max_of_lane_pairs(Lanes a, Lanes b) {
  constexpr auto lanes = std::make_integer_sequence<int, kLanes>{};
  return max(as<Lanes>(every_other_lane<0>(as<I32>(a), as<I32>(b), lanes)),
             as<Lanes>(every_other_lane<1>(as<I32>(a), as<I32>(b), lanes)));
}
template <class Lanes>
SIMD_INLINE Lanes max_of_quarter_pairs(Lanes a, Lanes b) {
  constexpr auto lanes = std::make_integer_sequence<int, kLanes>{};
  return max(as<Lanes>(every_other_quarter<0>(as<I32>(a), as<I32>(b), lanes)),
             as<Lanes>(every_other_quarter<1>(as<I32>(a), as<I32>(b), lanes)));
}

// The larger one of the two words of each 32 bits: those of `a` in low words, those of `b` in high ones.
SIMD_INLINE I16 max_of_word_pairs(I16 a, I16 b) {
  const U32 first = as<U32>(a), second = as<U32>(b);
#if TENSORCAST_TARGET_LEVEL >= 2
  const __m512i low = _mm512_set1_epi32(0xffff);
  const __m512i kept = _mm512_ternarylogic_epi32(low, (__m512i)first, (__m512i)second, 0xca);  // low ? first : second
  const __m512i moved = _mm512_ternarylogic_epi32(low, (__m512i)second, (__m512i)first, 0xca);
  return max((I16)kept, (I16)_mm512_rol_epi32(moved, 16));
#elif TENSORCAST_TARGET_LEVEL == 1
  const __m256i low = _mm256_blend_epi16((__m256i)first, (__m256i)(second << 16), 0xaa);
  const __m256i high = _mm256_blend_epi16((__m256i)(first >> 16), (__m256i)second, 0xaa);
  return max((I16)low, (I16)high);
#else
  return max(as<I16>((first & 0xffff) | (second << 16)), as<I16>((first >> 16) | (second & 0xffff0000u)));
#endif
}

#if TENSORCAST_TARGET_LEVEL >= 2
// Lane i is lane order[i]. `order`: as many as lanes, aligned.
SIMD_INLINE I16 in_order_of(const std::uint16_t* order, I16 lanes) {
  return (I16)_mm512_permutexvar_epi16(_mm512_load_si512(order), (__m512i)lanes);
}
#endif

// Lane i is the largest lane of register(first + i): each step halves how many lanes a register has.
template <int registers = kLanes, class Register>
SIMD_INLINE auto max_of_each(std::size_t first, const Register& register_at) {
  if constexpr (registers == 1) {
    return register_at(first);
  } else {
    const auto a = max_of_each<registers / 2>(first, register_at);
    const auto b = max_of_each<registers / 2>(first + registers / 2, register_at);
    if constexpr (registers <= quarter) {
      return max_of_lane_pairs(a, b);
    } else {
      return max_of_quarter_pairs(a, b);
    }
  }
}

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
