// SPDX-License-Identifier: Apache-2.0
#include "kernels/byte_table/split_table.hpp"

#include <gtest/gtest.h>

#include "codec/reference_cast.hpp"
#include "dtype/dtype_table.hpp"

namespace tensorcast::kernels::byte_table {
namespace {

using Outputs16 = std::array<std::uint16_t, 256>;

Outputs16 outputs_of(DType from, DType to) {
  Outputs16 outputs = {};
  for (unsigned code = 0; code < 256; ++code) {
    const auto source = static_cast<std::byte>(code);
    std::byte target[2] = {};
    EXPECT_TRUE(codec::reference_cast(&source, from, target, to, 1, {}).ok());
    outputs[code] =
        static_cast<std::uint16_t>(std::to_integer<unsigned>(target[0]) | std::to_integer<unsigned>(target[1]) << 8);
  }
  return outputs;
}

TEST(SplitTableTest, GivesEveryResultOfFloat8) {
  for (const DType from : {DType::float8_e4m3fn, DType::float8_e4m3fnuz, DType::float8_e5m2, DType::float8_e5m2fnuz}) {
    for (const DType to : {DType::bfloat16, DType::float16}) {
      const Outputs16 outputs = outputs_of(from, to);
      const std::optional<SplitTable> table = split(outputs);
      ASSERT_TRUE(table.has_value()) << row(from).name << " to " << row(to).name;
      for (unsigned code = 0; code < 256; ++code) EXPECT_EQ((*table)(code), outputs[code]) << code;
      const bool has_minus_zero = from == DType::float8_e4m3fn || from == DType::float8_e5m2;
      EXPECT_EQ((table->odd_low | table->odd_high) == 0, has_minus_zero) << row(from).name << " to " << row(to).name;
    }
  }
}

TEST(SplitTableTest, IsForSumsOfHalvesOnly) {
  Outputs16 squares = {};
  for (unsigned code = 0; code < 256; ++code) squares[code] = static_cast<std::uint16_t>(code * code);
  EXPECT_FALSE(split(squares).has_value());
  EXPECT_FALSE(split(outputs_of(DType::uint8, DType::bfloat16)).has_value());
}

TEST(SplitTableTest, HasRoomForOneOddCode) {
  const Outputs16 outputs = outputs_of(DType::float8_e4m3fn, DType::bfloat16);
  for (unsigned code = 0; code < 256; ++code) {
    Outputs16 changed = outputs;
    changed[code] ^= 0x0103;
    const std::optional<SplitTable> table = split(changed);
    // Zero is the other code that shares its rules with the odd one alone.
    EXPECT_EQ(table.has_value(), code == 0 || code == SplitTable::odd_code) << code;
    if (table) {
      EXPECT_EQ((*table)(code), changed[code]);
    }
  }
}

}  // namespace
}  // namespace tensorcast::kernels::byte_table
