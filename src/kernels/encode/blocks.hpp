// SPDX-License-Identifier: Apache-2.0
// Loads and stores blocks. A source is loaded as the hub that holds it exactly: F32, F64x2, I32 or I64x2.
#pragma once

#include "dtype/dtype_table.hpp"
#include "kernels/simd/simd.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

template <DType dtype>
inline constexpr int bits_of = row(dtype).bits;
template <DType dtype>
inline constexpr bool is_float = row(dtype).family == Family::floating;
template <DType dtype>
inline constexpr bool is_signed_type = row(dtype).is_signed;

// Bytes of `count` elements; a unit or block of any type fills whole bytes.
template <DType dtype>
constexpr std::size_t bytes_of(std::size_t count) {
  return count * bits_of<dtype> / 8;
}

// Decodes codes of 8 bits or fewer, one in each lane.
template <DType from>
SIMD_INLINE F32 decode_short_float(I32 code) {
  constexpr FloatFormat format = row(from).format;
  constexpr std::int32_t infinity = 0x7f800000, quiet_nan = 0x7fc00000;
  if constexpr (!format.has_zero) {  // float32 has the same exponents; the least is subnormal in it
    static_assert(from == DType::float8_e8m0fnu);
    const I32 number = select(equal(code, I32{}), splat(0x400000), code << 23);
    return as<F32>(select(equal(code, splat(0xff)), splat(quiet_nan), number));
  } else {
    // Subnormal numbers get a leading one too, which a subtraction removes.
    constexpr std::int32_t sign = format.has_sign ? 1 << (bits_of<from> - 1) : 0;
    constexpr std::int32_t all_ones = (1 << (format.exponent_bits + format.mantissa_bits)) - 1;
    constexpr auto infinity_code = static_cast<std::int32_t>(format.largest_code() + 1);
    constexpr std::int32_t least_normal = (128 - format.bias) << 23;
    const I32 magnitude = code & all_ones;
    const Mask32 is_subnormal = greater(splat(1 << format.mantissa_bits), magnitude);
    const I32 exponents = select(is_subnormal, splat(least_normal), splat(least_normal - (1 << 23)));
    const F32 leading_one = as<F32>(select(is_subnormal, splat(least_normal), I32{}));
    I32 bits = as<I32>(as<F32>((magnitude << (23 - format.mantissa_bits)) + exponents) - leading_one);
    if constexpr (format.nonfinite == NonFinite::ieee) {
      bits = select(greater(magnitude, splat(infinity_code - 1)), bits | infinity, bits);
      bits = select(greater(magnitude, splat(infinity_code)), bits | quiet_nan, bits);
    } else if constexpr (format.nonfinite == NonFinite::nan_all_ones) {
      bits = select(equal(magnitude, splat(all_ones)), splat(quiet_nan), bits);
    } else if constexpr (format.nonfinite == NonFinite::nan_negative_zero) {
      bits = select(equal(code, splat(sign)), splat(quiet_nan), bits);
    } else if constexpr (format.nonfinite == NonFinite::nan_and_infinity) {
      bits = select(equal(magnitude, splat(infinity_code)), splat(infinity), bits);
      bits = select(equal(code, splat(sign)), splat(quiet_nan), bits);
    }
    if constexpr (!format.has_sign) return as<F32>(bits);
    return as<F32>(bits | ((code & sign) << (32 - bits_of<from>)));
  }
}

template <DType from>
SIMD_INLINE auto load_unit(const std::byte* src) {
  if constexpr (from == DType::float64) {
    return F64x2{load<F64>(src), load<F64>(src + kRegisterBytes)};
  } else if constexpr (from == DType::float32) {
    return load<F32>(src);
  } else if constexpr (from == DType::float16) {
    return load_float16(src);
  } else if constexpr (from == DType::bfloat16) {
    return as<F32>(load_uint16(src) << 16);
  } else if constexpr (from == DType::int64 || from == DType::uint64) {
    return I64x2{load<I64>(src), load<I64>(src + kRegisterBytes)};
  } else if constexpr (from == DType::int32 || from == DType::uint32) {
    return load<I32>(src);
  } else if constexpr (from == DType::int16) {
    return load_int16(src);
  } else if constexpr (from == DType::uint16) {
    return load_uint16(src);
  } else if constexpr (from == DType::float8_e5m2) {
    return load_upper_float16(src);
  } else if constexpr (is_float<from>) {
    static_assert(bits_of<from> == 8);
    return decode_short_float<from>(load_uint8(src));
  } else if constexpr (is_signed_type<from>) {
    static_assert(bits_of<from> == 8);
    return load_int8(src);
  } else {
    static_assert(bits_of<from> == 8);
    return load_uint8(src);
  }
}

template <DType from>
SIMD_INLINE auto load_block(const std::byte* src) {
  constexpr std::size_t unit = bytes_of<from>(kLanes);
  return Block<decltype(load_unit<from>(src))>{load_unit<from>(src), load_unit<from>(src + unit),
                                               load_unit<from>(src + 2 * unit), load_unit<from>(src + 3 * unit)};
}

// float32, int32 and uint32.
template <class Unit>
SIMD_INLINE void store_units(std::byte* dst, const Block<Unit>& x) {
  store(dst, x.a);
  store(dst + kRegisterBytes, x.b);
  store(dst + 2 * kRegisterBytes, x.c);
  store(dst + 3 * kRegisterBytes, x.d);
}

// float64, int64 and uint64.
template <class Unit>
SIMD_INLINE void store_unit_pairs(std::byte* dst, const Block<Unit>& x) {
  for (const Unit* unit : {&x.a, &x.b, &x.c, &x.d}) {
    store(dst, unit->lo);
    store(dst + kRegisterBytes, unit->hi);
    dst += 2 * kRegisterBytes;
  }
}

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
