// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "codec/policy.hpp"
#include "codec/reference_cast.hpp"
#include "dtype/dtype_table.hpp"
#include "tensorcast/cast.hpp"
#include "tensorcast/strided.hpp"

namespace tensorcast {
namespace {

std::string outcome(const Result<void>& done) { return done ? "done" : done.error().describe(); }

std::int64_t item_bytes(DType dtype) { return std::max(1, bit_width(dtype) / 8); }

// Codes of `count` elements, each in bytes of its own: all patterns of few bits, random ones of more, and numbers from
// -90 on; `usual`: of float32 these alone.
std::vector<std::byte> items_of(DType dtype, std::size_t count, std::mt19937_64& random, bool usual = false) {
  const auto item = static_cast<std::size_t>(item_bytes(dtype));
  std::vector<std::byte> items(count * item);
  const int bits = bit_width(dtype);
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t code = bits <= 8 ? i : random();
    if (bits < 8) code &= (1u << bits) - 1;
    if (dtype == DType::float32 && (usual || i % 2 == 0))
      code = std::bit_cast<std::uint32_t>(static_cast<float>(i) / 7.0f - 90.0f);
    if (dtype == DType::float64 && i % 2 == 0) code = std::bit_cast<std::uint64_t>(static_cast<double>(i) / 7 - 90);
    std::memcpy(items.data() + i * item, &code, item);
  }
  return items;
}

struct Scales {
  const char* name;
  std::vector<double> values;
  bool are_float32 = false;
};

std::vector<Scales> kinds_of_scales(std::size_t count, std::mt19937_64& random) {
  std::uniform_real_distribution<double> uniform(-3, 3);
  std::vector<Scales> kinds = {
      {"float32", {}, true}, {"float64", {}}, {"powers", {}, true}, {"odd ones", {}}, {"ones", {}, true}};
  constexpr double odd_ones[] = {0.0, -0.0, 1e-300, -1e300, 0x1p-501, 5e-324, 1.0, -1.0};
  for (std::size_t i = 0; i < count; ++i) {
    kinds[0].values.push_back(static_cast<double>(static_cast<float>(uniform(random))));
    kinds[1].values.push_back(uniform(random));
    kinds[2].values.push_back(std::ldexp(i % 3 == 0 ? -1.0 : 1.0, static_cast<int>(random() % 80) - 40));
    kinds[3].values.push_back(i % 17 == 0 ? odd_ones[random() % 8] : uniform(random));
    kinds[4].values.push_back(i % 3 == 0 ? 1.0 : kinds[0].values[i]);  // D0: NaN and infinity stay in the same type
  }
  return kinds;
}

// Each element alone by the reference, with its own scale.
Result<void> cast_singly(DType from, const std::byte* src, DType to, std::byte* dst, const std::vector<double>& scales,
                         CastOptions options) {
  const auto from_item = static_cast<std::size_t>(item_bytes(from)), to_item = static_cast<std::size_t>(item_bytes(to));
  for (std::size_t i = 0; i < scales.size(); ++i) {
    options.scale = scales[i];
    Result<void> done = codec::reference_cast(src + i * from_item, from, dst + i * to_item, to, 1,
                                              codec::policy_of(options, from, to), i);
    if (!done) {
      if (done.error().element) done.error().element = i;
      return done;
    }
  }
  return {};
}

// Float64 scales as their own type, or as float32.
std::vector<std::byte> scale_bytes(const std::vector<double>& scales, DType dtype) {
  std::vector<std::byte> bytes(scales.size() * static_cast<std::size_t>(item_bytes(dtype)));
  const std::int64_t shape[] = {static_cast<std::int64_t>(scales.size())};
  const Result<void> done =
      cast({DType::float64, shape, std::as_bytes(std::span(scales))}, {dtype, shape, std::span(bytes)});
  EXPECT_TRUE(done.ok());
  return bytes;
}

void expect_same_by(DType from, const std::vector<std::byte>& src, DType to, const CastOptions& options,
                    const Scales& scales, DType scale_type, const std::string& what) {
  const std::size_t count = scales.values.size();
  const std::int64_t shape[] = {static_cast<std::int64_t>(count)};
  const std::vector<std::byte> typed = scale_bytes(scales.values, scale_type);
  std::vector<std::byte> expected(count * static_cast<std::size_t>(item_bytes(to))), got(expected.size());
  const Result<void> right = cast_singly(from, src.data(), to, expected.data(), scales.values, options);
  const Result<void> done =
      cast_scaled({from, shape, {}, src.data(), bit_width(from) < 8}, {to, shape, {}, got.data(), bit_width(to) < 8},
                  {scale_type, shape, {}, typed.data()}, options);
  ASSERT_EQ(right.ok(), done.ok()) << what << outcome(done);
  if (!right) {
    EXPECT_EQ(right.error().element, done.error().element) << what;
    return;
  }
  std::size_t wrong = 0, first = 0;
  const auto item = static_cast<std::size_t>(item_bytes(to));
  for (std::size_t i = count; i-- > 0;) {
    if (std::memcmp(&expected[i * item], &got[i * item], item) != 0) ++wrong, first = i;
  }
  EXPECT_EQ(wrong, 0u) << what << ", element " << first;
}

void expect_same(DType from, DType to, const CastOptions& options, std::size_t count, const char* what) {
  std::mt19937_64 random(static_cast<std::uint64_t>(from) * 64 + static_cast<std::uint64_t>(to));
  for (const bool usual : {false, true}) {
    if (usual && from != DType::float32) continue;
    const std::vector<std::byte> src = items_of(from, count, random, usual);
    for (const Scales& scales : kinds_of_scales(count, random)) {
      for (const DType scale_type : {DType::float64, DType::float32}) {
        if (scale_type == DType::float32 && !scales.are_float32) continue;
        const std::string title = std::string(name(from)) + " to " + std::string(name(to)) + ", " + what + ", " +
                                  scales.name + " as " + std::string(name(scale_type)) + ": ";
        expect_same_by(from, src, to, options, scales, scale_type, title);
      }
    }
  }
}

TEST(ScaledStrided, EachElementIsAsAlone) {
  for (const DType from : all_dtypes()) {
    for (const DType to : all_dtypes()) {
      if (from == DType::string || to == DType::string) continue;
      expect_same(from, to, {}, 256, "auto");
    }
  }
}

TEST(ScaledStrided, WordsAndRangesAreAsAlone) {
  const DType sources[] = {DType::float32, DType::float16, DType::float64, DType::int8, DType::float8_e4m3fn};
  const DType targets[] = {DType::float16, DType::bfloat16,      DType::float8_e4m3fn, DType::float4_e2m1fn,
                           DType::int8,    DType::int32,         DType::uint64,        DType::float32,
                           DType::float64, DType::float8_e8m0fnu};
  for (const DType from : sources) {
    for (const DType to : targets) {
      for (const Rounding word : {Rounding::nearest_away, Rounding::toward_zero, Rounding::toward_positive,
                                  Rounding::toward_negative, Rounding::to_odd, Rounding::stochastic}) {
        expect_same(from, to, {.rounding = word}, 256, "a word");
      }
      expect_same(from, to, {.out_of_range = OutOfRange::saturate}, 256, "saturate");
      expect_same(from, to, {.out_of_range = OutOfRange::error}, 256, "range error");
      expect_same(from, to, {.inexact = Inexact::error}, 256, "inexact error");
    }
  }
}

// D6: at opset 22, products that become int4 saturate, and integers, which a scale of 1 leaves alone, wrap.
TEST(ScaledStrided, IntegersWithScaleOneWrapAsAlone) {
  for (const DType from : {DType::int8, DType::uint64, DType::boolean, DType::float32}) {
    for (const DType to : {DType::int4, DType::uint4}) expect_same(from, to, {.opset = 22}, 256, "opset 22");
  }
}

TEST(ScaledStrided, SharesScalesAndKeepsOrder) {
  // [3, 700] float32, one scale for a row; then one for a column; of views that run backwards.
  std::vector<float> numbers(3 * 700);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i) - 1000.5f;
  const std::vector<float> factors = [] {
    std::vector<float> values(700);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = 0.25f + static_cast<float>(i) / 3.0f;
    return values;
  }();
  const std::int64_t shape[] = {3, 700}, rows[] = {4, 0}, columns[] = {0, 4}, backwards[] = {2800, -4};
  const auto* const data = reinterpret_cast<const std::byte*>(numbers.data());
  for (const bool by_row : {true, false}) {
    for (const bool turned : {false, true}) {
      const StridedView src{DType::float32, shape, turned ? Shape(backwards) : Shape(), data + (turned ? 4 * 699 : 0)};
      const StridedView scales{DType::float32, shape, by_row ? Shape(rows) : Shape(columns),
                               reinterpret_cast<const std::byte*>(factors.data())};
      std::vector<std::int16_t> got(numbers.size());
      CastReport report;
      ASSERT_EQ(outcome(cast_scaled(src, {DType::int16, shape, {}, reinterpret_cast<std::byte*>(got.data())}, scales,
                                    {}, report)),
                "done");
      EXPECT_EQ(report.count, numbers.size());
      std::vector<std::int16_t> again(numbers.size());
      ASSERT_EQ(
          outcome(cast_scaled(src, {DType::int16, shape, {}, reinterpret_cast<std::byte*>(again.data())}, scales)),
          "done");
      EXPECT_EQ(got, again);
      for (std::size_t i = 0; i < got.size(); ++i) {
        const float number = numbers[i / 700 * 700 + (turned ? 699 - i % 700 : i % 700)];
        const double product = static_cast<double>(number) * static_cast<double>(factors[by_row ? i / 700 : i % 700]);
        ASSERT_EQ(got[i], static_cast<std::int16_t>(static_cast<std::int64_t>(product))) << i;
      }
    }
  }
}

