// SPDX-License-Identifier: Apache-2.0
// Pieces, threads and targets give the same bytes as one call; sizes that do not fit are errors. What the numbers are,
// python/tests/test_blocks.py compares with NumPy and the gguf package.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "block/format/code_matrix.hpp"
#include "codec/reference_cast.hpp"
#include "tensorcast/block.hpp"
#include "tensorcast/cast.hpp"

namespace tensorcast {
namespace {

// A weight of random bytes in a format of the table.
struct Sample {
  const BlockFormat* format = nullptr;
  std::vector<std::byte> codes, scales, zeros, biases;
  float global = 0.75f;
  BlockTensor tensor;
};

std::vector<std::byte> random_bytes(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random() & 0x3f);  // no NaN, as scales
  return bytes;
}

std::int64_t blocks_of(std::int64_t length, std::int64_t block) {
  return block == 0 ? 1 : (length + block - 1) / block;
}

void fill(Sample& sample, const BlockFormat& format, std::int64_t matrices, std::int64_t rows, std::int64_t columns) {
  sample.format = &format;
  const BlockCoding& coding = format.coding;
  BlockTensor& tensor = sample.tensor;
  tensor.coding = coding;
  tensor.block_rows = format.block_rows;
  tensor.block_columns = format.block_columns;
  tensor.shape = {matrices, rows, columns};
  const bool transposed =
      coding.transposed || coding.packing == BlockPacking::words_down || coding.packing == BlockPacking::awq;
  const std::int64_t code_rows = transposed ? columns : rows;
  const std::int64_t code_columns = transposed ? rows : columns;
  std::int64_t bytes = matrices * rows * columns * coding.bits / 8;
  if (coding.gguf != GgufBlock::none) {
    const GgufBlockSize size = block_size(coding.gguf);
    bytes = matrices * rows * (columns / size.elements) * size.bytes;
  }
  sample.codes = random_bytes(static_cast<std::size_t>(bytes), 1);
  tensor.codes = {DType::uint8, {bytes}, sample.codes};
  if (coding.gguf != GgufBlock::none) return;
  std::int64_t grid =
      matrices * blocks_of(code_rows, format.block_rows) * blocks_of(code_columns, format.block_columns);
  if (coding.packing == BlockPacking::flat) grid = blocks_of(matrices * rows * columns, format.block_columns);
  if (coding.swizzled) {
    grid = matrices * ((code_rows + 127) / 128 * 128) * ((code_columns / format.block_columns + 3) / 4 * 4);
  }
  const bool is_code = coding.scale != DType::undefined;
  sample.scales = random_bytes(static_cast<std::size_t>(grid) * (is_code ? 1 : 2), 2);
  tensor.scales = {is_code ? DType::uint8 : DType::float16, {grid}, sample.scales};
  if (coding.global != GlobalScale::none) {
    tensor.global_scale = {DType::float32, {}, std::as_bytes(std::span(&sample.global, 1))};
  }
  if (coding.zero_added != 0) {
    const std::size_t words = static_cast<std::size_t>(grid * coding.bits / 32);
    sample.zeros = random_bytes(words * 4, 3);
    tensor.zero_points = {DType::int32, {static_cast<std::int64_t>(words)}, sample.zeros};
  }
  if (coding.element == DType::undefined) tensor.table = nf4_table();
}

std::vector<std::byte> converted(const BlockTensor& tensor, std::int64_t first, std::int64_t rows, DType to,
                                 const Execution& execution = {.threads = 1}) {
  const std::int64_t columns = tensor.shape.back();
  std::vector<std::byte> out(storage_bytes(to, static_cast<std::size_t>(rows * columns)));
  const Result<void> done = dequantize(tensor, first, {to, {rows, columns}, out}, {}, nullptr, execution);
  EXPECT_TRUE(done) << done.error().describe();
  return out;
}

// compressed-tensors packs zero points as it packs codes, 8 for 0, and 0.9 stored them as int8.
TEST(Dequantize, ZeroPointsThatAreNumbersAreOfTheIntegers) {
  const BlockFormat* const format = find_block_format("int4-group", "compressed-tensors");
  ASSERT_NE(format, nullptr);
  Sample sample;
  fill(sample, *format, 1, 8, 256);  // eight zero points a word: those of a column of blocks
  sample.zeros = random_bytes(2 * 4, 4);
  sample.tensor.zero_points = {DType::int32, {1, 2}, sample.zeros};
  const std::vector<std::byte> wanted = converted(sample.tensor, 0, 8, DType::float32);
  std::vector<std::byte> numbers(16);
  for (std::size_t row = 0; row < 8; ++row) {
    for (std::size_t block = 0; block < 2; ++block) {
      const auto pair = std::to_integer<int>(sample.zeros[block * 4 + row / 2]);
      numbers[row * 2 + block] = static_cast<std::byte>((pair >> (row % 2 * 4) & 15) - 8);
    }
  }
  sample.tensor.zero_points = {DType::int8, {8, 2}, numbers};
  EXPECT_EQ(converted(sample.tensor, 0, 8, DType::float32), wanted);
}

TEST(Dequantize, ArraysThatAFormatDoesNotHaveAreRefused) {
  const auto refusal = [](const BlockTensor& tensor) {
    std::vector<std::byte> out(static_cast<std::size_t>(4 * 256 * 4));
    const Result<void> done = dequantize(tensor, 0, {DType::float32, {4, 256}, out});
    return done ? std::string() : done.error().message;
  };
  const std::vector<std::byte> numbers(4);
  const TensorView one{DType::float32, {1}, numbers};
  for (const BlockFormat& format : block_formats()) {
    SCOPED_TRACE(std::string(format.scheme) + " of " + std::string(format.spelling));
    Sample sample;
    fill(sample, format, 1, 4, 256);
    BlockTensor more = sample.tensor;
    more.global_scale = one;
    const bool has_global = format.coding.global != GlobalScale::none;
    EXPECT_EQ(refusal(more).find("`global_scale` is given") == std::string::npos, has_global);
    more = sample.tensor;
    more.table = nf4_table();
    const bool is_gguf = format.coding.gguf != GgufBlock::none;
    const bool has_table = !is_gguf && format.coding.element == DType::undefined;
    EXPECT_EQ(refusal(more).find("`table` is given") == std::string::npos, has_table);
    if (!is_gguf) continue;
    more = sample.tensor;
    more.scales = one;
    EXPECT_NE(refusal(more).find("`scales` is given"), std::string::npos);
  }
}

TEST(Dequantize, AnyPiecesOfAnyFormatAreThoseOfTheWhole) {
  for (const BlockFormat& format : block_formats()) {
    SCOPED_TRACE(std::string(format.scheme) + " of " + std::string(format.spelling));
    Sample sample;
    fill(sample, format, 2, 288, 512);
    const std::vector<std::byte> whole = converted(sample.tensor, 0, 576, DType::bfloat16);
    EXPECT_EQ(converted(sample.tensor, 0, 576, DType::bfloat16, {.threads = 3}), whole);
    for (std::int64_t first = 0; first < 576;) {
      const std::int64_t rows = std::min<std::int64_t>(first == 0 ? 37 : 150, 576 - first);
      const Result<CodeRange> range = code_range(sample.tensor, first, rows);
      ASSERT_TRUE(range);
      // A copy of just these codes, so that a sanitizer sees any other byte that is read.
      const std::vector<std::byte> part(sample.codes.begin() + static_cast<std::ptrdiff_t>(range->begin),
                                        sample.codes.begin() + static_cast<std::ptrdiff_t>(range->end));
      BlockTensor piece = sample.tensor;
      piece.codes.bytes = part;
      const std::vector<std::byte> made = converted(piece, first, rows, DType::bfloat16);
      EXPECT_TRUE(std::equal(made.begin(), made.end(), whole.begin() + first * 512 * 2));
      first += rows;
    }
  }
}

// `bytes` of a buffer from a line of the cache on.
std::span<std::byte> lines_of(std::vector<std::byte>& buffer, std::int64_t bytes) {
  constexpr std::size_t line = 64;
  buffer.resize(static_cast<std::size_t>(bytes) + line);
  const std::size_t skipped = (0 - reinterpret_cast<std::uintptr_t>(buffer.data())) % line;
  return std::span(buffer).subspan(skipped, static_cast<std::size_t>(bytes));
}

// Scales and blocks are such that tables of products apply, but for some rows at the end.
TEST(Dequantize, SlowTargetsThatBypassTheCacheAreThoseInPieces) {
  constexpr std::int64_t rows = 3328, columns = 4096 + 256, at_once = 208;
  const auto keep = [](std::vector<std::byte>& bytes, std::byte kept, std::byte set, std::size_t step = 1) {
    for (std::size_t i = step - 1; i < bytes.size() - bytes.size() / 64; i += step) bytes[i] = (bytes[i] & kept) | set;
  };
  std::vector<std::byte> buffer;
  for (const BlockFormat& format : block_formats()) {
    SCOPED_TRACE(std::string(format.scheme) + " of " + std::string(format.spelling));
    Sample sample;
    fill(sample, format, 1, rows, columns);
    if (format.coding.gguf != GgufBlock::none) keep(sample.codes, std::byte{0xbb}, {});
    keep(sample.scales, std::byte{0x3f}, std::byte{0x40}, format.coding.scale == DType::undefined ? 2 : 1);
    const std::span<std::byte> whole = lines_of(buffer, rows * columns * 2);
    ASSERT_TRUE(dequantize(sample.tensor, 0, {DType::bfloat16, {rows, columns}, whole}, {}, nullptr, {.threads = 1}));
    for (std::int64_t first = 0; first < rows; first += at_once) {
      const std::vector<std::byte> made = converted(sample.tensor, first, at_once, DType::bfloat16);
      ASSERT_TRUE(std::equal(made.begin(), made.end(), whole.begin() + first * columns * 2)) << first;
    }
  }
}

float exact_number(DType from, std::uint64_t code) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(codec::cast_code(from, code, DType::float32, {}).bits));
}

