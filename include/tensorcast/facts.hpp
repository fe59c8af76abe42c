// SPDX-License-Identifier: Apache-2.0
// Component core. The element types and their constant facts: bits, formats, ranges. Needs no library: all of it is
// constexpr.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "tensorcast/export.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {

// Numbers never change: below 1000, those of ONNX `TensorProto.DataType`; from 1001 on, our own for types that ONNX
// lacks.
enum class DType : std::int32_t {
  undefined = 0,
  float32 = 1,
  uint8 = 2,
  int8 = 3,
  uint16 = 4,
  int16 = 5,
  int32 = 6,
  int64 = 7,
  string = 8,
  boolean = 9,
  float16 = 10,
  float64 = 11,
  uint32 = 12,
  uint64 = 13,
  bfloat16 = 16,
  float8_e4m3fn = 17,
  float8_e4m3fnuz = 18,
  float8_e5m2 = 19,
  float8_e5m2fnuz = 20,
  uint4 = 21,
  int4 = 22,
  float4_e2m1fn = 23,
  float8_e8m0fnu = 24,
  uint2 = 25,
  int2 = 26,
  float6_e2m3fn = 27,
  float6_e3m2fn = 28,
  // OpenVINO's one-bit unsigned integer. Promotion accepts it, casts do not.
  uint1 = 1001,
  float8_e4m3 = 1002,         // IEEE's, with infinities; PyTorch's type is float8_e4m3fn
  float8_e3m4 = 1003,         // IEEE's
  float8_e4m3b11fnuz = 1004,  // ml_dtypes'
  float8_e5m3fnu = 1005,      // CUDA's UE5M3, without sign
  binary8p4se = 1006,         // IEEE P3109's, with infinities
  binary8p3se = 1007,
};

enum class Family : std::uint8_t { boolean, integer, floating, text };

// Which codes are not finite numbers.
enum class NonFinite : std::uint8_t {
  ieee,               // exponent all ones: infinity, and NaN where the mantissa is not zero
  nan_all_ones,       // only the code (or, with a sign, the two codes) of all ones is NaN; no infinity
  nan_negative_zero,  // only the code of negative zero is NaN; no infinity, no negative zero
  nan_and_infinity,   // P3109's: the code of negative zero is NaN, the codes of all ones but the sign are infinities
  none,               // every code is a finite number
};

// The facts of one floating-point format, from which codecs and kernels derive everything else.
struct FloatFormat {
  int exponent_bits = 0;
  int mantissa_bits = 0;
  int bias = 0;
  NonFinite nonfinite = NonFinite::ieee;
  bool has_sign = true;
  bool has_zero = true;  // false: exponent 0 is an ordinary binade, there are no subnormals and no zero

  [[nodiscard]] constexpr int bits() const { return exponent_bits + mantissa_bits + (has_sign ? 1 : 0); }
  [[nodiscard]] constexpr bool has_infinity() const {
    return nonfinite == NonFinite::ieee || nonfinite == NonFinite::nan_and_infinity;
  }
  [[nodiscard]] constexpr bool has_nan() const { return nonfinite != NonFinite::none; }
  [[nodiscard]] constexpr bool has_negative_zero() const {
    return has_sign && nonfinite != NonFinite::nan_negative_zero && nonfinite != NonFinite::nan_and_infinity;
  }
  // Reports whether Cast's attribute `saturate` decides about numbers out of range. Wider types overflow, and types
  // without NaN saturate, whatever it says.
  [[nodiscard]] constexpr bool obeys_saturate() const { return bits() <= 8 && has_nan(); }

  // Exponent and mantissa fields of the largest finite value.
  [[nodiscard]] constexpr std::uint64_t largest_code() const {
    const std::uint64_t all_ones = (std::uint64_t{1} << (exponent_bits + mantissa_bits)) - 1;
    switch (nonfinite) {
      case NonFinite::ieee:
        return all_ones - (std::uint64_t{1} << mantissa_bits);
      case NonFinite::nan_all_ones:
      case NonFinite::nan_and_infinity:
        return all_ones - 1;
      case NonFinite::nan_negative_zero:
      case NonFinite::none:
        return all_ones;
    }
    return all_ones;
  }

  // Exponent of the smallest normal binade: 1 - bias, or -bias where exponent 0 is an ordinary binade.
  [[nodiscard]] constexpr int min_exponent() const { return (has_zero ? 1 : 0) - bias; }
  [[nodiscard]] constexpr int max_exponent() const { return static_cast<int>(largest_code() >> mantissa_bits) - bias; }

  friend constexpr bool operator==(const FloatFormat&, const FloatFormat&) = default;
};

