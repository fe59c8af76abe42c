// SPDX-License-Identifier: Apache-2.0
// The 4-bit codes of a matrix as ONNX's DequantizeLinear has them, and as ONNX Runtime's MatMulNBits does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace tensorcast::models::onnx {

struct ProductSize {
  std::uint64_t inputs = 0, outputs = 0, block = 0;  // block > 0

  [[nodiscard]] std::uint64_t blocks() const noexcept { return (inputs + block - 1) / block; }
};

// DequantizeLinear: codes [inputs, outputs], scales and zero points [blocks, outputs], packed low nibble first.
// MatMulNBits: codes [outputs, blocks, block / 2] that are unsigned, scales [outputs, blocks], zero points [outputs,
// (blocks + 1) / 2].
struct PackedProduct {
  std::span<const std::byte> codes, scales, zeros;  // no zero points: 0, or 8 in MatMulNBits
  bool is_signed = false;                           // of DequantizeLinear: int4, not uint4
  std::uint64_t scale_bytes = 4;                    // of a scale
};
struct ConvertedProduct {
  std::vector<std::byte> codes, scales, zeros;  // no zero points: as above
};

// From DequantizeLinear to MatMulNBits, and back to int4. None: a size does not fit.
[[nodiscard]] std::optional<ConvertedProduct> pack_product(const PackedProduct& from, const ProductSize& size);
[[nodiscard]] std::optional<ConvertedProduct> unpack_product(const PackedProduct& from, const ProductSize& size);

}  // namespace tensorcast::models::onnx
