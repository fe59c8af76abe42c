// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "codec/reference_cast.hpp"
#include "report/strict_scan.hpp"

namespace tensorcast::report {
namespace {

using codec::Policy;
using codec::RangeRule;

Policy strict() {
  Policy policy;
  policy.range = RangeRule::error;
  policy.invalid_is_error = true;
  return policy;
}

bool fails_by_reference(DType from, std::uint64_t code, DType to, const Policy& policy) {
  return (codec::cast_code(from, code, to, policy).events & codec::event_error) != 0;
}

// From this count on, sources of 8 bits have a table of all codes.
constexpr std::size_t many = 65536;

bool may_fail(Target target, const std::byte* src, DType from, DType to, std::size_t count, const Policy& policy) {
  if (!may_ever_fail(from, to, policy)) return false;
  const bool may_fail = StrictScan(from, to, policy, count, target).may_fail(src, count);
  if (bit_width(from) <= 8 && !may_fail) {
    EXPECT_FALSE(StrictScan(from, to, policy, many, target).may_fail(src, count)) << name(from) << " to " << name(to);
  }
  return may_fail;
}

bool fails_by_scan(Target target, DType from, std::uint64_t code, DType to, const Policy& policy) {
  std::byte src[8] = {};
  codec::store_code(from, src, 0, code);
  return may_fail(target, src, from, to, 1, policy);
}

// No element that the reference fails may pass, and what is commonly fine must not be sent to the reference.
TEST(StrictScan, SlowNeverMissesASingleCode) {
  std::vector<Policy> policies(5, strict());
  policies[1].rounding = Rounding::nearest_even;
  policies[2].range = RangeRule::wrap;
  policies[3].scale = 3.7;
  policies[4].scale = 1e-300;  // products underflow
  for (const DType from : all_dtypes()) {
    if (from == DType::string) continue;
    const int bits = bit_width(from);
    const std::uint64_t step = bits <= 8 ? 1 : 97;
    const std::uint64_t codes = bits <= 16 ? std::uint64_t{1} << bits : 0x10000;
    for (const DType to : all_dtypes()) {
      if (to == DType::string) continue;
      for (const Policy& policy : policies) {
        int false_alarms = 0;
        for (std::uint64_t i = 0; i < codes; i += step) {
          const std::uint64_t code = bits <= 16 ? i : (i << (bits - 16)) | (i * i % 251);
          const bool fails = fails_by_reference(from, code, to, policy);
          const bool found = fails_by_scan(Target::portable, from, code, to, policy);
          ASSERT_TRUE(found || !fails) << name(from) << " -> " << name(to) << " code " << code;
          if (found && !fails) ++false_alarms;
        }
        // Exact but for a few: ties at the very end of a range, products, and float8_e8m0fnu's lowest binade.
        const bool exact = policy.scale == 1.0 && policy.rounding == Rounding::automatic;
        if (exact && to != DType::float8_e8m0fnu) {
          EXPECT_EQ(false_alarms, 0) << name(from) << " -> " << name(to);
        }
      }
    }
  }
}

// Codes of all magnitudes, and the neighbours of the numbers at which integer targets end.
std::vector<std::uint64_t> sample_codes(DType from) {
  std::vector<std::uint64_t> codes;
  const int bits = bit_width(from);
  const std::uint64_t step = bits <= 8 ? 1 : 97;
  for (std::uint64_t i = 0; i < (std::uint64_t{1} << std::min(bits, 16)); i += step) {
    codes.push_back(bits <= 16 ? i : (i << (bits - 16)) | (i * i % 251));
  }
  if (bits <= 16) return codes;
  const std::uint64_t mask = bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
  for (int power = 0; power < 65; ++power) {
    for (const double offset : {-1.0, -0.5, 0.0, 0.5}) {
      for (const double sign : {-1.0, 1.0}) {
        const double value = sign * (std::ldexp(1.0, power) + offset);
        const std::uint64_t code = codec::cast_code(DType::float64, std::bit_cast<std::uint64_t>(value), from, {}).bits;
        for (std::uint64_t near = code - 2; near != code + 3; ++near) codes.push_back(near & mask);
      }
    }
  }
  return codes;
}

// With a scale, few products are next to the end of a range, where rounding leaves it open.
TEST(StrictScan, SlowIsExactButForProductsNextToTheEnd) {
  std::vector<Policy> policies(8, strict());
  policies[1].rounding = Rounding::nearest_even;
  policies[2].range = RangeRule::wrap;
  policies[3].scale = 3.7;
  policies[4].scale = 1e-300;
  policies[5].scale = -0.01;
  policies[6].scale = 0.0;
  policies[7].scale = 1e18;
  for (const DType from : all_dtypes()) {
    if (from == DType::string) continue;
    const std::vector<std::uint64_t> codes = sample_codes(from);
    for (const DType to : all_dtypes()) {
      if (to == DType::string) continue;
      for (const Policy& policy : policies) {
        const bool has_word = policy.rounding != Rounding::automatic && family(to) != Family::integer;
        if (has_word || !may_ever_fail(from, to, policy)) continue;
        std::vector<StrictScan> scans;
        for (const Target target : supported_targets()) {
          scans.emplace_back(from, to, policy, std::size_t{1}, target);
          if (bit_width(from) <= 8) scans.emplace_back(from, to, policy, many, target);
        }
        std::size_t false_alarms = 0;
        for (const std::uint64_t code : codes) {
          std::byte src[8] = {};
          codec::store_code(from, src, 0, code);
          // The lowest binade of float8_e8m0fnu is subnormal in float32; infinity times zero is NaN.
          const codec::Real source = codec::decode(from, code);
          const bool is_lowest = source.kind == codec::Real::Kind::finite && source.leading_exponent() == -127;
          if (to == DType::float8_e8m0fnu && is_lowest && policy.scale == 1.0) continue;
          // float64 rounds the integers below 2^63 to it.
          if (from == DType::uint64 && to == DType::int64 && source.leading_exponent() == 62) continue;
          if (policy.scale == 0.0 && source.kind == codec::Real::Kind::infinite) continue;
          const bool fails = fails_by_reference(from, code, to, policy);
          for (const StrictScan& scan : scans) {
            const bool found = scan.may_fail(src, 1);
            ASSERT_TRUE(found || !fails) << name(from) << " -> " << name(to) << " code " << code << " scale "
                                         << policy.scale;
            false_alarms += found && !fails;
          }
        }
        const std::size_t allowed = policy.scale == 1.0 ? 0 : scans.size() * (2 + codes.size() / 200);
        EXPECT_LE(false_alarms, allowed) << name(from) << " -> " << name(to) << " scale " << policy.scale;
      }
    }
  }
}

TEST(StrictScan, FindsOneAmongMany) {
  for (const DType from : {DType::float64, DType::float32, DType::bfloat16, DType::int32, DType::uint16,
                           DType::float8_e5m2, DType::uint4}) {
    const bool is_float = family(from) == Family::floating;
    const Policy policy = [&] {
      Policy strict_policy = strict();
      if (!is_float) strict_policy.scale = 100.0;
      return strict_policy;
    }();
    const std::uint64_t bad = codec::cast_code(DType::float32, std::bit_cast<std::uint32_t>(13.0F), from, {}).bits;
    const DType to = is_float ? DType::int4 : DType::int8;
    constexpr std::size_t count = 10'001;
    for (const Target target : supported_targets()) {
      const StrictScan scan(from, to, policy, count, target);
      for (const std::size_t place : {std::size_t{0}, std::size_t{1023}, std::size_t{5000}, count - 1}) {
        std::vector<std::byte> src(storage_bytes(from, count));
        EXPECT_FALSE(scan.may_fail(src.data(), count));
        codec::store_code(from, src.data(), place, bad);
        EXPECT_TRUE(scan.may_fail(src.data(), count)) << name(target) << ' ' << name(from) << " at " << place;
        EXPECT_FALSE(scan.may_fail(src.data(), place));
      }
    }
  }
}

// Types without a negative zero have NaN in its place, nearer than any number.
TEST(StrictScan, FindsEachCodeOfFloat8AmongMany) {
  constexpr std::size_t count = 4000;
  for (const DType from : {DType::float8_e4m3fn, DType::float8_e4m3fnuz, DType::float8_e5m2, DType::float8_e5m2fnuz,
                           DType::float8_e8m0fnu}) {
    for (const DType to : {DType::int8, DType::int16, DType::int64, DType::uint8, DType::int4}) {
      const std::uint64_t fine = codec::cast_code(DType::float32, std::bit_cast<std::uint32_t>(1.0F), from, {}).bits;
      for (const Target target : supported_targets()) {
        const StrictScan scan(from, to, strict(), count, target);
        std::vector<std::byte> src(count, static_cast<std::byte>(fine));
        ASSERT_FALSE(scan.may_fail(src.data(), count));
        for (std::uint64_t code = 0; code < 256; ++code) {
          for (const std::size_t place : {std::size_t{5}, std::size_t{2111}, count - 1}) {
            src[place] = static_cast<std::byte>(code);
            ASSERT_EQ(scan.may_fail(src.data(), count), fails_by_reference(from, code, to, strict()))
                << name(from) << " -> " << name(to) << " code " << code << " on " << name(target);
            src[place] = static_cast<std::byte>(fine);
          }
        }
      }
    }
  }
}

// Unused bits of the last byte do not count.
TEST(StrictScan, FindsEachCodeOfATableAmongMany) {
  constexpr std::size_t count = 9001;
  for (const DType from : all_dtypes()) {
    if (from == DType::string || bit_width(from) > 8) continue;
    const auto codes = std::uint64_t{1} << bit_width(from);
    for (const DType to : {DType::int2, DType::uint4, DType::int8, DType::float4_e2m1fn, DType::float8_e8m0fnu}) {
      Policy policy = strict();
      policy.scale = 3.0;
      if (!may_ever_fail(from, to, policy)) continue;
      std::uint64_t fine = 0;
      while (fine != codes && fails_by_reference(from, fine, to, policy)) ++fine;
      if (fine == codes) continue;
      for (const Target target : supported_targets()) {
        const StrictScan scan(from, to, policy, many, target);
        std::vector<std::byte> src(storage_bytes(from, count), std::byte{0xff});
        for (std::size_t i = 0; i < count; ++i) codec::store_code(from, src.data(), i, fine);
        ASSERT_FALSE(scan.may_fail(src.data(), count)) << name(from) << " -> " << name(to);
        for (std::uint64_t code = 0; code < codes; ++code) {
          for (const std::size_t place : {std::size_t{5}, std::size_t{8190}, count - 1}) {
            codec::store_code(from, src.data(), place, code);
            ASSERT_EQ(scan.may_fail(src.data(), count), fails_by_reference(from, code, to, policy))
                << name(from) << " -> " << name(to) << " code " << code << " on " << name(target);
            codec::store_code(from, src.data(), place, fine);
          }
        }
      }
    }
  }
}

TEST(StrictScan, LimitsOfEachIntegerTypeAreExact) {
  const double below = std::nextafter(128.0, 0.0);
  const std::vector<double> good = {127.0, below, -128.0, -std::nextafter(129.0, 0.0), -0.0, 0.5};
  const std::vector<double> bad = {128.0, -129.0, 1e300, std::numeric_limits<double>::infinity(),
                                   std::numeric_limits<double>::quiet_NaN()};
  for (const Target target : supported_targets()) {
    EXPECT_FALSE(may_fail(target, reinterpret_cast<const std::byte*>(good.data()), DType::float64, DType::int8,
                          good.size(), strict()));
    for (const double value : bad) {
      std::vector<double> src(3001, 1.0);  // several buffers
      src[2999] = value;
      EXPECT_TRUE(may_fail(target, reinterpret_cast<const std::byte*>(src.data()), DType::float64, DType::int8,
                           src.size(), strict()))
          << value;
    }
  }
}

TEST(StrictScan, NothingIsRefusedUnlessThePolicySaysSo) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto* const src = reinterpret_cast<const std::byte*>(&nan);
  EXPECT_FALSE(may_fail(Target::portable, src, DType::float64, DType::int8, 1, {}));
  EXPECT_FALSE(may_fail(Target::portable, src, DType::float64, DType::boolean, 1, strict()));
  EXPECT_FALSE(may_fail(Target::portable, src, DType::float64, DType::float8_e4m3fn, 1, strict()));
  const double infinity = std::numeric_limits<double>::infinity();
  const auto* const infinite = reinterpret_cast<const std::byte*>(&infinity);
  EXPECT_FALSE(may_fail(Target::portable, infinite, DType::float64, DType::float16, 1, strict()));
  EXPECT_TRUE(may_fail(Target::portable, infinite, DType::float64, DType::float8_e4m3fn, 1, strict()));
  EXPECT_FALSE(may_fail(Target::portable, nullptr, DType::float64, DType::int8, 0, strict()));
}

}  // namespace
}  // namespace tensorcast::report
