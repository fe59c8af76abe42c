#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "codec/reference_cast.hpp"
#include "kernels/kernel.hpp"

namespace tensorcast::kernels {
namespace {

using codec::IntegerRange;
using codec::Policy;

Policy strict() {
  Policy policy;
  policy.integer_range = IntegerRange::error;
  policy.invalid_is_error = true;
  return policy;
}

bool refused_by_reference(DType from, std::uint64_t code, DType to, const Policy& policy) {
  return (codec::cast_code(from, code, to, policy).events & codec::event_refused) != 0;
}

bool refused_by_scan(Target target, DType from, std::uint64_t code, DType to, const Policy& policy) {
  std::byte src[8] = {};
  codec::store_code(from, src, 0, code);
  return may_refuse(target, src, from, to, 1, policy);
}

// No element that the reference refuses may pass, and what is commonly fine must not be sent to the reference.
TEST(Refusal, NeverMissesASingleCode) {
  std::vector<Policy> policies(5, strict());
  policies[1].int_rounding = IntRounding::nearest_even;
  policies[2].integer_range = IntegerRange::wrap;
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
          const bool refused = refused_by_reference(from, code, to, policy);
          const bool found = refused_by_scan(Target::portable, from, code, to, policy);
          ASSERT_TRUE(found || !refused) << name(from) << " -> " << name(to) << " code " << code;
          if (found && !refused) ++false_alarms;
        }
        // Exact but for a few: ties at the very end of a range, NaN to float8_e8m0fnu, products.
        const bool exact = policy.scale == 1.0 && policy.int_rounding == IntRounding::trunc;
        if (exact && to != DType::float8_e8m0fnu) {
          EXPECT_EQ(false_alarms, 0) << name(from) << " -> " << name(to);
        }
      }
    }
  }
}

TEST(Refusal, LimitsOfEachIntegerTypeAreExact) {
  const double below = std::nextafter(128.0, 0.0);
  const std::vector<double> good = {127.0, below, -128.0, -std::nextafter(129.0, 0.0), -0.0, 0.5};
  const std::vector<double> bad = {128.0, -129.0, 1e300, std::numeric_limits<double>::infinity(),
                                   std::numeric_limits<double>::quiet_NaN()};
  for (const Target target : supported_targets()) {
    EXPECT_FALSE(may_refuse(target, reinterpret_cast<const std::byte*>(good.data()), DType::float64, DType::int8,
                            good.size(), strict()));
    for (const double value : bad) {
      std::vector<double> src(3001, 1.0);  // several buffers
      src[2999] = value;
      EXPECT_TRUE(may_refuse(target, reinterpret_cast<const std::byte*>(src.data()), DType::float64, DType::int8,
                             src.size(), strict()))
          << value;
    }
  }
}

TEST(Refusal, NothingIsRefusedUnlessThePolicySaysSo) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto* const src = reinterpret_cast<const std::byte*>(&nan);
  EXPECT_FALSE(may_refuse(Target::portable, src, DType::float64, DType::int8, 1, {}));
  EXPECT_FALSE(may_refuse(Target::portable, src, DType::float64, DType::boolean, 1, strict()));
  EXPECT_FALSE(may_refuse(Target::portable, src, DType::float64, DType::float8_e4m3fn, 1, strict()));
  EXPECT_FALSE(may_refuse(Target::portable, nullptr, DType::float64, DType::int8, 0, strict()));
}

}  // namespace
}  // namespace tensorcast::kernels
