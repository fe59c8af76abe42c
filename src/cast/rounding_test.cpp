// SPDX-License-Identifier: Apache-2.0
// The words of D16 through the public interface: the same bytes whatever pieces, threads and strides there are.
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "codec/reference_cast.hpp"
#include "dtype/dtype_table.hpp"
#include "tensorcast/cast.hpp"
#include "tensorcast/prepared_cast.hpp"
#include "tensorcast/strided.hpp"

namespace tensorcast {
namespace {

std::vector<float> numbers(std::size_t count) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal(0.0F, 30.0F);
  std::vector<float> all(count);
  for (float& x : all) x = normal(random);
  return all;
}

std::vector<std::byte> cast_whole(const std::vector<float>& source, DType to, const CastOptions& options,
                                  const Execution& execution = {}) {
  const std::int64_t shape[] = {static_cast<std::int64_t>(source.size())};
  std::vector<std::byte> result(storage_bytes(to, source.size()));
  const Result<void> done =
      cast({DType::float32, shape, std::as_bytes(std::span(source))}, {to, shape, result}, options, execution);
  EXPECT_TRUE(done.ok()) << done.error().describe();
  return result;
}

std::vector<CastOptions> option_sets() {
  return {{.rounding = Rounding::nearest_away},
          {.rounding = Rounding::to_odd},
          {.rounding = Rounding::toward_positive},
          {.rounding = Rounding::stochastic, .seed = 99},
          {.rounding = Rounding::stochastic, .scale = 0.75, .seed = 99},
          {.rounding = Rounding::toward_negative, .scale = 3.1}};
}

TEST(Rounding, CastsEqualTheReference) {
  const std::vector<float> source = numbers(5000);
  for (const DType to : {DType::float16, DType::float8_e4m3fn, DType::float4_e2m1fn, DType::int8, DType::int4}) {
    for (const CastOptions& options : option_sets()) {
      std::vector<std::byte> wanted(storage_bytes(to, source.size()));
      const auto policy = codec::policy_of(options, DType::float32, to);
      ASSERT_TRUE(codec::reference_cast(std::as_bytes(std::span(source)).data(), DType::float32, wanted.data(), to,
                                        source.size(), policy)
                      .ok());
      EXPECT_EQ(cast_whole(source, to, options), wanted) << name(to);
    }
  }
}

TEST(Rounding, ThreadsAndPiecesGiveTheSameBytes) {
  constexpr std::size_t count = (std::size_t{1} << 20) + 77, cut = 123'456;
  const std::vector<float> source = numbers(count);
  const CastOptions options{.rounding = Rounding::stochastic, .seed = 5};
  const std::vector<std::byte> one = cast_whole(source, DType::float16, options, {.threads = 1});
  EXPECT_EQ(cast_whole(source, DType::float16, options, {.threads = 4}), one);
  std::vector<std::byte> parts = cast_whole({source.begin(), source.begin() + cut}, DType::float16, options);
  const std::vector<std::byte> rest =
      cast_whole({source.begin() + cut, source.end()}, DType::float16, options, {.first_element = cut});
  parts.insert(parts.end(), rest.begin(), rest.end());
  EXPECT_EQ(parts, one);
  EXPECT_NE(cast_whole(source, DType::float16, {.rounding = Rounding::stochastic, .seed = 6}), one);
}

TEST(Rounding, StridesGiveTheSameBytes) {
  constexpr std::int64_t rows = 300, columns = 200;
  const std::vector<float> source = numbers(rows * columns);
  std::vector<float> turned(source.size());
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = 0; c < columns; ++c) turned[c * rows + r] = source[r * columns + c];
  }
  const CastOptions options{.rounding = Rounding::stochastic, .seed = 5};
  const std::vector<std::byte> wanted = cast_whole(source, DType::bfloat16, options);
  std::vector<std::byte> found(wanted.size());
  const std::int64_t shape[] = {rows, columns}, strides[] = {4, 4 * rows};
  const StridedView from{.dtype = DType::float32,
                         .shape = shape,
                         .strides = strides,
                         .data = reinterpret_cast<const std::byte*>(turned.data())};
  const MutableStridedView to{.dtype = DType::bfloat16, .shape = shape, .data = found.data()};
  ASSERT_TRUE(cast_strided(from, to, options).ok());
  EXPECT_EQ(found, wanted);
}

TEST(Rounding, PreparedCastsKnowTheWords) {
  const float source[] = {2.5F, -2.5F, 3.5F};
  std::int8_t result[3] = {};
  const Result<PreparedCast> prepared = prepare_cast(DType::float32, DType::int8, {.rounding = Rounding::nearest_away});
  ASSERT_TRUE(prepared.ok());
  ASSERT_TRUE((*prepared)(source, result, 3).ok());
  EXPECT_EQ(result[0], 3);
  EXPECT_EQ(result[1], -3);
  EXPECT_EQ(result[2], 4);
}

TEST(Rounding, ReportsCountByTheWord) {
  const std::vector<float> source = {1.5F, 65530.0F, -65530.0F, 1e-30F};
  const std::int64_t shape[] = {4};
  std::array<std::uint16_t, 4> result = {};
  CastReport report;
  ASSERT_TRUE(cast({DType::float32, shape, std::as_bytes(std::span(source))},
                   {DType::float16, shape, std::as_writable_bytes(std::span(result))},
                   {.rounding = Rounding::toward_negative}, report)
                  .ok());
  EXPECT_EQ(result, (std::array<std::uint16_t, 4>{0x3e00, 0x7bff, 0xfc00, 0x0000}));
  EXPECT_EQ(report.count, 4U);
  EXPECT_EQ(report.overflowed, 1U);
  EXPECT_EQ(report.underflowed_to_zero, 1U);
  EXPECT_EQ(report.inexact, 2U);
}

TEST(Rounding, LostSignsAreCounted) {
  const std::vector<float> source = {1.0F, -1.0F, -0.0F, -INFINITY, -1e-30F};
  const std::int64_t shape[] = {5};
  std::array<std::uint8_t, 5> result = {};
  CastReport report;
  const TensorView from{DType::float32, shape, std::as_bytes(std::span(source))};
  const MutableTensorView to{DType::float8_e5m3fnu, shape, std::as_writable_bytes(std::span(result))};
  ASSERT_TRUE(cast(from, to, {}, report).ok());
  EXPECT_EQ(result, (std::array<std::uint8_t, 5>{0x78, 0x78, 0x00, 0xfe, 0x00}));
  EXPECT_EQ(report.sign_lost, 3U);
  const Result<void> refused = cast(from, to, {.out_of_range = OutOfRange::error});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().element, 1U);
}

TEST(Inexact, TheFirstNumberThatWouldChangeIsNamed) {
  std::vector<float> source(3000, 2.0F);
  source[2500] = 0.1F;
  const std::int64_t shape[] = {3000};
  std::vector<std::byte> result(6000);
  const TensorView from{DType::float32, shape, std::as_bytes(std::span(source))};
  const Result<void> refused = cast(from, {DType::float16, shape, result}, {.inexact = Inexact::error});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().element, 2500U);
  EXPECT_EQ(refused.error().message, "value 0.1 would change in float16 (from float32)");
  source[2500] = -0.0F;
  EXPECT_TRUE(cast(from, {DType::float16, shape, result}, {.inexact = Inexact::error}).ok());
}

}  // namespace
}  // namespace tensorcast