// Row r has scale byte r, and each code in turn.
TEST(Dequantize, AllCodesUnderAllScaleBytesAreOneProductRoundedOnce) {
  constexpr std::int64_t rows = 256, columns = 256;
  for (const BlockFormat& format : block_formats()) {
    const BlockCoding& coding = format.coding;
    if (coding.scale == DType::undefined || coding.transposed || coding.swizzled) continue;
    SCOPED_TRACE(std::string(format.scheme) + " of " + std::string(format.spelling));
    Sample sample;
    fill(sample, format, 1, rows, columns);
    const auto code_of = [&](std::int64_t i) { return static_cast<std::uint64_t>(i) % (1U << coding.bits); };
    for (std::int64_t i = 0; i < rows * columns; ++i) {
      codec::store_code(coding.element, sample.codes.data(), static_cast<std::size_t>(i), code_of(i));
    }
    const std::size_t grid = sample.scales.size() / rows;
    for (std::size_t i = 0; i < sample.scales.size(); ++i) sample.scales[i] = static_cast<std::byte>(i / grid);
    for (const DType to : {DType::float32, DType::float16, DType::bfloat16}) {
      const std::vector<std::byte> made = converted(sample.tensor, 0, rows, to);
      for (std::int64_t i = 0; i < rows * columns; ++i) {
        volatile float scale = exact_number(coding.scale, static_cast<std::uint64_t>(i / columns));
        if (coding.global == GlobalScale::factor) scale = scale * sample.global;
        if (coding.global == GlobalScale::divisor) scale = scale / sample.global;
        volatile float number = exact_number(coding.element, code_of(i));
        if (coding.positive_zero && number == 0) number = 0;
        number = number * scale;
        const auto product = std::bit_cast<std::uint32_t>(static_cast<float>(number));
        const std::uint64_t right = codec::cast_code(DType::float32, product, to, {}).bits;
        const std::uint64_t got = codec::load_code(to, made.data(), static_cast<std::size_t>(i));
        if (std::isnan(exact_number(to, got)) && std::isnan(exact_number(to, right))) continue;
        ASSERT_EQ(got, right) << name(to) << " scale " << i / columns << " code " << code_of(i);
      }
    }
  }
}

