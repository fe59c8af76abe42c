// Policies that give a pair of types the same results are one variant, and share a table.
#pragma once

#include "codec/policy.hpp"
#include "dtype/dtype_table.hpp"

namespace tensorcast::kernels::byte_table {

// The options that the results of a pair depend on.
enum class PolicyDependence : std::uint8_t {
  none,
  overflow,         // Policy::saturate
  fnuz_overflow,    // Policy::saturate and fnuz_inf_is_nan
  power_of_two,     // Policy::saturate and e8m0_rounding
  float4_nan,       // Policy::float4_nan_is_zero
  real_to_integer,  // Policy::integer_range and int_rounding
};

constexpr PolicyDependence dependence_of(DType from, DType to) {
  const DTypeRow& source = row(from);
  const DTypeRow& target = row(to);
  const bool source_is_real = source.family == Family::floating;
  if (target.family == Family::integer)
    return source_is_real ? PolicyDependence::real_to_integer : PolicyDependence::none;
  if (target.family != Family::floating || target.bits > 8) return PolicyDependence::none;
  if (!target.format.has_zero) return PolicyDependence::power_of_two;
  if (!target.format.has_nan()) {
    return target.id == DType::float4_e2m1fn && source_is_real && source.format.has_nan() ? PolicyDependence::float4_nan
                                                                                          : PolicyDependence::none;
  }
  const bool infinity_meets_fnuz =
      source_is_real && source.format.has_infinity() && target.format.nonfinite == NonFinite::nan_negative_zero;
  return infinity_meets_fnuz ? PolicyDependence::fnuz_overflow : PolicyDependence::overflow;
}

constexpr int variant_count(PolicyDependence dependence) {
  switch (dependence) {
    case PolicyDependence::none:
      return 1;
    case PolicyDependence::overflow:
    case PolicyDependence::float4_nan:
      return 2;
    case PolicyDependence::fnuz_overflow:
      return 3;
    case PolicyDependence::real_to_integer:
      return 4;
    case PolicyDependence::power_of_two:
      return 6;
  }
  return 1;
}

// The number of the policy's variant, 0 to variant_count() - 1. Precondition: the policy demands no errors.
template <PolicyDependence dependence>
int variant_of(const codec::Policy& policy) noexcept {
  switch (dependence) {
    case PolicyDependence::none:
      return 0;
    case PolicyDependence::overflow:
      return policy.saturate ? 1 : 0;
    case PolicyDependence::fnuz_overflow:
      return !policy.saturate ? 0 : policy.fnuz_inf_is_nan ? 2 : 1;
    case PolicyDependence::power_of_two:
      return static_cast<int>(policy.e8m0_rounding) + (policy.saturate ? 3 : 0);
    case PolicyDependence::float4_nan:
      return policy.float4_nan_is_zero ? 1 : 0;
    case PolicyDependence::real_to_integer:
      return (policy.integer_range == codec::IntegerRange::saturate ? 1 : 0) +
             (policy.int_rounding == IntRounding::nearest_even ? 2 : 0);
  }
  return 0;
}

}  // namespace tensorcast::kernels::byte_table
