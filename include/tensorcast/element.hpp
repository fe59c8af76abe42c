// SPDX-License-Identifier: Apache-2.0
// Component core. One element as a C++ type: tensorcast::bfloat16, float8_e4m3fn, int4 and so on, and which DType a
// C++ type has. Header-only and constexpr: a program that includes this alone links no library.
#pragma once

#include <bit>
#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <typeindex>  // the smallest header that has std::hash

#include "tensorcast/element_code.hpp"
#include "tensorcast/export.hpp"
#include "tensorcast/facts.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {

namespace detail {

// Floating-point types of 16 bits that a compiler has: _Float16, __bf16, std::float16_t, std::bfloat16_t.
template <class T>
inline constexpr DType native_dtype = DType::undefined;
#if defined(__FLT16_MAX__) && ((defined(__SSE2__) && (defined(__clang__) || __GNUC__ >= 12)) || \
                               (defined(__aarch64__) && (defined(__clang__) || __GNUC__ >= 13)))
template <>
inline constexpr DType native_dtype<_Float16> = DType::float16;
#elif defined(__STDCPP_FLOAT16_T__)
template <>
inline constexpr DType native_dtype<decltype(0.0f16)> = DType::float16;
#endif
#if defined(__BFLT16_MAX__) || defined(__ARM_BF16_FORMAT_ALTERNATIVE) || \
    (defined(__clang__) && __clang_major__ >= 16 && defined(__SSE2__))
template <>
inline constexpr DType native_dtype<__bf16> = DType::bfloat16;
#elif defined(__STDCPP_BFLOAT16_T__)
template <>
inline constexpr DType native_dtype<decltype(0.0bf16)> = DType::bfloat16;
#endif

template <class T>
concept NativeHalf = (native_dtype<T> != DType::undefined);
template <class T>
concept Integer = std::integral<T> && (sizeof(T) <= 8);
template <class T>
concept WholeNumber = Integer<T> && !std::same_as<T, bool>;

}  // namespace detail

template <DType dtype_, bool is_signed_>
class IntegerElement;

// A number of a floating-point type of at most 16 bits. Types below 8 bits have their code in the low bits of a byte:
// arrays of them are not packed, see PackedSpan.
//
// Every conversion to the type rounds once, as cast() with default options does: to the nearest, ties to even, and
// float8, float6 and float4 saturate. Loops of conversions vectorize; cast() of whole arrays is faster still.
template <DType dtype_, class Bits>
class FloatElement {
 public:
  using bits_type = Bits;
  static constexpr DType dtype = dtype_;

  constexpr FloatElement() noexcept = default;  // code 0
  constexpr explicit FloatElement(float value) noexcept : bits_(code_of(value)) {}
  constexpr explicit FloatElement(double value) noexcept : bits_(code_of(value)) {}
  constexpr explicit FloatElement(long double value) noexcept : bits_(code_of(detail::to_odd(value))) {}
  template <detail::Integer T>
  constexpr explicit FloatElement(T value) noexcept : bits_(code_of(detail::real_of_integer(value))) {}
  template <DType other, class OtherBits>
    requires(other != dtype_)
  constexpr explicit FloatElement(FloatElement<other, OtherBits> value) noexcept
      : FloatElement(static_cast<float>(value)) {}
  template <DType other, bool is_signed_>
  constexpr explicit FloatElement(IntegerElement<other, is_signed_> value) noexcept
      : FloatElement(static_cast<float>(value)) {}
  template <detail::NativeHalf T>
  constexpr explicit FloatElement(T value) noexcept : FloatElement(from_native(value)) {}

  [[nodiscard]] static constexpr FloatElement from_bits(Bits bits) noexcept {
    FloatElement element;
    element.bits_ = static_cast<Bits>(bits & mask);
    return element;
  }
  [[nodiscard]] constexpr Bits bits() const noexcept { return bits_; }

