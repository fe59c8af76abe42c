// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/plan/config_file.hpp"

#include <gtest/gtest.h>

#include <string>

namespace tensorcast::checkpoint {
namespace {

TEST(ConfigFile, ChangesTheTypeAndNothingElse) {
  const std::string text =
      "{\"torch_dtype\":\"torch.float32\",  \"dtype\": \"auto\",\n\t\"text_config\": {\"dtype\":\"half\", "
      "\"rope\": {\"dtype\": \"float32\"}}, \"quantization_config\": {\"torch_dtype\": \"float32\"}, "
      "\"x\": \"torch_dtype\", \"torch_dtypes\": \"float32\", \"thinker_config\": {\"text_config\": "
      "{\"torch_dtype\": \"float32\", \"dtype\": null}}, \"vision_config\": {\"dtype\": [\"float32\"]}}";
  const Result<std::string> changed = with_dtype(text, DType::bfloat16);
  ASSERT_TRUE(changed);
  std::string wanted = text;
  const auto replace = [&](const std::string& from, const std::string& to) {
    wanted.replace(wanted.find(from), from.size(), to);
  };
  replace("\"torch.float32\"", "\"torch.bfloat16\"");
  replace("\"dtype\":\"half\"", "\"dtype\":\"bfloat16\"");
  replace("{\"text_config\": {\"torch_dtype\": \"float32\"", "{\"text_config\": {\"torch_dtype\": \"bfloat16\"");
  EXPECT_EQ(*changed, wanted);
}

// As Python's json writes it, and Mamba's configs have it.
TEST(ConfigFile, TakesNumbersThatAreNotFinite) {
  const std::string text =
      "{\"time_step_limit\": [0.0, Infinity], \"low\":-Infinity, \"x\": NaN, \"NaN\": \"\\\"NaN\", \"dtype\": "
      "\"float32\"}";
  const Result<std::string> changed = with_dtype(text, DType::bfloat16);
  ASSERT_TRUE(changed);
  std::string wanted = text;
  wanted.replace(wanted.find("float32"), 7, "bfloat16");
  EXPECT_EQ(*changed, wanted);
  for (const char* wrong : {"{\"a\": NaNs}", "{\"a\": Infinit}", "{NaN: 1}"}) {
    EXPECT_FALSE(with_dtype(wrong, DType::bfloat16)) << wrong;
  }
}

TEST(ConfigFile, NamesTypesThatFrameworksLoad) {
  for (const DType dtype : {DType::float16, DType::bfloat16, DType::float32, DType::float64}) {
    EXPECT_TRUE(is_loadable(dtype));
  }
  for (const DType dtype : {DType::undefined, DType::float8_e4m3fn, DType::int8, DType::boolean}) {
    EXPECT_FALSE(is_loadable(dtype));
  }
}

}  // namespace
}  // namespace tensorcast::checkpoint
