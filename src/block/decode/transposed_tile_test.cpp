// SPDX-License-Identifier: Apache-2.0
// Weights whose codes are transposed are what their layout says, one element at a time.
#include "block/decode/transposed_tile.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "codec/reference_cast.hpp"
#include "tensorcast/block.hpp"

namespace tensorcast {
namespace {

std::vector<std::byte> bytes_from(std::size_t count, std::mt19937& random) {
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

// `width` bits of a stream of words, low bits first; `place` gives the word.
template <class Place>
unsigned bits_at(const std::vector<std::byte>& bytes, std::size_t bit, std::size_t width, const Place& place) {
  unsigned code = 0;
  for (std::size_t i = bit; i < bit + width; ++i) {
    std::uint32_t word = 0;
    std::memcpy(&word, &bytes[4 * place(i / 32)], sizeof(word));
    code |= (word >> i % 32 & 1) << (i - bit);
  }
  return code;
}

// The nibble of a word of AWQ that has a column.
constexpr std::size_t awq_nibble[] = {0, 4, 1, 5, 2, 6, 3, 7};

// Adds 1 to each number of `width` bits in a word, with the carry into the next; numbers that words cut have none.
std::vector<std::byte> with_ones(std::vector<std::byte> words, std::size_t width) {
  std::uint32_t ones = 0;
  for (std::size_t bit = 0; bit < 32; bit += width) ones |= std::uint32_t{1} << bit;
  for (std::size_t i = 0; i < words.size(); i += sizeof(ones)) {
    std::uint32_t word = 0;
    std::memcpy(&word, &words[i], sizeof(word));
    word += ones;
    std::memcpy(&words[i], &word, sizeof(word));
  }
  return words;
}

// W[n, k] = scale[g, n] * (q[k, n] - zero[g, n]), g that of k; GPTQ stores zeros less one.
struct PackedSample {
  std::int64_t outputs, inputs, group;  // group 0: all inputs
  int bits;
  bool is_awq;
  std::vector<std::int32_t> index = {};
  std::vector<std::byte> codes = {}, zeros = {}, scales = {};
  BlockTensor tensor = {};

  [[nodiscard]] std::size_t width() const { return static_cast<std::size_t>(bits); }
  [[nodiscard]] std::size_t n_count() const { return static_cast<std::size_t>(outputs); }
  [[nodiscard]] std::size_t groups() const {
    return group == 0 ? 1 : static_cast<std::size_t>((inputs + group - 1) / group);
  }

  void fill(std::mt19937& random) {
    const std::size_t code_words = is_awq ? static_cast<std::size_t>(inputs * outputs / 8)
                                          : (static_cast<std::size_t>(inputs) * width() + 31) / 32 * n_count();
    codes = bytes_from(4 * code_words, random);
    zeros = bytes_from(groups() * ((n_count() * width() + 31) / 32) * 4, random);
    scales = bytes_from(groups() * n_count() * 2, random);
    for (std::size_t i = 1; i < scales.size(); i += 2) scales[i] &= std::byte{0xbf};  // no NaN
    tensor.coding = {.element = DType::uint8, .bits = bits, .packing = BlockPacking::words_down, .zero_added = 1};
    if (is_awq) tensor.coding.packing = tensor.coding.zeros = BlockPacking::awq;
    if (is_awq) tensor.coding.zero_added = 0;
    tensor.shape = {outputs, inputs};
    tensor.block_rows = group;
    tensor.block_columns = 1;
    const auto size = [](const std::vector<std::byte>& bytes, std::size_t item) {
      return Shape{static_cast<std::int64_t>(bytes.size() / item)};
    };
    tensor.codes = {DType::int32, size(codes, 4), codes};
    tensor.zero_points = {DType::int32, size(zeros, 4), zeros};
    tensor.scales = {DType::float16, size(scales, 2), scales};
    if (!index.empty()) tensor.group_index = {DType::int32, {inputs}, std::as_bytes(std::span(index))};
  }

  [[nodiscard]] float number(std::size_t n, std::size_t k) const {
    const std::size_t g = !index.empty() ? static_cast<std::size_t>(index[k])
                          : group == 0   ? 0
                                         : k / static_cast<std::size_t>(group);
    unsigned code = 0, zero = 0;
    if (is_awq) {
      const std::size_t bit = n / 8 * 32 + awq_nibble[n % 8] * 4;
      code = bits_at(codes, bit, 4, [&](std::size_t i) { return k * n_count() / 8 + i; });
      zero = bits_at(zeros, bit, 4, [&](std::size_t i) { return g * n_count() / 8 + i; });
    } else {
      code = bits_at(codes, k * width(), width(), [&](std::size_t i) { return i * n_count() + n; });
      const std::size_t words = (n_count() * width() + 31) / 32;
      const auto place = [&](std::size_t i) { return g * words + i; };
      const bool is_whole = 32 % width() == 0;
      zero = is_whole ? bits_at(with_ones(zeros, width()), n * width(), width(), place)
                      : (bits_at(zeros, n * width(), width(), place) + 1) % (1u << width());
    }
    float scale = 0;
    EXPECT_TRUE(codec::reference_cast(&scales[2 * (g * n_count() + n)], DType::float16,
                                      reinterpret_cast<std::byte*>(&scale), DType::float32, 1, {}));
    volatile float difference = static_cast<float>(code) - static_cast<float>(zero);
    volatile float product = difference * scale;
    return product;
  }
};

void expect_tile_definition(PackedSample sample, std::mt19937& random) {
  sample.fill(random);
  SCOPED_TRACE(std::to_string(sample.outputs) + " x " + std::to_string(sample.inputs) + ", groups of " +
               std::to_string(sample.group) + (sample.is_awq ? ", awq " : ", gptq ") + std::to_string(sample.bits) +
               (sample.index.empty() ? "" : ", an index"));
  std::vector<float> numbers;
  for (std::size_t n = 0; n < sample.n_count(); ++n) {
    for (std::size_t k = 0; k < static_cast<std::size_t>(sample.inputs); ++k) numbers.push_back(sample.number(n, k));
  }
  for (const DType to : {DType::float32, DType::float16, DType::bfloat16, DType::float8_e5m2}) {
    std::vector<std::byte> made(storage_bytes(to, numbers.size())), wanted(made.size());
    ASSERT_TRUE(dequantize(sample.tensor, 0, {to, {sample.outputs, sample.inputs}, made}));
    ASSERT_TRUE(codec::reference_cast(reinterpret_cast<const std::byte*>(numbers.data()), DType::float32, wanted.data(),
                                      to, numbers.size(), {}));
    EXPECT_TRUE(made == wanted) << name(to);
    if (sample.outputs < 10) continue;
    const std::size_t row = made.size() / sample.n_count();  // a piece from the middle
    ASSERT_TRUE(
        dequantize(sample.tensor, 9, {to, {sample.outputs - 9, sample.inputs}, std::span(made).subspan(9 * row)}));
    EXPECT_TRUE(made == wanted) << name(to) << " from row 9 on";
  }
}

TEST(TransposedTile, NumbersOfEveryWidthAndShapeAreThoseOfTheLayout) {
  std::mt19937 random(31);
  for (const int bits : {2, 3, 4, 5, 6, 8}) {
    expect_tile_definition({.outputs = 136, .inputs = 160, .group = 32, .bits = bits, .is_awq = false}, random);
    expect_tile_definition({.outputs = 32, .inputs = 2304, .group = 128, .bits = bits, .is_awq = false}, random);
    expect_tile_definition({.outputs = 3, .inputs = 100, .group = 0, .bits = bits, .is_awq = false}, random);
    expect_tile_definition({.outputs = 1, .inputs = 1, .group = 32, .bits = bits, .is_awq = false}, random);
    expect_tile_definition({.outputs = 33, .inputs = 200, .group = 40, .bits = bits, .is_awq = false}, random);
  }
  for (const std::int64_t group : {32, 96, 128, 2080, 0}) {
    expect_tile_definition({.outputs = 8, .inputs = 4300, .group = group, .bits = 4, .is_awq = true}, random);
    expect_tile_definition({.outputs = 264, .inputs = 77, .group = group, .bits = 4, .is_awq = true}, random);
    expect_tile_definition({.outputs = 5, .inputs = 4300, .group = group, .bits = 4, .is_awq = false}, random);
  }
}

TEST(TransposedTile, AnIndexGivesTheGroupOfEachInput) {
  std::mt19937 random(37);
  constexpr std::int64_t inputs = 352, group = 32;
  std::vector<std::int32_t> in_order, mixed;
  for (std::int32_t k = 0; k < inputs; ++k) {
    in_order.push_back(k / group);
    mixed.push_back(static_cast<std::int32_t>(random() % (inputs / group)));
  }
  for (const std::vector<std::int32_t>& index : {in_order, mixed}) {
    for (const int bits : {2, 3, 4, 8}) {
      expect_tile_definition(
          {.outputs = 300, .inputs = inputs, .group = group, .bits = bits, .is_awq = false, .index = index}, random);
    }
  }
}

}  // namespace
}  // namespace tensorcast
