// SPDX-License-Identifier: Apache-2.0
// The loop over blocks, with its tail. Every kernel uses it.
#pragma once

#include "kernels/simd/simd.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

// Far enough for memory, and near enough for the first-level cache to keep it.
inline constexpr std::size_t prefetched_bytes = 2048;

// Calls block(src, dst) for every `elements` of `count`; each call converts that many. Reads only bytes of the source
// and writes only bytes of the target. The two are disjoint or, if the target is not wider, equal. `prefetches`: the
// source, as loop_prefetching.hpp says.
//
// The tail: one more block that overlaps the last; if impossible (in place, fewer elements than a block, no byte
// boundary), a zero-padded copy. The same loop converts it, so `block` is inlined once.
template <int elements, int src_bits, int dst_bits, bool prefetches, class Block>
SIMD_INLINE void for_each_block(const std::byte* src, std::byte* dst, std::size_t count, const Block& block) {
  constexpr std::size_t src_block = elements * src_bits / 8;
  constexpr std::size_t dst_block = elements * dst_bits / 8;
  const bool may_overlap = count >= elements && src != dst;

  alignas(64) std::byte padded_src[src_block < 64 ? 64 : src_block];
  alignas(64) std::byte padded_dst[dst_block < 64 ? 64 : dst_block];
  std::byte* tail = nullptr;
  std::size_t tail_bytes = 0;
  std::size_t blocks = count / elements;
  std::size_t rest = count % elements;
  for (;;) {
    for (; blocks != 0; --blocks) {
      if constexpr (prefetches && kRegisterBytes == 32) {
        prefetch_lines(src + prefetched_bytes, src_block);
      }
      block(src, dst);
      src += src_block;
      dst += dst_block;
    }
    if (rest == 0) break;
    if (may_overlap && rest * dst_bits % 8 == 0 && rest * src_bits % 8 == 0) {
      src -= (elements - rest) * src_bits / 8;
      dst -= (elements - rest) * dst_bits / 8;
    } else {
      copy_and_pad<src_block>(padded_src, src, (rest * src_bits + 7) / 8);
      tail = dst;
      tail_bytes = (rest * dst_bits + 7) / 8;
      src = padded_src;
      dst = padded_dst;
    }
    blocks = 1;
    rest = 0;
  }
  if (tail != nullptr) copy_front<dst_block>(tail, padded_dst, tail_bytes);
}

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
