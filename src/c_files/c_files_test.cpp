// SPDX-License-Identifier: Apache-2.0
// The C interface to files.
#include "tensorcast/c_files.h"

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "formats/format_testing.hpp"

namespace {

class CFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    const float numbers[4] = {1.5f, 300.0f, -2.0f, 1e-9f};
    input_ = folder_.put("in.raw", std::string(reinterpret_cast<const char*>(numbers), sizeof numbers));
    output_ = folder_.file("out.npy");
    request_ = tc_convert_request_new();
    const int64_t shape[2] = {2, 2};
    ASSERT_EQ(tc_convert_request_set_input(request_, input_.c_str()), TC_OK);
    ASSERT_EQ(tc_convert_request_set_output(request_, output_.c_str()), TC_OK);
    ASSERT_EQ(tc_convert_request_set_to(request_, TC_FLOAT16), TC_OK);
    ASSERT_EQ(tc_convert_request_set_raw(request_, TC_FLOAT32, shape, 2), TC_OK);
  }
  void TearDown() override { tc_convert_request_free(request_); }

  tensorcast::formats::testing::TempFolder folder_;
  std::string input_, output_;
  tc_convert_request* request_ = nullptr;
};

TEST_F(CFiles, ConvertsAndTellsWhatBecameOfEachTensor) {
  tc_convert_request_set_flag(request_, TC_CONVERT_REPORT, 1);
  tc_convert_request_set_flag(request_, TC_CONVERT_VERIFY, 1);
  tc_convert_outcome* outcome = nullptr;
  ASSERT_EQ(tc_convert(request_, &outcome), TC_OK) << tc_last_error();
  EXPECT_STREQ(tc_convert_outcome_input_format(outcome), "raw");
  EXPECT_STREQ(tc_convert_outcome_output_format(outcome), "npy");
  EXPECT_EQ(tc_convert_outcome_bytes_read(outcome), 16u);
  EXPECT_GT(tc_convert_outcome_bytes_written(outcome), 8u);
  EXPECT_EQ(tc_convert_outcome_is_verified(outcome), 1);
  ASSERT_EQ(tc_convert_outcome_tensor_count(outcome), 1u);
  tc_tensor_outcome tensor = {};
  EXPECT_EQ(tc_convert_outcome_tensor(outcome, 0, &tensor), TC_INVALID_ARGUMENT) << "struct_size is not set";
  tensor.struct_size = sizeof tensor;
  ASSERT_EQ(tc_convert_outcome_tensor(outcome, 0, &tensor), TC_OK);
  EXPECT_EQ(tensor.from, TC_FLOAT32);
  EXPECT_EQ(tensor.to, TC_FLOAT16);
  EXPECT_EQ(tensor.rank, 2u);
  EXPECT_EQ(tensor.shape[1], 2);
  EXPECT_EQ(tensor.bytes_out, 8u);
  EXPECT_EQ(tensor.has_report, 1);
  tc_cast_report report;
  tc_cast_report_init(&report);
  ASSERT_EQ(tc_convert_outcome_report(outcome, 0, &report), TC_OK);
  EXPECT_EQ(report.count, 4u);
  EXPECT_EQ(report.underflowed_to_zero, 1u);
  EXPECT_EQ(tc_convert_outcome_tensor(outcome, 1, &tensor), TC_INVALID_ARGUMENT);
  tc_convert_outcome_free(outcome);

  EXPECT_EQ(tc_convert(request_, nullptr), TC_INVALID_ARGUMENT) << "the output exists";
  EXPECT_EQ(std::string(tc_last_error_file()), output_);
  tc_convert_request_set_flag(request_, TC_CONVERT_OVERWRITE, 1);
  EXPECT_EQ(tc_convert(request_, nullptr), TC_OK);
}

int stop_at_once(void* calls, uint64_t, uint64_t, const char*) {
  ++*static_cast<int*>(calls);
  return 0;
}

