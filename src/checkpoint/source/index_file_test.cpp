// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/source/index_file.hpp"

#include <gtest/gtest.h>

#include <string>

namespace tensorcast::checkpoint {
namespace {

TEST(IndexFile, KeepsEverythingButSizeAndMap) {
  const std::string text = "{ \"metadata\" : {\"a\":1,\"total_size\" : 7},\"weight_map\":{\"x\":\"f\"}, \"more\": [] }";
  Result<std::string> same_map = rewritten_index(text, 99, {});
  ASSERT_TRUE(same_map);
  EXPECT_EQ(*same_map, "{ \"metadata\" : {\"a\":1,\"total_size\" : 99},\"weight_map\":{\"x\":\"f\"}, \"more\": [] }");
  const std::string new_map = "{\n    \"y\": \"g\"\n  }";
  EXPECT_EQ(*rewritten_index(text, 1, {{"y", "g"}}),
            "{ \"metadata\" : {\"a\":1,\"total_size\" : 1},\"weight_map\":" + new_map + ", \"more\": [] }");
  // DeepSeek's script writes empty metadata, others none.
  EXPECT_EQ(*rewritten_index("{\"metadata\": {}, \"weight_map\": {}}", 5, {}),
            "{\"metadata\": {\"total_size\": 5}, \"weight_map\": {}}");
  EXPECT_EQ(*rewritten_index("{\"metadata\": {\"k\": 1}, \"weight_map\": {}}", 5, {}),
            "{\"metadata\": {\"total_size\": 5, \"k\": 1}, \"weight_map\": {}}");
  EXPECT_EQ(*rewritten_index("{\"weight_map\": {}}", 5, {}),
            "{\n  \"metadata\": {\"total_size\": 5},\"weight_map\": {}}");
  const Result<std::string> fresh = rewritten_index("", 5, {{"t", "f.safetensors"}});
  ASSERT_TRUE(fresh);
  const Result<WeightMap> read = parse_index(*fresh, "index");
  ASSERT_TRUE(read) << read.error().describe();
  EXPECT_EQ(*read, (WeightMap{{"t", "f.safetensors"}}));
}

TEST(IndexFile, SaysWhatIsWrong) {
  const auto message = [](const std::string& text) {
    const Result<WeightMap> map = parse_index(text, "the index");
    if (map) return std::string("fine");
    EXPECT_EQ(map.error().code, ErrorCode::parse);
    EXPECT_EQ(map.error().file, "the index");
    return map.error().message;
  };
  EXPECT_EQ(message(R"({"weight_map": {"a": "f", "b": "sub/f"}})"), "fine");
  EXPECT_EQ(message("{}"), "the index has no weight_map");
  EXPECT_EQ(message(R"({"weight_map": []})"), "weight_map is not an object");
  EXPECT_EQ(message(R"({"weight_map": {}, "weight_map": {}})"), "weight_map occurs twice");
  EXPECT_EQ(message(R"({"weight_map": {"a": 1}})"), "weight_map does not name a file");
  EXPECT_EQ(message(R"({"weight_map": {"a": {"b": "f"}}})"), "weight_map does not name a file");
  EXPECT_EQ(message(R"({"weight_map": {"a": "f", "a": "g"}})"), "the index names it twice, in \"f\" and \"g\"");
  EXPECT_NE(message(R"({"weight_map": {"a": "../f"}})"), "fine");
  EXPECT_NE(message(R"({"weight_map": {"a": "f"})"), "fine");
  EXPECT_FALSE(rewritten_index("{", 1, {}));
}

}  // namespace
}  // namespace tensorcast::checkpoint
