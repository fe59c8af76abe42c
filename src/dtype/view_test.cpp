// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tensorcast/tensor.hpp"

namespace tensorcast {
namespace {

TEST(Shape, IsAValueOfAnyRank) {
  for (const std::size_t rank : {0, 1, 8, 9, 64}) {
    std::vector<std::int64_t> dimensions(rank);
    for (std::size_t axis = 0; axis < rank; ++axis) dimensions[axis] = static_cast<std::int64_t>(axis) + 1;
    Shape shape = dimensions;
    const Shape copy = shape;
    dimensions.assign(rank, 0);
    ASSERT_EQ(copy.size(), rank);
    for (std::size_t axis = 0; axis < rank; ++axis) EXPECT_EQ(copy[axis], static_cast<std::int64_t>(axis) + 1);
    const Shape moved = std::move(shape);
    EXPECT_EQ(moved, copy);
    shape = moved;
    EXPECT_EQ(shape, copy);
    shape = Shape{5};
    EXPECT_EQ(shape, Shape{5});
    std::swap(shape, const_cast<Shape&>(copy));
    EXPECT_EQ(shape, moved);
  }
}

TEST(TensorView, KeepsABracedShape) {
  const std::vector<std::byte> bytes(24);
  const TensorView stored{DType::float32, {2, 3}, bytes};
  const TensorView from_temporary{DType::float32, std::vector<std::int64_t>{3, 2}, bytes};
  EXPECT_EQ(stored.shape, (Shape{2, 3}));
  EXPECT_EQ(from_temporary.shape, (Shape{3, 2}));
  EXPECT_EQ(element_count(stored.shape).value(), 6u);
}

TEST(Tensor, IsUndefinedAfterAMove) {
  Tensor tensor = Tensor::own(std::vector<float>{1, 2}).value();
  Tensor target = std::move(tensor);
  EXPECT_FALSE(tensor.defined());  // NOLINT(bugprone-use-after-move): what this tests
  EXPECT_TRUE(tensor.bytes().empty());
  EXPECT_EQ(tensor.count(), 0u);
  EXPECT_EQ(tensor.use_count(), 0);
  tensor = std::move(target);
  EXPECT_EQ(tensor.count(), 2u);
  EXPECT_FALSE(target.defined());  // NOLINT(bugprone-use-after-move)
}

TEST(Tensor, OwnsAndShowsElementsOfACppType) {
  const Tensor tensor = Tensor::own(std::vector<float>{1, 2, 3, 4}, {2, 2}).value();
  EXPECT_EQ(tensor.dtype(), DType::float32);
  EXPECT_EQ(tensor.as<float>().value()[3], 4.0f);
  const Error error = tensor.as<double>().error();
  EXPECT_EQ(error.message, "the elements are float32, not float64");
  EXPECT_FALSE(Tensor::own(std::vector<float>{1}, {2}).ok());
  const Tensor packed = Tensor::own(DType::int4, {3}, {std::byte{0x21}, std::byte{0x0f}}).value();
  const PackedSpan<const int4> codes = packed.as<int4>().value();
  EXPECT_EQ(static_cast<int>(codes[0]), 1);
  EXPECT_EQ(static_cast<int>(codes[1]), 2);
  EXPECT_EQ(static_cast<int>(codes[2]), -1);
  const Tensor shifted = Tensor::share({DType::float32, {1}, tensor.bytes().subspan(1, 4)}, nullptr).value();
  EXPECT_FALSE(shifted.as<float>().ok());
}

TEST(Facts, OfEveryNumberAreDefined) {
  EXPECT_EQ(facts(DType::uint1).bits, 1);
  EXPECT_EQ(facts(DType::uint1).name, "uint1");
  EXPECT_EQ(bit_width(DType::uint1), 1);
  EXPECT_EQ(facts(static_cast<DType>(99)).dtype, DType::undefined);
  EXPECT_EQ(facts(DType::undefined).name, "undefined");
  static_assert(storage_bytes(DType::int4, 3) == 2 && storage_bytes(DType::float64, SIZE_MAX) == SIZE_MAX);
}

}  // namespace
}  // namespace tensorcast
