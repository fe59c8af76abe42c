// SPDX-License-Identifier: Apache-2.0
#include "models/onnx/precision/lossless_cast.hpp"

namespace tensorcast::models::onnx {

bool keeps_every_value(DType from, DType to) noexcept {
  if (from == to) return from != DType::undefined;
  const DTypeFacts& source = facts(from);
  const DTypeFacts& target = facts(to);
  const bool to_integer = target.family == Family::integer;
  // Narrower floats lack zero, negative zero or infinity, and are no type to pass through.
  const bool to_wide_float =
      to == DType::float16 || to == DType::bfloat16 || to == DType::float32 || to == DType::float64;
  if (!to_integer && !to_wide_float) return false;
  if (source.family == Family::boolean) return true;
  if (target.lowest > source.lowest || target.largest < source.largest) return false;
  if (source.family == Family::integer) {
    const int digits = source.bits - (is_signed(from) ? 1 : 0);
    return to_integer ? source.bits <= target.bits : digits <= target.mantissa_bits + 1;
  }
  return source.family == Family::floating && to_wide_float && source.mantissa_bits <= target.mantissa_bits &&
         target.smallest_positive <= source.smallest_positive;
}

}  // namespace tensorcast::models::onnx
