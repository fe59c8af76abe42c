// SPDX-License-Identifier: Apache-2.0
// The ranges of types as constants, and whether a conversion can leave them.
#pragma once

#include "dtype/dtype_table.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {

// The largest and the lowest finite value. Those of 64-bit integers are rounded to 2^63 and 2^64.
[[nodiscard]] constexpr double largest_of(const DTypeRow& type) noexcept { return number_facts(type.id).largest; }
[[nodiscard]] constexpr double lowest_of(const DTypeRow& type) noexcept { return number_facts(type.id).lowest; }

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
