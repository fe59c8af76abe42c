// SPDX-License-Identifier: Apache-2.0
// Shared by the tests of ScaledConversion: scales, policies, and the comparison with the reference.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <limits>
#include <vector>

#include "codec/codec_testing.hpp"
#include "codec/reference_cast.hpp"
#include "kernels/scaled.hpp"

namespace tensorcast::kernels {

using Bytes = std::vector<std::byte>;

inline constexpr double scales[] = {0.5,    0.1,    1.0 / 3.0, 3.0,   -0x1p-10,      1e-3,  448 / 0.7,
                                    0x1p40, -1e-30, -7.,       2.5e6, 1.0 + 0x1p-52, 1e17,  1.0 - 1.0 / 256.0,
                                    1e-17,  -1.7,   64.0,      33.0,  1.0 - 0x1p-30, 1e-42, 1.1e30};

// One of four, so that all are used over targets and scales.
inline codec::Policy policy_of(std::size_t index, double scale) {
  codec::Policy policy;
  policy.scale = scale;
  policy.saturate = index % 2 == 0;
  policy.rounding = index % 4 == 1 || index % 4 == 2 ? Rounding::nearest_even : Rounding::automatic;
  policy.range = index % 4 < 2 ? codec::RangeRule::wrap : codec::RangeRule::saturate;
  policy.keeps_infinity = index % 4 == 2;
  policy.float4_nan_is_zero = index % 4 != 3;
  policy.e8m0_rounding = index % 4 == 1 ? RoundMode::nearest : index % 4 == 2 ? RoundMode::down : RoundMode::up;
  return policy;
}

inline void expect_reference(DType from, DType to, const Bytes& src, std::size_t elements, const codec::Policy& given) {
  const codec::Policy policy = codec::without_word(given, to);
  Bytes expected(storage_bytes(to, elements));
  ASSERT_TRUE(codec::reference_cast(src.data(), from, expected.data(), to, elements, policy));
  for (const Target target : supported_targets()) {
    for (const std::size_t total : {std::numeric_limits<std::size_t>::max(), elements}) {  // few may go another way
      Bytes actual(expected.size());
      ScaledConversion(target, from, to, policy, total).run(src.data(), actual.data(), elements);
      if (expected == actual) continue;
      for (std::size_t i = 0; i < elements; ++i) {
        ASSERT_EQ(codec::load_code(to, expected.data(), i), codec::load_code(to, actual.data(), i))
            << name(from) << " code " << codec::load_code(from, src.data(), i) << " -> " << name(to) << " times "
            << policy.scale << " on " << name(target);
      }
    }
  }
}

inline std::vector<DType> targets_of(DType from) {
  std::vector<DType> result;
  for (const DType to : all_dtypes()) {
    if (to != DType::string && (to != DType::boolean || from != DType::boolean)) result.push_back(to);
  }
  return result;
}

}  // namespace tensorcast::kernels
