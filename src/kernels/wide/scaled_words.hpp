// Numbers of 16 bits times a scale, to float8 and float4 in lanes of 16 bits.
#pragma once

#include <array>
#include <bit>
#include <type_traits>

#include "kernels/multiply.hpp"
#include "kernels/wide/encode_float.hpp"
#include "kernels/wide/multiply_products.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

// By way of float16 codes:
// 1. x times the scale as float32, on the right side of each number at which the target's result changes (scaled.cpp).
//    Times a power of two with it that gives the target's subnormals the exponent of float16's: the CPU then shifts
//    them where they belong, and a float16 code is a code of the target with more bits.
// 2. To float16, cut off. All those numbers are float16 numbers, so that it stays on its side of them, or is moved onto
//    one; it was not there before if the scale has more digits than they.
// 3. If the scale has not, those that now are halfway between two numbers of the target are made anew, rounded to odd:
//    of the two codes next to the product the odd one. There are few, if only those are looked at that may have lost
//    something: times a power of two, float16's subnormals.
template <DType from, DType to>
class HalfProducts {
  static constexpr FloatFormat half = row(DType::float16).format;
  static constexpr FloatFormat format = row(to).format;
  static constexpr int aligned = half.min_exponent() - format.min_exponent();
  static constexpr int cut = half.mantissa_bits - format.mantissa_bits;
  static constexpr int digits = format.mantissa_bits + 2;  // of a number halfway between two of the target's

 public:
  static constexpr int shift = aligned < 0 ? aligned : 0;  // more would overflow

  static bool may_tie(const Factor& factor) { return std::bit_cast<std::uint64_t>(factor.scale) << (11 + digits) == 0; }

  class Encoder : public WordEncoder<DType::float16, to, shift> {
   public:
    Encoder(const Policy& policy, const Factor& factor)
        : WordEncoder<DType::float16, to, shift>(policy, may_tie(factor)) {}
  };

  explicit HalfProducts(const Factor& factor)
      : scale_(splat(factor.high * power_of_two(shift))),
        place_(splat(place(factor))),
        halfway_(splat(halfway(factor))) {}

  SIMD_INLINE bool block(const std::byte* src, Words& products) const {
    constexpr int cut_off = _MM_FROUND_TO_ZERO;
    const Block<F32> x = map(load_block<from>(src), [this](F32 unit) { return unit * scale_; });
    products = {codes<cut_off>(x.a, x.b), codes<cut_off>(x.c, x.d)};
    const U16 none = min((products.lo & place_) ^ halfway_, (products.hi & place_) ^ halfway_);
    if (any_greater(splat(std::int16_t{1}), as<I16>(none))) [[unlikely]]
      products = {odd(x.a, x.b), odd(x.c, x.d)};
    return true;
  }

 private:
  static constexpr float power_of_two(int exponent) { return std::bit_cast<float>((exponent + 127) << 23); }
  static bool is_power_of_two(const Factor& factor) { return std::bit_cast<std::uint64_t>(factor.scale) << 12 == 0; }

  // Codes of numbers that are halfway have `halfway` in these bits, if not only they: where exponents are not aligned,
  // that has another place in float16's subnormals.
  static constexpr int subnormal_cut = cut - aligned + shift;
  static std::uint16_t place(const Factor& factor) {
    if (!may_tie(factor)) return 0;
    if (is_power_of_two(factor)) return ((1U << subnormal_cut) - 1) | 0x7c00;
    return static_cast<std::uint16_t>((subnormal_cut == cut ? 1U << cut : 1U << (subnormal_cut - 1)) - 1);
  }
  static std::uint16_t halfway(const Factor& factor) {
    const bool is_apart = subnormal_cut != cut && may_tie(factor) && !is_power_of_two(factor);
    return is_apart ? 0 : 1U << (subnormal_cut - 1);
  }

  template <int rounding>
  SIMD_INLINE static U16 codes(F32 a, F32 b) {
    return join(float16_codes<rounding>(a), float16_codes<rounding>(b));
  }
  SIMD_INLINE static U16 odd(F32 a, F32 b) {
    const U16 below = codes<_MM_FROUND_TO_NEG_INF>(a, b);
    const U16 above = codes<_MM_FROUND_TO_POS_INF>(a, b);
    return above ^ ((above ^ below) & (0 - (below & 1)));
  }

  F32 scale_;
  U16 place_, halfway_;
};

#if TENSORCAST_TARGET_LEVEL >= 2

