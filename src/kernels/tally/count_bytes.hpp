// Counts of each kind of byte, for the target that the source is compiled for, where most bytes are in a window of
// sixteen or of one further kind; and counts of each kind of half a byte. Histograms without stores that wait for each
// other.
//
// 1. A byte's place in the window, or a number with bit 7 set where it is not in it, is the index into tables of 16
//    bytes in a register, which give 0 for bit 7. A table counts two kinds: 1 for one of them, 16 for the other.
// 2. What it gives is summed in bytes, 15 times at most, then in 64 bits.
// 3. Of the others, the further kind is counted by comparing, and the rest one by one. Half bytes have no others.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "kernels/simd/simd.hpp"
#include "kernels/tally/tally.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

#if TENSORCAST_TARGET_LEVEL >= 1

#if TENSORCAST_TARGET_LEVEL >= 2
SIMD_INLINE U8 lookup_16(U8 table, U8 index) { return (U8)_mm512_shuffle_epi8((__m512i)table, (__m512i)index); }
SIMD_INLINE U8 add_to_limit(U8 a, U8 b) { return (U8)_mm512_adds_epu8((__m512i)a, (__m512i)b); }
SIMD_INLINE U64 sums_of_eight(U8 x) { return (U64)_mm512_sad_epu8((__m512i)x, _mm512_setzero_si512()); }
SIMD_INLINE std::uint64_t top_bits(U8 x) { return _mm512_movepi8_mask((__m512i)x); }
SIMD_INLINE std::uint64_t equal_bits(U8 a, U8 b) { return _mm512_cmpeq_epi8_mask((__m512i)a, (__m512i)b); }
SIMD_INLINE U8 repeat_16(const std::uint8_t* values) {
  return (U8)_mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(values)));
}
SIMD_INLINE std::uint64_t total(U64 x) { return static_cast<std::uint64_t>(_mm512_reduce_add_epi64((__m512i)x)); }
#else
SIMD_INLINE U8 lookup_16(U8 table, U8 index) { return (U8)_mm256_shuffle_epi8((__m256i)table, (__m256i)index); }
SIMD_INLINE U8 add_to_limit(U8 a, U8 b) { return (U8)_mm256_adds_epu8((__m256i)a, (__m256i)b); }
SIMD_INLINE U64 sums_of_eight(U8 x) { return (U64)_mm256_sad_epu8((__m256i)x, _mm256_setzero_si256()); }
SIMD_INLINE std::uint64_t top_bits(U8 x) { return static_cast<std::uint32_t>(_mm256_movemask_epi8((__m256i)x)); }
SIMD_INLINE std::uint64_t equal_bits(U8 a, U8 b) { return top_bits(as<U8>(a == b)); }
SIMD_INLINE U8 repeat_16(const std::uint8_t* values) {
  return (U8)_mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(values)));
}
SIMD_INLINE std::uint64_t total(U64 x) { return (x[0] + x[1]) + (x[2] + x[3]); }
#endif

inline constexpr std::uint8_t pair_tables[8][16] = {{1, 16},
                                                    {0, 0, 1, 16},
                                                    {0, 0, 0, 0, 1, 16},
                                                    {0, 0, 0, 0, 0, 0, 1, 16},
                                                    {0, 0, 0, 0, 0, 0, 0, 0, 1, 16},
                                                    {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 16},
                                                    {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 16},
                                                    {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 16}};

inline constexpr int pair_count = 8;

struct PairTables {
  U8 of[pair_count];

  SIMD_INLINE PairTables() {
#pragma GCC unroll 8
    for (int k = 0; k < pair_count; ++k) of[k] = repeat_16(pair_tables[k]);
  }
};

// Of each of sixteen kinds.
struct KindSums {
  U64 of[2 * pair_count] = {};

  SIMD_INLINE void add(const U8 (&pairs)[pair_count]) {
#pragma GCC unroll 8
    for (int k = 0; k < pair_count; ++k) {
      of[2 * k] += sums_of_eight(pairs[k] & 0xf);
      of[2 * k + 1] += sums_of_eight(as<U8>(as<U16>(pairs[k]) >> 4) & 0xf);
    }
  }
};

// Adds to counts[byte]. Returns how many bytes were counted one by one.
inline std::size_t count_bytes(const std::byte* data, std::size_t bytes, ByteWindow window, std::uint64_t* counts) {
  constexpr std::size_t lanes = sizeof(U8);
  constexpr int rounds = 15;
  const PairTables tables;
  const U8 start = splat(window.first), further = splat(window.further), to_bit_7 = splat(std::uint8_t{0x70});
  KindSums sums;
  std::size_t others = 0, count_of_further = 0;
  std::size_t at = 0;
  while (at + lanes <= bytes) {
    U8 pairs[pair_count] = {};
    for (int round = 0; round < rounds && at + lanes <= bytes; ++round, at += lanes) {
      const U8 x = load<U8>(data + at);
      const U8 index = add_to_limit(x - start, to_bit_7);
      const std::uint64_t is_further = equal_bits(x, further);
      count_of_further += static_cast<std::size_t>(std::popcount(is_further));
      std::uint64_t outside = top_bits(index) & ~is_further;
      if (outside != 0) [[unlikely]] {
        others += static_cast<std::size_t>(std::popcount(outside));
        for (; outside != 0; outside &= outside - 1) {
          ++counts[static_cast<std::uint8_t>(data[at + static_cast<std::size_t>(std::countr_zero(outside))])];
        }
      }
#pragma GCC unroll 8
      for (int k = 0; k < pair_count; ++k) pairs[k] += lookup_16(tables.of[k], index);
    }
    sums.add(pairs);
  }
  for (int kind = 0; kind < 2 * pair_count; ++kind) {
    counts[static_cast<std::uint8_t>(window.first + kind)] += total(sums.of[kind]);
  }
  counts[window.further] += count_of_further;
  for (; at < bytes; ++at) ++counts[static_cast<std::uint8_t>(data[at])];
  return others;
}

// Adds to counts[half], of the lower and the upper halves of bytes.
inline void count_half_bytes(const std::byte* data, std::size_t bytes, std::uint64_t* counts) {
  constexpr std::size_t lanes = sizeof(U8);
  constexpr int rounds = 7;  // of two each
  const PairTables tables;
  KindSums sums;
  std::size_t at = 0;
  while (at + lanes <= bytes) {
    U8 pairs[pair_count] = {};
    for (int round = 0; round < rounds && at + lanes <= bytes; ++round, at += lanes) {
      const U8 x = load<U8>(data + at);
      const U8 lower = x & 0xf, upper = as<U8>(as<U16>(x) >> 4) & 0xf;
#pragma GCC unroll 8
      for (int k = 0; k < pair_count; ++k) pairs[k] += lookup_16(tables.of[k], lower) + lookup_16(tables.of[k], upper);
    }
    sums.add(pairs);
  }
  for (int kind = 0; kind < 2 * pair_count; ++kind) counts[kind] += total(sums.of[kind]);
  for (; at < bytes; ++at) {
    ++counts[static_cast<std::uint8_t>(data[at]) & 0xf];
    ++counts[static_cast<std::uint8_t>(data[at]) >> 4];
  }
}

#endif

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
