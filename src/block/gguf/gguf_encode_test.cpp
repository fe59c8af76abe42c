// SPDX-License-Identifier: Apache-2.0
// Every target's blocks of ggml's older formats are those of the definition.
#include "block/gguf/gguf_encode.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "block/format/gguf_block.hpp"
#include "block/recipe/float_steps.hpp"
#include "kernels/ops.hpp"

namespace tensorcast::block {
namespace {

constexpr std::array<GgufBlock, 5> formats = {GgufBlock::q8_0, GgufBlock::q4_0, GgufBlock::q4_1, GgufBlock::q5_0,
                                              GgufBlock::q5_1};
constexpr std::size_t run = 32, blocks = 70;

// Blocks of many sizes: of all digits, and of so few that largest numbers and ties are frequent.
std::vector<float> numbers_of(bool has_few_digits, std::mt19937& random) {
  std::vector<float> numbers(blocks * run);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const auto bits = static_cast<std::uint32_t>(random());
    const int exponent = static_cast<int>(i / run % 50) - 30;
    const float few = static_cast<float>(static_cast<int>(bits % 33) - 16);
    const float many = static_cast<float>(static_cast<std::int32_t>(bits)) * 0x1p-31f;
    numbers[i] = std::ldexp(has_few_digits ? few : many, exponent);
  }
  return numbers;
}

// Returns how many blocks the target encodes.
std::size_t check(GgufBlock format, const std::vector<float>& numbers, Target target) {
  const std::size_t bytes = block_size(format).bytes;
  std::vector<std::uint8_t> right(blocks * bytes), made(blocks * bytes + 1, 0xa5);
  gguf_definition(format)(numbers.data(), nullptr, blocks, right.data());
  const std::size_t done = kernels::ops_of(target).find_encode_gguf(format)(numbers.data(), blocks,
                                                                            reinterpret_cast<std::byte*>(made.data()));
  EXPECT_LE(done, blocks);
  for (std::size_t i = 0; i < done; ++i) {
    const auto first = static_cast<std::ptrdiff_t>(i * bytes), end = static_cast<std::ptrdiff_t>((i + 1) * bytes);
    EXPECT_TRUE(std::equal(right.begin() + first, right.begin() + end, made.begin() + first))
        << name(target) << " format " << static_cast<int>(format) << " block " << i;
  }
  EXPECT_EQ(made[done * bytes], 0xa5);
  return done;
}

TEST(EncodeGguf, EveryTargetEqualsTheDefinition) {
  std::mt19937 random(43);
  for (const GgufBlock format : formats) {
    for (int trial = 0; trial < 40; ++trial) {
      const std::vector<float> numbers = numbers_of(trial % 2 == 0, random);
      for (const Target target : supported_targets()) {
        // Of few digits, numbers of a block may all be zero, or its least number be.
        const std::size_t done = check(format, numbers, target);
        EXPECT_GE(done, trial % 2 != 0 ? blocks - 15 : 0) << name(target);
        if (testing::Test::HasFailure()) return;
      }
    }
  }
}

TEST(EncodeGguf, StopsAtNumbersWithSpecialCases) {
  std::mt19937 random(47);
  constexpr std::array<float, 5> rare = {std::numeric_limits<float>::infinity(), -0x1p127f, 0x1p100f,
                                         std::numeric_limits<float>::quiet_NaN(),
                                         -std::numeric_limits<float>::quiet_NaN()};
  for (const GgufBlock format : formats) {
    for (const float number : rare) {
      std::vector<float> numbers = numbers_of(false, random);
      numbers[40 * run + random() % run] = number;
      std::fill_n(numbers.begin() + 50 * run, run, 0.0f);
      for (const Target target : supported_targets()) EXPECT_LE(check(format, numbers, target), 40u) << number;
    }
  }
}

// The kernels and the definition by turns.
TEST(EncodeGguf, SpecialBlocksAmongOthersEqualTheDefinition) {
  std::mt19937 random(53);
  for (const GgufBlock format : formats) {
    std::vector<float> numbers = numbers_of(false, random);
    for (const std::size_t block : {0, 17, 18, 40, 69})
      std::fill_n(numbers.begin() + static_cast<std::ptrdiff_t>(block * run), run, 0.0f);
    std::vector<std::uint8_t> right(blocks * block_size(format).bytes), made(right.size());
    gguf_definition(format)(numbers.data(), nullptr, blocks, right.data());
    gguf_encoder(format)(numbers.data(), nullptr, blocks, made.data());
    EXPECT_EQ(made, right) << static_cast<int>(format);
  }
}

}  // namespace
}  // namespace tensorcast::block
