// SPDX-License-Identifier: Apache-2.0
// How fast are weights in blocks decoded to bfloat16, on one thread? The time of each format over memcpy's time for the
// bytes that are read and written, as a table.

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "beside_copy.hpp"
#include "convert/run/aligned_buffer.hpp"
#include "tensorcast/block.hpp"

namespace {

using namespace tensorcast;

constexpr bench::Extent in_memory{.rows = 4096, .columns = 8192, .repetitions = 9};

// A weight whose memory is its own.
struct Weight {
  std::vector<std::byte> codes, scales;
  std::vector<float> zeros;
  float global = 1.25F;
  BlockTensor tensor;

  Weight(const BlockFormat& format, std::int64_t rows, std::int64_t columns) {
    const BlockCoding& coding = format.coding;
    const bool is_gguf = coding.gguf != GgufBlock::none;
    tensor.coding = coding;
    tensor.shape = {rows, columns};
    tensor.block_rows = format.block_rows;
    tensor.block_columns = format.block_columns;
    const auto count = static_cast<std::size_t>(rows * columns);
    const GgufBlockSize block = is_gguf ? block_size(coding.gguf) : GgufBlockSize{};
    codes.resize(is_gguf ? count / block.elements * block.bytes : count * static_cast<std::size_t>(coding.bits) / 8);
    for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::byte>(i * 37 & 0x77);
    tensor.codes = {DType::uint8, {static_cast<std::int64_t>(codes.size())}, codes};
    if (is_gguf) return;
    const bool turned = coding.packing == BlockPacking::words_down || coding.packing == BlockPacking::awq;
    const std::int64_t code_rows = turned ? columns : rows, code_columns = turned ? rows : columns;
    const std::int64_t high = format.block_rows == 0 ? code_rows : format.block_rows;
    const std::int64_t wide = format.block_columns == 0 ? code_columns : format.block_columns;
    std::int64_t grid = (code_rows / high) * (code_columns / wide);
    if (coding.packing == BlockPacking::flat) grid = rows * columns / wide;
    const Shape shape{grid};
    const bool are_floats = coding.scale == DType::undefined;
    scales.resize(static_cast<std::size_t>(grid) * (are_floats ? sizeof(float) : 1), std::byte{0x3C});
    tensor.scales = {are_floats ? DType::float32 : DType::uint8, shape, scales};
    zeros.resize(static_cast<std::size_t>(grid), 3.0F);
    const TensorView numbers(DType::float32, shape, std::as_bytes(std::span(zeros)));
    if (turned) tensor.zero_points = numbers;
    if (format.scheme.starts_with("affine")) tensor.biases = numbers;
    if (coding.global != GlobalScale::none) {
      tensor.global_scale = {DType::float32, {1}, std::as_bytes(std::span(&global, 1))};
    }
    if (format.scheme == "nf4") tensor.table = nf4_table();
    if (format.scheme == "fp4") tensor.table = fp4_table();
  }
  Weight(const Weight&) = delete;
  Weight& operator=(const Weight&) = delete;
};

}  // namespace

// usage: tensorcast_blocks_bench [--in-cache] [SCHEME...]
int main(int argc, char** argv) {
  std::vector<std::string_view> asked(argv + 1, argv + argc);
  const auto [rows, columns, repetitions] = bench::take_in_cache(asked) ? bench::in_cache : in_memory;
  fmt::print("| scheme | spelling | time over memcpy's | GB/s written |\n| --- | --- | --- | --- |\n");
  // As results of files and of Python are.
  const file_conversion::AlignedBuffer buffer(static_cast<std::size_t>(rows * columns) * 2);
  const std::span<std::byte> out = buffer.span();
  for (const BlockFormat& format : block_formats()) {
    if (!asked.empty() && std::find(asked.begin(), asked.end(), format.scheme) == asked.end()) continue;
    const Weight weight(format, rows, columns);
    const Shape shape{rows, columns};
    const std::size_t bytes = (weight.codes.size() + weight.scales.size() + out.size()) / 2;
    bool is_done = true;
    const auto decode = [&] {
      is_done = is_done && dequantize(weight.tensor, 0, {DType::bfloat16, shape, out}, {}, nullptr, {.threads = 1});
    };
    const auto [decoding, copying] = bench::least_seconds(decode, bytes, repetitions);
    if (!is_done) {
      fmt::print("| {} | {} | not decoded | |\n", format.scheme, format.spelling);
      return 1;
    }
    fmt::print("| {} | {} | {:.2f} | {:.1f} |\n", format.scheme, format.spelling, decoding / copying,
               static_cast<double>(out.size()) / decoding / 1e9);
  }
  return 0;
}
