// SPDX-License-Identifier: Apache-2.0
#include "cast/overlap.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <set>
#include <vector>

namespace tensorcast {
namespace {

struct Array {
  std::size_t at = 0;
  std::vector<std::int64_t> shape, strides;
  std::size_t item = 1;
};

Array random_array(std::mt19937& random) {
  Array array{.at = 4000 + random() % 64, .shape = {}, .strides = {}, .item = std::size_t{1} << random() % 4};
  for (std::size_t rank = random() % 4; rank > 0; --rank) {
    array.shape.push_back(static_cast<std::int64_t>(1 + random() % 5));
    array.strides.push_back(static_cast<std::int64_t>(random() % 64) - 20);
  }
  return array;
}

// The bytes that elements have, one after the other.
std::vector<std::size_t> touched_bytes(const Array& array) {
  std::vector<std::size_t> starts = {array.at};
  for (std::size_t axis = 0; axis < array.shape.size(); ++axis) {
    std::vector<std::size_t> more;
    for (const std::size_t start : starts) {
      for (std::int64_t i = 0; i < array.shape[axis]; ++i) {
        more.push_back(static_cast<std::size_t>(static_cast<std::int64_t>(start) + i * array.strides[axis]));
      }
    }
    starts = more;
  }
  std::vector<std::size_t> bytes;
  for (const std::size_t start : starts) {
    for (std::size_t i = 0; i < array.item; ++i) bytes.push_back(start + i);
  }
  return bytes;
}

TEST(Overlap, EqualsTheBytesOfRandomArrays) {
  std::mt19937 random(1);
  std::vector<std::byte> memory(8192);
  int apart = 0;
  for (int i = 0; i < 20000; ++i) {
    const Array a = random_array(random), b = random_array(random);
    const std::vector<std::size_t> in_a = touched_bytes(a), in_b = touched_bytes(b);
    const std::set<std::size_t> distinct_a(in_a.begin(), in_a.end());
    bool shared = false;
    for (const std::size_t byte : in_b) shared = shared || distinct_a.count(byte) != 0;
    const Result<Footprint> first = footprint(memory.data() + a.at, a.shape, a.strides, a.item);
    const Result<Footprint> second = footprint(memory.data() + b.at, b.shape, b.strides, b.item);
    ASSERT_TRUE(first.ok() && second.ok());
    ASSERT_EQ(may_overlap(*first, *second), shared) << "round " << i;
    ASSERT_EQ(may_overlap(*second, *first), shared) << "round " << i;
    ASSERT_EQ(may_overlap_itself(*first), distinct_a.size() != in_a.size()) << "round " << i;
    apart += shared ? 0 : 1;
  }
  EXPECT_GT(apart, 2000);
  EXPECT_LT(apart, 18000);
}

// A question that is too hard has the answer that is safe, and soon.
TEST(Overlap, GivesUp) {
  std::vector<std::byte> memory(1);
  std::vector<std::int64_t> shape, strides;
  for (const std::int64_t stride : {12223, 12224, 36674, 61119, 85569, 97791, 110017, 134467}) {
    shape.push_back(2000);
    strides.push_back(stride * 16);
  }
  const Result<Footprint> a = footprint(memory.data(), shape, strides, 1);
  const Result<Footprint> b = footprint(memory.data() + 16 * 89643482 - 16 * 89643482 % 16, {}, {}, 1);
  ASSERT_TRUE(a.ok() && b.ok());
  (void)may_overlap(*a, *b);
  EXPECT_TRUE(may_overlap_itself(*a));
}

TEST(Overlap, KnowsTheEndsOfMemory) {
  std::byte byte{};
  const std::int64_t far = INT64_MAX;
  EXPECT_FALSE(footprint(&byte, {far}, {far}, 1).ok());
  EXPECT_FALSE(footprint(&byte, {2}, {INT64_MIN}, 1).ok());
  EXPECT_FALSE(footprint(&byte, {2}, {far}, 1).ok());
  EXPECT_TRUE(footprint(&byte, {1}, {far}, 1).ok());
  EXPECT_TRUE(footprint(&byte, {far}, {0}, 1).ok());
}

}  // namespace
}  // namespace tensorcast
