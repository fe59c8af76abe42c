// SPDX-License-Identifier: Apache-2.0
// bfloat16 times a power of two to float8, float6 and float4, in 16-bit lanes: the power moves the exponents that codes
// count from, so that nothing is multiplied.
#pragma once

#include <array>
#include <type_traits>

#include "kernels/encode/encode_lane16.hpp"
#include "kernels/simd/quotients.hpp"
#include "kernels/simd/six_bit_registers.hpp"
#include "kernels/simd/store_line.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

// Codes of six bits come from a table of 64 words, those of four from one of bytes, whose indices may have a sign that
// is not looked at: AVX-512 with VBMI alone has such lookups.
inline constexpr bool has_tables_of_codes = TENSORCAST_TARGET_LEVEL >= 3;
template <DType to>
inline constexpr bool has_power_encoder = bits_of<to> == 8 || bits_of<to> == 4 || has_tables_of_codes;

// Numbers below the least one of bfloat16 that is not subnormal count as one that rounds to zero, as they are.
inline constexpr int most_power = 100;

template <DType to>
class PowerEncoder {
  static constexpr FloatFormat format = row(to).format;
  static constexpr bool is_byte = bits_of<to> == 8;
  static constexpr bool has_table = !is_byte && has_tables_of_codes;
  static constexpr int kept_bits = format.mantissa_bits, dropped_bits = 7 - kept_bits;
  static constexpr int below_half = (1 << (dropped_bits - 1)) - 1;
  // From the binade before the least normal number on; of fewer bits, from half of the least number on.
  static constexpr int first_field = format.min_exponent() + 127 - (is_byte ? 1 : kept_bits + 1);
  static constexpr std::uint16_t largest_finite = 0x7f7f;
  static constexpr int index_shift = 5 - kept_bits;
  static constexpr auto largest_code = static_cast<std::uint8_t>(format.largest_code());

 public:
  // Of a run: words, twice.
  struct Run {
    std::uint32_t base;
    std::uint32_t below_normal;  // the magnitude before the least normal number's
  };

  explicit PowerEncoder(bool bypasses_cache) : bypasses_cache_(bypasses_cache) {}

  // Of powers biased by 127, at most most_power in size, which 64-bit lanes have; a Run in each.
  SIMD_INLINE static I64 runs_of(I64 power) {
    const I64 first = (first_field + 127 - power) << 7;
    const I64 both = (is_byte ? first - below_half : first) | (first + 0x7f) << 32;
    return both | both << 16;
  }

  // Returns false, and has stored nothing, for NaN, infinities and subnormal results of eight bits: those are rare.
  SIMD_INLINE bool store_block(std::byte* dst, const U16x2& x, const Run& lo, const Run& hi) const {
    const U16x2 sizes = {x.lo & magnitude_, x.hi & magnitude_};
    if constexpr (is_byte) {
      const U8 codes = grouped_bytes({float8_code(sizes.lo, lo), float8_code(sizes.hi, hi)});
      // Zeros are not rare.
      if (normal_codes_.has_others(codes) && is_rare(sizes, lo, hi)) [[unlikely]]
        return false;
      store_line(dst, in_order(min(codes, most_) | (grouped_signs(x) & sign_)), bypasses_cache_);
    } else {
      if (is_rare(sizes, lo, hi)) [[unlikely]]
        return false;
      const U16x2 places = {subtract_to_zero(sizes.lo, both(lo.base)), subtract_to_zero(sizes.hi, both(hi.base))};
      if constexpr (bits_of<to> == 4) {
        store(dst, pack_u4(float4_codes(places, x)));
      } else {
        store_six_bits(dst, float6_codes(places, x));
      }
    }
    return true;
  }

 private:
  SIMD_INLINE static U16 both(std::uint32_t words) { return as<U16>(splat(static_cast<std::int32_t>(words))); }

  SIMD_INLINE bool is_rare(const U16x2& sizes, const Run& lo, const Run& hi) const {
    U16 rare = subtract_to_zero(max(sizes.lo, sizes.hi), largest_finite_);
    if constexpr (is_byte) {
      // Zero, less one, is above all.
      rare |=
          subtract_to_zero(both(lo.below_normal), sizes.lo - 1) | subtract_to_zero(both(hi.below_normal), sizes.hi - 1);
    }
    return any_greater(as<I16>(rare), I16{});
  }

  // To nearest even, where the base is less by nearly half a unit of the last place.
  SIMD_INLINE U16 float8_code(U16 size, const Run& run) const {
    return subtract_to_zero(size + ((size >> dropped_bits) & last_bit_), both(run.base)) >> dropped_bits;
  }

