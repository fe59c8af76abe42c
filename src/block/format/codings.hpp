// SPDX-License-Identifier: Apache-2.0
// Codings that tables of formats and of layouts share.
#pragma once

#include "tensorcast/block.hpp"

namespace tensorcast::block {

// Elements that share a scale of E8M0.
constexpr BlockCoding mx_coding(DType element, int bits) {
  return {.element = element, .bits = bits, .scale = DType::float8_e8m0fnu};
}

constexpr BlockCoding nvfp4_coding(GlobalScale global, BlockPacking packing = BlockPacking::stream) {
  return {
      .element = DType::float4_e2m1fn, .bits = 4, .packing = packing, .scale = DType::float8_e4m3fn, .global = global};
}

// BlockCoding::factor of bitsandbytes, whose scales are the largest magnitudes of rows.
inline constexpr float inverse_127 = 7.874015718698502e-3F;

// Of BlockCoding::element.
[[nodiscard]] constexpr bool is_integer(DType element) noexcept {
  return element == DType::int8 || element == DType::uint8;
}

// The types in which recipes compute, and which weights, and scales that are no codes, mostly have.
[[nodiscard]] constexpr bool is_plain_float(DType dtype) noexcept {
  return dtype == DType::float32 || dtype == DType::float16 || dtype == DType::bfloat16;
}

}  // namespace tensorcast::block
