// SPDX-License-Identifier: Apache-2.0
#include "quantized/layer/hadamard.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "tensorcast/cast.hpp"

namespace tensorcast::quantized {
namespace {

// The sign of an entry of the matrix: -1 once for each digit of base 4 in which row + column is 3.
int sign(std::size_t row, std::size_t column, std::size_t size) {
  int product = 1;
  for (std::size_t place = 1; place < size; place *= 4) {
    if (row / place % 4 + column / place % 4 == 3) product = -product;
  }
  return product;
}

std::vector<float> random_floats(std::size_t count) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0.0F, 0.02F);
  std::vector<float> numbers(count);
  for (float& number : numbers) number = normal(random);
  return numbers;
}

template <class Number>
std::span<std::byte> bytes_of(std::vector<Number>& numbers) {
  return std::as_writable_bytes(std::span(numbers));
}

TEST(Hadamard, GroupsHavePowersOf4) {
  for (const std::int64_t size : {4, 16, 64, 256, 4096}) {
    EXPECT_TRUE(is_rotation_size(size)) << size;
    EXPECT_EQ(group_norm(size), 1 / std::sqrt(static_cast<double>(size)));
  }
  for (const std::int64_t size : {-4, 0, 1, 2, 8, 12, 32, 100, 128}) EXPECT_FALSE(is_rotation_size(size)) << size;
}

TEST(Hadamard, SumsAreThoseOfTheMatrix) {
  for (const std::size_t size : {std::size_t{4}, std::size_t{16}, std::size_t{64}, std::size_t{256}}) {
    std::vector<int> numbers(2 * size), wanted(2 * size);
    std::mt19937 random(2);
    for (int& number : numbers) number = static_cast<int>(random() % 255) - 127;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      for (std::size_t j = 0; j < size; ++j) wanted[i] += sign(i % size, j, size) * numbers[i / size * size + j];
    }
    sum_groups(std::span(numbers), size);
    EXPECT_EQ(numbers, wanted) << size;
  }
}

TEST(Hadamard, TurningRoundsOnce) {
  constexpr std::size_t size = 256, rows = 37;  // several pieces, the last of another length
  for (const DType dtype : {DType::float32, DType::bfloat16, DType::float16}) {
    std::vector<float> numbers = random_floats(rows * size);
    std::vector<std::byte> stored(storage_bytes(dtype, numbers.size()));
    const std::int64_t shape[] = {static_cast<std::int64_t>(numbers.size())};
    ASSERT_TRUE(cast({DType::float32, shape, bytes_of(numbers)}, {dtype, shape, stored}));
    ASSERT_TRUE(cast({dtype, shape, stored}, {DType::float32, shape, bytes_of(numbers)}));
    std::vector<double> exact(numbers.size());
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      for (std::size_t j = 0; j < size; ++j) {
        exact[i] += sign(i % size, j, size) * static_cast<double>(numbers[i / size * size + j]);
      }
      exact[i] /= 16;
    }
    std::vector<std::byte> wanted(stored.size());
    ASSERT_TRUE(cast({DType::float64, shape, bytes_of(exact)}, {dtype, shape, wanted}));
    ASSERT_TRUE(rotate_groups(dtype, dtype, size, stored));
    EXPECT_EQ(stored, wanted) << name(dtype);
  }
}

TEST(Hadamard, RoundsToTheTypeOfComputationFirst) {
  std::vector<float> numbers = random_floats(1024), narrow = numbers;
  ASSERT_TRUE(rotate_groups(DType::float32, DType::bfloat16, 64, bytes_of(numbers)));
  std::vector<std::byte> stored(2 * narrow.size());
  const std::int64_t shape[] = {1024};
  ASSERT_TRUE(cast({DType::float32, shape, bytes_of(narrow)}, {DType::bfloat16, shape, stored}));
  ASSERT_TRUE(rotate_groups(DType::bfloat16, DType::bfloat16, 64, stored));
  ASSERT_TRUE(cast({DType::bfloat16, shape, stored}, {DType::float32, shape, bytes_of(narrow)}));
  EXPECT_EQ(numbers, narrow);
}

}  // namespace
}  // namespace tensorcast::quantized
