// SPDX-License-Identifier: Apache-2.0
// Narrow types to float32 and back are the identity; NaNs come back as D3 defines them.
#include <gtest/gtest.h>

#include "check.hpp"

namespace oracle {
namespace {

std::vector<std::uint64_t> codes_of(Type type) {
  std::vector<std::uint64_t> codes;
  for (std::uint64_t code = 0; code <= code_mask(type); ++code) codes.push_back(code);
  return codes;
}

// Types whose values float32 holds exactly.
std::vector<Type> narrow_types() {
  std::vector<Type> types;
  for (const Type type : numeric_types()) {
    if (info(type).bits <= 16 && type != boolean) types.push_back(type);
  }
  return types;
}

std::uint64_t quiet_bit(Type type) {
  const bool has_payload = is_float(type) && info(type).special == Special::ieee;
  return has_payload ? std::uint64_t{1} << (info(type).mantissa_bits - 1) : 0;
}

TEST(RoundTrip, ThroughFloat32AndFloat64) {
  for (const Type type : narrow_types()) {
    const std::vector<std::uint64_t> codes = codes_of(type);
    for (const Type wide : {f32, f64}) {
      const CAbiResult there = run_tc_cast(type, codes, wide, default_options());
      ASSERT_EQ(there.status, TC_OK) << there.message;
      const CAbiResult back = run_tc_cast(wide, there.codes, type, default_options());
      ASSERT_EQ(back.status, TC_OK) << back.message;
      for (std::size_t i = 0; i < codes.size(); ++i) {
        const Exact x = decode(type, codes[i]);
        // The one exception: saturating fp8 turns infinity into the largest value.
        if (is_float8(type) && x.kind == Exact::Kind::infinite) continue;
        const std::uint64_t expected = x.nan() ? codes[i] | quiet_bit(type) : codes[i];
        ASSERT_EQ(back.codes[i], expected) << info(type).name << " 0x" << std::hex << codes[i];
      }
    }
  }
}

TEST(RoundTrip, InfinitiesOfFloat8E5M2WithoutSaturation) {
  tc_cast_options options = default_options();
  options.saturate = 0;
  const std::vector<std::uint64_t> infinities = {0x7C, 0xFC};
  const CAbiResult there = run_tc_cast(e5m2, infinities, f32, options);
  EXPECT_EQ(run_tc_cast(f32, there.codes, e5m2, options).codes, infinities);
}

// Every value of a type survives every type that has it; the engine must not need float32 to be the middle.
TEST(RoundTrip, ThroughEveryTypeThatHoldsTheValue) {
  for (const Type type : narrow_types()) {
    if (info(type).bits > 8) continue;
    for (const Type wide : numeric_types()) {
      if (wide == boolean) continue;
      for (const std::uint64_t code : codes_of(type)) {
        const Exact x = decode(type, code);
        if (!x.finite() || (x.zero() && x.negative)) continue;
        const CAbiResult there = run_tc_cast(type, std::vector{code}, wide, default_options());
        if (const Exact y = decode(wide, there.codes[0]); !y.finite() || y.value != x.value) continue;
        const CAbiResult back = run_tc_cast(wide, there.codes, type, default_options());
        ASSERT_EQ(back.codes[0], code) << info(type).name << " through " << info(wide).name;
      }
    }
  }
}

}  // namespace
}  // namespace oracle
