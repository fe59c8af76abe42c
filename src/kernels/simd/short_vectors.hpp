// SPDX-License-Identifier: Apache-2.0
// Vectors of 16 bytes on every target, for blocks and runs that are shorter than its registers.
#pragma once

#include <cstring>

#include "kernels/simd/simd.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

typedef std::uint8_t Bytes16 __attribute__((vector_size(16)));

// The entries of these indices, which are below 16.
SIMD_INLINE Bytes16 look_up(Bytes16 entries, Bytes16 indices) {
#if defined(__SSSE3__)
  return (Bytes16)_mm_shuffle_epi8((__m128i)entries, (__m128i)indices);
#elif defined(__aarch64__)
  return (Bytes16)vqtbl1q_u8((uint8x16_t)entries, (uint8x16_t)indices);
#else
  for (int i = 0; i < 16; ++i) indices[i] = entries[indices[i]];
  return indices;
#endif
}

// Adds a power of two, where bit i of the two bytes at `bits` is set, to byte i, which is below it.
SIMD_INLINE Bytes16 added_where_set(Bytes16 x, const std::uint8_t* bits, std::uint8_t added) {
#if TENSORCAST_REGISTER_BYTES == 64
  std::uint16_t mask;
  std::memcpy(&mask, bits, sizeof(mask));
  return (Bytes16)_mm_mask_add_epi8((__m128i)x, mask, (__m128i)x, _mm_set1_epi8(static_cast<char>(added)));
#else
  typedef std::uint64_t Halves __attribute__((vector_size(16)));
  const Bytes16 bit_of = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
  const Halves each = {bits[0] * 0x0101010101010101u, bits[1] * 0x0101010101010101u};
  return x | ((Bytes16)(((Bytes16)each & bit_of) != 0) & added);
#endif
}

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
