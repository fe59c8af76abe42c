// SPDX-License-Identifier: Apache-2.0
// Division by a number that many are divided by, without the CPU's slow instruction.
#pragma once

#include "kernels/simd/simd.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

// x / divisor, rounded once; -0 becomes +0. Neither step may underflow. The remainder of the approximate quotient is
// exact, or so nearly that the sum rounds right: tried for each divisor and all quotients that are nearly halfway
// between two numbers. Instruction sets without fused operations divide.
[[maybe_unused]] SIMD_INLINE F32 divide(F32 x, F32 inverse, F32 negative_divisor) {
  if constexpr (!has_fused_float32) return x / -negative_divisor + 0.0F;
  const F32 quotient = x * inverse;
  return multiply_add(multiply_add(quotient, negative_divisor, x), inverse, quotient);
}

// The same, but -0 stays.
[[maybe_unused]] SIMD_INLINE F32 divide_signed(F32 x, F32 inverse, F32 divisor, F32 negative_inverse) {
  if constexpr (!has_fused_float32) return x / divisor;
  const F32 quotient = x * inverse;
  return multiply_add(multiply_subtract(quotient, divisor, x), negative_inverse, quotient);
}

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
