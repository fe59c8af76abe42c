// SPDX-License-Identifier: Apache-2.0
#include "tensorcast/c_onnx.h"

#include <gtest/gtest.h>

#include <string>

#include "io/test_folder.hpp"
#include "models/onnx/ir/model_testing.hpp"

namespace {

using namespace tensorcast::models::onnx::testing;

class COnnx : public testing::Test {
 protected:
  void SetUp() override {
    tensorcast::io::put_file(input_, model({.nodes = {node("Neg", {"x"}, {"a"}, {.name = "first"}),
                                                      node("Add", {"a", "w"}, {"y"}, {.name = "second"})},
                                            .inputs = {{"x", f32}},
                                            .outputs = {{"y", f32}},
                                            .initializers = {{"w", f32}}}));
  }

  tensorcast::io::TestFolder folder_;
  std::string input_ = folder_ / "in.onnx";
  std::string output_ = folder_ / "out.onnx";
};

TEST_F(COnnx, ConvertsAModel) {
  tc_onnx_convert_outcome outcome = TC_ONNX_CONVERT_OUTCOME_INIT;
  ASSERT_EQ(tc_onnx_convert(input_.c_str(), output_.c_str(), TC_FLOAT16, nullptr, &outcome), TC_OK) << tc_last_error();
  EXPECT_EQ(outcome.nodes, 2u);
  EXPECT_EQ(outcome.nodes_converted, 2u);
  EXPECT_EQ(outcome.initializers_converted, 1u);
  EXPECT_EQ(outcome.initializer_bytes_before, 4u);
  EXPECT_EQ(outcome.initializer_bytes_after, 2u);
  EXPECT_EQ(outcome.opset_after, 21);
  EXPECT_EQ(outcome.to, TC_FLOAT16);
  EXPECT_EQ(tc_onnx_convert(input_.c_str(), output_.c_str(), TC_FLOAT16, nullptr, nullptr), TC_INVALID_ARGUMENT)
      << "the output exists";
  EXPECT_EQ(std::string(tc_last_error_file()), output_);
}

TEST_F(COnnx, OptionsChooseWhatChanges) {
  tc_onnx_convert_options options = TC_ONNX_CONVERT_OPTIONS_INIT;
  tc_onnx_convert_outcome outcome = TC_ONNX_CONVERT_OUTCOME_INIT;
  const char* keep[] = {"name:first"};
  options.keep = keep;
  options.keep_count = 1;
  options.keep_io_types = 1;
  options.runtime = TC_RUNTIME_ANY;
  options.dry_run = 1;
  ASSERT_EQ(tc_onnx_convert(input_.c_str(), output_.c_str(), TC_BFLOAT16, &options, &outcome), TC_OK)
      << tc_last_error();
  EXPECT_EQ(outcome.nodes_converted, 1u);
  EXPECT_EQ(outcome.nodes_kept, 1u);
  EXPECT_EQ(outcome.casts_added, 2u);
  EXPECT_EQ(folder_.entries(), 1u) << "nothing is written";
  int calls = 0;
  options.dry_run = 0;
  options.progress_data = &calls;
  options.progress = [](void* data) { return ++*static_cast<int*>(data) < 0 ? 1 : 0; };
  EXPECT_EQ(tc_onnx_convert(input_.c_str(), output_.c_str(), TC_BFLOAT16, &options, nullptr), TC_CANCELLED);
  EXPECT_EQ(calls, 1);
}

TEST_F(COnnx, MistakesAreErrors) {
  tc_onnx_convert_options options = TC_ONNX_CONVERT_OPTIONS_INIT;
  tc_onnx_convert_outcome outcome = TC_ONNX_CONVERT_OUTCOME_INIT;
  const auto convert = [&](tc_dtype to = TC_FLOAT16) {
    return tc_onnx_convert(input_.c_str(), output_.c_str(), to, &options, &outcome);
  };
  EXPECT_EQ(tc_onnx_convert(nullptr, output_.c_str(), TC_FLOAT16, nullptr, nullptr), TC_INVALID_ARGUMENT);
  EXPECT_EQ(tc_onnx_convert(input_.c_str(), nullptr, TC_FLOAT16, nullptr, nullptr), TC_INVALID_ARGUMENT);
  EXPECT_EQ(tc_onnx_convert("/nowhere", output_.c_str(), TC_FLOAT16, nullptr, nullptr), TC_IO);
  EXPECT_EQ(convert(TC_STRING), TC_INVALID_ARGUMENT);
  EXPECT_EQ(convert(99), TC_INVALID_ARGUMENT);
  options.keep_count = 1;
  EXPECT_EQ(convert(), TC_INVALID_ARGUMENT) << "the list is null";
  const char* keep[] = {nullptr};
  options.keep = keep;
  EXPECT_EQ(convert(), TC_INVALID_ARGUMENT) << "its entry is null";
  keep[0] = "name:nobody";
  EXPECT_EQ(convert(), TC_INVALID_ARGUMENT) << "it selects nothing";
  options.keep_count = 0;
  options.runtime = 5;
  EXPECT_EQ(convert(), TC_INVALID_ARGUMENT);
  EXPECT_STREQ(tc_last_error_message(), "runtime is 5, expected 0 to 4");
  options.runtime = 0;
  options.on_overflow = -1;
  EXPECT_EQ(convert(), TC_INVALID_ARGUMENT);
  options.on_overflow = 0;
  outcome.struct_size = 8;
  EXPECT_EQ(convert(), TC_INVALID_ARGUMENT);
  outcome.struct_size = sizeof outcome;
  options.struct_size = 0;
  EXPECT_EQ(convert(), TC_INVALID_ARGUMENT);
  EXPECT_EQ(folder_.entries(), 1u) << "nothing is written";
}

}  // namespace
