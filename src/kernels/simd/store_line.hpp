// SPDX-License-Identifier: Apache-2.0
// Stores that bypass the cache if a caller wants it.
#pragma once

#include "kernels/simd/simd.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

// Stores a register. If it is to bypass the cache, which AVX-512 alone does here, `dst` is a line of the cache.
template <class V>
SIMD_INLINE void store_line(std::byte* dst, V v, [[maybe_unused]] bool bypasses_cache) {
#if TENSORCAST_REGISTER_BYTES == 64
  if (bypasses_cache) return _mm512_stream_si512(reinterpret_cast<__m512i*>(dst), (__m512i)v);
#endif
  store(dst, v);
}

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
