// SPDX-License-Identifier: Apache-2.0
#include "kernels/byte_table/table_conversion.hpp"

#include <vector>

#include <gtest/gtest.h>

#include "codec/reference_cast.hpp"

namespace tensorcast::kernels {
namespace {

using codec::Policy;

constexpr std::byte border{0xa5};

std::vector<Policy> table_policies() {
  std::vector<Policy> all(12);
  all[1].saturate = false;
  all[2].range = codec::RangeRule::saturate;
  all[2].rounding = Rounding::nearest_even;
  all[3].scale = 0.1;
  all[4].scale = -3.0;
  all[5].scale = 0x1p-10;
  all[6].scale = 1e30;
  all[6].saturate = false;
  all[7].scale = 0.0;
  all[8].scale = 448.0 / 0.7;
  all[8].range = codec::RangeRule::saturate;
  all[9].scale = 1.1e-308;  // float64's subnormals and overflow
  all[10].scale = -1.7e305;
  all[11].scale = 5e-324;
  return all;
}

TEST(TableConversionTest, SlowIsTheReferenceUnderAnyPolicy) {
  std::vector<std::byte> src(3 * 256);
  for (std::size_t i = 0; i < src.size(); ++i) src[i] = static_cast<std::byte>(i * 167 + i / 256);
  for (const Target target : supported_targets()) {
    for (const DType from : all_dtypes()) {
      if (from == DType::string || bit_width(from) > 8) continue;
      for (const DType to : all_dtypes()) {
        if (to == DType::string) continue;
        for (const Policy& policy : table_policies()) {
          if (from == to && policy.scale == 1.0) continue;
          const TableConversion conversion(target, from, to, policy);
          const std::size_t all = src.size() * 8 / static_cast<std::size_t>(bit_width(from));
          for (const std::size_t count : {all, all - 1, all / 2 - 3, std::size_t{5}, std::size_t{1}, std::size_t{0}}) {
            const std::size_t bytes = storage_bytes(to, count);
            std::vector<std::byte> expected(bytes + 1, border);
            std::vector<std::byte> got(bytes + 1, border);
            ASSERT_TRUE(codec::reference_cast(src.data(), from, expected.data(), to, count, policy));
            conversion.run(src.data(), got.data(), count);
            ASSERT_EQ(got, expected) << name(target) << ": " << name(from) << " -> " << name(to) << ", scale "
                                     << policy.scale << ", " << count << " elements";
          }
        }
      }
    }
  }
}

TEST(TableConversionTest, WorksInPlace) {
  for (const Target target : supported_targets()) {
    for (const DType to : {DType::int8, DType::uint4, DType::int2, DType::float8_e5m2}) {
      std::vector<std::byte> data(1000);
      for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i * 89);
      const Policy policy{.scale = 0.3};
      std::vector<std::byte> expected(storage_bytes(to, data.size()));
      ASSERT_TRUE(codec::reference_cast(data.data(), DType::float8_e4m3fn, expected.data(), to, data.size(), policy));
      TableConversion(target, DType::float8_e4m3fn, to, policy).run(data.data(), data.data(), data.size());
      data.resize(expected.size());
      EXPECT_EQ(data, expected) << name(target) << " -> " << name(to);
    }
  }
}

TEST(TableConversionTest, MapsBytes) {
  std::array<std::uint8_t, 256> outputs;
  for (std::size_t i = 0; i < outputs.size(); ++i) outputs[i] = static_cast<std::uint8_t>(i * 7 + 1);
  std::vector<std::byte> src(777), got(777);
  for (std::size_t i = 0; i < src.size(); ++i) src[i] = static_cast<std::byte>(i);
  for (const Target target : supported_targets()) {
    TableConversion(target, outputs).run(src.data(), got.data(), src.size());
    for (std::size_t i = 0; i < src.size(); ++i) {
      ASSERT_EQ(got[i], std::byte{outputs[i % 256]}) << name(target) << " at " << i;
    }
  }
}

TEST(TableConversionTest, PaysForManyElementsOfFewCodes) {
  EXPECT_FALSE(TableConversion::pays(DType::int8, 1000));
  EXPECT_TRUE(TableConversion::pays(DType::int8, 1 << 20));
  EXPECT_TRUE(TableConversion::pays(DType::uint4, 1 << 12));
  EXPECT_FALSE(TableConversion::pays(DType::float16, 1 << 30));
}

}  // namespace
}  // namespace tensorcast::kernels