namespace detail {

struct TypeRow {
  DType id = DType::undefined;
  Family family = Family::text;
  int bits = 0;  // of one packed element; 0 for text
  bool is_signed = false;
  FloatFormat format = {};  // floating only
};

constexpr TypeRow float_row(DType id, FloatFormat format) {
  return {id, Family::floating, format.bits(), format.has_sign, format};
}
constexpr TypeRow integer_row(DType id, int bits, bool is_signed) { return {id, Family::integer, bits, is_signed, {}}; }

inline constexpr int first_own_code = 1001;  // of the types that ONNX lacks
inline constexpr int onnx_code_limit = 29;   // one more than the largest number of a type of ONNX

// In the order of their numbers; numbers below onnx_code_limit that are no type have an empty row.
inline constexpr TypeRow type_rows[] = {
    {},
    float_row(DType::float32, {.exponent_bits = 8, .mantissa_bits = 23, .bias = 127}),
    integer_row(DType::uint8, 8, false),
    integer_row(DType::int8, 8, true),
    integer_row(DType::uint16, 16, false),
    integer_row(DType::int16, 16, true),
    integer_row(DType::int32, 32, true),
    integer_row(DType::int64, 64, true),
    {DType::string, Family::text, 0, false, {}},
    {DType::boolean, Family::boolean, 8, false, {}},
    float_row(DType::float16, {.exponent_bits = 5, .mantissa_bits = 10, .bias = 15}),
    float_row(DType::float64, {.exponent_bits = 11, .mantissa_bits = 52, .bias = 1023}),
    integer_row(DType::uint32, 32, false),
    integer_row(DType::uint64, 64, false),
    {},  // complex64
    {},  // complex128
    float_row(DType::bfloat16, {.exponent_bits = 8, .mantissa_bits = 7, .bias = 127}),
    float_row(DType::float8_e4m3fn,
              {.exponent_bits = 4, .mantissa_bits = 3, .bias = 7, .nonfinite = NonFinite::nan_all_ones}),
    float_row(DType::float8_e4m3fnuz,
              {.exponent_bits = 4, .mantissa_bits = 3, .bias = 8, .nonfinite = NonFinite::nan_negative_zero}),
    float_row(DType::float8_e5m2, {.exponent_bits = 5, .mantissa_bits = 2, .bias = 15}),
    float_row(DType::float8_e5m2fnuz,
              {.exponent_bits = 5, .mantissa_bits = 2, .bias = 16, .nonfinite = NonFinite::nan_negative_zero}),
    integer_row(DType::uint4, 4, false),
    integer_row(DType::int4, 4, true),
    float_row(DType::float4_e2m1fn, {.exponent_bits = 2, .mantissa_bits = 1, .bias = 1, .nonfinite = NonFinite::none}),
    float_row(DType::float8_e8m0fnu, {.exponent_bits = 8,
                                      .mantissa_bits = 0,
                                      .bias = 127,
                                      .nonfinite = NonFinite::nan_all_ones,
                                      .has_sign = false,
                                      .has_zero = false}),
    integer_row(DType::uint2, 2, false),
    integer_row(DType::int2, 2, true),
    float_row(DType::float6_e2m3fn, {.exponent_bits = 2, .mantissa_bits = 3, .bias = 1, .nonfinite = NonFinite::none}),
    float_row(DType::float6_e3m2fn, {.exponent_bits = 3, .mantissa_bits = 2, .bias = 3, .nonfinite = NonFinite::none}),
    integer_row(DType::uint1, 1, false),
    float_row(DType::float8_e4m3, {.exponent_bits = 4, .mantissa_bits = 3, .bias = 7}),
    float_row(DType::float8_e3m4, {.exponent_bits = 3, .mantissa_bits = 4, .bias = 3}),
    float_row(DType::float8_e4m3b11fnuz,
              {.exponent_bits = 4, .mantissa_bits = 3, .bias = 11, .nonfinite = NonFinite::nan_negative_zero}),
    float_row(DType::float8_e5m3fnu, {.exponent_bits = 5,
                                      .mantissa_bits = 3,
                                      .bias = 15,
                                      .nonfinite = NonFinite::nan_all_ones,
                                      .has_sign = false}),  // 0 to 114688
    float_row(DType::binary8p4se,
              {.exponent_bits = 4, .mantissa_bits = 3, .bias = 8, .nonfinite = NonFinite::nan_and_infinity}),
    float_row(DType::binary8p3se,
              {.exponent_bits = 5, .mantissa_bits = 2, .bias = 16, .nonfinite = NonFinite::nan_and_infinity}),
};
inline constexpr int type_row_count = static_cast<int>(sizeof(type_rows) / sizeof(TypeRow));

// The place of a number in type_rows; 0 for numbers of no type.
constexpr int place_of(DType dtype) noexcept {
  const auto code = static_cast<std::int32_t>(dtype);
  const int place = code < first_own_code ? code : code - first_own_code + onnx_code_limit;
  const bool is_own = code >= first_own_code;
  return place > 0 && place < type_row_count && (place >= onnx_code_limit) == is_own ? place : 0;
}

// The row of any number; that of `undefined`, empty, if no type has it.
constexpr const TypeRow& type_row(DType dtype) noexcept { return type_rows[place_of(dtype)]; }

constexpr bool rows_are_in_order() {
  for (int place = 1; place < type_row_count; ++place) {
    const DType id = type_rows[place].id;
    if (id != DType::undefined && place_of(id) != place) return false;
  }
  return true;
}
static_assert(rows_are_in_order());

// Precondition: float64 has the power.
constexpr double power_of_two(int exponent) noexcept {
  return std::bit_cast<double>(exponent < -1022 ? std::uint64_t{1} << (exponent + 1074)
                                                : static_cast<std::uint64_t>(exponent + 1023) << 52);
}

}  // namespace detail