TEST(Dequantize, AllTargetsRoundTheSameFloat32Numbers) {
  Sample sample;
  fill(sample, *find_block_format("nvfp4"), 1, 3, 64);
  const std::vector<std::byte> exact = converted(sample.tensor, 0, 3, DType::float32);
  for (const DType to : {DType::float64, DType::float16, DType::bfloat16, DType::float8_e4m3fn, DType::float8_e5m2}) {
    std::vector<std::byte> rounded(storage_bytes(to, 192));
    ASSERT_TRUE(cast({DType::float32, {192}, exact}, {to, {192}, rounded}));
    EXPECT_EQ(converted(sample.tensor, 0, 3, to), rounded);
  }
}

// The same random words as a cast of all float32 numbers, however the rows are read.
TEST(Dequantize, StochasticRoundingTakesThePlaceInTheTensor) {
  constexpr std::int64_t rows = 96, columns = 2304;  // more than the pieces that are read together
  constexpr std::size_t count = 2 * rows * columns;
  constexpr std::uint64_t origin = 1'000'003;
  const CastOptions options{.rounding = Rounding::stochastic, .seed = 5};
  for (const BlockFormat& format : block_formats()) {
    SCOPED_TRACE(std::string(format.scheme) + " of " + std::string(format.spelling));
    Sample sample;
    fill(sample, format, 2, rows, columns);
    const std::vector<std::byte> exact = converted(sample.tensor, 0, 2 * rows, DType::float32);
    const auto read = [&](std::int64_t first, std::int64_t some, const Execution& execution) {
      std::vector<std::byte> out(static_cast<std::size_t>(some * columns));
      const MutableTensorView to{DType::float8_e4m3fn, {some, columns}, out};
      EXPECT_TRUE(dequantize(sample.tensor, first, to, options, nullptr, execution));
      return out;
    };
    for (const std::uint64_t place : {std::uint64_t{0}, origin}) {
      std::vector<std::byte> rounded(count);
      ASSERT_TRUE(cast({DType::float32, {count}, exact}, {DType::float8_e4m3fn, {count}, rounded}, options,
                       {.first_element = place}));
      EXPECT_EQ(read(0, 2 * rows, {.first_element = place}), rounded);
      const std::vector<std::byte> tail(rounded.begin() + 99 * columns, rounded.begin() + 104 * columns);
      EXPECT_EQ(read(99, 5, {.threads = 1, .first_element = place}), tail);
      if (place != 0) continue;
      std::vector<std::byte> prepared(tail.size());
      ASSERT_TRUE(
          prepare_dequantize(sample.tensor, DType::float8_e4m3fn, options).value()(99, 5, prepared.data()).ok());
      EXPECT_EQ(prepared, tail);
    }
  }
}

