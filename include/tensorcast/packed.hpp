// SPDX-License-Identifier: Apache-2.0
// Component core. Arrays of elements below 8 bits, packed as casts read and write them: low bits first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "tensorcast/element.hpp"
#include "tensorcast/export.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {

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