// Bits of one packed element: 64 ... 1; 8 for bool; 0 for string and unknown numbers.
[[nodiscard]] constexpr int bit_width(DType dtype) noexcept { return detail::type_row(dtype).bits; }
// `text` for string and unknown numbers.
[[nodiscard]] constexpr Family family(DType dtype) noexcept { return detail::type_row(dtype).family; }
[[nodiscard]] constexpr bool is_signed(DType dtype) noexcept { return detail::type_row(dtype).is_signed; }

// Bytes of `count` packed elements: ceil(count * bits / 8). SIZE_MAX on overflow; 0 for string.
[[nodiscard]] constexpr std::size_t storage_bytes(DType dtype, std::size_t count) noexcept {
  const auto bits = static_cast<std::size_t>(bit_width(dtype));
  if (bits < 8) return count / 8 * bits + (count % 8 * bits + 7) / 8;
  return count > SIZE_MAX / (bits / 8) ? SIZE_MAX : count * (bits / 8);
}

// The format of a floating-point type; an empty one for other types.
[[nodiscard]] constexpr FloatFormat float_format(DType dtype) noexcept { return detail::type_row(dtype).format; }

// What the numbers of a type are.
struct NumberFacts {
  int bits = 0;           // of one packed element
  int exponent_bits = 0;  // floating only
  int mantissa_bits = 0;  // floating only
  int bias = 0;           // floating only
  bool is_signed = false;
  bool has_infinity = false;
  bool has_nan = false;
  bool has_negative_zero = false;
  double lowest = 0.0;             // most negative finite value
  double largest = 0.0;            // most positive finite value, in 64-bit integers rounded to 2^63 and 2^64
  double smallest_positive = 0.0;  // smallest value above zero
  double smallest_normal = 0.0;    // floating only: smallest value above zero that has all mantissa bits
  double epsilon = 0.0;            // floating only: distance from 1 to the next number, 2^-mantissa_bits
};

// The facts of any number: all zero if no type has it, or strings. number_facts(DType::float16).largest is 65504.
[[nodiscard]] constexpr NumberFacts number_facts(DType dtype) noexcept {
  const detail::TypeRow& type = detail::type_row(dtype);
  NumberFacts facts;
  facts.bits = type.bits;
  facts.is_signed = type.is_signed;
  if (type.family == Family::boolean) facts.largest = facts.smallest_positive = 1.0;
  if (type.family == Family::integer) {
    const double end = detail::power_of_two(type.bits - (type.is_signed ? 1 : 0));
    facts.lowest = type.is_signed ? -end : 0.0;
    facts.largest = end - (type.bits < 64 ? 1.0 : 0.0);
    facts.smallest_positive = 1.0;
  }
  if (type.family == Family::floating) {
    const FloatFormat& format = type.format;
    facts.exponent_bits = format.exponent_bits;
    facts.mantissa_bits = format.mantissa_bits;
    facts.bias = format.bias;
    facts.has_infinity = format.has_infinity();
    facts.has_nan = format.has_nan();
    facts.has_negative_zero = format.has_negative_zero();
    facts.epsilon = detail::power_of_two(-format.mantissa_bits);
    facts.smallest_normal = detail::power_of_two(format.min_exponent());
    facts.smallest_positive =
        detail::power_of_two(format.min_exponent() - (format.has_zero ? format.mantissa_bits : 0));
    const std::uint64_t mantissa = format.largest_code() & ((std::uint64_t{1} << format.mantissa_bits) - 1);
    facts.largest = (1.0 + static_cast<double>(mantissa) * facts.epsilon) * detail::power_of_two(format.max_exponent());
    facts.lowest = format.has_sign ? -facts.largest : format.has_zero ? 0.0 : facts.smallest_normal;
  }
  return facts;
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