// The products of bfloat16's 128 significands with that of a scale, from 1 to 4: rounded to odd, as what is added to a
// number's exponent.
class SignificandTable {
  static constexpr std::uint16_t one = 0x3f80;
  alignas(64) static constexpr auto significands = [] {
    std::array<std::uint16_t, 128> codes = {};
    for (std::uint16_t i = 0; i < 128; ++i) codes[i] = one + i;
    return codes;
  }();

 public:
  // A float32 scale that does for the exact one (scaled.cpp), and is normal.
  explicit SignificandTable(float scale) {
    const F32 factor = splat(std::bit_cast<float>((std::bit_cast<std::int32_t>(scale) & 0x7fffff) | 0x3f800000));
    const Words first = products(0, factor), last = products(kBlock, factor);
#if TENSORCAST_TARGET_LEVEL == 3
    first_ = (__m512i)pack_low_bytes(first);
    last_ = (__m512i)pack_low_bytes(last);
#else
    first_ = first;
    last_ = last;
#endif
  }
  static int exponent_of(float scale) { return ((std::bit_cast<std::int32_t>(scale) >> 23) & 0xff) - 127; }

  // By the low seven bits of each lane.
  SIMD_INLINE U16 operator[](U16 x) const {
#if TENSORCAST_TARGET_LEVEL == 3
    return (U16)_mm512_maskz_permutex2var_epi8(0x5555555555555555, first_, (__m512i)x, last_);
#else
    const __m512i first = _mm512_permutex2var_epi16((__m512i)first_.lo, (__m512i)x, (__m512i)first_.hi);
    const __m512i last = _mm512_permutex2var_epi16((__m512i)last_.lo, (__m512i)x, (__m512i)last_.hi);
    return (U16)_mm512_mask_mov_epi16(first, _mm512_test_epi16_mask((__m512i)x, _mm512_set1_epi16(0x40)), last);
#endif
  }

 private:
  static Words products(int first, F32 scale) {
    const auto* const src = reinterpret_cast<const std::byte*>(significands.data() + first);
    const Block<F32> x = map(load_block<DType::bfloat16>(src), [scale](F32 unit) { return unit * scale; });
    return {without_ties(odd_high_words(x.a, x.b)), without_ties(odd_high_words(x.c, x.d))};
  }
  // A number is halfway at the place above its lowest bit. If it is odd there, it goes up: then its last bit is set,
  // which leaves it on its side of all that lies halfway elsewhere. So all that remain halfway go down.
  SIMD_INLINE static U16 without_ties(U16 product) {
    const U16 significand = (product & 0x7f) | 0x80;
    const U16 lowest = significand & (0 - significand);
    return (product - one) | min(significand & (lowest << 1), U16{} + 1);
  }

#if TENSORCAST_TARGET_LEVEL == 3
  __m512i first_, last_;  // bytes
#else
  Words first_, last_;
#endif
};

// bfloat16 to float8 and float4: significands by table, and exponents by the encoder's constants. Subnormal numbers,
// whose product is made as if they were not, are zero in the target either way.
template <DType to>
class TableProducts {
 public:
  class Encoder {
   public:
    Encoder(const Policy& policy, const Factor& factor)
        : words_(policy, true, SignificandTable::exponent_of(factor.high), factor.high < 0.0F), table_(factor.high) {}

    SIMD_INLINE void store_block(std::byte* dst, const Words& x) const {
      words_.store_block(
          dst, x, [this](U16 magnitude) SIMD_INLINE_LAMBDA { return (magnitude & exponent_) + table_[magnitude]; });
    }

   private:
    WordEncoder<DType::bfloat16, to, 0, true> words_;
    SignificandTable table_;
    U16 exponent_ = kept(splat(std::uint16_t{0x7f80}));
  };

  explicit TableProducts(const Factor&) {}

  SIMD_INLINE bool block(const std::byte* src, Words& numbers) const {
    numbers = load_words(src);
    return true;
  }
};

#endif

// How a pair's products are made, if in words.
template <DType from, DType to>
constexpr auto scaled_words() {
  if constexpr (!is_float<from> || bits_of<from> != 16 || !is_float<to> || bits_of<to> > 8) {
    return;
#if TENSORCAST_TARGET_LEVEL >= 2
  } else if constexpr (from == DType::bfloat16 && to != DType::float8_e8m0fnu) {
    return std::type_identity<TableProducts<to>>();
#endif
  } else if constexpr (to != DType::float8_e8m0fnu) {
    return std::type_identity<HalfProducts<from, to>>();
  }
}

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
