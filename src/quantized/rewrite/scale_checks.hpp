// SPDX-License-Identifier: Apache-2.0
// What must hold of scales before codes can get them in another form.
#pragma once

#include <span>

#include "formats/format.hpp"
#include "quantized/rewrite/respelled_codes.hpp"

namespace tensorcast::quantized {

// A layer whose scales are read.
struct ScaleSource {
  formats::Reader& reader;
  const Layer& layer;
  const LayerContent& content;
};

// Returns the exponent e of NVFP4's scale of the whole tensor, 2^e, with which each scale of MXFP4, 2^k, is the scale
// 2^(k - e) of NVFP4. Blocks whose codes are all zero do not count, unless all fit. Errors: unsupported (the scales
// span more than 2^17), those of reading.
[[nodiscard]] Result<int> exponent_for_nvfp4(const ScaleSource& source);
// Checks that scales of NVFP4 are powers of two and equal in pairs, within the range of MXFP4. Errors: unsupported.
[[nodiscard]] Result<void> check_for_mxfp4(const ScaleSource& source, std::span<const int> exponents);
// Checks that no scale of NVFP4 is negative or NaN. Errors: unsupported.
[[nodiscard]] Result<void> check_positive(const ScaleSource& source);

// The reciprocal of a scale of a whole tensor. That of 0 or infinity, as of experts that no calibration reached, is 0.
[[nodiscard]] float reciprocal(float scale) noexcept;
// Whether the reciprocal of `inverse` is `scale` again.
[[nodiscard]] bool is_exact_reciprocal(float scale, float inverse) noexcept;

}  // namespace tensorcast::quantized
