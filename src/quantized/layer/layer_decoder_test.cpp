// SPDX-License-Identifier: Apache-2.0
#include "quantized/layer/layer_decoder.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "quantized/layer/part_decoder.hpp"
#include "quantized/layer/part_reader.hpp"
#include "tensorcast/cast.hpp"

namespace tensorcast::quantized {
namespace {

constexpr DType types[] = {DType::uint8,   DType::int8,     DType::int32,          DType::uint32, DType::float8_e4m3fn,
                           DType::float32, DType::bfloat16, DType::float8_e8m0fnu, DType::float16};

// A layer as a plan that lies may have it: nearly all of its sizes fit, and nothing else.
class RandomLayer {
 public:
  explicit RandomLayer(unsigned seed) : source_(seed) {}

  int below(int end) { return static_cast<int>(source_() % static_cast<unsigned>(end)); }

  void make() {
    layer_ = {};
    parts_.clear();
    layer_.scheme = below(4) == 0 ? "nf4" : "q8_0";
    constexpr int sizes[] = {0, 1, 2, 3, 4, 8, 16, 32, 33, 64, 96, 128, 130};
    std::int64_t count = 1;
    for (int rank = 1 + below(3); rank > 0; --rank) count *= layer_.shape.emplace_back(sizes[below(13)]);
    BlockCoding& coding = layer_.coding;
    constexpr DType elements[] = {DType::float8_e4m3fn, DType::float8_e5m2, DType::float4_e2m1fn, DType::float6_e2m3fn,
                                  DType::float6_e3m2fn, DType::uint8,       DType::int8,          DType::undefined};
    coding.element = elements[below(8)];
    coding.bits = below(2) == 0 ? 4 : 1 + below(8);
    coding.packing = static_cast<BlockPacking>(below(7));
    coding.offset = below(256);
    constexpr DType scales[] = {DType::undefined, DType::float8_e8m0fnu, DType::float8_e4m3fn};
    coding.scale = scales[below(3)];
    coding.global = static_cast<GlobalScale>(below(3));
    coding.swizzled = below(5) == 0;
    coding.transposed = below(3) == 0;
    constexpr int blocks[] = {0, 1, 2, 3, 16, 32, 64, 128, 1000000};
    layer_.block_rows = blocks[below(9)];
    layer_.block_columns = blocks[below(9)];
    layer_.nested_block = below(300);
    layer_.deviations.has_whole_codes = coding.packing == BlockPacking::stream && below(3) == 0;
    layer_.deviations.is_grid_transposed = layer_.block_rows == 1 && below(3) == 0;
    add_parts(count);
  }

  // Returns whether the decoder was made. A read outside of a part is a failure of the test.
  bool decode() {
    const auto read = [this](std::size_t part, std::uint64_t offset, std::span<std::byte> out) -> Result<void> {
      const std::uint64_t bytes = parts_.at(part).bytes;
      EXPECT_TRUE(offset <= bytes && out.size() <= bytes - offset) << "part " << part << " of " << bytes;
      for (std::size_t i = 0; i < out.size(); ++i) out[i] = content(part, offset + i);
      return {};
    };
    auto decoder = LayerDecoder::create(layer_, {parts_, read});
    if (!decoder) return false;
    const std::uint64_t count = decoded_info(layer_).count;
    if (count == 0) return true;
    std::vector<float> whole(count);
    if (!(*decoder)->read(0, whole)) return true;
    check_bounds((*decoder)->magnitudes(), whole);
    for (int i = 0; i < 4; ++i) {
      const std::uint64_t first = source_() % count;
      check_range(**decoder, whole, first, 1 + source_() % (count - first));
      check_part(whole, read);
    }
    return true;
  }

  // Decodes parts of rows and columns: they are those of the whole, and read no more than it.
  void check_part(const std::vector<float>& whole, const ReadPart& read) {
    std::vector<IndexRange> ranges;
    for (const std::int64_t size : layer_.shape) {
      const auto begin = static_cast<std::uint64_t>(below(static_cast<int>(size)));
      ranges.push_back(
          {begin,
           begin + 1 + static_cast<std::uint64_t>(below(static_cast<int>(size - static_cast<std::int64_t>(begin))))});
    }
    const formats::ArrayPart part(layer_.shape, ranges);
    constexpr DType targets[] = {DType::float32, DType::bfloat16, DType::float8_e5m2};
    const DType to = targets[below(3)];
    std::vector<std::byte> made(storage_bytes(to, part.count())), expected(made.size());
    CastOptions options;
    if (below(2) == 0) options.rounding = Rounding::toward_zero;
    const Result<void> done = decode_part(layer_, {parts_, read}, part, to, made, options, {.threads = 1});
    ASSERT_TRUE(done) << done.error().message;
    ASSERT_TRUE(part.visit([&](std::uint64_t from, std::uint64_t at, std::uint64_t n) {
      const std::int64_t shape[] = {static_cast<std::int64_t>(n)};
      const auto bytes = std::span(expected).subspan(storage_bytes(to, at), storage_bytes(to, n));
      return cast({DType::float32, shape, std::as_bytes(std::span(whole).subspan(from, n))}, {to, shape, bytes},
                  options);
    }));
    EXPECT_EQ(made, expected) << "packing " << static_cast<int>(layer_.coding.packing)
                              << (layer_.coding.transposed ? " transposed" : "");
  }

