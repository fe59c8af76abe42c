// SPDX-License-Identifier: Apache-2.0
// The words of D16 through the public interface: the same bytes whatever pieces, threads and strides there are.
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "codec/packing.hpp"
#include "codec/reference_cast.hpp"
#include "dtype/dtype_table.hpp"
#include "report/code_outcome.hpp"
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

// Parts with numbers out of range, infinities and NaN are the reference's, the others are compared.
TEST(Rounding, ReportsEqualTheReference) {
  std::vector<float> source = numbers(5000);
  for (const auto& [place, x] : {std::pair{70, INFINITY}, {1000, 1e30F}, {2000, -464.0F}, {3000, NAN}}) {
    source[static_cast<std::size_t>(place)] = x;
  }
  const std::int64_t shape[] = {5000};
  for (const DType to : {DType::float16, DType::float8_e4m3fn, DType::float8_e5m3fnu, DType::float8_e8m0fnu,
                         DType::float4_e2m1fn, DType::int8, DType::int64}) {
    for (const CastOptions& options : option_sets()) {
      std::vector<std::byte> result(storage_bytes(to, source.size()));
      CastReport found, wanted;
      ASSERT_TRUE(
          cast({DType::float32, shape, std::as_bytes(std::span(source))}, {to, shape, result}, options, found).ok());
      const codec::Policy policy = codec::policy_of(options, DType::float32, to);
      for (std::size_t i = 0; i < source.size(); ++i) {
        const auto outcome = report::code_outcome(DType::float32, std::bit_cast<std::uint32_t>(source[i]), to, policy,
                                                  codec::random_of(policy, i));
        report::add_outcome(outcome, 1, wanted);
      }
      EXPECT_NEAR(found.max_abs_error, wanted.max_abs_error, 1e-12 * wanted.max_abs_error) << name(to);
      EXPECT_NEAR(found.max_rel_error, wanted.max_rel_error, 1e-12 * wanted.max_rel_error) << name(to);
      EXPECT_NEAR(found.noise_power, wanted.noise_power, 1e-12 * wanted.noise_power) << name(to);
      EXPECT_NEAR(found.signal_power, wanted.signal_power, 1e-12 * wanted.signal_power) << name(to);
      const auto counts = [](const CastReport& r) {
        return std::vector<double>{
            double(r.overflowed), double(r.saturated), double(r.wrapped),  double(r.underflowed_to_zero),
            double(r.inexact),    double(r.nan_made),  double(r.nan_lost), double(r.sign_lost)};
      };
      EXPECT_EQ(counts(found), counts(wanted)) << name(to) << " by word " << int(options.rounding);
    }
  }
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

// Whatever the kernels make of a number, the first that changes is found among hundreds that do not.
TEST(Inexact, EveryChangeIsFound) {
  constexpr std::size_t count = 300, place = 217;
  const double specials[] = {0.1,
                             -0.0,
                             -1.0,
                             3.0,
                             300.0,
                             65536.0,
                             16777217.0,
                             0x1p53 + 2,
                             1e30,
                             -1e-30,
                             1e300,
                             static_cast<double>(INFINITY),
                             static_cast<double>(NAN)};
  for (const DType from :
       {DType::float64, DType::float32, DType::float16, DType::bfloat16, DType::int32, DType::int64, DType::uint64}) {
    for (const DType to : all_dtypes()) {
      if (to == from || to == DType::string) continue;
      for (const double special : specials) {
        for (const CastOptions& options : {CastOptions{.inexact = Inexact::error},
                                           {.out_of_range = OutOfRange::saturate, .inexact = Inexact::error}}) {
          const auto code = [&](double x) {
            return codec::cast_code(DType::float64, std::bit_cast<std::uint64_t>(x), from, {}).bits;
          };
          std::vector<std::byte> source(storage_bytes(from, count)), result(storage_bytes(to, count));
          for (std::size_t i = 0; i < count; ++i) {
            codec::store_code(from, source.data(), i, code(i == place ? special : 1.0));
          }
          const std::int64_t shape[] = {count};
          const codec::Policy policy = codec::policy_of(options, from, to);
          const bool changes = (codec::cast_code(from, code(special), to, policy).events & codec::event_error) != 0;
          const Result<void> done = cast({from, shape, source}, {to, shape, result}, options);
          EXPECT_EQ(!done.ok(), changes) << name(from) << " to " << name(to) << ": " << special;
          if (!done.ok()) {
            EXPECT_EQ(done.error().element, place);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace tensorcast