TEST(Dequantize, AnyBlocksOfGgufAreTheirFloat32NumbersRounded) {
  std::mt19937 random(5);
  for (const BlockFormat& format : block_formats()) {
    if (format.coding.gguf == GgufBlock::none) continue;
    SCOPED_TRACE(std::string(format.scheme));
    Sample sample;
    fill(sample, format, 1, 64, 1024);
    for (std::byte& byte : sample.codes) byte = static_cast<std::byte>(random());
    const std::vector<std::byte> exact = converted(sample.tensor, 0, 64, DType::float32);
    for (const DType to : {DType::float16, DType::bfloat16}) {
      const std::vector<std::byte> made = converted(sample.tensor, 0, 64, to);
      std::vector<std::byte> rounded(made.size());
      ASSERT_TRUE(cast({DType::float32, {64 * 1024}, exact}, {to, {64 * 1024}, rounded}));
      for (std::size_t i = 0; i < 64 * 1024; ++i) {
        const std::uint64_t got = codec::load_code(to, made.data(), i), right = codec::load_code(to, rounded.data(), i);
        if (std::isnan(exact_number(to, got)) && std::isnan(exact_number(to, right))) continue;
        ASSERT_EQ(got, right) << name(to) << ' ' << i;
      }
    }
  }
}