TEST(ScaledStrided, ThreadsBelowZeroAreAnError) {
  const float numbers[2] = {1, 2}, factors[2] = {2, 2};
  float results[2] = {};
  const auto bytes = [](const float* from) { return reinterpret_cast<const std::byte*>(from); };
  const StridedView source{DType::float32, {2}, {}, bytes(numbers)}, scales{DType::float32, {2}, {}, bytes(factors)};
  const MutableStridedView target{DType::float32, {2}, {}, reinterpret_cast<std::byte*>(results)};
  EXPECT_FALSE(cast_scaled(source, target, scales, {}, {.threads = -1}).ok());
  EXPECT_TRUE(cast_scaled(source, target, scales, {}, {.threads = 1}).ok());
}

// Packed on both sides, in more than a task, on all threads.
TEST(ScaledStrided, TakesPackedElements) {
  constexpr std::size_t count = 600001;
  const std::int64_t shape[] = {count};
  std::vector<std::byte> src((count + 1) / 2), got(src.size()), expected(src.size());
  for (std::size_t i = 0; i < src.size(); ++i) src[i] = static_cast<std::byte>(i * 37);
  std::vector<float> scales(count), numbers(count);
  for (std::size_t i = 0; i < count; ++i) scales[i] = static_cast<float>(i % 5) * 0.5f + 0.25f;
  auto* const data = reinterpret_cast<std::byte*>(numbers.data());
  ASSERT_EQ(outcome(cast({DType::int4, shape, src}, {DType::float32, shape, {data, count * 4}})), "done");
  for (std::size_t i = 0; i < count; ++i) numbers[i] *= scales[i];  // exact
  const CastOptions options = {.out_of_range = OutOfRange::saturate};
  ASSERT_EQ(outcome(cast({DType::float32, shape, {data, count * 4}}, {DType::int4, shape, expected}, options)), "done");
  ASSERT_EQ(
      outcome(cast_scaled({DType::int4, shape, {}, src.data()}, {DType::int4, shape, {}, got.data()},
                          {DType::float32, shape, {}, reinterpret_cast<const std::byte*>(scales.data())}, options)),
      "done");
  EXPECT_EQ(got, expected);
}

