// SPDX-License-Identifier: Apache-2.0
// Component core. Codes of single elements of at most 16 bits to numbers and back: the algorithm of element.hpp, which
// programs include instead.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "tensorcast/export.hpp"
#include "tensorcast/facts.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {

namespace detail {

// How float and double, here called Real, are made of bits; signed, as SSE2 compares no others.
template <class Real>
inline constexpr FloatFormat real_format = float_format(sizeof(Real) == 4 ? DType::float32 : DType::float64);
template <class Real>
using RealBits = std::conditional_t<sizeof(Real) == 4, std::int32_t, std::int64_t>;
template <class Real>
inline constexpr int last_shift = static_cast<int>(sizeof(Real)) * 8 - 1;
template <class Real>
inline constexpr RealBits<Real> infinity_bits = static_cast<RealBits<Real>>(real_format<Real>.largest_code() + 1);
template <class Real>
inline constexpr RealBits<Real> quiet_bit = RealBits<Real>{1} << (real_format<Real>.mantissa_bits - 1);

// The bits of 2^exponent, a normal number of Real.
template <class Real>
constexpr RealBits<Real> power_bits(int exponent) noexcept {
  return static_cast<RealBits<Real>>(exponent + real_format<Real>.bias) << real_format<Real>.mantissa_bits;
}

// `a` if `condition`, or else `b`, without a branch: g++ makes branches of ?: and then vectorizes no loop.
template <class Bits>
constexpr Bits chosen(bool condition, Bits a, Bits b) noexcept {
  const auto mask = static_cast<Bits>(-static_cast<Bits>(condition));
  return static_cast<Bits>((a & mask) | (b & ~mask));
}

// A code of one of IEEE's formats, in which NaN becomes quiet. Words of 16 bits are compared in half as many registers.
template <DType dtype>
constexpr std::int32_t quieted(std::int32_t code) noexcept {
  constexpr FloatFormat format = float_format(dtype);
  constexpr auto infinity = static_cast<std::int16_t>(format.largest_code() + 1);
  constexpr auto all_ones = (1 << (format.exponent_bits + format.mantissa_bits)) - 1;
  constexpr auto quiet = static_cast<std::int16_t>(1 << (format.mantissa_bits - 1));
  const auto magnitude = static_cast<std::int16_t>(code & all_ones);
  return static_cast<std::uint16_t>(code | chosen(magnitude > infinity, quiet, std::int16_t{0}));
}

// The exact number of a code. Reads no state of the processor: neither its rounding mode nor its handling of subnormal
// numbers matters. Loops of it vectorize.
template <DType from, class Real>
constexpr Real decode_element(std::int32_t code) noexcept {
  using Bits = RealBits<Real>;
  constexpr FloatFormat format = float_format(from);
  constexpr int shift = real_format<Real>.mantissa_bits - format.mantissa_bits;
  constexpr int rebias = real_format<Real>.bias - format.bias;
  constexpr std::int32_t all_ones = (1 << (format.exponent_bits + format.mantissa_bits)) - 1;
  constexpr auto largest = static_cast<std::int32_t>(format.largest_code());
  constexpr std::int32_t least_normal = 1 << format.mantissa_bits;
  constexpr std::int32_t negative_zero = all_ones + 1;
  constexpr Bits infinity = infinity_bits<Real>, quiet = quiet_bit<Real>;

  if constexpr (format.nonfinite == NonFinite::ieee) code = quieted<from>(code);
  if constexpr (format.has_zero && rebias == 0) {  // Real has the same exponents
    return std::bit_cast<Real>(static_cast<Bits>(static_cast<std::make_unsigned_t<Bits>>(code) << shift));
  }
  const std::int32_t magnitude = code & all_ones;
  Bits bits = (Bits{magnitude} << shift) + (static_cast<Bits>(rebias) << real_format<Real>.mantissa_bits);
  if constexpr (format.min_exponent() < real_format<Real>.min_exponent()) {  // of no type but float8_e8m0fnu
    bits = chosen(magnitude == 0, quiet, bits);                              // half of the smallest normal number
  } else if constexpr (format.has_zero) {
    constexpr Real unit = std::bit_cast<Real>(power_bits<Real>(format.min_exponent() - format.mantissa_bits));
    const auto subnormal = std::bit_cast<Bits>(static_cast<Real>(magnitude) * unit);
    bits = chosen(magnitude < least_normal, subnormal, bits);
  }
  if constexpr (format.nonfinite == NonFinite::ieee) {
    if constexpr (rebias != 0) bits |= chosen(magnitude > largest, infinity, Bits{0});
  } else if constexpr (format.nonfinite == NonFinite::nan_all_ones) {
    bits = chosen(magnitude == all_ones, infinity | quiet, bits);
  } else if constexpr (format.nonfinite == NonFinite::nan_and_infinity) {
    bits = chosen(magnitude > largest, infinity, bits);
  }
  if constexpr (format.has_sign) {
    if constexpr (format.has_nan() && !format.has_negative_zero()) {
      bits = chosen(code == negative_zero, infinity | quiet, bits);
    }
    using Unsigned = std::make_unsigned_t<Bits>;
    bits |= static_cast<Bits>(static_cast<Unsigned>(code & negative_zero) << (last_shift<Real> + 1 - format.bits()));
  }
  return std::bit_cast<Real>(bits);
}

// The code of a magnitude in float8_e8m0fnu, NaN too: clamps, then takes the power of two at or above (D4 of
// docs/semantics.md).
template <DType to, class Real>
constexpr RealBits<Real> encode_power_of_two(RealBits<Real> magnitude) noexcept {
  using Bits = RealBits<Real>;
  constexpr FloatFormat format = float_format(to);
  constexpr int mantissa_bits = real_format<Real>.mantissa_bits;
  constexpr Bits below_one = (Bits{1} << mantissa_bits) - 1, rebias = real_format<Real>.bias - format.bias;
  constexpr Bits least = format.min_exponent() < real_format<Real>.min_exponent()
                             ? quiet_bit<Real>
                             : power_bits<Real>(format.min_exponent());
  constexpr Bits most = power_bits<Real>(format.max_exponent());
  const Bits low = chosen(magnitude > least, magnitude, Bits{0});
  const Bits up = (chosen(low < most, low, most) + below_one) >> mantissa_bits;
  return chosen(magnitude > least, up - rebias, Bits{0});
}

// The code of a magnitude that is not NaN: rounded once to the nearest, ties to even.
template <DType to, class Real>
constexpr RealBits<Real> encode_magnitude(RealBits<Real> magnitude) noexcept {
  using Bits = RealBits<Real>;
  constexpr FloatFormat format = float_format(to);
  constexpr int dropped_bits = real_format<Real>.mantissa_bits - format.mantissa_bits;
  constexpr int rebias = real_format<Real>.bias - format.bias;
  constexpr bool saturates = format.obeys_saturate() || !format.has_nan();
  if constexpr (rebias == 0) {
    // Adds half a unit of the last place, less one bit if that place is even. A carry reaches the exponent.
    static_assert(!saturates);
    using Unsigned = std::make_unsigned_t<Bits>;  // of NaN the sum may have the top bit
    const auto bits = static_cast<Unsigned>(magnitude);
    constexpr Unsigned below_half = (Unsigned{1} << (dropped_bits - 1)) - 1;
    return static_cast<Bits>((bits + below_half + (bits >> dropped_bits & 1)) >> dropped_bits);
  } else {
    // 1. Numbers from `limit` on become the largest, or else infinity, whose code is the next.
    // 2. Scales the number, exactly, so that its last place in the target is 1. Subnormal numbers of the target have
    //    the last place of its smallest normal one.
    // 3. Cuts the fraction off, and adds one if it was above a half, or a half and the rest is odd.
    // 4. Adds the exponent: the first bit of a normal number is one in the exponent field.
    constexpr Bits limit = (static_cast<Bits>(format.largest_code() + (saturates ? 0 : 1)) << dropped_bits) +
                           (static_cast<Bits>(rebias) << real_format<Real>.mantissa_bits);
    constexpr Bits least = power_bits<Real>(format.min_exponent());
    constexpr Bits unit = power_bits<Real>(format.mantissa_bits - format.min_exponent());
    constexpr Bits half = power_bits<Real>(-1);
    const Bits clamped = chosen(magnitude < limit, magnitude, limit);
    const Bits above_least = (clamped & infinity_bits<Real>)-least;
    const Bits exponent = above_least & ~(above_least >> last_shift<Real>);  // of subnormal numbers 0
    const Real scaled = std::bit_cast<Real>(clamped) * std::bit_cast<Real>(unit - exponent);
    const auto whole = static_cast<std::int32_t>(scaled);
    const Real below_half = std::bit_cast<Real>(half - (whole & 1));
    const Bits up = scaled - static_cast<Real>(whole) > below_half ? 1 : 0;
    return whole + up + (exponent >> dropped_bits);
  }
}

// The code that cast() with default options makes of a number. As decode_element(), reads no state of the processor
// and vectorizes.
template <DType to, class Real>
constexpr std::int32_t encode_element(Real number) noexcept {
  using Bits = RealBits<Real>;
  constexpr FloatFormat format = float_format(to);
  constexpr auto first_special = static_cast<Bits>(format.largest_code() + 1);
  constexpr Bits sign = format.has_sign ? Bits{1} << (format.bits() - 1) : 0;

  const auto bits = std::bit_cast<Bits>(number);
  const Bits magnitude = bits & std::numeric_limits<Bits>::max();
  const Bits own_sign = bits >> (last_shift<Real> + 1 - format.bits()) & sign;
  const bool is_nan = magnitude > infinity_bits<Real>;
  // D3, D5 and D13: NaN keeps its sign and the first bits of its payload; float6 and float4 make it -0.
  if constexpr (!format.has_sign) {
    // D15: the sign is left out. D4: negative numbers become the smallest power of two.
    if constexpr (format.has_zero) {
      return static_cast<std::int32_t>(chosen(is_nan, first_special, encode_magnitude<to, Real>(magnitude)));
    } else {
      const Bits code = encode_power_of_two<to, Real>(magnitude);
      return static_cast<std::int32_t>(chosen(is_nan, first_special, code & ~(bits >> last_shift<Real>)));
    }
  } else {
    const Bits code = encode_magnitude<to, Real>(magnitude);
    if constexpr (format.nonfinite == NonFinite::ieee) {
      constexpr Bits quiet = Bits{1} << (format.mantissa_bits - 1);
      constexpr int dropped_bits = real_format<Real>.mantissa_bits - format.mantissa_bits;
      const Bits nan = (magnitude >> dropped_bits & (quiet - 1)) | quiet | first_special;
      return static_cast<std::int32_t>(chosen(is_nan, nan, code) | own_sign);
    } else if constexpr (format.nonfinite == NonFinite::nan_all_ones) {
      return static_cast<std::int32_t>(chosen(is_nan, first_special, code) | own_sign);
    } else if constexpr (format.has_negative_zero()) {
      return static_cast<std::int32_t>(chosen(is_nan, sign, code | own_sign));
    } else {
      return static_cast<std::int32_t>(chosen(is_nan, sign, code | chosen(code != 0, own_sign, Bits{0})));
    }
  }
}

// Of codes without NaN: ordered as their numbers are, 0 and -0 are equal.
template <DType dtype>
constexpr int order_of(std::int32_t code) noexcept {
  constexpr FloatFormat format = float_format(dtype);
  constexpr std::int32_t all_ones = (1 << (format.exponent_bits + format.mantissa_bits)) - 1;
  const std::int32_t magnitude = code & all_ones;
  return code > all_ones ? -magnitude : magnitude;
}

template <DType dtype>
constexpr bool is_nan_code(std::int32_t code) noexcept {
  constexpr FloatFormat format = float_format(dtype);
  constexpr std::int32_t negative_zero = 1 << (format.exponent_bits + format.mantissa_bits);
  constexpr auto largest = static_cast<std::int32_t>(format.largest_code());
  if constexpr (!format.has_nan()) return false;
  if constexpr (format.has_sign && !format.has_negative_zero()) return code == negative_zero;
  return (code & (negative_zero - 1)) > largest + (format.has_infinity() ? 1 : 0);
}

// Reports whether codes are of equal numbers. No branch, as in chosen().
template <DType dtype>
constexpr bool are_equal(std::int32_t a, std::int32_t b) noexcept {
  constexpr FloatFormat format = float_format(dtype);
  constexpr std::int32_t all_ones = (1 << (format.exponent_bits + format.mantissa_bits)) - 1;
  const bool same = (a == b) & !is_nan_code<dtype>(a);
  if constexpr (!format.has_negative_zero()) return same;
  return same | (((a | b) & all_ones) == 0);
}

// A number that rounds to a type of at most 16 bits as `number` does: float64, its last bit set if it is inexact.
constexpr double to_odd(long double number) noexcept {
  const auto nearest = static_cast<double>(number);
  const auto bits = std::bit_cast<std::uint64_t>(nearest);
  const auto back = static_cast<long double>(nearest);
  if (!(back < number || back > number) || (bits & 1) != 0) return nearest;
  const bool is_negative = bits >> 63 != 0;
  return std::bit_cast<double>((back < number) != is_negative ? bits + 1 : bits - 1);
}

// An integer as a number that rounds to a type of at most 16 bits as the integer itself does.
template <class Integer>
constexpr auto real_of_integer(Integer number) noexcept {
  if constexpr (sizeof(Integer) <= 2) {
    return static_cast<float>(number);
  } else if constexpr (sizeof(Integer) <= 4) {
    return static_cast<double>(number);
  } else {
    // The low bits of large numbers become one, which says whether any is set: the rest is exact in float64.
    constexpr std::uint64_t low = 0x7ff;
    const bool is_negative = number < 0;
    const std::uint64_t magnitude =
        is_negative ? std::uint64_t{0} - static_cast<std::uint64_t>(number) : static_cast<std::uint64_t>(number);
    const std::uint64_t odd = (magnitude & ~low) | ((magnitude & low) != 0 ? low + 1 : 0);
    const auto real = static_cast<double>(magnitude >> 53 != 0 ? odd : magnitude);
    return is_negative ? -real : real;
  }
}

// The low 64 bits of the integer part of a number (D6 of docs/semantics.md); 0 of NaN and infinity.
constexpr std::uint64_t integer_part(double number) noexcept {
  const auto code = std::bit_cast<std::uint64_t>(number);
  const auto exponent = static_cast<int>(code >> 52 & 0x7ff) - 1023;
  if (exponent < 0 || exponent >= 52 + 64) return 0;
  const std::uint64_t significand = (code & ((std::uint64_t{1} << 52) - 1)) | std::uint64_t{1} << 52;
  const std::uint64_t whole = exponent < 52 ? significand >> (52 - exponent) : significand << (exponent - 52);
  return code >> 63 != 0 ? 0 - whole : whole;
}

}  // namespace detail

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