  // Exact.
  constexpr explicit operator double() const noexcept { return detail::decode_element<dtype_, double>(bits_); }
  constexpr explicit operator float() const noexcept { return detail::decode_element<dtype_, float>(bits_); }
  constexpr explicit operator long double() const noexcept { return static_cast<double>(*this); }
  // As cast() with default options: the low bits of the integer part, 0 of NaN and infinity.
  template <detail::WholeNumber T>
  constexpr explicit operator T() const noexcept {
    return static_cast<T>(detail::integer_part(static_cast<double>(*this)));
  }
  // As cast(): false for 0 and -0, true for NaN.
  constexpr explicit operator bool() const noexcept { return !format.has_zero || (bits_ & ~sign) != 0 || isnan(*this); }
  // Exact, if it is the same type; else rounded.
  template <detail::NativeHalf T>
  constexpr explicit operator T() const noexcept {
    return std::bit_cast<T>(FloatElement<detail::native_dtype<T>, std::uint16_t>(*this).bits());
  }

  // Compares numbers: NaN differs from itself and has no order, 0 equals -0.
  friend constexpr bool operator==(FloatElement a, FloatElement b) noexcept {
    return detail::are_equal<dtype_>(a.bits_, b.bits_);
  }
  friend constexpr std::partial_ordering operator<=>(FloatElement a, FloatElement b) noexcept {
    if (isnan(a) || isnan(b)) return std::partial_ordering::unordered;
    return detail::order_of<dtype_>(a.bits_) <=> detail::order_of<dtype_>(b.bits_);
  }

  // Changes the sign, of NaN too. In a type without sign, the code that a cast makes of the negative number.
  friend constexpr FloatElement operator-(FloatElement x) noexcept {
    if constexpr (!format.has_sign) return isnan(x) ? x : FloatElement(-static_cast<float>(x));
    return has_both_signs(x) ? from_bits(static_cast<Bits>(x.bits_ ^ sign)) : x;
  }
  friend constexpr FloatElement abs(FloatElement x) noexcept {
    return has_both_signs(x) ? from_bits(static_cast<Bits>(x.bits_ & ~sign)) : x;
  }
  friend constexpr bool isnan(FloatElement x) noexcept { return detail::is_nan_code<dtype_>(x.bits_); }
  friend constexpr bool isinf(FloatElement x) noexcept {
    return format.has_infinity() && (x.bits_ & ~sign) == format.largest_code() + 1;
  }
  friend constexpr bool isfinite(FloatElement x) noexcept { return !isnan(x) && !isinf(x); }
  friend constexpr bool signbit(FloatElement x) noexcept { return (x.bits_ & sign) != 0; }

 private:
  static constexpr FloatFormat format = float_format(dtype_);
  static constexpr Bits mask = static_cast<Bits>((1u << format.bits()) - 1);
  static constexpr unsigned sign = format.has_sign ? 1u << (format.bits() - 1) : 0;

  template <class Real>
  static constexpr Bits code_of(Real value) noexcept {
    return static_cast<Bits>(detail::encode_element<dtype_>(value));
  }
  template <detail::NativeHalf T>
  static constexpr auto from_native(T value) noexcept {
    return FloatElement<detail::native_dtype<T>, std::uint16_t>::from_bits(std::bit_cast<std::uint16_t>(value));
  }
  // Reports whether the code with the other sign is of the number with the other sign.
  static constexpr bool has_both_signs(FloatElement x) noexcept {
    return format.has_negative_zero() || (x.bits_ & ~sign) != 0;
  }

  Bits bits_ = 0;
};

using float16 = FloatElement<DType::float16, std::uint16_t>;
using bfloat16 = FloatElement<DType::bfloat16, std::uint16_t>;
using float8_e4m3fn = FloatElement<DType::float8_e4m3fn, std::uint8_t>;
using float8_e4m3fnuz = FloatElement<DType::float8_e4m3fnuz, std::uint8_t>;
using float8_e5m2 = FloatElement<DType::float8_e5m2, std::uint8_t>;
using float8_e5m2fnuz = FloatElement<DType::float8_e5m2fnuz, std::uint8_t>;
using float8_e8m0fnu = FloatElement<DType::float8_e8m0fnu, std::uint8_t>;
using float8_e4m3 = FloatElement<DType::float8_e4m3, std::uint8_t>;
using float8_e3m4 = FloatElement<DType::float8_e3m4, std::uint8_t>;
using float8_e4m3b11fnuz = FloatElement<DType::float8_e4m3b11fnuz, std::uint8_t>;
using float8_e5m3fnu = FloatElement<DType::float8_e5m3fnu, std::uint8_t>;
using binary8p4se = FloatElement<DType::binary8p4se, std::uint8_t>;
using binary8p3se = FloatElement<DType::binary8p3se, std::uint8_t>;
using float6_e2m3fn = FloatElement<DType::float6_e2m3fn, std::uint8_t>;
using float6_e3m2fn = FloatElement<DType::float6_e3m2fn, std::uint8_t>;
using float4_e2m1fn = FloatElement<DType::float4_e2m1fn, std::uint8_t>;

