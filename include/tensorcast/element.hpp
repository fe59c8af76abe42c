// SPDX-License-Identifier: Apache-2.0
// One element as a C++ type: tensorcast::bfloat16, float8_e4m3fn, int4 and so on, and which DType a C++ type has.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "tensorcast/dtype.hpp"
#include "tensorcast/export.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {

namespace detail {

// The value of a code of a type of at most 16 bits; exact.
[[nodiscard]] TENSORCAST_API double decode_element(DType from, std::uint32_t code) noexcept;
// The code of `value` in a type of at most 16 bits, as cast() with default options converts it.
[[nodiscard]] TENSORCAST_API std::uint32_t encode_element(double value, DType to) noexcept;

}  // namespace detail

// A number of a floating-point type of at most 16 bits. Types below 8 bits have their code in the low bits of a byte:
// arrays of them are not packed, see PackedSpan.
template <DType dtype_, class Bits>
class FloatElement {
 public:
  using bits_type = Bits;
  static constexpr DType dtype = dtype_;

  constexpr FloatElement() noexcept = default;  // code 0
  // Rounded once, as cast() with default options does.
  explicit FloatElement(double value) noexcept : bits_(static_cast<Bits>(detail::encode_element(value, dtype_))) {}

  [[nodiscard]] static constexpr FloatElement from_bits(Bits bits) noexcept {
    FloatElement element;
    element.bits_ = static_cast<Bits>(bits & mask);
    return element;
  }
  [[nodiscard]] constexpr Bits bits() const noexcept { return bits_; }

  // Exact.
  explicit operator double() const noexcept { return detail::decode_element(dtype_, bits_); }
  explicit operator float() const noexcept { return static_cast<float>(detail::decode_element(dtype_, bits_)); }

  // Compares numbers: NaN differs from itself, 0 equals -0.
  friend bool operator==(FloatElement a, FloatElement b) noexcept {
    return static_cast<double>(a) == static_cast<double>(b);
  }

 private:
  static constexpr Bits mask = static_cast<Bits>((1u << bit_width(dtype_)) - 1);

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
template <DType dtype_, bool is_signed_>
class IntegerElement {
 public:
  using bits_type = std::uint8_t;
  static constexpr DType dtype = dtype_;

  constexpr IntegerElement() noexcept = default;  // 0
  // Keeps the low bits, as cast() with default options does.
  explicit constexpr IntegerElement(int value) noexcept
      : bits_(static_cast<std::uint8_t>(static_cast<unsigned>(value) & mask)) {}

  [[nodiscard]] static constexpr IntegerElement from_bits(std::uint8_t bits) noexcept {
    return IntegerElement(static_cast<int>(bits));
  }
  [[nodiscard]] constexpr std::uint8_t bits() const noexcept { return bits_; }

  explicit constexpr operator int() const noexcept {
    constexpr int range = 1 << bit_width(dtype_);
    return is_signed_ && bits_ >= range / 2 ? bits_ - range : bits_;
  }

  friend constexpr bool operator==(IntegerElement, IntegerElement) noexcept = default;

 private:
  static constexpr unsigned mask = (1u << bit_width(dtype_)) - 1;

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
#if defined(__STDCPP_FLOAT16_T__)
template <>
struct element_traits<decltype(0.0f16)> {
  static constexpr DType dtype = DType::float16;
};
#endif
#if defined(__STDCPP_BFLOAT16_T__)
template <>
struct element_traits<decltype(0.0bf16)> {
  static constexpr DType dtype = DType::bfloat16;
};
#endif

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
concept PackedElement = Element<T> && bit_width(element_traits<T>::dtype) < 8;
template <class T>
concept WholeElement = Element<T> && bit_width(element_traits<T>::dtype) >= 8;

// A view of packed elements, T being int4, const float4_e2m1fn and the like. Elements are read and written by value.
template <class T>
  requires PackedElement<std::remove_cv_t<T>>
class PackedSpan {
 public:
  using value_type = std::remove_cv_t<T>;
  using byte_type = std::conditional_t<std::is_const_v<T>, const std::byte, std::byte>;
  static constexpr DType dtype = dtype_of<T>;

