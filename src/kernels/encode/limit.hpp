// SPDX-License-Identifier: Apache-2.0
// out_of_range = saturate: clamps sources to the target's range, so that encoders need not. Infinities and NaN stay.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "codec/policy.hpp"
#include "dtype/number_range.hpp"
#include "kernels/encode/blocks.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

using codec::Policy;

// The pairs that are limited: those whose numbers may be out of range, except floats to integers and floats to floats
// of 8 bits, whose encoders clamp. float32 lacks numbers that encoders of float64 tell from infinity.
template <DType from, DType to>
inline constexpr bool may_be_limited =
    may_be_out_of_range(row(from), row(to)) &&
    ((row(to).family == Family::integer && !is_float<from>) || (is_float<to> && bits_of<to> >= 16) ||
     (from == DType::float64 && is_float<to> && bits_of<to> == 8 && row(to).format.has_zero));

template <DType to>
bool is_limited(const Policy& policy) {
  if constexpr (bits_of<to> == 8 && is_float<to>) return policy.saturate && policy.keeps_infinity;
  return policy.range == codec::RangeRule::saturate;
}

// The policy with which limited numbers are encoded: only infinities are out of range.
template <DType to>
Policy policy_of_limited(const Policy& policy) {
  Policy of_limited = policy;
  of_limited.range = codec::RangeRule::wrap;
  if constexpr (bits_of<to> == 8 && is_float<to>) of_limited.saturate = false;
  return of_limited;
}

// The ends of the range of integers of type `from` that type `to` has.
template <DType from, DType to>
struct IntegerLimits {
  static constexpr std::uint64_t largest_integer(DType dtype) {
    if (row(dtype).family == Family::floating) return static_cast<std::uint64_t>(largest_of(row(dtype)));
    return ~std::uint64_t{0} >> (64 - row(dtype).bits + (row(dtype).is_signed ? 1 : 0));
  }
  static constexpr std::int64_t lowest_integer(DType dtype) {
    if (row(dtype).family == Family::floating) return -static_cast<std::int64_t>(largest_integer(dtype));
    return row(dtype).is_signed ? -static_cast<std::int64_t>(largest_integer(dtype)) - 1 : 0;
  }
  static constexpr std::uint64_t high = std::min(largest_integer(from), largest_integer(to));
  static constexpr std::int64_t low = std::max(lowest_integer(from), lowest_integer(to));
};

template <DType from, DType to>
SIMD_INLINE I32 limited(I32 x) {
  using Limits = IntegerLimits<from, to>;
  if constexpr (bits_of<from> == 32 && !is_signed_type<from>) {
    return as<I32>(min(as<U32>(x), as<U32>(splat(static_cast<std::int32_t>(Limits::high)))));
  } else {  // narrower types have 32-bit lanes with a sign, too
    return min(max(x, splat(static_cast<std::int32_t>(Limits::low))), splat(static_cast<std::int32_t>(Limits::high)));
  }
}

template <DType from, DType to>
SIMD_INLINE I64 limited(I64 x) {
  using Limits = IntegerLimits<from, to>;
  const I64 high = splat(static_cast<std::int64_t>(Limits::high));
  if constexpr (is_signed_type<from>) {
    const I64 low = splat(Limits::low);
    const I64 raised = x < low ? low : x;
    return raised > high ? high : raised;
  } else {
    return as<U64>(x) > as<U64>(high) ? high : x;
  }
}
template <DType from, DType to>
SIMD_INLINE I64x2 limited(I64x2 x) {
  return {limited<from, to>(x.lo), limited<from, to>(x.hi)};
}

template <DType from, DType to>
SIMD_INLINE F32 limited(F32 x) {
  constexpr auto most = static_cast<float>(largest_of(row(to)));
  return select(greater(as<I32>(x) & INT32_MAX, splat(0x7f7fffff)), x, clamp(x, splat(-most), splat(most)));
}

template <DType from, DType to>
SIMD_INLINE F64 limited(F64 x) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const Mask64 is_finite = less(as<F64>(as<I64>(x) & INT64_MAX), splat(infinity));
  return select(is_finite, clamp(x, splat(-largest_of(row(to))), splat(largest_of(row(to)))), x);
}
template <DType from, DType to>
SIMD_INLINE F64x2 limited(F64x2 x) {
  return {limited<from, to>(x.lo), limited<from, to>(x.hi)};
}

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
