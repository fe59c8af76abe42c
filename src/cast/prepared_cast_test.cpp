// SPDX-License-Identifier: Apache-2.0
#include "tensorcast/prepared_cast.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "tensorcast/cast.hpp"

namespace tensorcast {
namespace {

using Bytes = std::vector<std::byte>;

std::vector<CastOptions> all_options() {
  return {{},
          {.saturate = false},
          {.opset = 19},
          {.out_of_range = OutOfRange::saturate, .rounding = Rounding::nearest_even},
          CastOptions::lossless_integers(),
          {.round_mode = RoundMode::nearest, .scale = 0.3},
          {.invalid = Invalid::error}};
}

Bytes random_bytes(std::size_t size, unsigned seed) {
  std::mt19937 random(seed);
  Bytes bytes(size);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

// Both outcomes in words: an error, or the bytes.
std::string words(const Result<void>& done, const Bytes& bytes) {
  if (!done) return done.error().describe();
  std::string text;
  for (const std::byte byte : bytes) text += std::to_string(std::to_integer<int>(byte)) + ' ';
  return text;
}

void expect_as_cast(DType from, DType to, const CastOptions& options) {
  const Result<PreparedCast> prepared = prepare_cast(from, to, options);
  for (const std::size_t count : {1u, 2u, 3u, 5u, 8u, 15u, 16u, 17u, 33u, 64u, 130u}) {
    const Bytes src = random_bytes(storage_bytes(from, count), static_cast<unsigned>(count));
    Bytes expected(storage_bytes(to, count)), actual(expected.size());
    const std::int64_t shape[] = {static_cast<std::int64_t>(count)};
    const Result<void> done = cast({from, shape, src}, {to, shape, expected}, options, {.threads = 1});
    const std::string pair = std::string(name(from)) + " to " + std::string(name(to)) + ", " + std::to_string(count);
    if (!prepared) {
      EXPECT_EQ(words(prepared.error(), {}), words(done, expected)) << pair;
      return;
    }
    EXPECT_EQ(words((*prepared)(src.data(), actual.data(), count), actual), words(done, expected)) << pair;
  }
}

TEST(SlowPreparedCast, IsAsCastForAllPairsAndOptions) {
  for (const DType from : all_dtypes()) {
    for (const DType to : all_dtypes()) {
      for (const CastOptions& options : all_options()) expect_as_cast(from, to, options);
    }
  }
}

TEST(PreparedCast, IsAsCast) {
  for (const DType from : {DType::float32, DType::int4, DType::float8_e4m3fn, DType::int16}) {
    for (const DType to : {DType::bfloat16, DType::uint4, DType::float32, DType::int8, DType::string}) {
      for (const CastOptions& options : all_options()) expect_as_cast(from, to, options);
    }
  }
}

TEST(PreparedCast, ConvertsManyElements) {
  constexpr std::size_t count = 300'001;
  const Bytes src = random_bytes(count * 4, 7);
  Bytes expected(count * 2), actual(count * 2);
  const std::int64_t shape[] = {count};
  ASSERT_TRUE(cast({DType::float32, shape, src}, {DType::float16, shape, expected}));
  ASSERT_TRUE(prepare_cast(DType::float32, DType::float16).value()(src.data(), actual.data(), count));
  EXPECT_EQ(expected, actual);
}

TEST(PreparedCast, ConvertsInPlaceAndRefusesOtherOverlaps) {
  const PreparedCast narrow = prepare_cast(DType::float32, DType::float16).value();
  const PreparedCast wide = prepare_cast(DType::float16, DType::float32).value();
  const PreparedCast same = prepare_cast(DType::float16, DType::float16).value();
  std::vector<float> numbers(40, 1.5f);
  ASSERT_TRUE(narrow(numbers.data(), numbers.data(), 40));
  std::uint16_t half = 0;
  std::memcpy(&half, reinterpret_cast<const char*>(numbers.data()) + 78, 2);
  EXPECT_EQ(half, 0x3e00);
  EXPECT_TRUE(same(numbers.data(), numbers.data(), 80));
  auto* const bytes = reinterpret_cast<std::byte*>(numbers.data());
  EXPECT_EQ(wide(bytes, bytes, 10).error().message, "float16 cannot become the wider float32 in place");
  EXPECT_EQ(narrow(bytes, bytes + 2, 4).error().message, "source and target overlap");
  EXPECT_EQ(narrow(bytes + 6, bytes, 4).error().message, "source and target overlap");
  EXPECT_TRUE(narrow(bytes + 8, bytes, 4));
  EXPECT_TRUE(narrow(bytes, bytes + 16, 4));
}

TEST(PreparedCast, NamesWhatIsWrong) {
  const PreparedCast cast = prepare_cast(DType::float32, DType::float16).value();
  float number = 1.0f;
  EXPECT_TRUE(cast(nullptr, nullptr, 0));
  EXPECT_EQ(cast(nullptr, &number, 1).error().message, "the source buffer is null");
  EXPECT_EQ(cast(&number, nullptr, 1).error().message, "the target buffer is null");
  const std::size_t most = std::numeric_limits<std::size_t>::max();
  EXPECT_EQ(cast(&number, &number, most).error().message, std::to_string(most) + " elements do not fit memory");
  EXPECT_EQ(PreparedCast()(&number, &number, 1).error().message, "this cast was not prepared");
  EXPECT_EQ(prepare_cast(DType::float32, DType::string).error().code, ErrorCode::unsupported);
  EXPECT_EQ(prepare_cast(DType::float32, DType::float16, {.scale = HUGE_VAL}).error().code,
            ErrorCode::invalid_argument);

  const PreparedCast strict = prepare_cast(DType::float32, DType::int8, CastOptions::lossless_integers()).value();
  const float numbers[] = {1.0f, -128.0f, 128.0f};
  std::int8_t codes[3];
  EXPECT_EQ(strict(numbers, codes, 3).error().element, 2u);
  EXPECT_TRUE(strict(numbers, codes, 2));
  EXPECT_EQ(codes[1], -128);
}

}  // namespace
}  // namespace tensorcast