// An integer of 4 or 2 bits, whose code is in the low bits of a byte.
//
// Conversions to the type keep the low bits of the integer part, as cast() with default options does.
template <DType dtype_, bool is_signed_>
class IntegerElement {
 public:
  using bits_type = std::uint8_t;
  static constexpr DType dtype = dtype_;

  constexpr IntegerElement() noexcept = default;  // 0
  template <detail::Integer T>
  constexpr explicit IntegerElement(T value) noexcept
      : bits_(static_cast<std::uint8_t>(static_cast<unsigned>(value) & mask)) {}
  constexpr explicit IntegerElement(double value) noexcept
      : bits_(static_cast<std::uint8_t>(detail::integer_part(value) & mask)) {}
  constexpr explicit IntegerElement(float value) noexcept : IntegerElement(static_cast<double>(value)) {}
  template <DType other, class OtherBits>
  constexpr explicit IntegerElement(FloatElement<other, OtherBits> value) noexcept
      : IntegerElement(static_cast<double>(value)) {}
  template <DType other, bool other_is_signed>
    requires(other != dtype_)
  constexpr explicit IntegerElement(IntegerElement<other, other_is_signed> value) noexcept
      : IntegerElement(static_cast<int>(value)) {}
  template <detail::NativeHalf T>
  constexpr explicit IntegerElement(T value) noexcept
      : IntegerElement(FloatElement<detail::native_dtype<T>, std::uint16_t>(value)) {}

  [[nodiscard]] static constexpr IntegerElement from_bits(std::uint8_t bits) noexcept {
    return IntegerElement(static_cast<int>(bits));
  }
  [[nodiscard]] constexpr std::uint8_t bits() const noexcept { return bits_; }

  template <class T>
    requires(std::is_arithmetic_v<T> && !detail::NativeHalf<T>)
  constexpr explicit operator T() const noexcept {
    return static_cast<T>(number());
  }
  template <detail::NativeHalf T>
  constexpr explicit operator T() const noexcept {
    return static_cast<T>(FloatElement<detail::native_dtype<T>, std::uint16_t>(number()));
  }

  friend constexpr bool operator==(IntegerElement, IntegerElement) noexcept = default;
  friend constexpr std::strong_ordering operator<=>(IntegerElement a, IntegerElement b) noexcept {
    return a.number() <=> b.number();
  }

  // Wrap, as the low bits are kept: -int4(-8) is int4(-8).
  friend constexpr IntegerElement operator-(IntegerElement x) noexcept { return IntegerElement(-x.number()); }
  friend constexpr IntegerElement abs(IntegerElement x) noexcept { return signbit(x) ? -x : x; }
  friend constexpr bool isnan(IntegerElement) noexcept { return false; }
  friend constexpr bool isinf(IntegerElement) noexcept { return false; }
  friend constexpr bool isfinite(IntegerElement) noexcept { return true; }
  friend constexpr bool signbit(IntegerElement x) noexcept { return x.number() < 0; }

 private:
  static constexpr unsigned mask = (1u << bit_width(dtype_)) - 1;

  [[nodiscard]] constexpr int number() const noexcept {
    constexpr int range = 1 << bit_width(dtype_);
    return is_signed_ && bits_ >= range / 2 ? bits_ - range : bits_;
  }

  std::uint8_t bits_ = 0;
};

using int4 = IntegerElement<DType::int4, true>;
using int2 = IntegerElement<DType::int2, true>;
using uint4 = IntegerElement<DType::uint4, false>;
using uint2 = IntegerElement<DType::uint2, false>;

// Which DType a C++ type has. Open: for a type with the same bits as one of ours,
//
//   template <> struct tensorcast::element_traits<c10::BFloat16> {
//     static constexpr tensorcast::DType dtype = tensorcast::DType::bfloat16;
//   };
template <class T>
struct element_traits {};

