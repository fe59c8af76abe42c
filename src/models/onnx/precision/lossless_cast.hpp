// SPDX-License-Identifier: Apache-2.0
// Tells which conversions keep every value.
#pragma once

#include "tensorcast/dtype.hpp"

namespace tensorcast::models::onnx {

// Reports whether every value of `from`, negative zero, infinities and NaN included, has the same value in `to`, so
// that a Cast back gives the old values. False for pairs that it does not know, such as floats to integers.
[[nodiscard]] bool keeps_every_value(DType from, DType to) noexcept;

}  // namespace tensorcast::models::onnx
