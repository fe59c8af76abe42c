// SPDX-License-Identifier: Apache-2.0
// Weights in gpt-oss' layout are what it says, one element at a time.
#include "block/decode/transposed_experts.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "codec/reference_cast.hpp"
#include "tensorcast/block.hpp"

namespace tensorcast {
namespace {

constexpr float magnitudes[] = {0.0F, 0.5F, 1.0F, 1.5F, 2.0F, 3.0F, 4.0F, 6.0F};

// Codes [experts, N, K] and scales [experts, N, K / 32] of a weight [experts, K, N].
struct Experts {
  std::size_t count, rows, columns;  // of the weight: K and N
  std::vector<std::byte> codes = {}, scales = {};

  void fill(std::mt19937& random, int least_scale, int most_scale) {
    codes.resize(count * columns * rows / 2);
    for (std::byte& byte : codes) byte = static_cast<std::byte>(random());
    scales.resize(count * columns * blocks());
    std::uniform_int_distribution<int> scale(least_scale, most_scale);
    for (std::byte& byte : scales) byte = static_cast<std::byte>(scale(random));
  }
  [[nodiscard]] std::size_t blocks() const { return (rows + 31) / 32; }
  [[nodiscard]] BlockTensor tensor() const {
    const auto length = [](std::size_t size) { return static_cast<std::int64_t>(size); };
    BlockTensor made;
    made.coding = find_block_format("mxfp4", "gpt-oss")->coding;
    made.shape = {length(count), length(rows), length(columns)};
    made.block_columns = 32;
    made.codes = {DType::uint8, {length(codes.size())}, codes};
    made.scales = {DType::uint8, {length(scales.size())}, scales};
    return made;
  }
  [[nodiscard]] float number(std::size_t expert, std::size_t k, std::size_t n) const {
    const std::size_t row = expert * columns + n;
    const unsigned code = std::to_integer<unsigned>(codes[(row * rows + k) / 2]) >> (k % 2 * 4) & 15U;
    const int scale = std::to_integer<int>(scales[row * blocks() + k / 32]);
    const float magnitude = std::ldexp(magnitudes[code & 7U], scale - 127);
    return (code & 8U) != 0 ? -magnitude : magnitude;
  }
};

void expect_definition(Experts experts, std::mt19937& random, int least_scale, int most_scale) {
  experts.fill(random, least_scale, most_scale);
  SCOPED_TRACE(std::to_string(experts.count) + " x " + std::to_string(experts.rows) + " x " +
               std::to_string(experts.columns) + ", scales from " + std::to_string(least_scale));
  std::vector<float> numbers;
  for (std::size_t expert = 0; expert < experts.count; ++expert) {
    for (std::size_t k = 0; k < experts.rows; ++k) {
      for (std::size_t n = 0; n < experts.columns; ++n) numbers.push_back(experts.number(expert, k, n));
    }
  }
  const BlockTensor tensor = experts.tensor();
  for (const DType to : {DType::bfloat16, DType::float16, DType::float32, DType::float8_e5m2}) {
    std::vector<std::byte> made(storage_bytes(to, numbers.size())), wanted(made.size());
    ASSERT_TRUE(codec::reference_cast(reinterpret_cast<const std::byte*>(numbers.data()), DType::float32, wanted.data(),
                                      to, numbers.size(), {}));
    ASSERT_TRUE(dequantize(tensor, 0, {to, tensor.shape, made}));
    EXPECT_TRUE(made == wanted) << name(to);
    constexpr std::size_t first = 13;  // a piece from the middle
    const std::size_t row = storage_bytes(to, experts.columns), rows = experts.count * experts.rows - first;
    std::fill(made.begin() + static_cast<std::ptrdiff_t>(first * row), made.end(), std::byte{1});
    const Shape piece = {static_cast<std::int64_t>(rows), static_cast<std::int64_t>(experts.columns)};
    ASSERT_TRUE(dequantize(tensor, first, {to, piece, std::span(made).subspan(first * row)}));
    EXPECT_TRUE(made == wanted) << name(to) << " from row 13 on";
  }
}

TEST(TransposedExperts, NumbersOfEveryShapeAreThoseOfTheLayout) {
  std::mt19937 random(41);
  for (const std::size_t columns : {1U, 15U, 16U, 40U, 530U}) {
    expect_definition({2, 64, columns}, random, 114, 140);
    expect_definition({1, 1088, columns}, random, 114, 140);
    expect_definition({3, 48, columns}, random, 120, 130);  // the last block is shorter
  }
}

// All results are normal at these scales, and not beyond them.
TEST(TransposedExperts, EveryScaleGivesItsNumbers) {
  std::mt19937 random(43);
  for (int scale = 0; scale < 255; ++scale) expect_definition({1, 32, 24}, random, scale, scale);
  expect_definition({2, 640, 40}, random, 0, 254);
  expect_definition({1, 1088, 1100}, random, 100, 114);
}

TEST(TransposedExperts, EveryTargetAddsPowersButToZeros) {
  std::mt19937 random(47);
  std::vector<std::uint16_t> results(16), powers(64);
  for (std::uint16_t& result : results) result = static_cast<std::uint16_t>(random());
  results[3] = 0, results[12] = 0x8000;
  for (std::uint16_t& power : powers) power = static_cast<std::uint16_t>(random());
  for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{16}, std::size_t{57}}) {
    std::vector<std::byte> codes(count);  // no byte more, for sanitizers
    for (std::byte& code : codes) code = static_cast<std::byte>(random());
    for (const Target target : supported_targets()) {
      const kernels::LookUpPowersFn look_up = kernels::ops_of(target).look_up_powers;
      if (look_up == nullptr) continue;
      for (const bool are_upper : {false, true}) {
        std::vector<std::uint16_t> made((count + 15) / 16 * 16 + 1, 0xabcd);
        look_up(codes.data(), reinterpret_cast<std::byte*>(made.data()), count,
                {.results = results.data(), .powers = powers.data(), .are_upper = are_upper});
        for (std::size_t i = 0; i < count; ++i) {
          const std::uint16_t result = results[std::to_integer<unsigned>(codes[i]) >> (are_upper ? 4U : 0U) & 15U];
          const bool is_zero = (result & 0x7fff) == 0;
          ASSERT_EQ(made[i], static_cast<std::uint16_t>(is_zero ? result : result + powers[i])) << name(target);
        }
        EXPECT_EQ(made.back(), 0xabcd) << name(target);
      }
    }
  }
}

}  // namespace
}  // namespace tensorcast