  // Indices of the table: binades and `kept_bits` + 2 bits of the mantissa, the last of which is set if a bit below is.
  SIMD_INLINE U16 index(U16 place) const { return (place | ((place & below_) + below_)) >> index_shift; }
  // The code of a place that has so many bits of the mantissa, to nearest even.
  template <int fraction_bits>
  static constexpr unsigned code_of(unsigned place) {
    const unsigned binade = place >> fraction_bits, fraction = place & ((1U << fraction_bits) - 1);
    const auto nearest_even = [](unsigned x, unsigned bits) {
      return (x + (1U << (bits - 1)) - 1 + ((x >> bits) & 1)) >> bits;
    };
    const unsigned code = binade > kept_bits
                              ? ((binade - kept_bits) << kept_bits) + nearest_even(fraction, fraction_bits - kept_bits)
                              : nearest_even(((1U << fraction_bits) + fraction) << binade, fraction_bits + 1);
    return code < largest_code ? code : largest_code;
  }
  static constexpr auto table_of_codes() {
    std::array<std::uint8_t, 64> codes{};
    for (unsigned i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::uint8_t>(code_of<kept_bits + 2>(i));
    return codes;
  }
  static constexpr std::array<std::uint8_t, 64> codes_ = table_of_codes();

  SIMD_INLINE U8 float4_codes(const U16x2& places, const U16x2& x) const {
    if constexpr (has_table) {
      const U8 indices = pack_with_signs({index(places.lo), index(places.hi)}, most_, x, sign_);
      return SixBitTable(codes_.data())(indices) | (as<U8>(as<U16>(indices) >> 4) & code_sign_);
    } else {
      const U8 codes = pack_with_signs({float4_code(places.lo), float4_code(places.hi)}, most_, x, sign_);
      return (codes | as<U8>(as<U16>(codes) >> 4)) & 0xf;
    }
  }
  // As Lane16Encoder's: from 1 on, the exponent and one mantissa bit; below, by the midpoints 0.25 and 0.75.
  SIMD_INLINE U16 float4_code(U16 place) const {
    constexpr std::uint16_t one = 0x80 - below_half;  // as its code is 2
    const U16 normal = subtract_to_zero(place + ((place >> dropped_bits) & last_bit_), U16{} + one) >> dropped_bits;
    const U16 subnormal =
        count_greater(count_greater(U16{}, as<I16>(place), I16{}), as<I16>(place), splat(std::int16_t{0xbf}));
    return max(normal, subnormal);
  }

#if TENSORCAST_TARGET_LEVEL >= 3
  // Cells of as many magnitudes as two codes of a binade are apart: each has one step at most. The code is that of the
  // cell plus the place, without the bits of places in a cell.
  static constexpr std::size_t cells = 64, cell = 1 << dropped_bits;
  static constexpr auto table_of_steps() {
    std::array<std::uint16_t, cells> steps{};
    for (std::size_t i = 0; i < cells; ++i) {
      const unsigned first = code_of<7>(static_cast<unsigned>(i * cell));
      std::size_t above = 0;
      for (std::size_t k = 0; k < cell; ++k) above += code_of<7>(static_cast<unsigned>(i * cell + k)) - first;
      steps[i] = static_cast<std::uint16_t>(first * cell + above - i * cell);
    }
    return steps;
  }
  static constexpr std::array<std::uint16_t, cells> steps_ = table_of_steps();

  SIMD_INLINE U8 float6_codes(const U16x2& places, const U16x2& x) const {
    const WordTable64 steps(steps_.data());
    const auto code = [&](U16 any_place, U16 lanes) SIMD_INLINE_LAMBDA {
      const U16 place = min(any_place, limit_);
      return added_where_negative((steps(place >> dropped_bits) + place) >> dropped_bits, lanes, code_sign_);
    };
    return pack_clamped({code(places.lo, x.lo), code(places.hi, x.hi)});
  }
#else
  U8 float6_codes(const U16x2& places, const U16x2& x) const;
#endif

  U16 magnitude_ = constant(std::uint16_t{0x7fff});
  U16 largest_finite_ = constant(largest_finite);
  U16 last_bit_ = constant(std::uint16_t{1});
  NormalCodes<to> normal_codes_;
  U8 most_ = constant(has_table ? std::uint8_t{63} : largest_code);
  bool bypasses_cache_;  // of codes of 8 bits
  U8 sign_ = constant(std::uint8_t{0x80});
  // Of a table.
  U16 below_ = constant(static_cast<std::uint16_t>((1 << index_shift) - 1));
  U16 limit_ = constant(static_cast<std::uint16_t>((64U << dropped_bits) - 1));
  std::conditional_t<bits_of<to> == 4, U8, U16> code_sign_ =
      constant(static_cast<std::conditional_t<bits_of<to> == 4, std::uint8_t, std::uint16_t>>(1 << (bits_of<to> - 1)));
};

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
