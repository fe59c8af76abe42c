// SPDX-License-Identifier: Apache-2.0
#include "convert/plan/conversion_record.hpp"

#include <gtest/gtest.h>

#include <string>

namespace tensorcast::file_conversion {
namespace {

double recorded_scale(std::string record) {
  formats::TensorInfo tensor;
  tensor.name = "a";
  RecordedScales scales;
  scales.add({{std::string(scale_key), std::move(record)}}, {}, {&tensor, 1});
  return scales.of("a");
}

TEST(ConversionRecord, ScalesOfRecordsThatAreNoBurden) {
  EXPECT_EQ(recorded_scale(R"([{"scale": 0.5}])"), 0.5);
  EXPECT_EQ(recorded_scale(R"([{"scale": 0.5, "tensors": ["b"]}])"), 1.0);
  EXPECT_EQ(recorded_scale("{}"), 1.0);
  EXPECT_EQ(recorded_scale("["), 1.0);
  std::string values;  // that would take 24 times as much memory as the text
  for (int i = 0; i < 1000000; ++i) values += "0,";
  EXPECT_EQ(recorded_scale("[" + values + R"({"scale": 0.5}])"), 1.0);
  std::string names;  // of 50,000 tensors
  for (int i = 0; i < 50000; ++i)
    names += "\"model.layers.0.mlp.experts.0.down_proj.weight" + std::to_string(i) + "\",";
  EXPECT_EQ(recorded_scale(R"([{"scale": 0.5, "tensors": [)" + names + R"("a"]}])"), 0.5);
}

}  // namespace
}  // namespace tensorcast::file_conversion