template <DType dtype_, class Bits>
struct element_traits<FloatElement<dtype_, Bits>> {
  static constexpr DType dtype = dtype_;
};
template <DType dtype_, bool is_signed_>
struct element_traits<IntegerElement<dtype_, is_signed_>> {
  static constexpr DType dtype = dtype_;
};
template <>
struct element_traits<float> {
  static constexpr DType dtype = DType::float32;
};
template <>
struct element_traits<double> {
  static constexpr DType dtype = DType::float64;
};
template <>
struct element_traits<bool> {
  static constexpr DType dtype = DType::boolean;
};
// All integers of the language, such as long and long long; characters are none.
template <class T>
  requires(std::integral<T> && !std::same_as<T, bool> && !std::same_as<T, char> && !std::same_as<T, wchar_t> &&
           !std::same_as<T, char8_t> && !std::same_as<T, char16_t> && !std::same_as<T, char32_t> && sizeof(T) <= 8)
struct element_traits<T> {
  static constexpr DType dtype = [] {
    if constexpr (sizeof(T) == 1) return std::is_signed_v<T> ? DType::int8 : DType::uint8;
    if constexpr (sizeof(T) == 2) return std::is_signed_v<T> ? DType::int16 : DType::uint16;
    if constexpr (sizeof(T) == 4) return std::is_signed_v<T> ? DType::int32 : DType::uint32;
    if constexpr (sizeof(T) == 8) return std::is_signed_v<T> ? DType::int64 : DType::uint64;
  }();
};
template <detail::NativeHalf T>
struct element_traits<T> {
  static constexpr DType dtype = detail::native_dtype<T>;
};

// A C++ type that stands for the elements of a DType: trivially copyable, and as wide as its DType or, below 8 bits, a
// byte.
template <class T>
concept Element =
    std::is_trivially_copyable_v<T> &&
    requires {
      { element_traits<T>::dtype } -> std::convertible_to<DType>;
    } &&
    sizeof(T) * 8 ==
        static_cast<std::size_t>(bit_width(element_traits<T>::dtype) < 8 ? 8 : bit_width(element_traits<T>::dtype));

template <class T>
  requires Element<std::remove_cv_t<T>>
inline constexpr DType dtype_of = element_traits<std::remove_cv_t<T>>::dtype;

// Below 8 bits: the elements of an array are packed, low bits first.
template <class T>
concept PackedElement = Element<T> && (bit_width(element_traits<T>::dtype) < 8);
template <class T>
concept WholeElement = Element<T> && (bit_width(element_traits<T>::dtype) >= 8);

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast

template <tensorcast::DType dtype, class Bits>
struct std::hash<tensorcast::FloatElement<dtype, Bits>> {
  // Of numbers: 0 and -0 have the same.
  constexpr std::size_t operator()(tensorcast::FloatElement<dtype, Bits> x) const noexcept {
    return static_cast<std::size_t>(tensorcast::detail::order_of<dtype>(x.bits()));
  }
};
template <tensorcast::DType dtype, bool is_signed_>
struct std::hash<tensorcast::IntegerElement<dtype, is_signed_>> {
  constexpr std::size_t operator()(tensorcast::IntegerElement<dtype, is_signed_> x) const noexcept { return x.bits(); }
};

template <tensorcast::DType dtype, class Bits>
class std::numeric_limits<tensorcast::FloatElement<dtype, Bits>> {
  using Element = tensorcast::FloatElement<dtype, Bits>;
  static constexpr tensorcast::FloatFormat format = tensorcast::float_format(dtype);
  static constexpr tensorcast::NumberFacts facts = tensorcast::number_facts(dtype);
  // Decimal digits of numbers of so many bits, rounded down.
  static constexpr int decimal(int bits) { return bits * 30103 / 100000; }

