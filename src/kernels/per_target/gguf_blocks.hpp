// SPDX-License-Identifier: Apache-2.0
// Layouts of ggml's blocks, as in ggml-quants.c and the gguf package: what the sources that read them share.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "kernels/gguf_low_bits.hpp"
#include "kernels/simd/simd.hpp"
#include "tensorcast/block.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

using Bytes = const std::uint8_t*;

// Twice the numbers of float4_e2m1, as ggml stores them; its scales are halves. The code of -0 means 0.
inline constexpr std::int8_t doubled_e2m1[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
inline constexpr std::int8_t iq4_numbers[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                                1,    13,   25,  38,  53,  69,  89,  113};

SIMD_INLINE float half_at(Bytes bytes) {
  std::uint16_t bits = 0;
  std::memcpy(&bits, bytes, sizeof(bits));
#if defined(__F16C__)
  return _cvtsh_ss(bits);
#else
  // The exponent field as float32 has it, then its bias; a subnormal's mantissa counts 2^-24.
  const std::uint32_t sign = (bits & 0x8000u) << 16;
  const std::uint32_t magnitude = bits & 0x7fffu;
  if (magnitude < 0x400)
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(static_cast<float>(magnitude) * 0x1p-24f) | sign);
  const std::uint32_t rebias = magnitude >= 0x7c00 ? (255u - 31u) << 23 : (127u - 15u) << 23;
  return std::bit_cast<float>(((magnitude << 13) + rebias) | sign);
#endif
}

template <class Word>
SIMD_INLINE Word word_at(Bytes bytes) {
  Word word;
  std::memcpy(&word, bytes, sizeof(word));
  return word;
}

// Eight or sixteen scales of a block, a byte each.
typedef std::uint64_t Words2 __attribute__((vector_size(16)));

// Q3_K's 16 scales of six bits, from where they are on: four bits of each in eight bytes, then two bits in four.
SIMD_INLINE Words2 q3_k_scales(Bytes b) {
  const auto low = word_at<std::uint64_t>(b);
  const auto high = word_at<std::uint32_t>(b + 8);
  const auto two_bits_from = [&](int bit) SIMD_INLINE_LAMBDA { return std::uint64_t{high >> bit & 0x03030303u} << 4; };
  constexpr std::uint64_t nibbles = 0x0f0f0f0f0f0f0f0f;
  return Words2{(low & nibbles) | two_bits_from(0) | two_bits_from(2) << 32,
                (low >> 4 & nibbles) | two_bits_from(4) | two_bits_from(6) << 32};
}

// Q4_K's and Q5_K's eight scales, then eight minima, of six bits: those of the first four, then lower and upper bits of
// others.
SIMD_INLINE Words2 scales_and_minima(Bytes b) {
  const auto scales = word_at<std::uint32_t>(b), minima = word_at<std::uint32_t>(b + 4);
  const auto lower = word_at<std::uint32_t>(b + 8);
  const auto eight = [](std::uint32_t first, std::uint32_t four_bits) SIMD_INLINE_LAMBDA {
    const std::uint32_t others = (four_bits & 0x0f0f0f0f) | (first >> 2 & 0x30303030);
    return std::uint64_t{first & 0x3f3f3f3f} | std::uint64_t{others} << 32;
  };
  return Words2{eight(scales, lower), eight(minima, lower >> 4)};
}

// IQ4_XS's eight scales of six bits: two bits of each in two bytes, then four bits in four.
SIMD_INLINE std::uint64_t iq4_xs_scales(Bytes b) {
  std::uint64_t low = word_at<std::uint32_t>(b + 2), high = word_at<std::uint16_t>(b);
  low = (low | low << 16) & 0x0000ffff0000ffff;
  low = (low | low << 8) & 0x00ff00ff00ff00ff;
  low = (low | low << 4) & 0x0f0f0f0f0f0f0f0f;
  high = (high | high << 24) & 0x000000ff000000ff;
  high = (high | high << 12) & 0x000f000f000f000f;
  high = (high | high << 6) & 0x0303030303030303;
  return low | high << 4;
}

// What Of{} returns with `block` as its template argument; nullptr for GgufBlock::none.
template <class Function, class Of>
Function find_by_block(GgufBlock block, Of) {
  return [&]<std::size_t... i>(std::index_sequence<i...>) {
    static constexpr Function functions[] = {nullptr, Of{}.template operator()<static_cast<GgufBlock>(i + 1)>()...};
    return functions[static_cast<std::size_t>(block)];
  }(std::make_index_sequence<static_cast<std::size_t>(last_gguf_block)>{});
}

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
