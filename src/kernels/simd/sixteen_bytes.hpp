// SPDX-License-Identifier: Apache-2.0
// Packs of targets whose registers have 16 bytes, which keep the order of lanes.
#pragma once

#include "kernels/simd/without_avx512.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

U16 min(U16 a, U16 b);
U8 pack_low_bytes(U16x2 x);
U8 pack_high_bytes(U16x2 x);

SIMD_INLINE U8 pack_clamped(U16x2 x) {
  const U16 limit = splat(std::uint16_t{0xff});
  return pack_low_bytes({min(x.lo, limit), min(x.hi, limit)});
}
SIMD_INLINE U8 pack_with_signs(U16x2 x, U8 most, U16x2 signs, U8 sign_bit) {
  return min(pack_clamped(x), most) | (pack_high_bytes(signs) & sign_bit);
}
SIMD_INLINE U8q pack_u2(U8 codes) {
  const U32 pairs = as<U32>(codes) | (as<U32>(codes) >> 6);
  return __builtin_convertvector(pairs | (pairs >> 12), U8q);
}

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
