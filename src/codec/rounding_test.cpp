// SPDX-License-Identifier: Apache-2.0
// The words of D16, against neighbours that are searched for among all numbers of a type.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "codec/codec_testing.hpp"
#include "codec/reference_cast.hpp"
#include "dtype/dtype_table.hpp"

namespace tensorcast::codec {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr Rounding words[] = {Rounding::nearest_even,    Rounding::nearest_away,    Rounding::toward_zero,
                              Rounding::toward_positive, Rounding::toward_negative, Rounding::to_odd,
                              Rounding::stochastic};

double decoded_value(DType dtype, std::uint64_t code) {
  const Real real = decode(dtype, code);
  const double sign = real.negative ? -1.0 : 1.0;
  if (real.kind == Real::Kind::nan) return std::nan("");
  if (real.kind == Real::Kind::infinite) return sign * infinity;
  if (real.kind == Real::Kind::zero) return sign * 0.0;
  return sign * std::ldexp(static_cast<double>(real.significand), real.exponent);
}

// The magnitudes of a type of 16 bits or fewer by code, and one step beyond the largest.
std::vector<double> magnitudes_of(DType dtype) {
  std::vector<double> all;
  const FloatFormat& format = row(dtype).format;
  for (std::uint64_t code = 0; code <= format.largest_code(); ++code) all.push_back(decoded_value(dtype, code));
  all.push_back(all.back() + std::ldexp(1.0, format.max_exponent() - format.mantissa_bits));
  return all;
}

// The code of |x|, perhaps one beyond the largest, for 0 <= |x| <= the last magnitude.
std::size_t searched(const std::vector<double>& all, double x, Rounding word, std::uint32_t random) {
  const double size = std::fabs(x);
  const auto above = static_cast<std::size_t>(std::lower_bound(all.begin(), all.end(), size) - all.begin());
  if (above < all.size() && all[above] == size) return above;
  const std::size_t below = above - 1;
  const double part = (size - all[below]) / (all[above] - all[below]);  // exact: sources have few digits
  const auto choose = [&](bool up) { return up ? above : below; };
  switch (word) {
    case Rounding::nearest_away:
      return choose(part >= 0.5);
    case Rounding::toward_zero:
      return below;
    case Rounding::toward_positive:
      return choose(x > 0);
    case Rounding::toward_negative:
      return choose(x < 0);
    case Rounding::to_odd:
      return choose(above % 2 == 1);
    case Rounding::stochastic:
      return choose(std::floor(part * 0x1p32) + random >= 0x1p32);
    default:
      return choose(part > 0.5 || (part == 0.5 && above % 2 == 0));
  }
}

bool leads_to_zero(Rounding word, double x) {
  return word == Rounding::toward_zero || word == Rounding::to_odd ||
         word == (x < 0 ? Rounding::toward_positive : Rounding::toward_negative);
}

TEST(Rounding, EveryWordFindsItsNeighbour) {
  for (const DType to : all_dtypes()) {
    if (family(to) != Family::floating || bit_width(to) > 16 || !row(to).format.has_zero) continue;
    const std::vector<double> all = magnitudes_of(to);
    const bool lacks_sign = !row(to).format.has_sign;
    for (const DType from : {DType::float16, DType::bfloat16}) {
      for (std::uint64_t code = 0; code < 0x10000; code += 3) {
        const double source = decoded_value(from, code);
        const double x = lacks_sign ? std::fabs(source) : source;
        if (std::isnan(x) || std::fabs(x) > all.back()) continue;
        for (const Rounding word : words) {
          const auto random = static_cast<std::uint32_t>(code * 0x9e3779b1U);
          const Encoded got = cast_code(from, code, to, {.saturate = false, .rounding = word}, random);
          std::size_t wanted = searched(all, x, word, random);
          if (wanted == all.size() - 1) {
            if (!leads_to_zero(word, x)) continue;  // what the type has for overflow, as other tests say
            --wanted;
          }
          ASSERT_EQ(std::fabs(decoded_value(to, got.bits)), all[wanted])
              << name(from) << " " << code << " to " << name(to) << " by word " << static_cast<int>(word);
          if (wanted != 0 && !lacks_sign) {
            EXPECT_EQ(std::signbit(decoded_value(to, got.bits)), x < 0);
          }
        }
      }
    }
  }
}

TEST(Rounding, ToIntegers) {
  const auto by = [](double x, Rounding word, std::uint32_t random = 0) {
    return static_cast<std::int8_t>(
        cast_code(DType::float64, std::bit_cast<std::uint64_t>(x), DType::int8, {.rounding = word}, random).bits);
  };
  EXPECT_EQ(by(2.5, Rounding::nearest_even), 2);
  EXPECT_EQ(by(2.5, Rounding::nearest_away), 3);
  EXPECT_EQ(by(-2.5, Rounding::nearest_away), -3);
  EXPECT_EQ(by(-1.1, Rounding::toward_positive), -1);
  EXPECT_EQ(by(-1.1, Rounding::toward_negative), -2);
  EXPECT_EQ(by(0.001, Rounding::toward_positive), 1);
  EXPECT_EQ(by(2.001, Rounding::to_odd), 3);
  EXPECT_EQ(by(3.999, Rounding::to_odd), 3);
  EXPECT_EQ(by(-4.0, Rounding::to_odd), -4);
  EXPECT_EQ(by(0.25, Rounding::stochastic, 0xbfffffff), 0);
  EXPECT_EQ(by(0.25, Rounding::stochastic, 0xc0000000), 1);
  EXPECT_EQ(by(7.0, Rounding::stochastic, 0xffffffff), 7);
  const Policy strict{.range = RangeRule::error, .rounding = Rounding::toward_negative};
  EXPECT_EQ(from_double(127.9, DType::int8, strict).bits, 127u);
  EXPECT_EQ(from_double(-0.4, DType::uint8, strict).events, event_error);
}

TEST(Rounding, OverflowLeadsWhereTheWordDoes) {
  const auto f16 = [](double x, Rounding word, RangeRule range = RangeRule::wrap) {
    return from_double(x, DType::float16, {.range = range, .rounding = word});
  };
  EXPECT_EQ(f16(1e10, Rounding::toward_zero).bits, 0x7bffu);
  EXPECT_EQ(f16(1e10, Rounding::to_odd).bits, 0x7bffu);
  EXPECT_EQ(f16(1e10, Rounding::toward_positive).bits, 0x7c00u);
  EXPECT_EQ(f16(-1e10, Rounding::toward_positive).bits, 0xfbffu);
  EXPECT_EQ(f16(-1e10, Rounding::toward_negative).bits, 0xfc00u);
  EXPECT_EQ(f16(infinity, Rounding::toward_zero).bits, 0x7c00u);
  EXPECT_EQ(f16(65530.0, Rounding::toward_zero, RangeRule::error).bits, 0x7bffu);
  EXPECT_EQ(f16(65536.0, Rounding::toward_zero, RangeRule::error).events, event_error);
  EXPECT_EQ(f16(-1e-30, Rounding::toward_positive).bits, 0x8000u);
  EXPECT_EQ(f16(1e-30, Rounding::toward_positive).bits, 0x0001u);
}

TEST(Rounding, OfPowersOfTwo) {
  const auto by = [](double x, Rounding word, std::uint32_t random = 0) {
    return cast_code(DType::float64, std::bit_cast<std::uint64_t>(x), DType::float8_e8m0fnu, {.rounding = word}, random)
        .bits;
  };
  EXPECT_EQ(by(1.5, Rounding::nearest_even), 128u);
  EXPECT_EQ(by(3.0, Rounding::nearest_even), 128u);
  EXPECT_EQ(by(1.1, Rounding::to_odd), 127u);
  EXPECT_EQ(by(2.1, Rounding::to_odd), 129u);
  EXPECT_EQ(by(2.0, Rounding::to_odd), 128u);
  EXPECT_EQ(by(1.25, Rounding::stochastic, 0xc0000000), 128u);
  EXPECT_EQ(by(1.25, Rounding::stochastic, 0xbfffffff), 127u);
  EXPECT_EQ(by(0.0, Rounding::to_odd), 0u);
}

TEST(Rounding, TextsAreExact) {
  const auto by = [](std::string_view text, DType to, Rounding word) {
    return *cast_text(text, to, {.rounding = word}, 0);
  };
  EXPECT_EQ(by("0.1", DType::float32, Rounding::toward_zero), 0x3dccccccu);
  EXPECT_EQ(by("0.1", DType::float32, Rounding::toward_positive), 0x3dcccccdu);
  EXPECT_EQ(by("1.00000000000000000000000000000000000000000001", DType::float16, Rounding::to_odd), 0x3c01u);
  EXPECT_EQ(by("1e-4000", DType::float16, Rounding::toward_positive), 0x0001u);
  EXPECT_EQ(by("1e-4000", DType::float16, Rounding::toward_negative), 0x0000u);
}

TEST(Rounding, OnlyWhatStaysIsExact) {
  const Policy exact{.inexact_is_error = true};
  const auto refused = [&](double x, DType to) { return (from_double(x, to, exact).events & event_error) != 0; };
  EXPECT_TRUE(refused(1.5, DType::int8));
  EXPECT_TRUE(refused(16777217.0, DType::float32));
  EXPECT_TRUE(refused(0.1, DType::float16));
  EXPECT_TRUE(refused(300.0, DType::uint8));
  EXPECT_TRUE(refused(2.0, DType::boolean));
  EXPECT_TRUE(refused(infinity, DType::boolean));
  EXPECT_TRUE(refused(infinity, DType::float8_e4m3fn));
  EXPECT_TRUE(refused(-1.0, DType::float8_e5m3fnu));
  EXPECT_TRUE(refused(std::nan(""), DType::int8));
  EXPECT_TRUE(refused(std::nan(""), DType::float4_e2m1fn));
  for (const DType to : {DType::int8, DType::float8_e4m3fnuz, DType::float16, DType::boolean}) {
    EXPECT_FALSE(refused(-0.0, to)) << name(to);
    EXPECT_FALSE(refused(1.0, to)) << name(to);
  }
  EXPECT_FALSE(refused(std::nan(""), DType::float8_e4m3fn));
  EXPECT_FALSE(refused(infinity, DType::float16));
  EXPECT_FALSE(cast_text("0.1", DType::float64, exact).ok());
  EXPECT_TRUE(cast_text("0.5", DType::float16, exact).ok());
}

// Random123's kat_vectors.
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, 0), (PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr std::uint32_t ones = 0xffffffff;
  EXPECT_EQ(philox4x32({ones, ones, ones, ones}, ~std::uint64_t{0}),
            (PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0x299f31d0a4093822),
            (PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

// 5 sigma of a fraction of 10^5 throws.
TEST(Rounding, StochasticMeansAreTheNumbers) {
  constexpr int throws = 100'000;
  for (const double part : {0.001, 0.1, 0.25, 1.0 / 3, 0.5, 0.9}) {
    int ups = 0;
    for (int seed = 0; seed < throws; ++seed) {
      const auto random = random_word(static_cast<std::uint64_t>(seed), 5);
      const auto code = cast_code(DType::float64, std::bit_cast<std::uint64_t>(3 + part), DType::int8,
                                  {.rounding = Rounding::stochastic}, random);
      ups += code.bits == 4 ? 1 : 0;
    }
    EXPECT_NEAR(ups, throws * part, 5 * std::sqrt(throws * part * (1 - part))) << part;
  }
}

}  // namespace
}  // namespace tensorcast::codec