TEST(ScaledStrided, Refuses) {
  float x[2] = {}, y[2] = {};
  auto* const data = reinterpret_cast<std::byte*>(x);
  auto* const other = reinterpret_cast<std::byte*>(y);
  std::int8_t out[2] = {};
  const std::int64_t two[] = {2}, one[] = {1};
  const MutableStridedView dst{DType::int8, two, {}, reinterpret_cast<std::byte*>(out)};
  const StridedView src{DType::float32, two, {}, data};
  const auto message = [&](const StridedView& scales, const CastOptions& options = {}) {
    return outcome(cast_scaled(src, dst, scales, options));
  };
  EXPECT_NE(message({DType::float32, one, {}, other}).find("different shapes"), std::string::npos);
  EXPECT_NE(message({DType::float16, two, {}, other}).find("not float16"), std::string::npos);
  EXPECT_NE(message({DType::float32, two, {}, other}, {.scale = 2}).find("leaves the option scale at 1"),
            std::string::npos);
  y[1] = std::numeric_limits<float>::quiet_NaN();
  const Result<void> nan = cast_scaled(src, dst, {DType::float32, two, {}, other});
  ASSERT_FALSE(nan);
  EXPECT_EQ(nan.error().element, 1u);
  EXPECT_EQ(nan.error().message, "the scale nan is not finite");
  EXPECT_EQ(message({DType::float32, two, {}, nullptr}), "the data of the array of scales are null");
}

