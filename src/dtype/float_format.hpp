// SPDX-License-Identifier: Apache-2.0
// The facts of one floating-point format, from which codecs and kernels derive everything else.
#pragma once

#include <cstdint>

#include "tensorcast/export.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {

// Which codes are not finite numbers.
enum class NonFinite : std::uint8_t {
  ieee,               // exponent all ones: infinity, and NaN where the mantissa is not zero
  nan_all_ones,       // only the code (or, with a sign, the two codes) of all ones is NaN; no infinity
  nan_negative_zero,  // only the code of negative zero is NaN; no infinity, no negative zero
  nan_and_infinity,   // P3109's: the code of negative zero is NaN, the codes of all ones but the sign are infinities
  none,               // every code is a finite number
};

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

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
