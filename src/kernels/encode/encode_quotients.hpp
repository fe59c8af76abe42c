// SPDX-License-Identifier: Apache-2.0
// Quotients in float32 to float8, float6 and float4, signs included, in few steps.
#pragma once

#include "kernels/encode/blocks.hpp"
#include "kernels/simd/quotients.hpp"
#include "kernels/simd/six_bit_registers.hpp"
#include "kernels/simd/store_line.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

template <DType to>
class QuotientEncoder {
  static constexpr FloatFormat format = row(to).format;
  static constexpr int kept_bits = format.mantissa_bits, dropped_bits = 23 - kept_bits;
  static constexpr int place = 7 - kept_bits;  // of the code in a word
  static constexpr int binades = format.max_exponent() + 1;
  static constexpr int least_field = format.min_exponent() - binades + 127;

 public:
  // What quotients are multiplied with, so that those in range are below 1.
  static constexpr float unit = __builtin_bit_cast(float, (127 - binades) << 23);

  explicit QuotientEncoder(bool bypasses_cache) : bypasses_cache_(bypasses_cache) {}

  // Returns false, and has stored nothing, for NaN and quotients of twice the range or more: those are rare.
  SIMD_INLINE bool store_block(std::byte* dst, const Block<F32>& x) const {
    if (any_from_two(x)) [[unlikely]]
      return false;
    // 1. The sum with a power of two that is `dropped_bits` binades above the number's: its lowest bits are the
    //    significand, rounded to nearest even, and its upper half has the sign and exponent.
    // 2. Both together are the code, which counts from that of the least exponent.
    const U16x2 words = grouped_words(map(x, [this](F32 lanes) SIMD_INLINE_LAMBDA {
      return sum_of_halves<place>(multiply_add(power_at_least(lanes, least_), above_, lanes));
    }));
    const U8 codes = packed_with_signs<8 - bits_of<to>>({code(words.lo), code(words.hi)}, most_, words, sign_);
    if constexpr (bits_of<to> == 8) {
      store_line(dst, codes, bypasses_cache_);
    } else if constexpr (bits_of<to> == 4) {
      store(dst, pack_u4(codes));
    } else {
      store_six_bits(dst, codes);
    }
    return true;
  }

 private:
  SIMD_INLINE U16 code(U16 word) const { return ((word - base_) & magnitude_) >> place; }

  F32 least_ = keep_in_register(splat(__builtin_bit_cast(float, least_field << 23)));
  F32 above_ = keep_in_register(splat(static_cast<float>(1 << dropped_bits)));
  U16 base_ = keep_in_register(splat(static_cast<std::uint16_t>((least_field + dropped_bits) << 7)));
  U16 magnitude_ = keep_in_register(splat(std::uint16_t{0x7fff}));
  U8 most_ = keep_in_register(splat(static_cast<std::uint8_t>(format.largest_code())));
  bool bypasses_cache_;  // of codes of 8 bits
  U8 sign_ = keep_in_register(splat(static_cast<std::uint8_t>(1 << (bits_of<to> - 1))));
};

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
