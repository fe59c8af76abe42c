// SPDX-License-Identifier: Apache-2.0
#include "io/sha256_blocks.hpp"

#include <algorithm>
#include <bit>
#include <functional>
#include <utility>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#if defined(__linux__)
#include <sys/auxv.h>
#endif
#endif

namespace tensorcast::io {
namespace {

// The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
alignas(64) constexpr std::array<std::uint32_t, 64> round_constants = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

std::uint32_t big_endian(const std::byte* bytes) noexcept {
  return std::to_integer<std::uint32_t>(bytes[0]) << 24 | std::to_integer<std::uint32_t>(bytes[1]) << 16 |
         std::to_integer<std::uint32_t>(bytes[2]) << 8 | std::to_integer<std::uint32_t>(bytes[3]);
}

void hash_blocks_portable(Sha256State& state, const std::byte* blocks, std::size_t count) {
  for (; count != 0; --count, blocks += sha256_block_bytes) {
    std::array<std::uint32_t, 16> words;  // the newest 16 of the message schedule
    for (std::size_t i = 0; i < 16; ++i) words[i] = big_endian(blocks + 4 * i);
    auto [a, b, c, d, e, f, g, h] = state;
    for (std::size_t i = 0; i < 64; ++i) {
      std::uint32_t& word = words[i % 16];
      if (i >= 16) {
        const std::uint32_t before2 = words[(i - 2) % 16];
        const std::uint32_t before15 = words[(i - 15) % 16];
        word += (std::rotr(before2, 17) ^ std::rotr(before2, 19) ^ before2 >> 10) + words[(i - 7) % 16] +
                (std::rotr(before15, 7) ^ std::rotr(before15, 18) ^ before15 >> 3);
      }
      const std::uint32_t choice = (e & f) ^ (~e & g);
      const std::uint32_t majority = (a & b) ^ (a & c) ^ (b & c);
      const std::uint32_t first =
          h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) + choice + round_constants[i] + word;
      const std::uint32_t second = (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + majority;
      h = std::exchange(g, std::exchange(f, std::exchange(e, d + first)));
      d = std::exchange(c, std::exchange(b, std::exchange(a, first + second)));
    }
    const Sha256State added = {a, b, c, d, e, f, g, h};
    std::ranges::transform(state, added, state.begin(), std::plus<>());
  }
}

#if defined(__x86_64__)
#define WITH_SHA __attribute__((target("sha,sse4.1,ssse3")))

// The eight words as the instructions want them.
struct ShaState {
  __m128i abef;
  __m128i cdgh;
};

WITH_SHA inline void four_rounds(ShaState& state, __m128i words, std::size_t group) {
  const auto* constants = reinterpret_cast<const __m128i*>(round_constants.data());
  const __m128i sums = _mm_add_epi32(words, _mm_load_si128(constants + group));
  state.cdgh = _mm_sha256rnds2_epu32(state.cdgh, state.abef, sums);
  state.abef = _mm_sha256rnds2_epu32(state.abef, state.cdgh, _mm_unpackhi_epi64(sums, sums));
}

// Replaces the four words `w0`, the oldest of 16, by the next four of the message schedule.
WITH_SHA inline void next_words(__m128i& w0, __m128i w1, __m128i w2, __m128i w3) {
  w0 = _mm_sha256msg2_epu32(_mm_add_epi32(_mm_sha256msg1_epu32(w0, w1), _mm_alignr_epi8(w3, w2, 4)), w3);
}

WITH_SHA void hash_blocks_x86(Sha256State& state, const std::byte* blocks, std::size_t count) {
  auto* stored = reinterpret_cast<__m128i*>(state.data());
  const __m128i cdab = _mm_shuffle_epi32(_mm_loadu_si128(stored), 0xB1);
  const __m128i efgh = _mm_shuffle_epi32(_mm_loadu_si128(stored + 1), 0x1B);
  ShaState now{_mm_alignr_epi8(cdab, efgh, 8), _mm_blend_epi16(efgh, cdab, 0xF0)};
  const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  for (; count != 0; --count, blocks += sha256_block_bytes) {
    const auto* block = reinterpret_cast<const __m128i*>(blocks);
    const ShaState before = now;
    __m128i w0 = _mm_shuffle_epi8(_mm_loadu_si128(block), swap);
    __m128i w1 = _mm_shuffle_epi8(_mm_loadu_si128(block + 1), swap);
    __m128i w2 = _mm_shuffle_epi8(_mm_loadu_si128(block + 2), swap);
    __m128i w3 = _mm_shuffle_epi8(_mm_loadu_si128(block + 3), swap);
    for (std::size_t group = 0;; group += 4) {
      four_rounds(now, w0, group);
      four_rounds(now, w1, group + 1);
      four_rounds(now, w2, group + 2);
      four_rounds(now, w3, group + 3);
      if (group == 12) break;
      next_words(w0, w1, w2, w3);
      next_words(w1, w2, w3, w0);
      next_words(w2, w3, w0, w1);
      next_words(w3, w0, w1, w2);
    }
    now.abef = _mm_add_epi32(now.abef, before.abef);
    now.cdgh = _mm_add_epi32(now.cdgh, before.cdgh);
  }
  const __m128i feba = _mm_shuffle_epi32(now.abef, 0x1B);
  const __m128i dchg = _mm_shuffle_epi32(now.cdgh, 0xB1);
  _mm_storeu_si128(stored, _mm_blend_epi16(feba, dchg, 0xF0));
  _mm_storeu_si128(stored + 1, _mm_alignr_epi8(dchg, feba, 8));
}

bool has_sha_instructions() noexcept {
  constexpr unsigned ssse3 = 1U << 9, sse41 = 1U << 19, sha = 1U << 29;
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0 || (ecx & (ssse3 | sse41)) != (ssse3 | sse41)) return false;
  return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 && (ebx & sha) != 0;
}

constexpr std::array<Sha256Way, 2> ways = {{{"x86", hash_blocks_x86}, {"portable", hash_blocks_portable}}};

#elif defined(__aarch64__)
#define WITH_SHA __attribute__((target("+crypto")))

struct ShaState {
  uint32x4_t abcd;
  uint32x4_t efgh;
};

WITH_SHA inline void four_rounds(ShaState& state, uint32x4_t words, std::size_t group) {
  const uint32x4_t sums = vaddq_u32(words, vld1q_u32(round_constants.data() + 4 * group));
  const uint32x4_t abcd = state.abcd;
  state.abcd = vsha256hq_u32(abcd, state.efgh, sums);
  state.efgh = vsha256h2q_u32(state.efgh, abcd, sums);
}

// Replaces the four words `w0`, the oldest of 16, by the next four of the message schedule.
WITH_SHA inline void next_words(uint32x4_t& w0, uint32x4_t w1, uint32x4_t w2, uint32x4_t w3) {
  w0 = vsha256su1q_u32(vsha256su0q_u32(w0, w1), w2, w3);
}

WITH_SHA inline uint32x4_t load_words(const std::byte* bytes) {
  return vreinterpretq_u32_u8(vrev32q_u8(vld1q_u8(reinterpret_cast<const std::uint8_t*>(bytes))));
}

WITH_SHA void hash_blocks_arm(Sha256State& state, const std::byte* blocks, std::size_t count) {
  ShaState now{vld1q_u32(state.data()), vld1q_u32(state.data() + 4)};
  for (; count != 0; --count, blocks += sha256_block_bytes) {
    const ShaState before = now;
    uint32x4_t w0 = load_words(blocks);
    uint32x4_t w1 = load_words(blocks + 16);
    uint32x4_t w2 = load_words(blocks + 32);
    uint32x4_t w3 = load_words(blocks + 48);
    for (std::size_t group = 0;; group += 4) {
      four_rounds(now, w0, group);
      four_rounds(now, w1, group + 1);
      four_rounds(now, w2, group + 2);
      four_rounds(now, w3, group + 3);
      if (group == 12) break;
      next_words(w0, w1, w2, w3);
      next_words(w1, w2, w3, w0);
      next_words(w2, w3, w0, w1);
      next_words(w3, w0, w1, w2);
    }
    now.abcd = vaddq_u32(now.abcd, before.abcd);
    now.efgh = vaddq_u32(now.efgh, before.efgh);
  }
  vst1q_u32(state.data(), now.abcd);
  vst1q_u32(state.data() + 4, now.efgh);
}

bool has_sha_instructions() noexcept {
#if defined(__ARM_FEATURE_SHA2)
  return true;  // every CPU that the build is for, as on macOS
#elif defined(__linux__)
  constexpr unsigned long sha2 = 1UL << 6;  // HWCAP_SHA2
  return (::getauxval(AT_HWCAP) & sha2) != 0;
#else
  return false;
#endif
}

constexpr std::array<Sha256Way, 2> ways = {{{"arm", hash_blocks_arm}, {"portable", hash_blocks_portable}}};

#else
bool has_sha_instructions() noexcept { return true; }

constexpr std::array<Sha256Way, 1> ways = {{{"portable", hash_blocks_portable}}};
#endif

}  // namespace

std::span<const Sha256Way> sha256_ways() noexcept {
  static const bool has_all = has_sha_instructions();
  return std::span(ways).subspan(has_all ? 0 : 1);
}

}  // namespace tensorcast::io
