// Every hub to every integer target: integers keep their low bits, floats are truncated and then wrapped or saturated.
#pragma once

#include <limits>

#include "kernels/wide/encode_float.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

// The low bits of each lane, packed as the target stores them.
template <DType to>
SIMD_INLINE void store_low_bits(std::byte* dst, const Block<I32>& x) {
  if constexpr (bits_of<to> == 32) {
    store_units(dst, x);
  } else if constexpr (bits_of<to> == 16) {
    store(dst, pack_words(x.a, x.b));
    store(dst + kRegisterBytes, pack_words(x.c, x.d));
  } else if constexpr (bits_of<to> == 8) {
    store(dst, pack_bytes(x));
  } else if constexpr (bits_of<to> == 4) {
    store(dst, pack_nibbles(pack_bytes(x) & 0xf));
  } else {
    static_assert(bits_of<to> == 2);
    store(dst, pack_crumbs(pack_bytes(x) & 0x3));
  }
}

// From integers.
template <DType from, DType to>
struct IntegerEncoder {
  explicit IntegerEncoder(const Policy&) {}

  template <class Unit>
  SIMD_INLINE void store_block(std::byte* dst, const Block<Unit>& x) const {
    if constexpr (bits_of<to> == 64) {
      store_unit_pairs(dst, map(x, [](Unit unit) { return widen<is_signed_type<from>>(unit); }));
    } else if constexpr (bits_of<from> == 64) {
      store_low_bits<to>(dst, map(x, [](Unit unit) { return low_words(unit); }));
    } else {
      store_low_bits<to>(dst, x);
    }
  }
};

// From floats. Options are constants of the call: they decide limits and a branch that always goes the same way.
template <DType from, DType to>
class TruncatingEncoder {
  static constexpr int bits = bits_of<to>;
  static constexpr bool is_signed = is_signed_type<to>;
  static constexpr bool from_float64 = from == DType::float64;
  using Scalar = std::conditional_t<from_float64, double, float>;
  using Hub = std::conditional_t<from_float64, F64x2, F32>;

  static constexpr double power(int exponent) { return exponent == 0 ? 1.0 : 2.0 * power(exponent - 1); }
  static constexpr double lowest = is_signed ? -power(bits - 1) : 0.0;
  static constexpr double highest = power(is_signed ? bits - 1 : bits) - 1.0;  // exact up to 32 bits

 public:
  explicit TruncatingEncoder(const Policy& policy)
      : saturates_(policy.integer_range == codec::IntegerRange::saturate),
        rounds_(policy.int_rounding == IntRounding::nearest_even) {}

  SIMD_INLINE void store_block(std::byte* dst, const Block<Hub>& input) const {
    Block<Hub> x = input;
    if (rounds_) [[unlikely]]
      x = map(x, [](Hub unit) SIMD_INLINE_LAMBDA { return rounded(unit); });
    if constexpr (bits == 64) {
      store_unit_pairs(dst, map(x, [this](Hub unit) SIMD_INLINE_LAMBDA { return truncate_64(unit); }));
    } else {
      store_low_bits<to>(dst, map(x, [this](Hub unit) SIMD_INLINE_LAMBDA { return truncate_32(unit); }));
    }
  }

 private:
  SIMD_INLINE static F32 rounded(F32 x) { return round_to_integer(x); }
  SIMD_INLINE static F64x2 rounded(F64x2 x) { return {round_to_integer(x.lo), round_to_integer(x.hi)}; }

  // Low 32 bits of the result, of which the target keeps what it has room for.
  SIMD_INLINE I32 truncate_32(F64x2 x) const {
    F64x2 limited = x;
    if (saturates_) [[unlikely]]
      limited = {clamp(x.lo, splat(lowest), splat(highest)), clamp(x.hi, splat(lowest), splat(highest))};
    return truncate_wrapped_32 < is_signed || bits<32>(limited);
  }
  SIMD_INLINE I32 truncate_32(F32 x) const {
    if constexpr (bits == 32) {
      if (saturates_) [[unlikely]] {  // the limits are no float32 numbers
        const F64x2 wide = widen(x);
        return truncate_wrapped_32<is_signed>(
            {clamp(wide.lo, splat(lowest), splat(highest)), clamp(wide.hi, splat(lowest), splat(highest))});
      }
      F32 shifted = x;
      // Half of an unsigned range is beyond int32: 2^32 less, which is exact there, has the same low bits.
      if constexpr (!is_signed) shifted = select(greater_equal(x, splat(0x1p31F)), x - 0x1p32F, x);
      return wrapped(truncate(shifted), x);
    } else {
      F32 limited = x;
      if (saturates_) [[unlikely]]
        limited = clamp(x, splat(Scalar{lowest}), splat(Scalar{highest}));
      // Out of int32's range means a multiple of 256, infinity or NaN: the low byte is 0 either way. And float16's
      // finite values are within the range.
      if constexpr (bits <= 8 || from == DType::float16)
        return truncate(limited);
      else
        return wrapped(truncate(limited), limited);
    }
  }
  SIMD_INLINE static I32 wrapped(I32 truncated, F32 x) {
    if (any(equal(truncated, splat(INT32_MIN)))) [[unlikely]]
      return wrap_by_shift(x);
    return truncated;
  }

  SIMD_INLINE I64x2 truncate_64(F64x2 x) const {
    const I64x2 y = truncate_wrapped_64(x);
    if (!saturates_) [[likely]]
      return y;
    return {saturated(y.lo, x.lo), saturated(y.hi, x.hi)};
  }
  SIMD_INLINE I64x2 truncate_64(F32 x) const {
    if (saturates_) [[unlikely]]
      return truncate_64(widen(x));
    return truncate_wrapped_64(x);
  }
  SIMD_INLINE static I64 saturated(I64 wrapped, F64 x) {
    constexpr std::int64_t all_ones = is_signed ? INT64_MAX : -1;
    constexpr std::int64_t least = is_signed ? INT64_MIN : 0;
    const I64 not_above = select(greater_equal(x, splat(highest + 1.0)), splat(all_ones), wrapped);
    return select(greater_equal(splat(lowest), x), splat(least), not_above);  // NaN compares as false: 0
  }

  bool saturates_;
  bool rounds_;
};

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
