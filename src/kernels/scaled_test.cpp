#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "codec/reference_cast.hpp"
#include "kernels/kernel.hpp"

namespace tensorcast::kernels {
namespace {

using Bytes = std::vector<std::byte>;

constexpr std::size_t count = 1501;  // more than a buffer, and odd

Bytes source_of(DType from) {
  std::mt19937_64 random(7);
  Bytes bytes(storage_bytes(from, count));
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t code = random();
    if (family(from) == Family::floating && bit_width(from) >= 32) {
      // Half of them near one, where the targets have their numbers.
      const double value =
          std::ldexp(1.0 + std::ldexp(static_cast<double>(code >> 12), -52), static_cast<int>(code % 61) - 30) *
          (code % 2 == 0 ? 1 : -1);
      const auto narrow = static_cast<float>(value);
      if (i % 2 == 0 && from == DType::float64) std::memcpy(&code, &value, sizeof value);
      if (i % 2 == 0 && from == DType::float32) std::memcpy(&code, &narrow, sizeof narrow);
    }
    // 64-bit integers: a buffer of those that fit float64, then all of them.
    if (family(from) == Family::integer && bit_width(from) == 64 && i < 1024) {
      code = is_signed(from) && code % 2 == 0 ? ~(code >> 12) : code >> 12;
    }
    codec::store_code(from, bytes.data(), i, code);
  }
  codec::store_code(from, bytes.data(), 5, 0);
  return bytes;
}

std::vector<codec::Policy> policies(double scale) {
  std::vector<codec::Policy> result;
  for (const bool saturate : {true, false}) {
    codec::Policy policy;
    policy.scale = scale;
    policy.saturate = saturate;
    policy.fnuz_inf_is_nan = saturate;
    policy.int_rounding = saturate ? IntRounding::trunc : IntRounding::nearest_even;
    policy.integer_range = saturate ? codec::IntegerRange::saturate : codec::IntegerRange::wrap;
    policy.e8m0_rounding = saturate ? RoundMode::up : RoundMode::nearest;
    result.push_back(policy);
  }
  return result;
}

class Scaled : public ::testing::TestWithParam<DType> {};

TEST_P(Scaled, EqualsReference) {
  const DType from = GetParam();
  const Bytes src = source_of(from);
  for (const DType to : all_dtypes()) {
    if (to == DType::string) continue;
    for (const double scale :
         {3.0, 0.1, -0x1p-7, static_cast<double>(1.0F / 3.0F), 1.0 / 3.0, 0x1p-55, 1e300, 1e-300, 5e-324, 0.0, 1e18}) {
      for (const codec::Policy& policy : policies(scale)) {
        Bytes expected(storage_bytes(to, count));
        ASSERT_TRUE(codec::reference_cast(src.data(), from, expected.data(), to, count, policy));
        for (const Target target : supported_targets()) {
          const ScaledKernelFn run = find_scaled_kernel(target, from, to);
          ASSERT_NE(run, nullptr);
          Bytes actual(expected.size());
          run(src.data(), actual.data(), count, policy);
          ASSERT_EQ(expected, actual) << name(from) << " -> " << name(to) << " times " << scale << " on "
                                      << name(target);
          if (bit_width(to) > bit_width(from)) continue;
          Bytes in_place = src;
          run(in_place.data(), in_place.data(), count, policy);
          in_place.resize(expected.size());
          ASSERT_EQ(expected, in_place) << "in place: " << name(from) << " -> " << name(to);
        }
      }
    }
  }
}

std::vector<DType> scalable() {
  std::vector<DType> result;
  for (const DType dtype : all_dtypes()) {
    if (dtype != DType::string) result.push_back(dtype);
  }
  return result;
}

INSTANTIATE_TEST_SUITE_P(Sources, Scaled, ::testing::ValuesIn(scalable()),
                         [](const auto& source) { return std::string(name(source.param)); });

TEST(Scaled, TextHasNone) {
  for (const DType from : {DType::string, DType::undefined}) {
    EXPECT_EQ(find_scaled_kernel(Target::portable, from, DType::float32), nullptr);
  }
  EXPECT_EQ(find_scaled_kernel(Target::portable, DType::float32, DType::string), nullptr);
}

// The last bit decides: float64 products that are not exact, next to midpoints of the target.
TEST(Scaled, ProductsNextToMidpointsRoundOnce) {
  const double scale = 1.0 + 0x1p-52;
  std::vector<double> src;
  for (const double midpoint : {1.0 + 0x1p-24, 1.0 + 0x1p-11, 1.0 + 0x1p-8, 1.0625, 1.125, 2.5}) {
    for (const double value : {midpoint, std::nextafter(midpoint, 0.0), std::nextafter(midpoint, 4.0)}) {
      src.push_back(value);
      src.push_back(std::nextafter(value, 0.0));
      src.push_back(-value);
    }
  }
  codec::Policy policy;
  policy.scale = scale;
  const auto* const bytes = reinterpret_cast<const std::byte*>(src.data());
  for (const DType to : {DType::float32, DType::float16, DType::bfloat16, DType::float8_e4m3fn, DType::float8_e5m2,
                         DType::float4_e2m1fn, DType::float8_e8m0fnu, DType::int8}) {
    Bytes expected(storage_bytes(to, src.size()));
    ASSERT_TRUE(codec::reference_cast(bytes, DType::float64, expected.data(), to, src.size(), policy));
    for (const Target target : supported_targets()) {
      Bytes actual(expected.size());
      find_scaled_kernel(target, DType::float64, to)(bytes, actual.data(), src.size(), policy);
      EXPECT_EQ(expected, actual) << name(to) << " on " << name(target);
    }
  }
}

}  // namespace
}  // namespace tensorcast::kernels
