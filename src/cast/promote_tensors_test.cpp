// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <vector>

#include "dtype/tensor_testing.hpp"
#include "tensorcast/promote.hpp"

namespace tensorcast {
namespace {

TEST(Promote, ConvertsBothAndKeepsShapes) {
  const Tensor a = tensor_of<std::int8_t>(DType::int8, {2, 1}, {-3, 7});
  const Tensor b = tensor_of<std::uint8_t>(DType::uint8, {3}, {0, 200, 255});
  const auto both = promote(a, b, {.promote_unsafe = true});
  ASSERT_TRUE(both.ok()) << both.error().describe();
  EXPECT_EQ(both->first.dtype(), DType::int16);
  EXPECT_EQ(elements_of<std::int16_t>(both->first), (std::vector<std::int16_t>{-3, 7}));
  EXPECT_EQ(elements_of<std::int16_t>(both->second), (std::vector<std::int16_t>{0, 200, 255}));
  EXPECT_EQ(shape_of(both->first), (std::vector<std::int64_t>{2, 1}));
  EXPECT_EQ(shape_of(both->second), (std::vector<std::int64_t>{3}));
}

TEST(Promote, SharesWhatHasTheTypeAlready) {
  const Tensor a = tensor_of<float>(DType::float32, {2}, {1.5f, -2.0f});
  const Tensor b = tensor_of<std::int16_t>(DType::int16, {}, {9});
  const auto both = promote(a, b);
  ASSERT_TRUE(both.ok());
  EXPECT_EQ(both->first.bytes().data(), a.bytes().data());
  EXPECT_EQ(a.use_count(), 2);
  EXPECT_EQ(elements_of<float>(both->second), std::vector<float>{9.0f});
  EXPECT_TRUE(both->second.shape().empty());
  const auto same = promote(a, a);
  EXPECT_EQ(same->second.bytes().data(), a.bytes().data());
}

TEST(Promote, RankZeroIsAScalar) {
  const Tensor wide = tensor_of<std::int64_t>(DType::int64, {}, {300});
  const Tensor one = tensor_of<std::int64_t>(DType::int64, {1}, {300});
  const Tensor narrow = tensor_of<std::uint8_t>(DType::uint8, {1}, {1});
  const PromoteOptions options{.promote_unsafe = true, .pytorch_scalar_promotion = true};
  const auto both = promote(wide, narrow, options);
  EXPECT_EQ(elements_of<std::uint8_t>(both->first), std::vector<std::uint8_t>{44});  // modulo 2^8
  EXPECT_EQ((*promote(one, narrow, options)).second.dtype(), DType::int64);
  EXPECT_EQ(promote(wide, narrow, options, {.out_of_range = OutOfRange::error}).error().element, 0u);
  const auto saturated = promote(wide, narrow, options, {.out_of_range = OutOfRange::saturate});
  EXPECT_EQ(elements_of<std::uint8_t>(saturated->first), std::vector<std::uint8_t>{255});
}

TEST(Promote, OtherRulesAndCastOptions) {
  const Tensor a = tensor_of<std::int32_t>(DType::int32, {1}, {1 << 24 | 1});
  const Tensor b = tensor_of<float>(DType::float32, {1}, {0.5f});
  EXPECT_EQ((*promote(a, b, {.rules = PromoteRules::numpy})).first.dtype(), DType::float64);
  EXPECT_EQ(elements_of<float>((*promote(a, b, {.promote_unsafe = true})).first), std::vector<float>{16777216.0f});
  const auto scaled = promote(b, b, {}, {.scale = 2.0});
  EXPECT_EQ(elements_of<float>(scaled->first), std::vector<float>{1.0f});
}

TEST(Promote, EmptyTensorsAndPackedOnes) {
  const Tensor none = tensor_of<std::int8_t>(DType::int8, {0, 4}, {});
  const Tensor nibbles = tensor_of<std::uint8_t>(DType::uint4, {3}, {0x21, 0x03});
  const auto both = promote(none, nibbles);
  ASSERT_TRUE(both.ok());
  EXPECT_EQ(both->first.count(), 0u);
  EXPECT_EQ(elements_of<std::int8_t>(both->second), (std::vector<std::int8_t>{1, 2, 3}));
}

TEST(Promote, Errors) {
  const Tensor a = tensor_of<std::int64_t>(DType::int64, {1}, {1});
  const Tensor b = tensor_of<std::uint64_t>(DType::uint64, {1}, {1});
  EXPECT_EQ(promote(a, {}).error().message, "the second tensor is not defined");
  EXPECT_EQ(promote({}, a).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(promote(a, b).error().code, ErrorCode::unsupported);
  const PromoteOptions bits{.promote_unsafe = true, .u64_integer_promotion_target = DType::uint1};
  EXPECT_EQ(promote(a, b, bits).error().code, ErrorCode::unsupported);
  EXPECT_EQ(promote(a, a, {}, {.rounding = Rounding::to_odd}).error().message, "promotions have no rounding");
  EXPECT_EQ(promote(a, b, {.promote_unsafe = true}, {.opset = 77}).error().code, ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace tensorcast
