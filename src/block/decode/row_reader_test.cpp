// SPDX-License-Identifier: Apache-2.0
// Tables of products give what decoding to float32 and one rounding give.
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "codec/reference_cast.hpp"
#include "tensorcast/block.hpp"

namespace tensorcast {
namespace {

constexpr std::int64_t rows = 48;

// Ordinary scales, and those under which products are subnormal, too large, of another sign, or NaN.
std::vector<float> scales_of(std::size_t count, std::mt19937& random) {
  std::vector<float> scales(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto bits = static_cast<std::uint32_t>(random());
    const int exponent = i % 4 == 0 ? static_cast<int>(i / 4 % 277) - 149 : -9;
    scales[i] = std::ldexp(1.0F + static_cast<float>(bits & 0x7fffff) * 0x1p-23F, exponent);
    if (i % 3 == 0) scales[i] = std::ldexp(1.0F, exponent);
  }
  constexpr std::array<std::uint32_t, 8> others = {0,          0x80000000, 0xbf8ccccd, 0x7f800000,
                                                   0xff800000, 0x7fffffff, 0x7fa12345, 1};
  for (std::size_t i = 0; i < others.size(); ++i) scales[random() % count] = std::bit_cast<float>(others[i]);
  return scales;
}

struct Shapes {
  std::int64_t columns, block_rows, block_columns;
};

// The numbers of a NaN are not compared, but its place is.
void expect_one_rounding(const BlockTensor& tensor, std::int64_t columns) {
  const auto count = static_cast<std::size_t>(rows * columns);
  std::vector<float> exact(count);
  const MutableTensorView floats(DType::float32, {rows, columns}, std::as_writable_bytes(std::span(exact)));
  ASSERT_TRUE(dequantize(tensor, 0, floats));
  for (const DType to : {DType::bfloat16, DType::float16}) {
    std::vector<std::uint16_t> made(count), wanted(count);
    ASSERT_TRUE(dequantize(tensor, 0, {to, {rows, columns}, std::as_writable_bytes(std::span(made))}));
    ASSERT_TRUE(codec::reference_cast(reinterpret_cast<const std::byte*>(exact.data()), DType::float32,
                                      reinterpret_cast<std::byte*>(wanted.data()), to, count, {}));
    const unsigned infinity = to == DType::bfloat16 ? 0x7f80 : 0x7c00;
    for (std::size_t i = 0; i < count; ++i) {
      if (std::isnan(exact[i])) {
        ASSERT_GT(made[i] & 0x7fffU, infinity) << name(to) << " at " << i;
      } else {
        ASSERT_EQ(made[i], wanted[i]) << name(to) << " at " << i << ": " << exact[i];
      }
    }
  }
}

TEST(RowReader, ProductsOfFloat8AreRoundedOnceUnderAnyScale) {
  std::mt19937 random(17);
  for (const DType element : {DType::float8_e4m3fn, DType::float8_e5m2, DType::float8_e4m3fnuz, DType::int8}) {
    for (const Shapes& shapes : {Shapes{512, 0, 0},
                                 {3000, 1, 0},
                                 {300, 1, 128},
                                 {256, 1, 64},
                                 {2112, 32, 32},
                                 {640, 16, 100},
                                 {2352, 8, 48}}) {
      std::vector<std::byte> codes(static_cast<std::size_t>(rows * shapes.columns));
      for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::byte>(i < 4096 ? i : random());
      const auto blocks = [](std::int64_t length, std::int64_t block) {
        return block == 0 ? 1 : (length + block - 1) / block;
      };
      const std::int64_t grid = blocks(rows, shapes.block_rows) * blocks(shapes.columns, shapes.block_columns);
      const std::vector<float> scales =
          grid == 1 ? std::vector{0x1.9abcdep-9F} : scales_of(static_cast<std::size_t>(grid), random);
      BlockTensor tensor;
      tensor.coding = {.element = element, .bits = 8};
      tensor.shape = {rows, shapes.columns};
      tensor.block_rows = shapes.block_rows;
      tensor.block_columns = shapes.block_columns;
      tensor.codes = {DType::uint8, {static_cast<std::int64_t>(codes.size())}, codes};
      tensor.scales = {DType::float32, {grid}, std::as_bytes(std::span(scales))};
      SCOPED_TRACE(std::string(name(element)) + ", blocks of " + std::to_string(shapes.block_columns));
      expect_one_rounding(tensor, shapes.columns);
    }
  }
}

TEST(RowReader, ResultsOfNibblesAreRoundedOnceUnderAnyScaleZeroAndBias) {
  std::mt19937 random(23);
  for (const BlockPacking packing : {BlockPacking::stream, BlockPacking::high_nibble_first, BlockPacking::flat}) {
    for (const DType element : {DType::float4_e2m1fn, DType::uint8, DType::int8, DType::undefined}) {
      for (const std::int64_t width : {16, 32, 64, 96, 128, 512}) {
        for (const unsigned kind : {0U, 1U, 2U}) {
          const std::int64_t columns = width == 96 ? 672 : 512;
          std::vector<std::byte> codes(static_cast<std::size_t>(rows * columns / 2));
          for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::byte>(i < 4096 ? i : random());
          const std::int64_t grid = rows * columns / width;
          const std::vector<float> scales = scales_of(static_cast<std::size_t>(grid), random);
          std::vector<float> more(scales.size());
          for (float& number : more) number = static_cast<float>(random() % 16);
          const TensorView numbers(DType::float32, {grid}, std::as_bytes(std::span(more)));
          BlockTensor tensor;
          tensor.coding = {.element = element, .bits = 4, .packing = packing};
          tensor.coding.positive_zero = element == DType::float4_e2m1fn && width != 64;
          if (kind == 1) tensor.coding.offset = 8;
          if (kind == 2) tensor.zero_points = tensor.biases = numbers;
          tensor.shape = {rows, columns};
          tensor.block_rows = 1;
          tensor.block_columns = width;
          tensor.codes = {DType::uint8, {static_cast<std::int64_t>(codes.size())}, codes};
          tensor.scales = {DType::float32, {grid}, std::as_bytes(std::span(scales))};
          if (element == DType::undefined) tensor.table = nf4_table();
          SCOPED_TRACE(std::string(name(element)) + ", blocks of " + std::to_string(width));
          expect_one_rounding(tensor, columns);
        }
      }
    }
  }
}

// 256 codes of scales, matrices with global scales of their own.
TEST(RowReader, ResultsOfNibblesAreRoundedOnceUnderAllCodesOfScales) {
  constexpr std::int64_t columns = 2048, width = 16;
  std::mt19937 random(29);
  const std::int64_t grid = rows * columns / width;
  std::vector<std::byte> codes(static_cast<std::size_t>(rows * columns / 2)), scales(static_cast<std::size_t>(grid));
  for (std::byte& byte : codes) byte = static_cast<std::byte>(random());
  for (std::size_t i = 0; i < scales.size(); ++i) scales[i] = static_cast<std::byte>(i);
  const std::array<float, 3> globals = {0x1.23456p-5F, 0x1p-120F, 0x1.fffffep+100F};
  for (const DType scale : {DType::float8_e4m3fn, DType::float8_e8m0fnu}) {
    for (const GlobalScale global : {GlobalScale::none, GlobalScale::factor, GlobalScale::divisor}) {
      for (const int offset : {0, 8}) {
        BlockTensor tensor;
        tensor.coding = {.element = DType::uint8, .bits = 4, .offset = offset, .scale = scale, .global = global};
        tensor.shape = {3, rows / 3, columns};
        tensor.block_rows = 1;
        tensor.block_columns = width;
        tensor.codes = {DType::uint8, {static_cast<std::int64_t>(codes.size())}, codes};
        tensor.scales = {DType::uint8, {grid}, scales};
        if (global != GlobalScale::none) {
          tensor.global_scale = {DType::float32, {3}, std::as_bytes(std::span(globals))};
        }
        SCOPED_TRACE(std::string(name(scale)) + ' ' + std::to_string(static_cast<int>(global)));
        expect_one_rounding(tensor, columns);
      }
    }
  }
}

}  // namespace
}  // namespace tensorcast