  // Some bytes, always the same: small codes and groups.
  static std::byte content(std::size_t part, std::uint64_t at) {
    return static_cast<std::byte>((at * 2654435761u + part) >> 7 & 1);
  }

  void check_range(LayerDecoder& decoder, const std::vector<float>& whole, std::uint64_t first, std::uint64_t count) {
    constexpr DType targets[] = {DType::float32, DType::bfloat16, DType::float16, DType::float8_e5m2};
    const DType to = targets[below(4)];
    const std::int64_t shape[] = {static_cast<std::int64_t>(count)};
    std::vector<std::byte> made(storage_bytes(to, count)), expected(made.size());
    ASSERT_TRUE(decoder.read(first, to, made));
    const auto numbers = std::span(whole).subspan(first, count);
    ASSERT_TRUE(cast({DType::float32, shape, std::as_bytes(numbers)}, {to, shape, expected}));
    EXPECT_EQ(made, expected) << name(to) << ", " << count << " from " << first;
  }

  static void check_bounds(const std::optional<formats::Magnitudes>& bounds, const std::vector<float>& whole) {
    if (!bounds) return;
    for (const float number : whole) {
      const double magnitude = std::fabs(number);
      if (!(magnitude > 0) || std::isinf(magnitude)) continue;
      ASSERT_LE(bounds->least, magnitude);
      ASSERT_GE(bounds->most, magnitude);
    }
  }

 private:
  void add(PartRole role, DType type, std::int64_t count) {
    if (below(12) == 0) count += below(3) - 1;
    count = std::max<std::int64_t>(count, 0);
    layer_.parts.push_back({.role = role, .tensor = parts_.size()});
    formats::TensorInfo info{.name = "part", .dtype = type, .shape = {count}};
    info.count = static_cast<std::uint64_t>(count);
    info.bytes = storage_bytes(type, info.count);
    parts_.push_back(std::move(info));
  }

  void add_parts(std::int64_t count) {
    const BlockCoding& coding = layer_.coding;
    const std::int64_t columns = std::max<std::int64_t>(layer_.shape.back(), 1);
    const std::int64_t rows =
        layer_.shape.size() > 1 ? std::max<std::int64_t>(layer_.shape[layer_.shape.size() - 2], 1) : 1;
    const std::int64_t experts = count / columns / rows;
    const std::int64_t of_row = (columns - 1) / std::max<std::int64_t>(layer_.block_columns, 1) + 1;
    const std::int64_t of_column = (rows - 1) / std::max<std::int64_t>(layer_.block_rows, 1) + 1;
    std::int64_t grid = of_row * of_column * experts;
    if (coding.swizzled) grid = (of_column + 127) / 128 * 128 * ((of_row + 3) / 4 * 4);
    const bool words = layer_.deviations.has_whole_codes || coding.packing == BlockPacking::words_down ||
                       (coding.packing == BlockPacking::stream && below(2) == 0);
    const std::int64_t width = words ? 32 : 8;
    std::int64_t codes = (columns * coding.bits + width - 1) / width * rows * experts;
    if (coding.packing == BlockPacking::gguf) codes = count / 32 * 34;
    add(PartRole::codes, words ? DType::int32 : DType::uint8, codes);
    add(PartRole::scales, coding.scale == DType::undefined ? types[below(9)] : DType::uint8,
        layer_.block_rows + layer_.block_columns == 0 ? 1 : grid);
    if (coding.global != GlobalScale::none) add(PartRole::global_scale, DType::float32, below(2) == 0 ? 1 : experts);
    const std::int64_t zeros = (rows * coding.bits + 31) / 32 * of_row;
    if (below(3) == 0 || coding.transposed) add(PartRole::zero_points, DType::int32, zeros);
    if (below(5) == 0) add(PartRole::biases, DType::float16, grid);
    if (below(4) == 0) add(PartRole::group_index, DType::int32, columns);
    if (below(6) == 0) {
      add(PartRole::nested_table, DType::float32, 256);
      add(PartRole::nested_scales, DType::float32, grid / std::max<std::int64_t>(layer_.nested_block, 1) + 1);
    }
  }

