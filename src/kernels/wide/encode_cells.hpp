// float16 and bfloat16 times a scale, to float8 and float4: by tables of 32 cells (code_cells.hpp).
#pragma once

#include "kernels/multiply.hpp"
#include "kernels/wide/encode_words.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

#if TENSORCAST_TARGET_LEVEL >= 2

template <DType from, DType to>
class CodesByCells {
  static constexpr FloatFormat source = row(from).format;
  static constexpr FloatFormat format = row(to).format;
  static constexpr bool four_bits = bits_of<to> == 4;
  static constexpr bool has_negative_zero = format.nonfinite != NonFinite::nan_negative_zero;
  static constexpr int shift_up = 8 - source.mantissa_bits + format.mantissa_bits;
  static constexpr auto infinity = static_cast<std::int16_t>(source.largest_code() + 1);

 public:
  CodesByCells(const Policy& policy, const Factor& factor)
      : normal_(load<U16>(reinterpret_cast<const std::byte*>(factor.cells.normal))),
        small_(load<U16>(reinterpret_cast<const std::byte*>(factor.cells.small))),
        first_(kept(splat(factor.cells.first))),
        greatest_(kept(splat(factor.cells.greatest))),
        low_(kept(splat(factor.cells.low))),
        last_(kept(splat(factor.cells.last))),
        shift_(factor.cells.shift),
        other_sign_(splat(static_cast<std::uint8_t>(factor.scale < 0.0 ? 0x80 : 0))),
        reaches_infinity_(factor.cells.reaches_infinity),
        float4_nan_(policy.float4_nan_is_zero ? 0x8 : 0x7) {
    const bool infinity_is_nan = !has_negative_zero && policy.saturate && policy.fnuz_inf_is_nan;
    last_number_ = splat(static_cast<std::int16_t>(infinity - (infinity_is_nan ? 1 : 0)));
    last_ordinary_ = reaches_infinity_ ? last_number_ : splat(static_cast<std::int16_t>(infinity - 1));
    infinite_ = static_cast<std::uint8_t>(format.largest_code() + (policy.saturate ? 0 : 1));
  }

  SIMD_INLINE bool store_block(const std::byte* src, std::byte* dst) const {
    const Words x = load_words(src);
    const Words magnitudes = {x.lo & magnitude_, x.hi & magnitude_};
    U8 codes = pack_high_bytes({code(magnitudes.lo), code(magnitudes.hi)});
    const U8 signs = (pack_high_bytes(x) ^ other_sign_) & sign_;
    codes |= sign_bits<to>(codes, signs);
    if (any_greater(as<I16>(max(magnitudes.lo, magnitudes.hi)), last_ordinary_)) [[unlikely]]
      codes = with_others(codes, x, magnitudes, signs);
    if constexpr (four_bits) {
      store(dst, pack_nibbles(codes));
    } else {
      store(dst, codes);
    }
    return true;
  }

 private:
  SIMD_INLINE static U16 shifted_up(U16 x) {
    if constexpr (shift_up == 1) return x + x;  // shifts cost twice as much
    return shift_up == 0 ? x : x << shift_up;
  }
  SIMD_INLINE U16 code(U16 x) const {
    const U16 within = min(subtract_to_zero(x, low_), last_);
    if constexpr (format.mantissa_bits == 2) {
      const U16 cell = within >> (source.mantissa_bits - 3);
      return shifted_up(within) + look_up(small_, min(cell, (cell & 7) | 24));
    } else {
      const U16 small = within + look_up(small_, within >> shift_);
      if constexpr (four_bits) return small;
      const U16 limited = min(max(x, first_), greatest_);
      return shifted_up(limited) + look_up(normal_, limited >> (source.mantissa_bits - 5)) + small;
    }
  }

  // Infinities and NaN. These keep their signs.
  SIMD_INLINE U8 with_others(U8 codes, const Words& x, const Words& magnitudes, U8 signs) const {
    if (!reaches_infinity_) {
      const U8 where = bytes_beyond(magnitudes, splat(static_cast<std::int16_t>(infinity - 1)));
      codes = (codes & ~where) | ((splat(infinite_) | signs) & where);
    }
    const U8 nan = nan_codes<from, to>(x, signs ^ other_sign_, splat(float4_nan_));
    const U8 where = bytes_beyond(magnitudes, last_number_);
    return (codes & ~where) | (nan & where);
  }

  U16 normal_, small_;
  U16 first_, greatest_, low_, last_;
  int shift_;
  U8 other_sign_;
  bool reaches_infinity_;
  std::uint8_t float4_nan_, infinite_;
  I16 last_number_, last_ordinary_;
  U16 magnitude_ = kept(splat(std::uint16_t{0x7fff}));
  U8 sign_ = kept(splat(std::uint8_t{0x80}));
};

#endif

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
