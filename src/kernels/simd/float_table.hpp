// SPDX-License-Identifier: Apache-2.0
// Lookups in a table of 32 floats, where an operation reads it from registers.
#pragma once

#include "kernels/simd/simd.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

#if TENSORCAST_TARGET_LEVEL >= 2
inline constexpr bool has_float_table = true;
// By the low five bits of each lane. `table` begins where a cache line does.
SIMD_INLINE F32 look_up_32(const float* table, I32 index) {
  return (F32)_mm512_permutex2var_ps(_mm512_load_ps(table), (__m512i)index, _mm512_load_ps(table + kLanes));
}
#else
inline constexpr bool has_float_table = false;
F32 look_up_32(const float* table, I32 index);  // named, and never called
#endif

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
