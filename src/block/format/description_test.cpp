// SPDX-License-Identifier: Apache-2.0
// Descriptions of blocks that contradict themselves are errors, before a byte is read.
#include "block/format/description.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "tensorcast/typed_cast.hpp"

namespace tensorcast {
namespace {

// 4 x 64 float8 in blocks of 2 x 32, whose grid is 2 x 2.
struct BlocksOf2x32 {
  std::vector<std::uint8_t> codes = std::vector<std::uint8_t>(256, 0x38);
  std::vector<float> scales = std::vector<float>(6, 1.0f);
  std::vector<float> out = std::vector<float>(256);
  BlockTensor tensor{.coding = {.element = DType::float8_e4m3fn},
                     .shape = {4, 64},
                     .block_rows = 2,
                     .block_columns = 32,
                     .codes = view(codes, {4, 64}),
                     .scales = {DType::float32, {2, 2}, std::as_bytes(std::span(scales).first(4))}};

  std::string error() {
    const std::int64_t columns = tensor.shape.empty() ? 1 : tensor.shape.back();
    const Result<void> done = dequantize(
        tensor, 0,
        {DType::float32, {256 / std::max<std::int64_t>(1, columns), columns}, std::as_writable_bytes(std::span(out))});
    return done ? "" : done.error().describe();
  }
  std::string error_of(auto&& change) {
    const BlockTensor kept = tensor;
    change(tensor);
    const std::string said = error();
    tensor = kept;
    return said;
  }
};

TEST(Description, EveryFieldOfACodingIsChecked) {
  BlocksOf2x32 sample;
  EXPECT_EQ(sample.error(), "");
  const auto error_of = [&](auto&& change) {
    return sample.error_of([&](BlockTensor& tensor) { change(tensor.coding); });
  };
  EXPECT_EQ(error_of([](BlockCoding& coding) { coding.bits = 0; }), "`bits` is 0, expected 1 to 8");
  EXPECT_EQ(error_of([](BlockCoding& coding) { coding.bits = -5; }), "`bits` is -5, expected 1 to 8");
  EXPECT_EQ(error_of([](BlockCoding& coding) { coding.bits = 6; }), "`bits` is 6, but float8_e4m3fn has 8");
  EXPECT_EQ(error_of([](BlockCoding& coding) { coding.element = DType::float32; }),
            "`element` is float32, expected int8, uint8 or a floating-point type of 8 bits or fewer");
  EXPECT_EQ(error_of([](BlockCoding& coding) { coding.packing = static_cast<BlockPacking>(9); }),
            "`packing` is 9, which is no BlockPacking");
  EXPECT_EQ(error_of([](BlockCoding& coding) { coding.packing = BlockPacking::flat; }),
            "`bits` is 8, but codes of this packing have 4");
  EXPECT_EQ(error_of([](BlockCoding& coding) { coding.zeros = BlockPacking::gguf; }),
            "`zeros` is a packing that zero points do not have; use stream, words_down or awq");
  EXPECT_EQ(error_of([](BlockCoding& coding) { coding.offset = std::numeric_limits<int>::max(); }),
            "`offset` is 2147483647, expected -256 to 256");
  EXPECT_EQ(error_of([](BlockCoding& coding) { coding.zero_added = -1000; }),
            "`zero_added` is -1000, expected -256 to 256");
  EXPECT_EQ(error_of([](BlockCoding& coding) { coding.scale = DType::int8; }),
            "`scale` is int8, expected a floating-point type of 8 bits");
  EXPECT_EQ(error_of([](BlockCoding& coding) { coding.global = static_cast<GlobalScale>(7); }),
            "`global` is 7, which is no GlobalScale");
  EXPECT_EQ(error_of([](BlockCoding& coding) { coding.factor = std::numeric_limits<float>::infinity(); }),
            "`factor` is inf, expected a finite number");
  EXPECT_EQ(error_of([](BlockCoding& coding) { coding.gguf = static_cast<GgufBlock>(24); }),
            "`gguf` is 24, which is no GgufBlock");
  EXPECT_EQ(error_of([](BlockCoding& coding) { coding.gguf = GgufBlock::q4_0; }),
            "the packing gguf and one of its formats belong together");
  EXPECT_EQ(error_of([](BlockCoding& coding) {
              coding = {.packing = BlockPacking::gguf, .offset = 8, .gguf = GgufBlock::q4_0};
            }),
            "blocks of GGUF have no other coding than their own");
  EXPECT_EQ(error_of([](BlockCoding& coding) {
              coding = {.element = DType::undefined, .bits = 4, .packing = BlockPacking::flat, .transposed = true};
            }),
            "flat codes cannot be transposed");
}

TEST(Description, ArraysHaveTheDimensionsOfTheBlocks) {
  BlocksOf2x32 sample;
  sample.tensor.shape = {4, 96};  // 2 x 3 blocks
  sample.codes.resize(384);
  sample.out.resize(384);
  sample.tensor.codes = view(sample.codes, {4, 96});
  const auto with_scales = [&](const Shape& shape) {
    sample.tensor.scales = {DType::float32, shape, std::as_bytes(std::span(sample.scales))};
    const Result<void> done =
        dequantize(sample.tensor, 0, {DType::float32, {4, 96}, std::as_writable_bytes(std::span(sample.out))});
    return done ? "" : done.error().describe();
  };
  EXPECT_EQ(with_scales({2, 3}), "");
  EXPECT_EQ(with_scales({6}), "");
  EXPECT_EQ(with_scales({1, 2, 3, 1}), "");
  EXPECT_EQ(with_scales({3, 2}), "the scales have other dimensions than the 2 x 3 blocks");
  EXPECT_NE(with_scales({2, 4}), "");
  sample.tensor.scales.shape = {2, 3};
  const auto error_of = [&](auto&& change) {
    const BlockTensor kept = sample.tensor;
    change(sample.tensor);
    const Result<void> done =
        dequantize(sample.tensor, 0, {DType::float32, {4, 96}, std::as_writable_bytes(std::span(sample.out))});
    sample.tensor = kept;
    return done ? "" : done.error().describe();
  };
  EXPECT_EQ(error_of([](BlockTensor& tensor) { tensor.scales.bytes = tensor.scales.bytes.first(20); }),
            "5 scales, where the blocks need 6");
  EXPECT_EQ(error_of([](BlockTensor& tensor) {
              tensor.codes.shape = {96, 4};
            }),
            "the shape of the codes has no 4 rows");
  EXPECT_EQ(
      error_of([](BlockTensor& tensor) { tensor.codes.dtype = DType::float8_e5m2; }),
      "the codes have type float8_e5m2, expected uint8 or float8_e4m3fn; where they are the right bits in another "
      "type, view them as uint8");
  EXPECT_EQ(error_of([](BlockTensor& tensor) {
              tensor.coding.scale = DType::float8_e8m0fnu;
              tensor.scales.dtype = DType::float8_e4m3fn;
              tensor.scales.bytes = tensor.scales.bytes.first(6);
            }),
            "scales of type float8_e4m3fn, expected float8_e8m0fnu or uint8");
  EXPECT_EQ(error_of([](BlockTensor& tensor) { tensor.block_rows = -1; }), "blocks of a negative size: -1 x 32");
  EXPECT_EQ(error_of([](BlockTensor& tensor) {
              tensor.coding.element = DType::undefined;
              tensor.coding.bits = 8;
            }),
            "`table` has 0 numbers, but there are 256 codes");
}

TEST(Description, WeightShapesOfNoCodingAreErrors) {
  BlockCoding coding{.element = DType::uint8};
  for (const int bits : {0, -5, 9}) {
    coding.bits = bits;
    EXPECT_FALSE(weight_shape(coding, DType::int32, {8, 8}).ok()) << bits;
  }
  EXPECT_EQ(block_size(static_cast<GgufBlock>(24)).bytes, 0u);
  EXPECT_EQ(block_size(GgufBlock::none).elements, 0u);
}

// Rows of nf4 begin inside of the pieces that are read: what was before the first one's bytes was read, too.
TEST(Description, RowsOfFlatCodesAreReadWithinTheirRange) {
  constexpr std::int64_t rows = 47, columns = 68;
  std::vector<std::byte> codes(static_cast<std::size_t>(rows * columns / 2));
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::byte>(i * 37);
  std::vector<float> scales(static_cast<std::size_t>((rows * columns + 63) / 64), 1.5f);
  std::vector<float> whole(static_cast<std::size_t>(rows * columns)), part(3 * columns);
  const auto floats = [](std::vector<float>& numbers) { return std::as_writable_bytes(std::span(numbers)); };
  BlockTensor tensor{.coding = find_block_format("nf4")->coding,
                     .shape = {rows, columns},
                     .block_rows = 1,
                     .block_columns = 64,
                     .codes = {DType::uint8, {rows * columns / 2, 1}, codes},
                     .scales = view(scales),
                     .table = nf4_table()};
  ASSERT_TRUE(dequantize(tensor, 0, {DType::float32, {rows, columns}, floats(whole)}).ok());
  for (std::int64_t first = 0; first + 3 <= rows; ++first) {
    const Result<CodeRange> range = code_range(tensor, first, 3);
    ASSERT_TRUE(range.ok());
    const std::vector<std::byte> copy(codes.begin() + static_cast<std::ptrdiff_t>(range->begin),
                                      codes.begin() + static_cast<std::ptrdiff_t>(range->end));
    BlockTensor some = tensor;
    some.codes.bytes = copy;
    ASSERT_TRUE(dequantize(some, first, {DType::float32, {3, columns}, floats(part)}).ok());
    EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + first * columns)) << first;
  }
}

}  // namespace
}  // namespace tensorcast
