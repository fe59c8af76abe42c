// SPDX-License-Identifier: Apache-2.0
#include "tensorcast/tensor.hpp"

#include <array>
#include <cstring>
#include <limits>

#include <gtest/gtest.h>

namespace tensorcast {
namespace {

TEST(Tensor, OwnsItsBytesAndCopiesShareThem) {
  const Result<Tensor> tensor = Tensor::own(DType::uint8, {2, 2}, std::vector<std::byte>(4, std::byte{7}));
  ASSERT_TRUE(tensor.ok());
  const Tensor copy = *tensor;
  EXPECT_EQ(copy.bytes().data(), tensor->bytes().data());
  EXPECT_EQ(copy.count(), 4u);
  EXPECT_EQ(copy.use_count(), 2);
  EXPECT_EQ(copy.view().shape.size(), 2u);
}

TEST(Tensor, RefusesBytesThatAreNotThoseOfTheShape) {
  const Result<Tensor> tensor = Tensor::own(DType::int4, {3}, std::vector<std::byte>(3));
  ASSERT_FALSE(tensor.ok());
  EXPECT_EQ(tensor.error().message, "3 elements of int4 take 2 bytes, not 3");
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  EXPECT_FALSE(Tensor::own(DType::float64, {most}, {}).ok());
  EXPECT_FALSE(Tensor::own(DType::float64, {-1}, {}).ok());
  EXPECT_FALSE(Tensor::own(DType::string, {0}, std::vector<std::byte>{}).ok());
  EXPECT_FALSE(Tensor::own(DType::undefined, {0}, std::vector<std::byte>{}).ok());
}

TEST(Tensor, ReleasesTheOwnerWithTheLastCopy) {
  const auto owner = std::make_shared<const std::array<std::byte, 2>>();
  const std::array<std::int64_t, 1> shape = {2};
  {
    const Result<Tensor> tensor = Tensor::share({DType::int8, shape, *owner}, owner);
    ASSERT_TRUE(tensor.ok());
    EXPECT_EQ(owner.use_count(), 2);
    EXPECT_EQ(tensor->bytes().data(), owner->data());
  }
  EXPECT_EQ(owner.use_count(), 1);
}

TEST(Tensor, OwnsStrings) {
  const Result<Tensor> tensor = Tensor::own({2}, StringBuffer{{'a', 'b', 'c'}, {0, 1, 3}});
  ASSERT_TRUE(tensor.ok());
  EXPECT_EQ(tensor->dtype(), DType::string);
  EXPECT_EQ(tensor->strings().offsets.size(), 3u);
  EXPECT_FALSE(Tensor::own({3}, StringBuffer{{'a'}, {0, 1}}).ok());
  EXPECT_FALSE(Tensor::own({1}, StringBuffer{{'a'}, {0, 2}}).ok());
  EXPECT_FALSE(Tensor::own({2}, StringBuffer{{'a'}, {1, 0, 1}}).ok());
  EXPECT_TRUE(Tensor::own({0}, StringBuffer{}).ok());
}

TEST(Tensor, TakesAnotherShapeOfAsManyElements) {
  const Result<Tensor> tensor = Tensor::own(DType::boolean, {6}, std::vector<std::byte>(6));
  ASSERT_TRUE(tensor.ok());
  const Result<Tensor> matrix = tensor->reshaped({2, 3});
  ASSERT_TRUE(matrix.ok());
  EXPECT_EQ(matrix->bytes().data(), tensor->bytes().data());
  EXPECT_FALSE(tensor->reshaped({2, 2}).ok());
}

}  // namespace
}  // namespace tensorcast