TEST(ScaledStrided, TheSignOfAZeroIsThatOfItsScale) {
  const double numbers[4] = {1.0, 1.0, 1.0, 1e300}, scales[4] = {0.0, -0.0, 0.0, 1e300};
  double products[4];
  const std::int64_t four[] = {4};
  ASSERT_TRUE(cast_scaled({DType::float64, four, {}, std::as_bytes(std::span(numbers)).data()},
                          {DType::float64, four, {}, std::as_writable_bytes(std::span(products)).data()},
                          {DType::float64, four, {}, std::as_bytes(std::span(scales)).data()}));
  EXPECT_FALSE(std::signbit(products[0]));
  EXPECT_TRUE(std::signbit(products[1]));
  EXPECT_FALSE(std::signbit(products[2]));
}

// One scale for all, by a word: products that kernels round.
TEST(ScaledStrided, WordsTakeOneScale) {
  const DType sources[] = {DType::float32, DType::float16, DType::int32, DType::float8_e5m2};
  const DType targets[] = {DType::float16, DType::bfloat16,       DType::float8_e4m3fn,
                           DType::int16,   DType::float8_e8m0fnu, DType::float32};
  constexpr std::size_t count = 3001;
  const std::int64_t shape[] = {count};
  for (const DType from : sources) {
    for (const DType to : targets) {
      std::mt19937_64 random(57);
      const std::vector<std::byte> src = items_of(from, count, random);
      for (const Rounding word : {Rounding::nearest_even, Rounding::nearest_away, Rounding::toward_zero,
                                  Rounding::toward_positive, Rounding::to_odd, Rounding::stochastic}) {
        for (const double scale : {0.1, -3.0, 1e-300, 1e300}) {
          const CastOptions options = {.rounding = word, .scale = scale};
          std::vector<std::byte> expected(storage_bytes(to, count)), got(expected.size());
          const Result<void> right =
              cast_singly(from, src.data(), to, expected.data(), std::vector(count, scale), options);
          ASSERT_EQ(outcome(right), outcome(cast({from, shape, src}, {to, shape, got}, options)));
          EXPECT_EQ(expected, got) << name(from) << " to " << name(to) << ", " << static_cast<int>(word) << ", "
                                   << scale;
        }
      }
    }
  }
}

}  // namespace
}  // namespace tensorcast
