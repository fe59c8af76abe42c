// SPDX-License-Identifier: Apache-2.0
// What the short ways of quantization need of runs' operands, for as many runs at once as a register has lanes: one
// after the other would take a third of the time of runs of 16.
#pragma once

#include "kernels/runs.hpp"
#include "kernels/simd/simd.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

// What multiplies the numbers of runs.
struct RunFactors {
  static constexpr std::size_t most = 64;

  float factor[most];  // or the divisor's inverse
  float divisor[most];
  float negative_divisor[most];
  float negative_inverse[most];
};

// Calls step(operands, i) for the operands from i on, as many as `lanes`. Those behind the last one repeat it.
template <std::size_t lanes, class Step>
SIMD_INLINE void for_operands(const RunOperand* operands, std::size_t runs, const Step& step) {
  static_assert(sizeof(RunOperand) == 2 * sizeof(float) && RunFactors::most % lanes == 0);
  std::size_t i = 0;
  for (; i + lanes <= runs; i += lanes) step(reinterpret_cast<const std::byte*>(operands + i), i);
  if (i == runs) return;
  std::int64_t last;
  __builtin_memcpy(&last, operands + runs - 1, sizeof last);
  std::byte rest[lanes * sizeof(RunOperand)];
  for (std::size_t at = 0; at < sizeof rest; at += kRegisterBytes) store(rest + at, splat(last));
  if (i + 1 != runs) __builtin_memcpy(rest, operands + i, (runs - i) * sizeof(RunOperand));
  step(rest, i);
}

// What the short way asks of operands.
struct OperandLimits {
  bool allows_underflow = true;  // else no quotient may become a zero, whose sign would count: divisors are at most 1
  bool are_short = false;        // divisors are bfloat16
  float unit = 1.0F;             // a power of two that all quotients are multiplied with
};

// Reports whether the runs can take the short way: divide() is right, and nothing is added to quotients.
template <bool multiplies>
bool set_factors(const RunOperand* operands, std::size_t runs, const OperandLimits& limits, RunFactors& by) {
  const F32 least = splat(multiplies ? 0x1p-100F : 0x1p-64F);
  const F32 most = splat(multiplies ? 0x1p100F : limits.allows_underflow ? 0x1p64F : 1.0F);
  const F32 unit = splat(limits.unit), inverse_unit = splat(1.0F / limits.unit);
  const I32 long_bits = splat(limits.are_short ? 0xffff : 0);
  Mask32 are_right = mask_if(true);
  const auto put = [](float* to, F32 x) SIMD_INLINE_LAMBDA { store(reinterpret_cast<std::byte*>(to), x); };
  for_operands<kLanes>(operands, runs, [&](const std::byte* from, std::size_t i) SIMD_INLINE_LAMBDA {
    const I64x2 pairs = {load<I64>(from), load<I64>(from + kRegisterBytes)};
    const F32 operand = as<F32>(low_u32(pairs)), zero = as<F32>(high_u32(pairs));
    const F32 factor = multiplies ? operand * unit : unit / operand, divisor = operand * inverse_unit;
    put(by.factor + i, factor);
    if constexpr (!multiplies) {
      put(by.divisor + i, divisor);
      put(by.negative_divisor + i, as<F32>(as<I32>(divisor) ^ INT32_MIN));
      put(by.negative_inverse + i, as<F32>(as<I32>(factor) ^ INT32_MIN));
    }
    // Signs are the numbers' own, so no operand is negative.
    are_right = mask_and(are_right, mask_and(greater_equal(operand, least), greater_equal(most, operand)));
    are_right = mask_and(are_right, equal(as<I32>(operand) & long_bits, I32{}));
    are_right = mask_and_not(are_right, not_equal(zero, F32{}));
  });
  return all_of(are_right);
}

// Calls put(lane, i) for 64-bit lanes of powers, biased by 127, of the operands from i on, or of their inverses.
// Reports whether all operands are powers of two and at most 2^most_size in size, or their inverses.
template <bool multiplies, class Put>
bool for_powers(const RunOperand* operands, std::size_t runs, int most_size, const Put& put) {
  constexpr std::size_t lanes = kLanes / 2;
  const I64 least = splat(std::int64_t{127} - most_size), most = splat(std::int64_t{127} + most_size);
  I64 others = {};  // negative lanes
  for_operands<lanes>(operands, runs, [&](const std::byte* from, std::size_t i) SIMD_INLINE_LAMBDA {
    const I64 bits = load<I64>(from);
    const I64 power = (bits >> 23) & 0x1ff;  // above all if the factor is negative
    others |= (power - least) | (most - power) | (0 - (bits & 0x7fffff));
    put(multiplies ? power : 254 - power, i);
  });
  std::int64_t any_other = 0;
  for (std::size_t lane = 0; lane < lanes; ++lane) any_other |= others[lane];
  return any_other >= 0;
}

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