TEST_F(CFiles, AProgressFunctionCancels) {
  int calls = 0;
  ASSERT_EQ(tc_convert_request_set_progress(request_, stop_at_once, &calls), TC_OK);
  tc_convert_outcome* outcome = nullptr;
  EXPECT_EQ(tc_convert(request_, &outcome), TC_CANCELLED);
  EXPECT_EQ(outcome, nullptr);
  EXPECT_GE(calls, 1);
  EXPECT_EQ(std::fopen(output_.c_str(), "rb"), nullptr) << "nothing is left";
}

TEST_F(CFiles, OptionsAreThoseOfCasts) {
  tc_cast_options options;
  tc_cast_options_init(&options);
  options.out_of_range = TC_RANGE_ERROR;
  ASSERT_EQ(tc_convert_request_set_to(request_, TC_UINT8), TC_OK);
  ASSERT_EQ(tc_convert_request_set_options(request_, &options), TC_OK);
  EXPECT_EQ(tc_convert(request_, nullptr), TC_OUT_OF_RANGE);
  EXPECT_EQ(tc_last_error_element(), 1);
  options.struct_size = 1;
  EXPECT_EQ(tc_convert_request_set_options(request_, &options), TC_INVALID_ARGUMENT);
}

TEST_F(CFiles, ARuleHasAScaleOfItsOwn) {
  ASSERT_EQ(tc_convert_request_add_scaled_rule(request_, "", TC_FLOAT16, 0.5), TC_OK);
  tc_convert_request_set_flag(request_, TC_CONVERT_VERIFY, 1);
  tc_convert_request_set_flag(request_, TC_CONVERT_REPORT, 1);
  ASSERT_EQ(tc_convert(request_, nullptr), TC_OK) << tc_last_error();
  std::FILE* file = std::fopen(output_.c_str(), "rb");
  ASSERT_NE(file, nullptr);
  std::uint16_t halves[4] = {};
  EXPECT_EQ(std::fseek(file, -8, SEEK_END), 0);
  EXPECT_EQ(std::fread(halves, 2, 4, file), 4u);
  std::fclose(file);
  EXPECT_EQ(halves[0], 0x3A00);  // 0.75
  EXPECT_EQ(halves[1], 0x58B0);  // 150
}

TEST_F(CFiles, TheScaleOfARuleIsANumberThatIsNot0) {
  for (const double scale : {0.0, -0.0, std::numeric_limits<double>::quiet_NaN(), HUGE_VAL}) {
    EXPECT_EQ(tc_convert_request_add_scaled_rule(request_, "", TC_FLOAT16, scale), TC_INVALID_ARGUMENT) << scale;
  }
  EXPECT_STREQ(tc_last_error(), "the scale of the rule is inf, and must be finite and not 0");
}

TEST_F(CFiles, TheShareThatMayBecomeZero) {
  tc_convert_request_set_flag(request_, TC_CONVERT_FAIL_LOSS, 1);
  EXPECT_EQ(tc_convert(request_, nullptr), TC_OUT_OF_RANGE) << "1 of 4 becomes zero";
  EXPECT_EQ(tc_convert_request_set_zero_limit(request_, 1.5), TC_INVALID_ARGUMENT);
  ASSERT_EQ(tc_convert_request_set_zero_limit(request_, 0.25), TC_OK);
  EXPECT_EQ(tc_convert(request_, nullptr), TC_OK) << tc_last_error();
}