  std::mt19937 source_;
  Layer layer_;
  std::vector<formats::TensorInfo> parts_;
};

TEST(LayerDecoder, LayersThatLieNeverReadOutsideOfTheirParts) {
  constexpr int layers = 4000;
  RandomLayer layer(1);
  int decoded = 0;
  for (int i = 0; i < layers; ++i) {
    layer.make();
    decoded += layer.decode() ? 1 : 0;
    ASSERT_FALSE(testing::Test::HasFailure()) << "layer " << i;
  }
  EXPECT_GT(decoded, layers / 20);
}

// One row that is longer than what is decoded together.
TEST(LayerDecoder, LongRowsAreDecodedInParts) {
  constexpr std::int64_t columns = 600'003 * 2;
  struct Case {
    BlockPacking packing;
    int bits;
    std::int64_t block;
  };
  for (const Case& row :
       {Case{BlockPacking::stream, 8, 0}, Case{BlockPacking::stream, 8, 100}, Case{BlockPacking::flat, 4, 64},
        Case{BlockPacking::stream, 4, 16}, Case{BlockPacking::stream, 3, 32}, Case{BlockPacking::stream, 5, 32},
        Case{BlockPacking::stream, 6, 32}, Case{BlockPacking::stream, 7, 32}}) {
    Layer layer;
    layer.name = "w";
    layer.scheme = "nf4";
    layer.shape = {1, columns};
    layer.block_rows = 1;
    layer.block_columns = row.block;
    layer.coding = {.element = row.packing == BlockPacking::flat ? DType::undefined : DType::uint8,
                    .bits = row.bits,
                    .packing = row.packing,
                    .offset = 3};
    const std::int64_t scales = row.block == 0 ? 1 : (columns - 1) / row.block + 1;
    std::vector<formats::TensorInfo> parts;
    const auto add = [&](PartRole role, DType type, std::int64_t count) {
      layer.parts.push_back({.role = role, .tensor = parts.size()});
      parts.push_back({.name = "part", .dtype = type, .shape = {count}, .count = static_cast<std::uint64_t>(count)});
      parts.back().bytes = storage_bytes(type, parts.back().count);
    };
    add(PartRole::codes, DType::uint8, (columns * row.bits + 7) / 8);
    add(PartRole::scales, DType::float32, scales);
    const auto read = [&](std::size_t part, std::uint64_t offset, std::span<std::byte> out) -> Result<void> {
      EXPECT_LE(offset + out.size(), parts[part].bytes);
      for (std::size_t i = 0; i < out.size(); ++i) {
        const float scale = 1.0f + static_cast<float>((offset + i) / 4 % 1000) / 8;
        const auto bytes = std::as_bytes(std::span(&scale, 1));
        out[i] = part == 0 ? static_cast<std::byte>((offset + i) * 131 >> 3) : bytes[(offset + i) % 4];
      }
      return {};
    };
    auto decoder = LayerDecoder::create(layer, {parts, read});
    ASSERT_TRUE(decoder) << decoder.error().message;
    std::vector<float> whole(static_cast<std::size_t>(columns));
    ASSERT_TRUE((*decoder)->read(0, whole));
    const std::vector<float> numbers = code_numbers(layer.coding, layer.scheme);
    for (std::size_t i = 0; i < whole.size(); i += 997) {
      const std::size_t bit = i * static_cast<std::size_t>(row.bits);
      const auto byte = [&](std::size_t at) { return (at * 131 >> 3) & 255; };
      std::size_t code = (byte(bit / 8) | byte(bit / 8 + 1) << 8) >> bit % 8;
      if (row.packing == BlockPacking::flat) code = byte(i / 2) >> (i % 2 == 0 ? 4 : 0);
      code &= (std::size_t{1} << row.bits) - 1;
      const std::size_t block = row.block == 0 ? 0 : i / static_cast<std::size_t>(row.block);
      ASSERT_EQ(whole[i], numbers[code] * (1.0f + static_cast<float>(block % 1000) / 8)) << row.bits << " " << i;
    }
    std::vector<float> part(100'001);
    ASSERT_TRUE((*decoder)->read(250'007, part));
    EXPECT_TRUE(std::ranges::equal(part, std::span(whole).subspan(250'007, part.size())));
  }
}

}  // namespace
}  // namespace tensorcast::quantized
