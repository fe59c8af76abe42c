// SPDX-License-Identifier: Apache-2.0
#include "convert/plan/conversion_json.hpp"

#include <gtest/gtest.h>

#include <optional>

#include "convert/plan/conversion_record.hpp"
#include "formats/format_list.hpp"

namespace tensorcast::file_conversion {
namespace {

ConvertRequest request_with_all() {
  ConvertRequest request("in", "out");
  request.scheme = "mxfp4";
  request.recipe = "even";
  request.clip = Clip::mse;
  request.compute_dtype = DType::bfloat16;
  request.options.rounding = Rounding::stochastic;
  request.options.seed = 18446744073709551615U;
  request.options.scale = 0.1;
  request.rules = {{.pattern = "a", .to = DType::float16, .ranks = {1}, .smaller = 7, .scale = 2.5},
                   {.pattern = "b", .keep = true, .kinds = {TensorKind::norm}},
                   {.pattern = "c", .scheme = "nvfp4", .recipe = "mlx"}};
  request.keep_rank = {0, 1};
  request.filter.rename = {{"^a", "b"}};
  request.filter.drop = {"x"};
  request.preset = Preset::weights_only;
  request.max_shard_bytes = 5000;
  request.overwrite = request.verify = request.exact = true;
  return request;
}

TEST(ConversionJson, IsReadBack) {
  const nlohmann::ordered_json json = conversion_json(request_with_all());
  ConvertRequest read;
  ASSERT_TRUE(read_conversion(nlohmann::json::parse(json.dump()), read));
  EXPECT_EQ(conversion_json(read), json);
  EXPECT_EQ(read.options.seed, 18446744073709551615U);
  EXPECT_EQ(read.rules.at(1).kinds, std::vector{TensorKind::norm});
}

TEST(ConversionJson, HasNoOptionThatChangesNoByte) {
  const nlohmann::ordered_json json = conversion_json(request_with_all());
  for (const char* name : {"overwrite", "verify", "exact", "report", "on_loss", "dry_run", "parents"}) {
    EXPECT_FALSE(json.contains(name)) << name;
  }
  EXPECT_TRUE(conversion_json({}).empty());
}

TEST(ConversionJson, OtherOptionsAndValuesAreErrors) {
  for (const char* text : {"[]",
                           "1",
                           R"({"unknown": 1})",
                           R"({"overwrite": true})",
                           R"({"seed": -1})",
                           R"({"seed": "1"})",
                           R"({"rounding": "upwards"})",
                           R"({"rounding": 1})",
                           R"({"to": "float9"})",
                           R"({"scale": "1"})",
                           R"({"scale": null})",
                           R"({"opset": 999})",
                           R"({"rules": {}})",
                           R"({"rules": [{"to": "float16"}]})",
                           R"({"rules": [{"pattern": 1}]})",
                           R"({"rules": [{"pattern": "a", "kinds": ["x"]}]})",
                           R"({"rename": [["a"]]})",
                           R"({"drop": "x"})",
                           R"({"keep_rank": [-1]})",
                           R"({"scheme": "a\u0000"})",
                           R"({"symmetric": 1})"}) {
    ConvertRequest request;
    EXPECT_FALSE(read_conversion(nlohmann::json::parse(text), request)) << text;
  }
}

TEST(ConversionRecord, SaysHowNumbersWereCast) {
  ConvertRequest request;
  PlannedTensor cast;
  cast.fate = Converted{};
  const auto written = [&](formats::Metadata metadata) {
    ConversionRecorder recorder(request);
    recorder.add(cast);
    recorder.write(metadata, formats::safetensors_format);
    return metadata;
  };
  const formats::Metadata old = {{"format", "pt"}, {"tensorcast.conversion", "{}"}};
  EXPECT_EQ(written(old), (formats::Metadata{{"format", "pt"}})) << "the default options";
  EXPECT_TRUE(written({}).empty());
  request.options.rounding = Rounding::toward_zero;
  const formats::Metadata made = written({});
  ASSERT_EQ(made.size(), 2U);
  EXPECT_EQ(made[0], (std::pair<std::string, std::string>("format", "pt"))) << "for old loaders";
  std::optional<ConversionRecord> record;
  add_record(made, record);
  ASSERT_TRUE(record);
  EXPECT_EQ(record->request.options, request.options);
  cast.fate = Copied{};
  EXPECT_EQ(written(old), old) << "copied as it is";
}

TEST(ConversionRecord, OthersTextsAreNone) {
  for (const char* text : {"", "{", "[]", "1", R"({"recipes": 1})", R"({"recipes": [1]})", R"({"options": []})",
                           R"({"options": {"from the future": 1}})"}) {
    std::optional<ConversionRecord> record;
    add_record({{"tensorcast.conversion", text}}, record);
    EXPECT_FALSE(record) << text;
  }
}

TEST(ConversionJson, PlansHaveOptionsThatAreNotAtTheirDefaults) {
  EXPECT_EQ(settings_json({}).dump(), "{}");
  EXPECT_EQ(quantize_options_json({}).dump(), "{}");
  ConversionSettings settings;
  settings.options.rounding = Rounding::to_odd;
  settings.options.scale = 0.1;
  settings.verify = true;
  EXPECT_EQ(settings_json(settings).dump(), R"({"rounding":"to_odd","scale":0.1,"verify":true})");
  ConversionSettings read;
  ASSERT_TRUE(read_settings(nlohmann::json::parse(settings_json(settings).dump()), read));
  EXPECT_EQ(settings_json(read), settings_json(settings));
  const QuantizeOptions given{.recipe = "modelopt",
                              .group_size = 64,
                              .symmetric = false,
                              .compute_dtype = DType::float16,
                              .maximum = 1.0F,
                              .clip = Clip::mse};
  const nlohmann::ordered_json json = quantize_options_json(given);
  EXPECT_EQ(json.dump(), R"({"group_size":64,"symmetric":false,"compute_dtype":"float16","clip":"mse"})");
  QuantizeOptions again;
  ASSERT_TRUE(read_quantize_options(nlohmann::json::parse(json.dump()), again));
  EXPECT_EQ(quantize_options_json(again), json);
  for (const char* wrong :
       {R"({"clip":"rms"})", R"({"clip":1})", R"({"symmetric":"no"})", R"({"compute_dtype":"f"})"}) {
    EXPECT_FALSE(read_quantize_options(nlohmann::json::parse(wrong), again)) << wrong;
  }
  EXPECT_FALSE(read_settings(nlohmann::json::parse(R"({"rounding":"sideways"})"), read));
}

}  // namespace
}  // namespace tensorcast::file_conversion
