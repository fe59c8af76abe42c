// SPDX-License-Identifier: Apache-2.0
// The table of types of a small inference engine: for each a name, the size of a block, its facts, and functions that
// convert a row to float32 and back into the engine's own memory. Plain types and ggml's blocks have the same
// functions.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

#include <tensorcast/block.hpp>
#include <tensorcast/cast.hpp>

namespace tc = tensorcast;

namespace {

struct TypeTraits {
  std::string name;
  std::size_t block = 1;                    // elements that are stored together
  std::size_t block_bytes = 0;              // their bytes
  tc::DType dtype = {};                     // of plain types
  const tc::BlockFormat* format = nullptr;  // of blocks; null: a plain type
  double largest = 0.0;                     // of plain types

  [[nodiscard]] std::size_t row_bytes(std::size_t count) const { return count / block * block_bytes; }
  // `count` is a multiple of `block`. Rows run on the engine's own threads, so none is started here.
  [[nodiscard]] tc::Result<void> to_float(const std::byte* row, float* numbers, std::size_t count) const;
  [[nodiscard]] tc::Result<void> from_float(const float* numbers, std::byte* row, std::size_t count) const;
};

constexpr tc::Execution this_thread{.threads = 1};

tc::Result<void> TypeTraits::to_float(const std::byte* row, float* numbers, std::size_t count) const {
  const auto columns = static_cast<std::int64_t>(count);
  const tc::MutableTensorView out{tc::DType::float32, {1, columns}, std::as_writable_bytes(std::span(numbers, count))};
  const std::span<const std::byte> bytes(row, row_bytes(count));
  if (format == nullptr) return tc::cast(tc::TensorView{dtype, out.shape, bytes}, out, {}, this_thread);
  tc::BlockTensor tensor{.coding = format->coding, .shape = out.shape};
  tensor.block_rows = format->block_rows;
  tensor.block_columns = format->block_columns;
  tensor.codes = {tc::DType::uint8, {1, static_cast<std::int64_t>(bytes.size())}, bytes};
  return tc::dequantize(tensor, 0, out, {}, nullptr, this_thread);
}

tc::Result<void> TypeTraits::from_float(const float* numbers, std::byte* row, std::size_t count) const {
  const auto columns = static_cast<std::int64_t>(count);
  const tc::TensorView in{tc::DType::float32, {1, columns}, std::as_bytes(std::span(numbers, count))};
  const std::span<std::byte> bytes(row, row_bytes(count));
  if (format == nullptr) return tc::cast(in, tc::MutableTensorView{dtype, in.shape, bytes}, {}, this_thread);
  const tc::Result<tc::QuantizedTensor> made = tc::quantize(in, *format, {}, this_thread);
  if (!made) return made.error();
  std::copy_n(made->codes.begin(), bytes.size(), bytes.begin());
  return {};
}

TypeTraits plain(tc::DType dtype) {
  const std::size_t block = tc::bit_width(dtype) < 8 ? 8 / static_cast<std::size_t>(tc::bit_width(dtype)) : 1;
  return {.name = std::string(tc::name(dtype)),
          .block = block,
          .block_bytes = tc::storage_bytes(dtype, block),
          .dtype = dtype,
          .largest = tc::facts(dtype).largest};
}

TypeTraits blocks(const char* name) {
  const tc::BlockFormat* const format = tc::find_block_format(name, "gguf");
  const tc::GgufBlockSize size = tc::block_size(format->coding.gguf);
  return {.name = name, .block = size.elements, .block_bytes = size.bytes, .format = format};
}

}  // namespace

int main() {
  const TypeTraits table[] = {plain(tc::DType::float32),
                              plain(tc::DType::float16),
                              plain(tc::DType::bfloat16),
                              plain(tc::DType::float8_e4m3fn),
                              plain(tc::DType::float8_e5m2),
                              plain(tc::DType::float4_e2m1fn),
                              blocks("q4_0"),
                              blocks("q8_0"),
                              blocks("q4_k"),
                              blocks("q6_k")};
  std::vector<float> weights(512), back(weights.size());
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = std::sin(static_cast<float>(i)) * 2.0f;
  for (const TypeTraits& type : table) {
    std::vector<std::byte> row(type.row_bytes(weights.size()));
    tc::Result<void> done = type.from_float(weights.data(), row.data(), weights.size());
    if (done) done = type.to_float(row.data(), back.data(), back.size());
    if (!done) {
      std::fprintf(stderr, "%s: %s\n", type.name.c_str(), done.error().describe().c_str());
      return 1;
    }
    double error = 0.0;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      error = std::max(error, static_cast<double>(std::fabs(weights[i] - back[i])));
    }
    std::printf("%-14s %5.2f bits, error %.4f", type.name.c_str(),
                8.0 * static_cast<double>(row.size()) / static_cast<double>(weights.size()), error);
    if (type.format == nullptr) std::printf(", up to %g", type.largest);
    std::printf("\n");
  }
  return 0;
}