 public:
  static constexpr bool is_specialized = true;
  static constexpr bool is_signed = format.has_sign;
  static constexpr bool is_integer = false;
  static constexpr bool is_exact = false;
  static constexpr bool has_infinity = format.has_infinity();
  static constexpr bool has_quiet_NaN = format.has_nan();
  static constexpr bool has_signaling_NaN = format.nonfinite == tensorcast::NonFinite::ieee;
  static constexpr std::float_denorm_style has_denorm = format.has_zero ? std::denorm_present : std::denorm_absent;
  static constexpr bool has_denorm_loss = false;
  static constexpr std::float_round_style round_style =
      format.has_zero ? std::round_to_nearest : std::round_toward_infinity;
  static constexpr bool is_iec559 = format.nonfinite == tensorcast::NonFinite::ieee;
  static constexpr bool is_bounded = true;
  static constexpr bool is_modulo = false;
  static constexpr int digits = format.mantissa_bits + 1;
  static constexpr int digits10 = decimal(digits - 1);
  static constexpr int max_digits10 = 2 + decimal(digits);
  static constexpr int radix = 2;
  static constexpr int min_exponent = format.min_exponent() + 1;
  static constexpr int min_exponent10 = -decimal(-format.min_exponent());
  static constexpr int max_exponent = format.max_exponent() + 1;
  static constexpr int max_exponent10 = [] {
    int exponent = 0;
    for (double power = 10.0; power <= facts.largest; power *= 10.0) ++exponent;
    return exponent;
  }();
  static constexpr bool traps = false;
  static constexpr bool tinyness_before = false;

  static constexpr Element min() noexcept { return Element(facts.smallest_normal); }
  static constexpr Element lowest() noexcept { return Element(facts.lowest); }
  static constexpr Element max() noexcept { return Element(facts.largest); }
  static constexpr Element epsilon() noexcept { return Element(facts.epsilon); }
  static constexpr Element round_error() noexcept { return Element(0.5); }
  static constexpr Element denorm_min() noexcept { return Element(facts.smallest_positive); }
  // In a type that lacks it, the code that a cast makes of infinity: the largest number.
  static constexpr Element infinity() noexcept {
    return has_infinity ? code(format.largest_code() + 1) : Element(std::numeric_limits<float>::infinity());
  }
  // In a type that lacks it, the code that a cast makes of NaN: -0.
  static constexpr Element quiet_NaN() noexcept { return Element(std::numeric_limits<float>::quiet_NaN()); }
  static constexpr Element signaling_NaN() noexcept {
    return has_signaling_NaN ? code(format.largest_code() + 1 + (1u << (format.mantissa_bits - 2))) : quiet_NaN();
  }

 private:
  static constexpr Element code(std::uint64_t bits) { return Element::from_bits(static_cast<Bits>(bits)); }
};

template <tensorcast::DType dtype, bool is_signed_>
class std::numeric_limits<tensorcast::IntegerElement<dtype, is_signed_>> {
  using Element = tensorcast::IntegerElement<dtype, is_signed_>;

 public:
  static constexpr bool is_specialized = true;
  static constexpr bool is_signed = is_signed_;
  static constexpr bool is_integer = true;
  static constexpr bool is_exact = true;
  static constexpr bool has_infinity = false;
  static constexpr bool has_quiet_NaN = false;
  static constexpr bool has_signaling_NaN = false;
  static constexpr std::float_denorm_style has_denorm = std::denorm_absent;
  static constexpr bool has_denorm_loss = false;
  static constexpr std::float_round_style round_style = std::round_toward_zero;
  static constexpr bool is_iec559 = false;
  static constexpr bool is_bounded = true;
  static constexpr bool is_modulo = !is_signed_;
  static constexpr int digits = tensorcast::bit_width(dtype) - (is_signed_ ? 1 : 0);
  static constexpr int digits10 = digits * 30103 / 100000;
  static constexpr int max_digits10 = 0;
  static constexpr int radix = 2;
  static constexpr int min_exponent = 0;
  static constexpr int min_exponent10 = 0;
  static constexpr int max_exponent = 0;
  static constexpr int max_exponent10 = 0;
  static constexpr bool traps = false;
  static constexpr bool tinyness_before = false;

  static constexpr Element min() noexcept { return Element(is_signed_ ? -(1 << digits) : 0); }
  static constexpr Element lowest() noexcept { return min(); }
  static constexpr Element max() noexcept { return Element((1 << digits) - 1); }
  static constexpr Element epsilon() noexcept { return {}; }
  static constexpr Element round_error() noexcept { return {}; }
  static constexpr Element infinity() noexcept { return {}; }
  static constexpr Element quiet_NaN() noexcept { return {}; }
  static constexpr Element signaling_NaN() noexcept { return {}; }
  static constexpr Element denorm_min() noexcept { return {}; }
};