TEST(Dequantize, ReportsWhatTheRoundingDid) {
  Sample sample;
  fill(sample, *find_block_format("fp8-channel"), 1, 700, 1024);
  std::vector<std::byte> out(700 * 1024);
  CastReport alone, shared;
  const MutableTensorView to{DType::float8_e5m2, {700, 1024}, out};
  ASSERT_TRUE(dequantize(sample.tensor, 0, to, {}, &alone, {.threads = 1}));
  ASSERT_TRUE(dequantize(sample.tensor, 0, to, {}, &shared, {.threads = 4}));
  EXPECT_EQ(alone.count, 700u * 1024);
  EXPECT_EQ(alone.inexact, shared.inexact);
  EXPECT_GT(alone.inexact, 0u);
}

// Codes of any width, one after the other from the low bits on.
TEST(Dequantize, CodesOfAStreamAreItsBits) {
  for (const int bits : {2, 3, 4, 5, 6, 7, 8}) {
    constexpr std::size_t count = 300;
    std::vector<std::byte> bytes = random_bytes((count * static_cast<std::size_t>(bits) + 31) / 32 * 4, 7);
    block::CodeMatrices codes{.element = DType::uint8, .bits = bits, .rows = 1, .columns = count, .data = bytes.data()};
    std::vector<float> made(count), expected(count);
    for (std::size_t i = 0; i < count; ++i) {
      unsigned code = 0;
      for (std::size_t k = 0; k < static_cast<std::size_t>(bits); ++k) {
        const std::size_t bit = i * static_cast<std::size_t>(bits) + k;
        code |= (std::to_integer<unsigned>(bytes[bit / 8]) >> bit % 8 & 1u) << k;
      }
      expected[i] = static_cast<float>(code);
    }
    codes.read(0, 0, 0, made);
    EXPECT_EQ(made, expected) << bits;
  }
}

TEST(Dequantize, AReportChangesNoNumber) {
  for (const BlockFormat& format : block_formats()) {
    SCOPED_TRACE(std::string(format.scheme) + " of " + std::string(format.spelling));
    Sample sample;
    fill(sample, format, 2, 288, 512);
    for (const DType to : {DType::float32, DType::float16, DType::bfloat16}) {
      std::vector<std::byte> out(storage_bytes(to, 576 * 512) + 1);
      const std::span<std::byte> odd = std::span(out).subspan(1);  // any alignment
      CastReport report;
      ASSERT_TRUE(dequantize(sample.tensor, 0, {to, {576, 512}, odd}, {}, &report, {.threads = 1}));
      EXPECT_EQ(report.count, 576u * 512);
      const std::vector<std::byte> without = converted(sample.tensor, 0, 576, to);
      EXPECT_TRUE(std::equal(without.begin(), without.end(), odd.begin(), odd.end()));
    }
  }
}

// Tensors lie in the memory of others, such as a thread's stack, with the target behind them.
TEST(Dequantize, TheTargetMayLieAnywhere) {
  struct {
    BlockTensor tensor;
    std::array<float, 2048> numbers{};
  } both;
  Sample sample;
  fill(sample, *find_block_format("mxfp8"), 1, 64, 32);
  both.tensor = sample.tensor;
  const MutableTensorView out{DType::float32, {64, 32}, std::as_writable_bytes(std::span(both.numbers))};
  const Result<void> done = dequantize(both.tensor, 0, out);
  EXPECT_TRUE(done) << done.error().message;
  std::vector<float> apart(2048);
  ASSERT_TRUE(dequantize(both.tensor, 0, {DType::float32, {64, 32}, std::as_writable_bytes(std::span(apart))}));
  EXPECT_TRUE(std::ranges::equal(both.numbers, apart));
  const Result<void> null = dequantize(both.tensor, 0, {DType::float32, {64, 32}, {}});
  ASSERT_FALSE(null);
  EXPECT_EQ(null.error().message, "the target buffer is null");
}

TEST(Dequantize, NoElements) {
  Sample sample;
  fill(sample, *find_block_format("mxfp4"), 1, 4, 64);
  sample.tensor.shape = {0, 64};
  EXPECT_TRUE(dequantize(sample.tensor, 0, {DType::float16, {0, 64}, {}}));
  sample.tensor.shape = {std::int64_t{1} << 40, std::int64_t{1} << 40, 0};
  EXPECT_TRUE(dequantize(sample.tensor, 0, {DType::float16, {5, 0}, {}}));
}

