// SPDX-License-Identifier: Apache-2.0
// The ranges of types as constants, and whether a conversion can leave them.
#pragma once

#include <bit>
#include <cstdint>

#include "dtype/dtype_table.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {

// Precondition: the power is a normal float64.
[[nodiscard]] constexpr double power_of_two(int exponent) noexcept {
  return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52);
}

// The largest and the lowest finite value. Those of 64-bit integers are rounded to 2^63 and 2^64.
[[nodiscard]] constexpr double largest_of(const DTypeRow& type) noexcept {
  if (type.family == Family::boolean) return 1.0;
  if (type.family == Family::integer) {
    return power_of_two(type.bits - (type.is_signed ? 1 : 0)) - (type.bits < 64 ? 1.0 : 0.0);
  }
  const FloatFormat& format = type.format;
  const std::uint64_t mantissa = format.largest_code() & ((std::uint64_t{1} << format.mantissa_bits) - 1);
  const double significand = 1.0 + static_cast<double>(mantissa) * power_of_two(-format.mantissa_bits);
  return significand * power_of_two(format.max_exponent());
}
[[nodiscard]] constexpr double lowest_of(const DTypeRow& type) noexcept {
  if (type.family == Family::integer) return type.is_signed ? -power_of_two(type.bits - 1) : 0.0;
  if (type.family != Family::floating) return 0.0;
  if (type.format.has_sign) return -largest_of(type);
  return type.format.has_zero ? 0.0 : power_of_two(type.format.min_exponent());
}

// Reports whether a value of `from` may be out of the range of `to`, infinities included (D6, D7). Without a scale.
[[nodiscard]] constexpr bool may_be_out_of_range(const DTypeRow& from, const DTypeRow& to) noexcept {
  const bool has_range = to.family == Family::integer || to.family == Family::floating;
  if (!has_range || from.id == to.id) return false;
  if (from.family == Family::text || !(to.family == Family::integer || to.format.has_zero)) return true;
  const bool has_infinity = from.family == Family::floating && from.format.has_infinity();
  if (has_infinity && !(to.family == Family::floating && to.format.has_infinity())) return true;
  return lowest_of(from) < lowest_of(to) || largest_of(from) > largest_of(to);
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
