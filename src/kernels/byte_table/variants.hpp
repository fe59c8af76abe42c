// SPDX-License-Identifier: Apache-2.0
// Policies that give a pair of types the same results are one variant, and share a table.
#pragma once

#include "codec/policy.hpp"
#include "dtype/number_range.hpp"

namespace tensorcast::kernels::byte_table {

// The options that the results of a pair depend on.
enum class PolicyDependence : std::uint8_t {
  none,
  overflow,         // Policy::saturate
  infinity,         // Policy::saturate and keeps_infinity
  power_of_two,     // Policy::saturate, keeps_infinity and e8m0_rounding
  float4_nan,       // Policy::float4_nan_is_zero
  range,            // Policy::range
  real_to_integer,  // Policy::range and rounding: automatic or nearest_even
};

constexpr PolicyDependence dependence_of(DType from, DType to) {
  const DTypeRow& source = row(from);
  const DTypeRow& target = row(to);
  const bool source_is_real = source.family == Family::floating;
  const bool has_range = may_be_out_of_range(source, target);
  if (target.family == Family::integer && source_is_real) return PolicyDependence::real_to_integer;
  if (target.family != Family::floating || target.bits > 8) {
    return has_range ? PolicyDependence::range : PolicyDependence::none;
  }
  if (!target.format.has_zero) return PolicyDependence::power_of_two;
  if (!target.format.has_nan()) {
    const bool nan_matters = codec::nan_depends_on_opset(target) && source_is_real && source.format.has_nan();
    return nan_matters ? PolicyDependence::float4_nan : PolicyDependence::none;
  }
  return source_is_real && source.format.has_infinity() ? PolicyDependence::infinity : PolicyDependence::overflow;
}

constexpr int variant_count(PolicyDependence dependence) {
  switch (dependence) {
    case PolicyDependence::none:
      return 1;
    case PolicyDependence::overflow:
    case PolicyDependence::float4_nan:
    case PolicyDependence::range:
      return 2;
    case PolicyDependence::infinity:
      return 3;
    case PolicyDependence::real_to_integer:
      return 4;
    case PolicyDependence::power_of_two:
      return 9;
  }
  return 1;
}

inline int overflow_variant(const codec::Policy& policy) noexcept {
  return !policy.saturate ? 0 : policy.keeps_infinity ? 2 : 1;
}

// The number of the policy's variant, 0 to variant_count() - 1. Precondition: the policy demands no errors.
template <PolicyDependence dependence>
int variant_of(const codec::Policy& policy) noexcept {
  switch (dependence) {
    case PolicyDependence::none:
      return 0;
    case PolicyDependence::overflow:
      return policy.saturate ? 1 : 0;
    case PolicyDependence::infinity:
      return overflow_variant(policy);
    case PolicyDependence::power_of_two:
      return static_cast<int>(policy.e8m0_rounding) + 3 * overflow_variant(policy);
    case PolicyDependence::float4_nan:
      return policy.float4_nan_is_zero ? 1 : 0;
    case PolicyDependence::range:
      return policy.range == codec::RangeRule::saturate ? 1 : 0;
    case PolicyDependence::real_to_integer:
      return (policy.range == codec::RangeRule::saturate ? 1 : 0) + (policy.rounding == Rounding::nearest_even ? 2 : 0);
  }
  return 0;
}

}  // namespace tensorcast::kernels::byte_table
