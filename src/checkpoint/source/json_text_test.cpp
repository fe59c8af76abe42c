// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/source/json_text.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tensorcast::checkpoint {
namespace {

TEST(JsonText, VisitsEveryValueWithItsPlace) {
  const std::string text = " {\"a\": [1, {\"b\\\"\": \"x,]}\"}, []], \"c\":{} , \"d\" : null}";
  std::vector<std::string> seen;
  const Result<void> visited = visit_json(text, [&](const JsonPath& path, const JsonValue& value) {
    std::string keys;
    for (const std::string& key : path) keys += key + "/";
    EXPECT_EQ(text.substr(value.begin, value.text.size()), value.text);
    seen.push_back(keys + std::string(value.text));
  });
  ASSERT_TRUE(visited) << visited.error().describe();
  const std::vector<std::string> wanted = {"a/[]/1",
                                           "a/[]/b\"/\"x,]}\"",
                                           "a/[]/{\"b\\\"\": \"x,]}\"}",
                                           "a/[]/[]",
                                           "a/[1, {\"b\\\"\": \"x,]}\"}, []]",
                                           "c/{}",
                                           "d/null",
                                           text.substr(1)};
  EXPECT_EQ(seen, wanted);
}

TEST(JsonText, FailsOnOtherText) {
  const std::string deep = std::string(101, '[') + std::string(101, ']');
  for (const std::string& text : {std::string(), std::string("{"), std::string("{\"a\" 1}"), std::string("[1,]"),
                                  std::string("{}\0", 3), deep, std::string(1000000, '[')}) {
    const Result<void> visited = visit_json(text, [](const JsonPath&, const JsonValue&) {});
    ASSERT_FALSE(visited);
    EXPECT_EQ(visited.error().code, ErrorCode::parse);
  }
}

}  // namespace
}  // namespace tensorcast::checkpoint
