// SPDX-License-Identifier: Apache-2.0
#include "tensorcast/cast.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "cast/conversion.hpp"
#include "codec/reference_cast.hpp"
#include "dtype/float_environment.hpp"
#include "report/reporter.hpp"

namespace tensorcast {
namespace {

template <class T>
TensorView view(DType dtype, const std::vector<T>& values, std::span<const std::int64_t> shape) {
  return {dtype, shape, std::as_bytes(std::span(values))};
}
template <class T>
MutableTensorView mutable_view(DType dtype, std::vector<T>& values, std::span<const std::int64_t> shape) {
  return {dtype, shape, std::as_writable_bytes(std::span(values))};
}

// Random codes of `dtype`, subnormals, infinities and NaNs among them.
std::vector<std::byte> random_codes(DType dtype, std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::byte> bytes(storage_bytes(dtype, count));
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  if (dtype == DType::float64) {  // mostly values that narrower types have
    for (std::size_t i = 0; i + 8 <= bytes.size(); i += 16) {
      const double value =
          std::ldexp(static_cast<double>(random() % 4096) - 2048.0, static_cast<int>(random() % 40) - 25);
      std::memcpy(&bytes[i], &value, sizeof value);
    }
  }
  return bytes;
}

TEST(Cast, ConvertsAndReports) {
  const std::vector<float> source = {1.0f, 1000.0f, -1000.0f, 0.1f, 1e-8f, NAN, INFINITY, 0.0f};
  std::vector<std::uint8_t> target(source.size());
  const std::int64_t shape[] = {2, 4};
  CastReport report;
  const Result<void> done =
      cast(view(DType::float32, source, shape), mutable_view(DType::float8_e4m3fn, target, shape), {}, report);
  ASSERT_TRUE(done.ok()) << done.error().describe();
  EXPECT_EQ(target, (std::vector<std::uint8_t>{0x38, 0x7E, 0xFE, 0x1D, 0x00, 0x7F, 0x7E, 0x00}));
  EXPECT_EQ(report.count, 8u);
  EXPECT_EQ(report.saturated, 3u);
  EXPECT_EQ(report.underflowed_to_zero, 1u);
  EXPECT_EQ(report.inexact, 4u);
  EXPECT_EQ(report.overflowed, 0u);
  EXPECT_EQ(report.nan_made, 0u);
  EXPECT_EQ(report.max_abs_error, 552.0);
  EXPECT_EQ(report.max_rel_error, 1.0);
  EXPECT_NEAR(report.snr_db(), 5.2, 0.1);
}

TEST(Cast, RefusesViewsThatDoNotFit) {
  const std::vector<float> source(4);
  std::vector<std::uint16_t> target(4);
  const std::int64_t four[] = {4}, two_by_two[] = {2, 2}, five[] = {5}, negative[] = {-4};
  EXPECT_EQ(cast(view(DType::float32, source, four), mutable_view(DType::float16, target, two_by_two)).error().code,
            ErrorCode::invalid_argument);
  EXPECT_EQ(cast(view(DType::float32, source, five), mutable_view(DType::float16, target, five)).error().code,
            ErrorCode::invalid_argument);
  EXPECT_EQ(cast(view(DType::float32, source, negative), mutable_view(DType::float16, target, negative)).error().code,
            ErrorCode::invalid_argument);
  EXPECT_EQ(cast(view(DType::string, source, four), mutable_view(DType::float16, target, four)).error().code,
            ErrorCode::unsupported);
  EXPECT_EQ(cast(view(DType::undefined, source, four), mutable_view(DType::float16, target, four)).error().code,
            ErrorCode::invalid_argument);
}

TEST(Cast, RefusesOverlapsThatNoConversionAllows) {
  std::vector<float> buffer(8);
  auto* bytes = reinterpret_cast<std::byte*>(buffer.data());
  EXPECT_TRUE(check({bytes, DType::float32, bytes, DType::float16, 8}, {}).ok());
  EXPECT_TRUE(check({bytes, DType::float32, bytes + 16, DType::float32, 4}, {}).ok());
  EXPECT_FALSE(check({bytes, DType::float32, bytes + 4, DType::float32, 4}, {}).ok());
  EXPECT_FALSE(check({bytes, DType::float16, bytes, DType::float32, 4}, {}).ok());
  EXPECT_FALSE(check({nullptr, DType::float16, bytes, DType::float32, 4}, {}).ok());
  EXPECT_TRUE(check({nullptr, DType::float16, nullptr, DType::float32, 0}, {}).ok());
}

TEST(Cast, EmptyTensorsStillHaveTheirAttributesChecked) {
  const std::int64_t shape[] = {0, 3};
  EXPECT_TRUE(cast({DType::float32, shape, {}}, {DType::int8, shape, {}}).ok());
  EXPECT_EQ(cast({DType::float32, shape, {}}, {DType::float8_e5m2, shape, {}}, {.opset = 13}).error().code,
            ErrorCode::unsupported);
}

TEST(Cast, SafeNamesTheElementThatDoesNotFit) {
  std::vector<float> source(100000, 3.0f);
  source[77777] = 300.0f;
  source[99999] = NAN;
  std::vector<std::uint8_t> target(source.size());
  const std::int64_t shape[] = {static_cast<std::int64_t>(source.size())};
  for (const int threads : {1, 2}) {
    const Result<void> done = cast(view(DType::float32, source, shape), mutable_view(DType::uint8, target, shape),
                                   CastOptions::lossless_integers(), {.threads = threads});
    ASSERT_FALSE(done.ok());
    EXPECT_EQ(done.error().code, ErrorCode::out_of_range);
    EXPECT_EQ(done.error().element, 77777u);
    EXPECT_EQ(done.error().describe(), "element 77777: value 300 does not fit uint8 (from float32)");
  }
}

TEST(Cast, FirstOfManyErrorsIsToldWhateverTheThreads) {
  std::vector<float> source(3'000'000, 1.0f);
  for (std::size_t i = 1'234'567; i < source.size(); i += 11) source[i] = -1.0f;
  std::vector<std::uint8_t> target(source.size());
  const std::int64_t shape[] = {static_cast<std::int64_t>(source.size())};
  for (int run = 0; run < 8; ++run) {
    const Result<void> done = cast(view(DType::float32, source, shape), mutable_view(DType::uint8, target, shape),
                                   CastOptions::lossless_integers(), {.threads = 4});
    ASSERT_FALSE(done.ok());
    EXPECT_EQ(done.error().element, 1'234'567u);
  }
}

TEST(Cast, InPlaceEqualsOutOfPlace) {
  const std::size_t count = 700'001;
  const std::int64_t shape[] = {static_cast<std::int64_t>(count)};
  for (const DType to : {DType::float16, DType::float8_e5m2, DType::int4, DType::int32, DType::float32}) {
    std::vector<std::byte> buffer = random_codes(DType::float32, count, 5);
    std::vector<std::byte> expected(storage_bytes(to, count));
    CastReport apart, in_place;
    for (const int threads : {1, 2}) {
      ASSERT_TRUE(cast({DType::float32, shape, buffer}, {to, shape, expected}, {}, apart, {.threads = threads}).ok());
    }
    const std::span target(buffer.data(), expected.size());
    const Result<void> done = cast({DType::float32, shape, buffer}, {to, shape, target}, {}, in_place, {.threads = 2});
    ASSERT_TRUE(done.ok()) << done.error().describe();
    EXPECT_EQ(std::memcmp(buffer.data(), expected.data(), expected.size()), 0) << name(to);
    EXPECT_EQ(2 * in_place.inexact, apart.inexact);
  }
}

TEST(Cast, ThreadsChangeNeitherBitsNorReport) {
  const std::size_t count = 1'500'003;
  const std::int64_t shape[] = {static_cast<std::int64_t>(count)};
  const std::vector<std::byte> source = random_codes(DType::float32, count, 11);
  for (const DType to : {DType::bfloat16, DType::uint2, DType::float64}) {
    std::vector<std::byte> one(storage_bytes(to, count)), many(one.size());
    CastReport report_one, report_many;
    ASSERT_TRUE(cast({DType::float32, shape, source}, {to, shape, one}, {}, report_one, {.threads = 1}).ok());
    ASSERT_TRUE(cast({DType::float32, shape, source}, {to, shape, many}, {}, report_many, {.threads = 7}).ok());
    EXPECT_EQ(one, many);
    EXPECT_EQ(report_one.signal_power, report_many.signal_power);
    EXPECT_EQ(report_one.noise_power, report_many.noise_power);
    EXPECT_EQ(report_one.inexact, report_many.inexact);
  }
}

#if defined(__x86_64__)

// The caller may round up, and flush subnormal numbers: the ends of ranges, such as float8_e8m0fnu's in float32, stay.
TEST(Cast, ReportsAndRefusesWhateverTheCallersEnvironment) {
  constexpr unsigned flushes_and_rounds_up = 0xc040;
  constexpr std::int64_t shape[] = {65536};
  std::vector<std::uint16_t> codes(65536);
  std::iota(codes.begin(), codes.end(), std::uint16_t{0});
  for (const DType to : all_dtypes()) {
    if (to == DType::string) continue;
    std::vector<std::byte> target(storage_bytes(to, codes.size())), again(target.size());
    CastReport expected, report;
    ASSERT_TRUE(cast(view(DType::bfloat16, codes, shape), {to, shape, target}, {}, expected).ok());
    const CastOptions strict = {.out_of_range = OutOfRange::error};
    const Result<void> refused = cast(view(DType::bfloat16, codes, shape), {to, shape, again}, strict);
    restore(float_environment() ^ flushes_and_rounds_up);
    const Result<void> done = cast(view(DType::bfloat16, codes, shape), {to, shape, again}, {}, report);
    const Result<void> refused_again = cast(view(DType::bfloat16, codes, shape), {to, shape, target}, strict);
    restore(float_environment() ^ flushes_and_rounds_up);
    ASSERT_TRUE(done.ok());
    ASSERT_TRUE(cast(view(DType::bfloat16, codes, shape), {to, shape, target}, {}).ok());
    EXPECT_EQ(again, target) << name(to);
    EXPECT_EQ(std::memcmp(&report, &expected, sizeof report), 0) << name(to);
    ASSERT_EQ(refused_again.ok(), refused.ok()) << name(to);
    if (!refused) {
      EXPECT_EQ(refused_again.error().message, refused.error().message);
    }
  }
}

#endif

struct Placed {
  std::vector<std::byte> bytes;  // with a line of guards before and behind
  Result<void> done;
};

Placed cast_at(const Conversion& whole, std::size_t misaligned, const CastOptions& options, CastReport* report,
               int threads = 1) {
  constexpr std::size_t line = 64;
  const std::size_t bytes = storage_bytes(whole.to, whole.count);
  std::vector<std::byte> memory(bytes + 4 * line, std::byte{0xa5});
  const std::size_t aligned = (0 - reinterpret_cast<std::uintptr_t>(memory.data())) % line + line;
  std::byte* const target = memory.data() + aligned + misaligned;
  const std::int64_t shape[] = {static_cast<std::int64_t>(whole.count)};
  const TensorView from{whole.from, shape, {whole.src, storage_bytes(whole.from, whole.count)}};
  const MutableTensorView to{whole.to, shape, {target, bytes}};
  Result<void> done = report != nullptr ? cast(from, to, options, *report, {.threads = threads})
                                        : cast(from, to, options, {.threads = threads});
  return {{target - line, target + bytes + line}, std::move(done)};
}

// So large that the target is written around the caches, in whole lines.
TEST(Cast, LargeTensorsMayBeginAndEndAnywhere) {
  constexpr std::size_t count = 9'000'000 + 7, line = 64;
  for (const auto& [from, to] : {std::pair{DType::float8_e4m3fn, DType::float32},
                                 std::pair{DType::float32, DType::int4}, std::pair{DType::float32, DType::bfloat16},
                                 std::pair{DType::float64, DType::uint2}, std::pair{DType::int64, DType::int32}}) {
    const std::vector<std::byte> source = random_codes(from, count, 15);
    std::vector<std::byte> expected(storage_bytes(to, count));
    constexpr std::size_t small = 4096;
    for (std::size_t first = 0; first < count; first += small) {
      const std::size_t some = std::min(small, count - first);
      const Conversion part{source.data() + storage_bytes(from, first), from,
                            expected.data() + storage_bytes(to, first), to, some};
      ASSERT_TRUE(run(part, *codec::resolve_policy({}, from, to), {.threads = 1}, nullptr).ok());
    }
    expected.insert(expected.begin(), line, std::byte{0xa5});
    expected.insert(expected.end(), line, std::byte{0xa5});
    for (const std::size_t misaligned : {0, 1, 2, 17, 63}) {
      for (const bool has_report : {false, true}) {
        CastReport report;
        const std::size_t source_misaligned = has_report ? misaligned : 64 - misaligned;
        std::vector<std::byte> moved(source_misaligned + source.size());
        std::memcpy(moved.data() + source_misaligned, source.data(), source.size());
        const Conversion whole{moved.data() + source_misaligned, from, nullptr, to, count};
        const Placed got = cast_at(whole, misaligned, {}, has_report ? &report : nullptr);
        ASSERT_TRUE(got.done.ok());
        EXPECT_TRUE(got.bytes == expected) << name(from) << " to " << name(to) << " at " << misaligned;
      }
    }
  }
}

TEST(Cast, LargeTargetsHaveWhatComesBeforeAnError) {
  constexpr std::size_t count = 9'000'000, bad = count - 100, line = 64;
  std::vector<float> numbers(count);
  for (std::size_t i = 0; i < count; ++i) numbers[i] = static_cast<float>(i % 100);
  numbers[bad] = 1000.0F;
  const Conversion whole{reinterpret_cast<const std::byte*>(numbers.data()), DType::float32, nullptr, DType::int8,
                         count};
  for (const std::size_t misaligned : {0, 1, 63}) {
    const Placed got = cast_at(whole, misaligned, {.out_of_range = OutOfRange::error}, nullptr);
    ASSERT_FALSE(got.done.ok());
    EXPECT_EQ(got.done.error().element, bad);
    for (std::size_t i = 0; i < bad - 8192; ++i) {
      ASSERT_EQ(got.bytes[line + i], static_cast<std::byte>(i % 100)) << i << " at " << misaligned;
    }
  }
}

// Targets of the source's width, which copy unless they saturate, and others; small, and large enough for threads.
TEST(Cast, IntegersSaturate) {
  for (const std::size_t count : {std::size_t{1}, std::size_t{4095}, std::size_t{9'000'000}}) {
    std::vector<std::int16_t> numbers(count, -5);
    numbers[count / 2] = 300;
    const auto saturated = [&](DType to) {
      const Conversion whole{reinterpret_cast<const std::byte*>(numbers.data()), DType::int16, nullptr, to, count};
      const Placed got = cast_at(whole, 0, {.out_of_range = OutOfRange::saturate}, nullptr);
      EXPECT_TRUE(got.done.ok());
      return std::pair(codec::load_code(to, got.bytes.data() + 64, 0),
                       codec::load_code(to, got.bytes.data() + 64, count / 2));
    };
    const std::uint64_t first = count == 1 ? 300 : 0;
    EXPECT_EQ(saturated(DType::uint16), (std::pair<std::uint64_t, std::uint64_t>(first, 300)));
    EXPECT_EQ(saturated(DType::uint64), (std::pair<std::uint64_t, std::uint64_t>(first, 300)));
    EXPECT_EQ(saturated(DType::int8), (std::pair<std::uint64_t, std::uint64_t>(count == 1 ? 127 : 0xfb, 127)));
  }
}

// Refused elements are searched after converting, several pieces at a time for narrow sources. The error names the
// first.
TEST(Cast, LargeTensorsNameTheFirstElementRefused) {
  for (const auto& [from, to] :
       {std::pair{DType::float8_e4m3fnuz, DType::int8}, std::pair{DType::float8_e4m3fnuz, DType::int64},
        std::pair{DType::float8_e5m2, DType::int16}, std::pair{DType::bfloat16, DType::int8},
        std::pair{DType::float64, DType::int32}, std::pair{DType::int32, DType::uint8},
        std::pair{DType::int16, DType::uint16}, std::pair{DType::float32, DType::float16}}) {
    const std::string pair = std::string(name(from)) + " to " + std::string(name(to));
    const std::size_t bits = static_cast<std::size_t>(bit_width(from) + bit_width(to));
    const std::size_t count = (std::size_t{33} << 20) * 8 / bits + 5;
    const auto code_of = [from = from](double value) {
      return codec::cast_code(DType::float64, std::bit_cast<std::uint64_t>(value), from, {}).bits;
    };
    std::vector<std::uint64_t> digits;
    for (int digit = 0; digit < 7; ++digit) digits.push_back(code_of(digit));
    std::vector<std::byte> source(storage_bytes(from, count));
    for (std::size_t i = 0; i < count; ++i) codec::store_code(from, source.data(), i, digits[i % 7]);
    const bool is_float = family(from) == Family::floating;
    const std::uint64_t end = code_of(!is_float ? 255.0 : family(to) == Family::floating ? INFINITY : -128.0);
    const std::uint64_t refused_code = code_of(!is_float ? -1.0 : family(to) == Family::floating ? -65520.0 : NAN);
    codec::store_code(from, source.data(), count / 3, end);  // at the end of a range
    const Conversion whole{source.data(), from, nullptr, to, count};
    const Placed usual = cast_at(whole, 3, {}, nullptr);
    for (const int threads : {1, 2}) {
      const CastOptions strict{.out_of_range = OutOfRange::error};
      const Placed accepted = cast_at(whole, 3, strict, nullptr, threads);
      ASSERT_TRUE(accepted.done.ok()) << pair;
      EXPECT_TRUE(accepted.bytes == usual.bytes) << pair;
      for (const std::size_t bad : {count - 1, count - 1000, count / 2, std::size_t{4097}, std::size_t{0}}) {
        codec::store_code(from, source.data(), bad, refused_code);
        const Placed refused = cast_at(whole, 3, strict, nullptr, threads);
        ASSERT_FALSE(refused.done.ok()) << pair << " at " << bad;
        EXPECT_EQ(refused.done.error().element, bad) << pair;
      }
      for (const std::size_t bad : {count - 1, count - 1000, count / 2, std::size_t{4097}, std::size_t{0}}) {
        codec::store_code(from, source.data(), bad, digits[bad % 7]);
      }
    }
  }
}

TEST(Cast, CopiesOfOneTypeKeepEveryBitButPadding) {
  const std::int64_t shape[] = {3};
  const std::vector<std::uint8_t> source = {0x21, 0xF3};
  std::vector<std::uint8_t> target(2);
  ASSERT_TRUE(cast(view(DType::int4, source, shape), mutable_view(DType::int4, target, shape)).ok());
  EXPECT_EQ(target, (std::vector<std::uint8_t>{0x21, 0x03}));
  const std::vector<std::uint8_t> infinities = {0x7C, 0xFC, 0x7F};
  std::vector<std::uint8_t> copy(3);
  ASSERT_TRUE(cast(view(DType::float8_e5m2, infinities, shape), mutable_view(DType::float8_e5m2, copy, shape)).ok());
  EXPECT_EQ(copy, infinities);
}

TEST(Cast, ScaleMultipliesBeforeTheOneRounding) {
  const std::int64_t shape[] = {3};
  const std::vector<float> source = {1.0f, 3.0f, 1e38f};
  std::vector<float> target(3);
  ASSERT_TRUE(
      cast(view(DType::float32, source, shape), mutable_view(DType::float32, target, shape), {.scale = 0.1}).ok());
  EXPECT_EQ(target, (std::vector<float>{0.1f, static_cast<float>(0.1 * 3.0), 1e37f}));
  EXPECT_EQ(cast(view(DType::float32, source, shape), mutable_view(DType::float32, target, shape), {.scale = NAN})
                .error()
                .code,
            ErrorCode::invalid_argument);
}

// Large enough to bypass the cache; the types share their codes.
TEST(Cast, ScaleMultipliesLargeIntegerTensors) {
  constexpr std::size_t count = std::size_t{20} << 20;
  const std::int64_t shape[] = {count};
  const std::vector<std::int8_t> source(count, 3);
  std::vector<std::uint8_t> target(count);
  ASSERT_TRUE(cast(view(DType::int8, source, shape), mutable_view(DType::uint8, target, shape), {.scale = 2.0}).ok());
  EXPECT_EQ(target, std::vector<std::uint8_t>(count, 6));
}

TEST(CastReport, CountsEqualThoseOfTheReference) {
  constexpr std::size_t count = 4096;
  for (const DType from : all_dtypes()) {
    if (from == DType::string || bit_width(from) == 64) {
      if (from != DType::float64) continue;  // counted by the reference itself
    }
    const std::vector<std::byte> source = random_codes(from, count, 3);
    for (const DType to : all_dtypes()) {
      if (to == DType::string) continue;
      for (const CastOptions& options :
           {CastOptions{}, CastOptions{.saturate = false, .out_of_range = OutOfRange::saturate},
            CastOptions{.opset = 23, .rounding = Rounding::nearest_even}}) {
        const Result<codec::Policy> policy = codec::resolve_policy(options, from, to);
        if (!policy) continue;
        std::vector<std::byte> target(storage_bytes(to, count));
        const Conversion conversion{source.data(), from, target.data(), to, count};
        CastReport report, expected;
        ASSERT_TRUE(run(conversion, *policy, {.threads = 1}, &report).ok());
        for (std::size_t i = 0; i < count; ++i) {
          const auto events = codec::cast_code(from, codec::load_code(from, source.data(), i), to, *policy).events;
          expected.overflowed += (events & codec::event_overflowed) != 0;
          expected.saturated += (events & codec::event_saturated) != 0;
          expected.underflowed_to_zero += (events & codec::event_underflowed) != 0;
          expected.inexact += (events & codec::event_inexact) != 0;
          expected.nan_made += (events & codec::event_nan_made) != 0;
          expected.nan_lost += (events & codec::event_nan_lost) != 0;
          expected.wrapped += (events & codec::event_wrapped) != 0;
        }
        const std::string pair = std::string(name(from)) + " to " + std::string(name(to));
        EXPECT_EQ(report.overflowed, expected.overflowed) << pair;
        EXPECT_EQ(report.saturated, expected.saturated) << pair;
        EXPECT_EQ(report.underflowed_to_zero, expected.underflowed_to_zero) << pair;
        EXPECT_EQ(report.inexact, expected.inexact) << pair;
        EXPECT_EQ(report.nan_made, expected.nan_made) << pair;
        EXPECT_EQ(report.nan_lost, expected.nan_lost) << pair;
        EXPECT_EQ(report.wrapped, expected.wrapped) << pair;
      }
    }
  }
}

TEST(Strings, ThereAndBack) {
  const std::int64_t shape[] = {5};
  const std::string text = " 1e3 -INFnan0.12.50";
  const std::vector<std::int64_t> offsets = {0, 5, 9, 12, 15, 19};
  std::vector<float> target(5);
  const Result<void> done = cast_from_strings({text, offsets}, mutable_view(DType::float32, target, shape));
  ASSERT_TRUE(done.ok()) << done.error().describe();
  EXPECT_EQ(target[0], 1000.0f);
  EXPECT_EQ(target[1], -INFINITY);
  EXPECT_TRUE(std::isnan(target[2]));
  EXPECT_EQ(target[3], 0.1f);
  EXPECT_EQ(target[4], 2.5f);
  const Result<StringBuffer> printed = cast_to_strings(view(DType::float32, target, shape));
  ASSERT_TRUE(printed.ok());
  EXPECT_EQ(std::string(printed->data.begin(), printed->data.end()), "1000.0-INFNaN0.12.5");
  EXPECT_EQ(printed->offsets, (std::vector<std::int64_t>{0, 6, 10, 13, 16, 19}));
}

TEST(Strings, RefusesBadOffsetsAndNamesBadElements) {
  const std::int64_t shape[] = {2};
  std::vector<float> target(2);
  const std::string text = "1x2";
  for (const std::vector<std::int64_t>& offsets :
       {std::vector<std::int64_t>{0, 2, 1}, {-1, 1, 2}, {0, 1, 4}, {0, 1}, {}}) {
    EXPECT_EQ(cast_from_strings({text, offsets}, mutable_view(DType::float32, target, shape)).error().code,
              ErrorCode::invalid_argument);
  }
  const std::vector<std::int64_t> offsets = {0, 1, 3};
  const Result<void> done = cast_from_strings({text, offsets}, mutable_view(DType::float32, target, shape));
  EXPECT_EQ(done.error().code, ErrorCode::parse);
  EXPECT_EQ(done.error().element, 1u);
}

}  // namespace
}  // namespace tensorcast
