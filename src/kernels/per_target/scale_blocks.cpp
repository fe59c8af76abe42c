// SPDX-License-Identifier: Apache-2.0
// Quantization: the scales of many blocks at once, from their largest magnitudes.
#include "kernels/per_target/functions.hpp"

#include "kernels/runs.hpp"
#include "kernels/simd/divide.hpp"
#include "kernels/simd/environment.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

namespace {

SIMD_INLINE F32 larger(F32 a, F32 b) { return select(less(a, b), b, a); }

struct Made {
  I32 codes;
  F32 factors;
};

SIMD_INLINE Made e8m0_of(F32 scale, const ScaleSteps& steps) {
  const I32 code = (as<I32>(as<U32>(scale) + steps.added) >> 23) + steps.offset;
  return {code, as<F32>((steps.is_inverse ? 254 - code : code) << 23)};
}

// As FloatEncoder rounds (encode/encode_float.hpp), which also gives the number.
SIMD_INLINE Made e4m3_of(F32 scale, const ScaleSteps& steps) {
  constexpr int dropped_bits = 20;
  constexpr std::int32_t least_normal = (127 - 6) << 23, bias = (127 - 6) << 3;
  const F32 raised = larger(scale, splat(steps.least)), most = splat(448.0F);
  const F32 limited = select(less(raised, most), raised, most);
  const I32 exponent = max(as<I32>(limited) & 0x7f800000, splat(least_normal));
  const F32 power = as<F32>(exponent + (dropped_bits << 23));
  const F32 sum = limited + power, number = sum - power, by = splat(steps.constant);
  const I32 code = (as<I32>(sum) + (exponent >> dropped_bits) - bias) & 0xff;
  switch (steps.factor) {
    case ScaleFactor::product:
      return {code, number * by};
    case ScaleFactor::quotient:
      return {code, number / by};
    case ScaleFactor::inverse_quotient:
      return {code, by / number};
    default:
      return {code, 1.0F / (number * by)};
  }
}

// NaN is not.
SIMD_INLINE Mask32 within(F32 x, float least, float most) {
  return mask_and(less(splat(least), x), less(x, splat(most)));
}

// What all magnitudes are divided by. Those within 2^-60 and 2^60, and others where the result does not count.
class Divisor {
 public:
  explicit Divisor(float by)
      : is_quick_(has_fused_float32 && by >= 0x1p-32F && by <= 0x1p32F),
        is_one_(by == 1.0F),
        by_(splat(by)),
        inverse_(splat(1.0F / by)) {}

  SIMD_INLINE F32 divide_by(F32 x) const {
    if (is_one_) return x;
    return is_quick_ ? divide(x, inverse_, -by_) : x / by_;
  }

 private:
  bool is_quick_, is_one_;
  F32 by_, inverse_;
};

template <bool is_e8m0>
bool scale_all(const std::uint32_t* largest, std::size_t count, const ScaleSteps& steps, std::uint8_t* codes,
               RunOperand* operands) {
  Mask32 ordinary = mask_if(true);
  const Divisor first_divisor(steps.divisor), second_divisor(steps.second_divisor);
  for (std::size_t at = 0; at < count; at += kBlock) {
    I32 made_codes[4];
    for (std::size_t unit = 0; unit < 4; ++unit) {
      const std::size_t first = at + unit * kLanes;
      const F32 most = load<F32>(reinterpret_cast<const std::byte*>(largest + first));
      const F32 raised = is_e8m0 ? larger(most, splat(steps.least)) : most;
      const F32 scale = second_divisor.divide_by(first_divisor.divide_by(raised)) * steps.multiplier;
      const Made made = is_e8m0 ? e8m0_of(scale, steps) : e4m3_of(scale, steps);
      made_codes[unit] = made.codes;
      // Pairs of a factor and zero.
      const I64x2 pairs = widen<false>(as<I32>(made.factors));
      store(reinterpret_cast<std::byte*>(operands + first), pairs.lo);
      store(reinterpret_cast<std::byte*>(operands + first) + kRegisterBytes, pairs.hi);
      ordinary = mask_and(ordinary, within(most, 0x1p-60F, 0x1p60F));
      ordinary = mask_and(ordinary, within(made.factors, 0x1p-100F, 0x1p100F));
      if (!is_e8m0) {
        ordinary = mask_and(ordinary, within(scale, 0x1p-100F, 0x1p100F));
        ordinary = mask_and_not(ordinary, equal(made.codes, I32{}));
      }
    }
    store(reinterpret_cast<std::byte*>(codes + at),
          pack_bytes({made_codes[0], made_codes[1], made_codes[2], made_codes[3]}));
  }
  return all_of(ordinary);
}

}  // namespace

bool scale_blocks(const std::uint32_t* largest, std::size_t count, const ScaleSteps& steps, std::uint8_t* codes,
                  RunOperand* operands) {
  return in_default_environment([&] {
    return steps.is_e8m0 ? scale_all<true>(largest, count, steps, codes, operands)
                         : scale_all<false>(largest, count, steps, codes, operands);
  });
}

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
