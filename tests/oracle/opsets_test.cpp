// SPDX-License-Identifier: Apache-2.0
// Section 1: which version has which types and attributes, and what each version gives.
#include <gtest/gtest.h>

#include "check.hpp"
#include "samples.hpp"

namespace oracle {
namespace {

constexpr int newest = 28;

tc_cast_options at_opset(int opset) {
  tc_cast_options options = default_options();
  options.opset = opset;
  return options;
}

TEST(Opsets, EveryPairAtEveryOpset) {
  for (const Type from : numeric_types()) {
    for (const Type to : numeric_types()) {
      const std::vector<std::uint64_t> codes = thinned(boundary_codes(from, to, 1.0, false), 160);
      std::vector<Conversion> conversions;
      for (const std::uint64_t code : codes) conversions.emplace_back(from, code, decode(from, code), to);
      for (int opset = 1; opset <= newest; ++opset) {
        const tc_cast_options options = at_opset(opset);
        const tc_status expected = admission(from, to, options);
        const CAbiResult got = run_tc_cast(from, codes, to, options);
        ASSERT_EQ(got.status, expected) << replay_command(from, codes[0], to, options) << ": " << got.message;
        for (std::size_t i = 0; got.status == TC_OK && i < codes.size(); ++i) {
          ASSERT_EQ(got.codes[i], conversions[i].under(options).code) << replay_command(from, codes[i], to, options);
        }
      }
    }
  }
}

TEST(Opsets, RefusalsSaySinceWhen) {
  for (const TypeInfo& type : all_types()) {
    if (type.type == text || type.first_opset <= 1) continue;
    for (const bool as_source : {true, false}) {
      const Type from = as_source ? type.type : f32;
      const Type to = as_source ? f32 : type.type;
      const CAbiResult got = run_tc_cast(from, std::vector<std::uint64_t>{0}, to, at_opset(type.first_opset - 1));
      ASSERT_EQ(got.status, TC_UNSUPPORTED) << type.name;
      EXPECT_NE(got.message.find(type.name), std::string::npos) << got.message;
      EXPECT_NE(got.message.find(std::to_string(type.first_opset)), std::string::npos) << got.message;
    }
  }
}

TEST(Opsets, AttributesAreRefusedBeforeTheyExist) {
  for (int opset = 1; opset <= newest; ++opset) {
    tc_cast_options no_saturate = at_opset(opset);
    no_saturate.saturate = 0;
    EXPECT_EQ(run_tc_cast(f32, std::vector<std::uint64_t>{0}, f16, no_saturate).status,
              opset < 19 ? TC_UNSUPPORTED : TC_OK)
        << opset;
    tc_cast_options down = at_opset(opset);
    down.round_mode = 1;
    EXPECT_EQ(run_tc_cast(f32, std::vector<std::uint64_t>{0}, f16, down).status, opset < 24 ? TC_UNSUPPORTED : TC_OK)
        << opset;
  }
}

// 0-d and empty tensors too: attributes are validated even when there is nothing to convert (D11).
TEST(Opsets, EmptyTensorsAreStillChecked) {
  EXPECT_EQ(run_tc_cast(f32, {}, i2, at_opset(24)).status, TC_UNSUPPORTED);
  EXPECT_EQ(run_tc_cast(f32, {}, i2, at_opset(25)).status, TC_OK);
  EXPECT_NE(run_tc_cast(f32, {}, i2, at_opset(newest + 1)).status, TC_OK);
  EXPECT_NE(run_tc_cast(f32, {}, f16, at_opset(-1)).status, TC_OK);
}

TEST(Opsets, OptionValuesOutsideTheirRangeAreRefused) {
  const auto refused = [](auto change) {
    tc_cast_options options = default_options();
    change(options);
    return run_tc_cast(f32, std::vector<std::uint64_t>{0}, i8, options).status == TC_INVALID_ARGUMENT;
  };
  EXPECT_TRUE(refused([](auto& o) { o.round_mode = 3; }));
  EXPECT_TRUE(refused([](auto& o) { o.round_mode = -1; }));
  EXPECT_TRUE(refused([](auto& o) { o.out_of_range = 4; }));
  EXPECT_TRUE(refused([](auto& o) { o.rounding = 8; }));
  EXPECT_TRUE(refused([](auto& o) { o.invalid = 2; }));
  EXPECT_TRUE(refused([](auto& o) { o.fnuz_inf = 2; }));
  EXPECT_TRUE(refused([](auto& o) { o.float_string = 3; }));
  EXPECT_TRUE(refused([](auto& o) { o.scale = __builtin_inf(); }));
  EXPECT_TRUE(refused([](auto& o) { o.scale = __builtin_nan(""); }));
  EXPECT_FALSE(refused([](auto& o) { o.saturate = 7; }));  // every nonzero value is true
}

}  // namespace
}  // namespace oracle