// safetensors of float32 numbers for each name, in rows of 32.
std::string safetensors(const std::vector<std::pair<std::string, std::size_t>>& names) {
  std::string header = "{", data;
  for (const auto& [name, rows] : names) {
    const std::size_t begin = data.size();
    for (std::size_t i = 0; i < rows * 32; ++i) {
      const float number = i == 5 ? 12.0f : static_cast<float>(i * 37 % 101) / 50.0f;
      data.append(reinterpret_cast<const char*>(&number), sizeof number);
    }
    header += (begin == 0 ? "\"" : ",\"") + name + R"(":{"dtype":"F32","shape":[)" + std::to_string(rows) +
              R"(,32],"data_offsets":[)" + std::to_string(begin) + "," + std::to_string(data.size()) + "]}";
  }
  header += "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  const std::uint64_t size = header.size();
  return std::string(reinterpret_cast<const char*>(&size), sizeof size) + header + data;
}

TEST_F(CFiles, ABudgetChoosesSchemesAndScalesAreSearched) {
  const std::string up = "model.layers.0.mlp.up_proj.weight", down = "model.layers.0.mlp.down_proj.weight";
  const std::string input = folder_.put("in.safetensors", safetensors({{up, 4}, {down, 8}}));
  const std::string importance = folder_.put("importance.safetensors", safetensors({{up, 1}}));
  tc_convert_request* request = tc_convert_request_new();
  ASSERT_EQ(tc_convert_request_set_input(request, input.c_str()), TC_OK);
  const std::string output = folder_.file("out.safetensors");
  ASSERT_EQ(tc_convert_request_set_output(request, output.c_str()), TC_OK);
  ASSERT_EQ(tc_convert_request_set_budget(request, 9.0, "mxfp4:even,mxfp8", nullptr), TC_OK);
  ASSERT_EQ(tc_convert_request_set_search(request, 1, importance.c_str()), TC_OK);
  tc_convert_outcome* outcome = nullptr;
  ASSERT_EQ(tc_convert(request, &outcome), TC_OK) << tc_last_error();
  EXPECT_GT(tc_convert_outcome_tensor_count(outcome), 2u);
  tc_convert_outcome_free(outcome);
  tc_quantized_file* made = nullptr;
  tc_convert_request_set_flag(request, TC_CONVERT_OVERWRITE, 1);
  ASSERT_EQ(tc_quantized_file_open(output.c_str(), &made), TC_OK) << tc_last_error();
  EXPECT_EQ(tc_quantized_file_layer_count(made), 2u);
  tc_quantized_file_close(made);
  EXPECT_EQ(tc_convert_request_set_search(request, 2, nullptr), TC_INVALID_ARGUMENT);
  ASSERT_EQ(tc_convert_request_set_search(request, 0, "/nowhere"), TC_OK);
  EXPECT_EQ(tc_convert(request, nullptr), TC_IO);
  ASSERT_EQ(tc_convert_request_set_search(request, 0, nullptr), TC_OK);
  ASSERT_EQ(tc_convert_request_set_budget(request, 4.0, "mxfp4,mxfp8", nullptr), TC_OK);
  EXPECT_EQ(tc_convert(request, nullptr), TC_INVALID_ARGUMENT) << "mxfp4 needs 4.25 bits";
  tc_convert_request_free(request);
}

TEST_F(CFiles, MistakesAreErrors) {
  EXPECT_EQ(tc_convert(nullptr, nullptr), TC_INVALID_ARGUMENT);
  EXPECT_EQ(tc_convert_request_set_input(nullptr, "x"), TC_INVALID_ARGUMENT);
  EXPECT_EQ(tc_convert_request_set_input(request_, nullptr), TC_INVALID_ARGUMENT);
  EXPECT_EQ(tc_convert_request_set_to(request_, 99), TC_INVALID_ARGUMENT);
  EXPECT_EQ(tc_convert_request_set_flag(request_, 77, 1), TC_INVALID_ARGUMENT);
  EXPECT_EQ(tc_convert_request_add_rule(request_, "(", TC_FLOAT16), TC_OK) << "patterns are checked by tc_convert";
  EXPECT_EQ(tc_convert(request_, nullptr), TC_INVALID_ARGUMENT);
  EXPECT_EQ(tc_convert_outcome_tensor_count(nullptr), 0u);
  tc_convert_request_free(nullptr);
  tc_convert_outcome_free(nullptr);
}

TEST_F(CFiles, SettersRefuseWhatDoesNotExist) {
  tc_cast_options options = TC_CAST_OPTIONS_INIT;
  options.out_of_range = 99;
  EXPECT_EQ(tc_convert_request_set_options(request_, &options), TC_INVALID_ARGUMENT);
  options.out_of_range = TC_RANGE_ERROR;
  options.first_element = 1;
  EXPECT_EQ(tc_convert_request_set_options(request_, &options), TC_INVALID_ARGUMENT);
  options.first_element = 0;
  options.threads = -1;
  EXPECT_EQ(tc_convert_request_set_options(request_, &options), TC_INVALID_ARGUMENT);
  EXPECT_EQ(tc_convert_request_set_scheme(request_, "nope", nullptr, nullptr), TC_INVALID_ARGUMENT);
  EXPECT_STREQ(tc_last_error_message(), "there is no scheme \"nope\"");
  EXPECT_EQ(tc_convert_request_set_scheme(request_, "mxfp8", "nope", nullptr), TC_INVALID_ARGUMENT);
  EXPECT_STREQ(tc_last_error_message(), "mxfp8 has no recipe \"nope\"");
  EXPECT_EQ(tc_convert_request_set_scheme(request_, "mxfp8", "", "nope"), TC_INVALID_ARGUMENT);
  EXPECT_STREQ(tc_last_error_message(), "\"nope\" is not a spelling that can be written");
  for (const double bits : {std::numeric_limits<double>::quiet_NaN(), 0.5, 33.0, -4.0}) {
    EXPECT_EQ(tc_convert_request_set_budget(request_, bits, nullptr, nullptr), TC_INVALID_ARGUMENT) << bits;
  }
  EXPECT_EQ(tc_convert_request_set_budget(request_, 4.5, "nvfp4,nope", nullptr), TC_INVALID_ARGUMENT);
  EXPECT_EQ(tc_convert_request_set_budget(request_, 4.5, nullptr, "nope"), TC_INVALID_ARGUMENT);
  EXPECT_EQ(tc_convert_request_set_input_format(request_, "zzz"), TC_INVALID_ARGUMENT);
  EXPECT_EQ(tc_convert_request_set_output_format(request_, "zzz"), TC_INVALID_ARGUMENT);
  EXPECT_EQ(tc_convert(request_, nullptr), TC_OK) << "none of these is set: " << tc_last_error();
  EXPECT_EQ(tc_convert_request_set_scheme(request_, "mxfp8", "rceil", "compressed-tensors"), TC_OK) << tc_last_error();
  EXPECT_EQ(tc_convert_request_set_scheme(request_, "q4_k", nullptr, "gguf"), TC_OK) << tc_last_error();
  EXPECT_EQ(tc_convert_request_set_scheme(request_, "", nullptr, nullptr), TC_OK);
  EXPECT_EQ(tc_convert_request_set_budget(request_, 0, "", ""), TC_OK);
  EXPECT_EQ(tc_convert_request_set_input_format(request_, ""), TC_OK);
}

TEST_F(CFiles, ARequestWithoutPathsSaysSo) {
  ASSERT_EQ(tc_convert_request_set_output(request_, ""), TC_OK);
  EXPECT_EQ(tc_convert(request_, nullptr), TC_INVALID_ARGUMENT);
  EXPECT_STREQ(tc_last_error(), "the path of the output is empty");
  ASSERT_EQ(tc_convert_request_set_input(request_, ""), TC_OK);
  EXPECT_EQ(tc_convert(request_, nullptr), TC_IO);
  EXPECT_STREQ(tc_last_error(), "cannot open: the path is empty");
}

TEST_F(CFiles, ReadsQuantizedWeights) {
  // A block of GGUF's Q8_0: the float16 number 0.5, and 32 codes.
  std::string file("GGUF\3\0\0\0\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 24);
  file += std::string("\1\0\0\0\0\0\0\0w\1\0\0\0\40\0\0\0\0\0\0\0\10\0\0\0\0\0\0\0\0\0\0\0", 33);
  file.resize(64, '\0');
  file += std::string("\0\70", 2) + std::string(31, '\2') + '\xFC';
  const std::string path = folder_.put("in.gguf", file);
  tc_quantized_file* opened = nullptr;
  ASSERT_EQ(tc_quantized_file_open(path.c_str(), &opened), TC_OK) << tc_last_error();
  ASSERT_EQ(tc_quantized_file_layer_count(opened), 1u);
  tc_quantized_layer layer = {};
  EXPECT_EQ(tc_quantized_file_layer(opened, 0, &layer), TC_INVALID_ARGUMENT) << "struct_size is not set";
  layer.struct_size = sizeof layer;
  ASSERT_EQ(tc_quantized_file_layer(opened, 0, &layer), TC_OK);
  EXPECT_STREQ(layer.name, "w");
  EXPECT_STREQ(layer.scheme, "q8_0");
  EXPECT_STREQ(layer.problem, "");
  EXPECT_EQ(layer.rank, 1u);
  EXPECT_EQ(layer.shape[0], 32);
  ASSERT_EQ(layer.part_count, 1u);
  tc_quantized_part part = {};
  part.struct_size = sizeof part;
  ASSERT_EQ(tc_quantized_file_part(opened, 0, 0, &part), TC_OK);
  EXPECT_STREQ(part.role, "codes");
  EXPECT_EQ(part.dtype, TC_UINT8);
  ASSERT_EQ(part.bytes, 34u);
  std::vector<unsigned char> stored(part.bytes);
  ASSERT_EQ(tc_quantized_file_read_part(opened, 0, 0, stored.data()), TC_OK);
  EXPECT_EQ(stored[33], 0xFC);
  float numbers[2] = {};
  ASSERT_EQ(tc_quantized_file_dequantize(opened, 0, 30, 2, numbers, TC_FLOAT32, nullptr), TC_OK) << tc_last_error();
  EXPECT_EQ(numbers[0], 1.0f);
  EXPECT_EQ(numbers[1], -2.0f);
  EXPECT_EQ(tc_quantized_file_dequantize(opened, 0, 31, 2, numbers, TC_FLOAT32, nullptr), TC_INVALID_ARGUMENT);
  EXPECT_EQ(tc_quantized_file_dequantize(opened, 1, 0, 2, numbers, TC_FLOAT32, nullptr), TC_INVALID_ARGUMENT);
  EXPECT_EQ(tc_quantized_file_dequantize(opened, 0, 0, 2, numbers, 99, nullptr), TC_INVALID_ARGUMENT);
  EXPECT_EQ(tc_quantized_file_dequantize(opened, 0, 0, 2, nullptr, TC_FLOAT32, nullptr), TC_INVALID_ARGUMENT);
  const uint64_t begin[] = {30}, end[] = {32}, after[] = {33};
  numbers[0] = numbers[1] = 0;
  ASSERT_EQ(tc_quantized_file_dequantize_slice(opened, 0, begin, end, 1, numbers, 8, TC_FLOAT32, nullptr), TC_OK);
  EXPECT_EQ(numbers[0], 1.0f);
  EXPECT_EQ(numbers[1], -2.0f);
  const auto slice = [&](const uint64_t* first, const uint64_t* last, size_t ranges, size_t bytes, tc_dtype to) {
    return tc_quantized_file_dequantize_slice(opened, 0, first, last, ranges, numbers, bytes, to, nullptr);
  };
  EXPECT_EQ(slice(begin, after, 1, 8, TC_FLOAT32), TC_INVALID_ARGUMENT);
  EXPECT_EQ(slice(end, begin, 1, 8, TC_FLOAT32), TC_INVALID_ARGUMENT) << "it ends before it begins";
  EXPECT_EQ(slice(begin, end, 1, 7, TC_FLOAT32), TC_INVALID_ARGUMENT) << "a short buffer";
  EXPECT_EQ(slice(begin, end, 2, 8, TC_FLOAT32), TC_INVALID_ARGUMENT) << "a vector has one dimension";
  EXPECT_EQ(slice(nullptr, end, 1, 8, TC_FLOAT32), TC_INVALID_ARGUMENT);
  EXPECT_EQ(slice(begin, end, 1, 8, 99), TC_INVALID_ARGUMENT);
  EXPECT_EQ(slice(nullptr, nullptr, 0, 8, TC_FLOAT32), TC_INVALID_ARGUMENT) << "all 32 elements";
  EXPECT_EQ(tc_quantized_file_part(opened, 0, 1, &part), TC_INVALID_ARGUMENT);
  tc_quantized_file_close(opened);
  tc_quantized_file_close(nullptr);
  EXPECT_EQ(tc_quantized_file_open(nullptr, &opened), TC_INVALID_ARGUMENT);
  EXPECT_EQ(tc_quantized_file_open("/nowhere", &opened), TC_IO);
}

}  // namespace
