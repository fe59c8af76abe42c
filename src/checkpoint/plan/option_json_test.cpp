// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/plan/option_json.hpp"

#include <gtest/gtest.h>

#include "options/quantize_options.hpp"

namespace tensorcast::checkpoint {
namespace {

nlohmann::ordered_json written(const QuantizeOptions& given) {
  nlohmann::ordered_json json;
  options::for_each(options::quantize_options,
                    [&](const auto& option) { append_json(json, option, given.*option.member); });
  return json;
}

bool read(const nlohmann::ordered_json& json, QuantizeOptions& given) {
  const auto plain = nlohmann::json::parse(json.dump());
  return options::all_of(options::quantize_options,
                         [&](const auto& option) { return read_json(plain, option, given.*option.member); });
}

TEST(OptionJson, RareOptionsAreThereIfTheyAreGiven) {
  EXPECT_EQ(written({}).dump(), R"({"group_size":0,"symmetric":true,"nonfinite":0})");
  const QuantizeOptions given{.group_size = 64,
                              .symmetric = false,
                              .power_of_two_scales = true,
                              .compute_dtype = DType::float16,
                              .nonfinite = NonFiniteWeights::tool,
                              .clip = Clip::mse};
  const auto json = written(given);
  EXPECT_EQ(
      json.dump(),
      R"({"group_size":64,"symmetric":false,"power_of_two_scales":true,"compute":"float16","nonfinite":1,"clip":1})");
  QuantizeOptions again;
  ASSERT_TRUE(read(json, again));
  EXPECT_EQ(written(again), json);
  ASSERT_TRUE(read(written({}), again = {}));
  EXPECT_EQ(written(again), written({}));
}

TEST(OptionJson, ValuesThatAnOptionLacksAreRefused) {
  QuantizeOptions ignored;
  for (const char* wrong : {R"({"clip":2})", R"({"clip":-1})", R"({"nonfinite":2})", R"({"compute":"float17"})"}) {
    auto json = written({});
    json.update(nlohmann::ordered_json::parse(wrong));
    EXPECT_FALSE(read(json, ignored)) << wrong;
  }
  auto json = written({});
  json["symmetric"] = "no";
  EXPECT_THROW(static_cast<void>(read(json, ignored)), nlohmann::json::exception);
  json.erase("symmetric");
  EXPECT_THROW(static_cast<void>(read(json, ignored)), nlohmann::json::exception);
}

}  // namespace
}  // namespace tensorcast::checkpoint
