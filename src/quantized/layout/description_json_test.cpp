// SPDX-License-Identifier: Apache-2.0
#include "quantized/layout/description_json.hpp"

#include <gtest/gtest.h>

#include <string>

#include "quantized/layout/config.hpp"
#include "quantized/layout/quantization_claim.hpp"

namespace tensorcast::quantized {
namespace {

std::string repeated(std::string_view text, std::size_t count) {
  std::string all;
  for (std::size_t i = 0; i < count; ++i) all += text;
  return all;
}

std::string dump(std::string_view text, KeptValues kept) {
  const Result<Json> json = parse_description(text, kept);
  return json ? json->dump() : "error: " + json.error().message;
}

TEST(DescriptionJson, KeepsAllOfADescription) {
  const std::string text = R"({"a":[1,-2,0.5,null,true,"x",[],{}],"b":{"c":[{"d":1}]}})";
  EXPECT_EQ(dump(text, KeptValues::all), text);
  EXPECT_EQ(dump(R"({"a":1,"a":[2]})", KeptValues::all), R"({"a":[2]})");
  EXPECT_EQ(dump(R"({"a":NaN,"b":-Infinity})", KeptValues::all), R"({"a":111,"b":111111111})");
  EXPECT_EQ(dump("[1]", KeptValues::all), "[1]");
  EXPECT_EQ(dump("7", KeptValues::all), "7");
}

TEST(DescriptionJson, KeepsSectionsOfAConfiguration) {
  const std::string section = R"("quantization_config":{"a_config":{"b":[1]},"c":2})";
  EXPECT_EQ(dump("{\"x\":1,\"id2label\":{\"0\":[]}," + section + "}", KeptValues::sections), "{" + section + "}");
  EXPECT_EQ(dump("{\"y\":[{" + section + "}],\"text_config\":{\"z\":0," + section + "}}", KeptValues::sections),
            "{\"text_config\":{" + section + "}}");
  std::string deep = "{" + section + "}";
  for (int i = 0; i < deepest_config + 1; ++i) deep = "{\"a_config\":" + deep + "}";
  EXPECT_EQ(dump(deep, KeptValues::sections).find("quantization_config"), std::string::npos);
}

TEST(DescriptionJson, RefusesWhatTakesMoreMemoryThanItsBytes) {
  const std::string head = R"({"quantization_config":{"quant_method":"fp8","a":[)";
  const std::string refused = "error: it has more values than";
  const std::string arrays = head + repeated("[],", 1000000) + "0]}}";
  EXPECT_TRUE(dump(arrays, KeptValues::sections).starts_with(refused));
  EXPECT_TRUE(read_descriptions(std::vector<ConfigText>{{.name = "config.json", .text = arrays}}).empty());
  EXPECT_TRUE(file_conversion::claim_of_text("config.json", arrays).starts_with("config.json is not read: it has"));
  // Names of a large model are many bytes a value; what is not a description costs nothing.
  const std::string names = head + repeated("\"model.layers.10.mlp.experts.100.up_proj\",", 500000) + "0]}}";
  EXPECT_EQ(read_descriptions(std::vector<ConfigText>{{.name = "config.json", .text = names}}).size(), 1U);
  const std::string labels = "{\"id2label\":[" + repeated("[],", 1000000) + "0],\"quantization\":{\"bits\":4}}";
  EXPECT_EQ(dump(labels, KeptValues::sections), R"({"quantization":{"bits":4}})");
}

TEST(DescriptionJson, RefusesManySectionsAndLevels) {
  std::string many;
  for (int i = 0; i < 65; ++i) many += "\"a" + std::to_string(i) + "_config\":{\"quantization\":{\"bits\":4}},";
  EXPECT_EQ(dump("{" + many + "\"b\":1}", KeptValues::sections), "error: it has more than 64 descriptions");
  EXPECT_EQ(dump(repeated("[", 64) + repeated("]", 64), KeptValues::all), repeated("[", 64) + repeated("]", 64));
  EXPECT_EQ(dump(repeated("[", 65) + repeated("]", 65), KeptValues::all), "error: it is not JSON of at most 64 levels");
  EXPECT_EQ(dump("{", KeptValues::sections), "error: it is not JSON of at most 64 levels");
}

}  // namespace
}  // namespace tensorcast::quantized