  constexpr PackedSpan() noexcept = default;
  // Precondition: `data` has storage_bytes(dtype, count) bytes.
  constexpr PackedSpan(byte_type* data, std::size_t count) noexcept : data_(data), count_(count) {}
  // All elements that fit `bytes`.
  constexpr explicit PackedSpan(std::span<byte_type> bytes) noexcept
      : PackedSpan(bytes.data(), bytes.size() * 8 / element_bits) {}
  // A read-only view of `other`.
  constexpr PackedSpan(const PackedSpan<value_type>& other) noexcept
    requires std::is_const_v<T>
      : data_(other.bytes().data()), count_(other.size()) {}

  [[nodiscard]] constexpr std::size_t size() const noexcept { return count_; }
  [[nodiscard]] constexpr bool empty() const noexcept { return count_ == 0; }
  [[nodiscard]] constexpr std::span<byte_type> bytes() const noexcept { return {data_, storage_bytes(dtype, count_)}; }

  // Precondition: index < size().
  [[nodiscard]] constexpr value_type operator[](std::size_t index) const noexcept {
    const std::size_t byte = index * element_bits / 8, shift = index * element_bits % 8;
    unsigned code = std::to_integer<unsigned>(data_[byte]) >> shift;
    if (shift + element_bits > 8) code |= std::to_integer<unsigned>(data_[byte + 1]) << (8 - shift);
    return value_type::from_bits(static_cast<std::uint8_t>(code & mask));
  }
  // Precondition: index < size().
  constexpr void set(std::size_t index, value_type value) const noexcept
    requires(!std::is_const_v<T>)
  {
    const std::size_t byte = index * element_bits / 8, shift = index * element_bits % 8;
    const unsigned code = value.bits();
    data_[byte] = (data_[byte] & ~static_cast<std::byte>(mask << shift)) | static_cast<std::byte>(code << shift);
    if (shift + element_bits <= 8) return;
    data_[byte + 1] =
        (data_[byte + 1] & ~static_cast<std::byte>(mask >> (8 - shift))) | static_cast<std::byte>(code >> (8 - shift));
  }

 private:
  static constexpr std::size_t element_bits = static_cast<std::size_t>(bit_width(dtype));
  static constexpr unsigned mask = (1u << element_bits) - 1;

  byte_type* data_ = nullptr;
  std::size_t count_ = 0;
};

// Packed elements, owned.
template <PackedElement T>
class PackedVector {
 public:
  using value_type = T;
  static constexpr DType dtype = dtype_of<T>;

  PackedVector() = default;
  explicit PackedVector(std::size_t count) : bytes_(storage_bytes(dtype, count)), count_(count) {}
  PackedVector(const PackedVector&) = default;
  // Leaves `other` empty.
  PackedVector(PackedVector&& other) noexcept
      : bytes_(std::exchange(other.bytes_, {})), count_(std::exchange(other.count_, 0)) {}
  PackedVector& operator=(const PackedVector&) = default;
  PackedVector& operator=(PackedVector&& other) noexcept {
    PackedVector taken(std::move(other));
    bytes_.swap(taken.bytes_);
    std::swap(count_, taken.count_);
    return *this;
  }
  ~PackedVector() = default;

  [[nodiscard]] std::size_t size() const noexcept { return count_; }
  [[nodiscard]] bool empty() const noexcept { return count_ == 0; }
  [[nodiscard]] T operator[](std::size_t index) const noexcept { return span()[index]; }
  void set(std::size_t index, T value) noexcept { span().set(index, value); }

  [[nodiscard]] PackedSpan<T> span() & noexcept TENSORCAST_LIFETIMEBOUND { return {bytes_.data(), count_}; }
  [[nodiscard]] PackedSpan<const T> span() const& noexcept TENSORCAST_LIFETIMEBOUND { return {bytes_.data(), count_}; }
  PackedSpan<const T> span() const&& = delete;  // of a temporary

 private:
  std::vector<std::byte> bytes_;
  std::size_t count_ = 0;
};

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
