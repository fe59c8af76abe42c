// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/compare/statement.hpp"

#include <gtest/gtest.h>

#include <string>

namespace tensorcast::checkpoint {
namespace {

Statement example() {
  const std::string digest(64, 'a');
  Statement statement{.outputs = {{.name = "model.safetensors", .sha256 = digest}},
                      .inputs = {{.name = "sub/config.json", .sha256 = digest}},
                      .importance = DigestedFile{.name = "i.gguf", .sha256 = digest},
                      .version = "0.1.0",
                      .request = {"in", "out", DType::float16}};
  statement.request.importance = "/a/path/i.gguf";
  statement.request.options.rounding = Rounding::stochastic;
  statement.recipes = {"nvfp4:modelopt"};
  return statement;
}

std::string replaced(std::string text, const std::string& old, const std::string& now) {
  const std::size_t at = text.find(old);
  EXPECT_NE(at, std::string::npos) << old;
  return at == std::string::npos ? text : text.replace(at, old.size(), now);
}

TEST(Statement, IsReadBack) {
  const std::string text = statement_text(example());
  EXPECT_EQ(text.find("/a/path"), std::string::npos) << "a path of this machine";
  EXPECT_NE(text.find("\"seed\": 0"), std::string::npos);
  EXPECT_NE(text.find("\"equals\": \"modelopt\""), std::string::npos);
  const Result<Statement> read = parse_statement(text, "s");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->outputs.at(0).name, "model.safetensors");
  EXPECT_EQ(read->inputs.at(0).name, "sub/config.json");
  EXPECT_EQ(read->request.to, DType::float16);
  EXPECT_EQ(read->request.options.rounding, Rounding::stochastic);
  EXPECT_TRUE(read->request.importance.empty());
}

TEST(Statement, OtherTextsAreErrors) {
  const std::string text = statement_text(example());
  const std::string changed[] = {
      "",
      "null",
      "[]",
      std::string(100000, '['),
      text.substr(0, text.size() / 2),
      replaced(text, "\"options\": {", "\"options\": {\"importance\": \"/etc/passwd\", "),
      replaced(text, "\"options\": {", "\"options\": {\"overwrite\": true, "),
      replaced(text, "\"options\": {", "\"options\": {\"to\": \"bfloat16\", "),
      replaced(text, "\"options\": {", "\"options\": [], \"other\": {"),
      replaced(text, "model.safetensors", "../model.safetensors"),
      replaced(text, "model.safetensors", "/model.safetensors"),
      replaced(text, "model.safetensors", ""),
      replaced(text, "model.safetensors", std::string(70000, 'x')),
      replaced(text, std::string(64, 'a'), std::string(63, 'a')),
      replaced(text, "Statement/v1", "Statement/v0.1"),
  };
  for (const std::string& each : changed) {
    const Result<Statement> read = parse_statement(each, "s");
    ASSERT_FALSE(read) << each.substr(0, 300);
    EXPECT_EQ(read.error().code, ErrorCode::parse);
    EXPECT_EQ(read.error().file, "s");
  }
}

}  // namespace
}  // namespace tensorcast::checkpoint