TEST(Dequantize, CodesOfGptOssMayBeBlockByBlock) {
  const BlockCoding& coding = find_block_format("mxfp4", "gpt-oss")->coding;
  const auto shape_of = [&](const Shape& codes, const Shape& scales) {
    return weight_shape(coding, DType::uint8, codes, scales);
  };
  EXPECT_EQ(*shape_of({3, 40, 32}, {3, 40, 2}), (Shape{3, 64, 40}));
  EXPECT_EQ(*shape_of({3, 40, 2, 16}, {3, 40, 2}), (Shape{3, 64, 40}));
  EXPECT_FALSE(shape_of({3, 40, 2, 16}, {3, 2, 40}));
  EXPECT_FALSE(shape_of({3, 40, std::int64_t{1} << 62, 16}, {3, 40, std::int64_t{1} << 62}));
  EXPECT_FALSE(shape_of({16}, {}));
}

TEST(Dequantize, SizesThatDoNotFitAreErrors) {
  for (const BlockFormat& format : block_formats()) {
    SCOPED_TRACE(std::string(format.scheme) + " of " + std::string(format.spelling));
    Sample good;
    fill(good, format, 2, 64, 512);
    std::vector<std::byte> out(2 * 64 * 512 * 2);
    const MutableTensorView to{DType::float16, {128, 512}, out};
    ASSERT_TRUE(dequantize(good.tensor, 0, to));
    const auto refused = [&](auto&& change) {
      BlockTensor tensor = good.tensor;
      change(tensor);
      const Result<void> done = dequantize(tensor, 0, to);
      return !done && done.error().code != ErrorCode::internal;
    };
    EXPECT_TRUE(refused([](BlockTensor& t) { t.codes.shape = {t.codes.shape[0] / 2}; }));
    EXPECT_TRUE(refused([](BlockTensor& t) { t.codes.bytes = t.codes.bytes.first(t.codes.bytes.size() - 1); }));
    EXPECT_TRUE(refused([](BlockTensor& t) { t.codes.shape = {INT64_MAX}; }));
    EXPECT_TRUE(refused([](BlockTensor& t) { t.shape = {2, 64, 1024}; }));
    EXPECT_TRUE(refused([](BlockTensor& t) { t.shape = {1, INT64_MAX / 32, 512}; }));
    EXPECT_TRUE(refused([](BlockTensor& t) { t.shape = {64, 512}; }));
    EXPECT_TRUE(refused([](BlockTensor& t) { t.shape = {-2, -64, 512}; }));
    if (format.coding.gguf != GgufBlock::none) continue;
    EXPECT_TRUE(refused([](BlockTensor& t) { t.scales = {}; }));
    EXPECT_TRUE(refused([](BlockTensor& t) { t.scales.bytes = t.scales.bytes.first(t.scales.bytes.size() - 1); }));
    EXPECT_TRUE(refused([](BlockTensor& t) { t.block_rows = -1; }));
    EXPECT_TRUE(refused([](BlockTensor& t) { t.coding.bits = 0; }));
    if (format.coding.global != GlobalScale::none) {
      EXPECT_TRUE(refused([](BlockTensor& t) { t.global_scale = {}; }));
    }
    if (format.coding.element == DType::undefined) {
      EXPECT_TRUE(refused([](BlockTensor& t) { t.table = t.table.first(15); }));
    }
    EXPECT_TRUE(refused([&](BlockTensor& t) {
      static const std::vector<std::int32_t> groups(512, 1 << 20);
      t.group_index = {DType::int32, {512}, std::as_bytes(std::span(groups))};
    }));
  }
  Sample sample;
  fill(sample, *find_block_format("fp8-block"), 1, 128, 128);
  std::vector<std::byte> out(128 * 128);
  EXPECT_FALSE(dequantize(sample.tensor, 0, {DType::int8, {128, 128}, out}));
  EXPECT_FALSE(dequantize(sample.tensor, 1, {DType::float8_e5m2, {128, 128}, out}));
  EXPECT_FALSE(code_range(sample.tensor, -1, 1));
  EXPECT_FALSE(code_range(sample.tensor, 0, 129));
}

}  // namespace
}  // namespace tensorcast
