// SPDX-License-Identifier: Apache-2.0
// The table of block formats: one row for each scheme in each tool's layout.
#include <algorithm>
#include <array>
#include <iterator>

#include "block/format/codings.hpp"
#include "block/format/gguf_block.hpp"
#include "dtype/lower_case.hpp"
#include "tensorcast/block.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {
namespace {

using enum BlockPacking;
using block::mx_coding;
using block::nvfp4_coding;

constexpr DType e4m3 = DType::float8_e4m3fn;
constexpr DType e2m1 = DType::float4_e2m1fn;

constexpr std::string_view float_order = "float32(element * scale)";
constexpr std::string_view integer_order = "float32((element - zero) * scale)";

constexpr BlockCoding integers(int bits, int offset, BlockPacking zeros = words_down) {
  return {.element = DType::uint8, .bits = bits, .offset = offset, .zeros = zeros};
}
constexpr BlockCoding signed_integers(int bits, BlockPacking packing = stream) {
  return {.element = DType::int8, .bits = bits, .packing = packing};
}
constexpr BlockCoding gptq(int bits, int added) {
  return {.element = DType::uint8, .bits = bits, .packing = words_down, .zero_added = added};
}

constexpr std::string_view with_bias = "float32(float32(element * scale) + bias)";
constexpr std::string_view k_scale = "scale = float32(d * integer); float32(element * scale)";
constexpr std::string_view k_bias =
    "scale = float32(d * integer), minimum = float32(dmin * integer); float32(float32(element * scale) - minimum)";

constexpr BlockFormat of_gguf(const block::GgufRow& row) {
  const std::string_view order =
      row.has_integer_scales ? (row.has_bias ? k_bias : k_scale) : (row.has_bias ? with_bias : float_order);
  return {row.scheme, "gguf", {.element = DType::undefined, .packing = gguf, .gguf = row.block}, 1, 0, order};
}

// Quantiles of the normal distribution (arXiv 2305.14314), as bitsandbytes has them.
constexpr std::array<float, 16> nf4 = {-1.0f,
                                       -0.6961928009986877f,
                                       -0.5250730514526367f,
                                       -0.39491748809814453f,
                                       -0.28444138169288635f,
                                       -0.18477343022823334f,
                                       -0.09105003625154495f,
                                       0.0f,
                                       0.07958029955625534f,
                                       0.16093020141124725f,
                                       0.24611230194568634f,
                                       0.33791524171829224f,
                                       0.44070982933044434f,
                                       0.5626170039176941f,
                                       0.7229568362236023f,
                                       1.0f};
constexpr std::array<float, 16> fp4 = [] {
  std::array<float, 16> table = {0.0f, 0.0625f, 8.0f, 12.0f, 4.0f, 6.0f, 2.0f, 3.0f};
  for (std::size_t i = 0; i < 8; ++i) {
    table[i] /= 12.0f;
    table[i + 8] = 0.0f - table[i];
  }
  return table;
}();

constexpr auto own_formats = [] {
  BlockCoding modelopt_nvfp4 = nvfp4_coding(GlobalScale::factor);
  modelopt_nvfp4.positive_zero = true;
  BlockCoding comfy_nvfp4 = nvfp4_coding(GlobalScale::factor, high_nibble_first);
  comfy_nvfp4.swizzled = true;
  BlockCoding comfy_mxfp8 = mx_coding(e4m3, 8);
  comfy_mxfp8.swizzled = true;
  BlockCoding gpt_oss = mx_coding(e2m1, 4);
  gpt_oss.transposed = true;
  BlockCoding int8_bnb = signed_integers(8);
  int8_bnb.factor = block::inverse_127;
  const BlockCoding awq_coding{.element = DType::uint8, .bits = 4, .packing = awq, .zeros = awq};
  const BlockCoding nibble_table{.element = DType::undefined, .bits = 4, .packing = flat};
  const BlockCoding fp8{.element = e4m3, .bits = 8};
  return std::to_array<BlockFormat>({
      {"fp8-tensor", "compressed-tensors", fp8, 0, 0, float_order},
      {"fp8-channel", "compressed-tensors", fp8, 1, 0, float_order},
      {"fp8-block", "deepseek", fp8, 128, 128, float_order},
      {"mxfp8", "transformers-mxfp8", mx_coding(e4m3, 8), 1, 32, float_order},
      {"mxfp8", "comfyui", comfy_mxfp8, 1, 32, float_order},
      {"mxfp8-e5m2", "ocp", mx_coding(DType::float8_e5m2, 8), 1, 32, float_order},
      {"mxfp6", "compressed-tensors", mx_coding(DType::float6_e2m3fn, 6), 1, 32, float_order},
      {"mxfp6-e3m2", "compressed-tensors", mx_coding(DType::float6_e3m2fn, 6), 1, 32, float_order},
      {"mxfp4", "compressed-tensors", mx_coding(e2m1, 4), 1, 32, float_order},
      {"mxfp4", "gpt-oss", gpt_oss, 1, 32, float_order},
      {"nvfp4", "modelopt", modelopt_nvfp4, 1, 16, "float32(element * float32(scale * global)); -0 is 0"},
      {"nvfp4", "compressed-tensors", nvfp4_coding(GlobalScale::divisor), 1, 16,
       "float32(element * float32(scale / global))"},
      {"nvfp4", "comfyui", comfy_nvfp4, 1, 16, "float32(element * float32(scale * global))"},
      {"int8-tensor", "compressed-tensors", signed_integers(8), 0, 0, integer_order},
      {"int8-channel", "compressed-tensors", signed_integers(8), 1, 0, integer_order},
      {"int8-channel", "bitsandbytes", int8_bnb, 1, 0, "float32(float32(element * scale) * float32(1 / 127))"},
      {"int4-group", "compressed-tensors", integers(4, 8), 1, 128, integer_order},
      {"int4-group", "modelopt", signed_integers(4, row_pairs), 1, 128, integer_order},
      {"gptq-2", "gptq", gptq(2, 1), 128, 1, integer_order},
      {"gptq-3", "gptq", gptq(3, 1), 128, 1, integer_order},
      {"gptq-4", "gptq", gptq(4, 1), 128, 1, integer_order},
      {"gptq-8", "gptq", gptq(8, 1), 128, 1, integer_order},
      {"gptq-2", "gptq-v2", gptq(2, 0), 128, 1, integer_order},
      {"gptq-3", "gptq-v2", gptq(3, 0), 128, 1, integer_order},
      {"gptq-4", "gptq-v2", gptq(4, 0), 128, 1, integer_order},
      {"gptq-8", "gptq-v2", gptq(8, 0), 128, 1, integer_order},
      {"awq", "awq", awq_coding, 128, 1, integer_order},
      {"nf4", "bitsandbytes", nibble_table, 1, 64, "float32(table[code] * scale)", nf4},
      {"fp4", "bitsandbytes", nibble_table, 1, 64, "float32(table[code] * scale)", fp4},
      {"affine-2", "mlx", integers(2, 0), 1, 64, with_bias},
      {"affine-3", "mlx", integers(3, 0), 1, 64, with_bias},
      {"affine-4", "mlx", integers(4, 0), 1, 64, with_bias},
      {"affine-5", "mlx", integers(5, 0), 1, 64, with_bias},
      {"affine-6", "mlx", integers(6, 0), 1, 64, with_bias},
      {"affine-8", "mlx", integers(8, 0), 1, 64, with_bias},
  });
}();

// ggml's are the last.
constexpr auto formats = [] {
  std::array<BlockFormat, own_formats.size() + std::size(block::gguf_rows)> all{};
  std::size_t n = 0;
  for (const BlockFormat& format : own_formats) all[n++] = format;
  for (const block::GgufRow& row : block::gguf_rows) all[n++] = of_gguf(row);
  return all;
}();

}  // namespace

std::span<const BlockFormat> block_formats() noexcept { return formats; }

const BlockFormat* find_block_format(std::string_view scheme, std::string_view spelling) noexcept {
  const auto* found = std::find_if(formats.begin(), formats.end(), [&](const BlockFormat& format) {
    return is_same_name(format.scheme, scheme) && (spelling.empty() || is_same_name(format.spelling, spelling));
  });
  return found == formats.end() ? nullptr : found;
}

std::span<const float> nf4_table() noexcept { return nf4; }
std::span<const float> fp4_table() noexcept { return fp4; }

}  // namespace TENSORCAST_ABI

}  // namespace tensorcast
