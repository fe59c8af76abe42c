// SPDX-License-Identifier: Apache-2.0
#include "tensorcast/c_api.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <thread>
#include <vector>

namespace {

TEST(CApi, DefaultsAreThoseOfTheHeader) {
  tc_cast_options options;
  std::memset(&options, 0xFF, sizeof options);
  tc_cast_options_init(&options);
  EXPECT_EQ(options.struct_size, sizeof options);
  EXPECT_EQ(options.opset, 0);
  EXPECT_EQ(options.saturate, 1);
  EXPECT_EQ(options.round_mode, 0);
  EXPECT_EQ(options.out_of_range, 0);
  EXPECT_EQ(options.rounding, 0);
  EXPECT_EQ(options.invalid, 0);
  EXPECT_EQ(options.fnuz_inf, 0);
  EXPECT_EQ(options.float_string, 0);
  EXPECT_EQ(options.threads, 0);
  EXPECT_EQ(options.scale, 1.0);
  (tc_cast_options_init)(nullptr);
}

TEST(CApi, CastsWithAndWithoutOptions) {
  const float source[4] = {0.5f, 465.0f, -2.0f, 1e9f};
  uint8_t target[4];
  ASSERT_EQ(tc_cast(source, 1, target, 17, 4, nullptr), TC_OK);
  EXPECT_EQ(target[1], 0x7E);
  tc_cast_options options;
  tc_cast_options_init(&options);
  options.saturate = 0;
  ASSERT_EQ(tc_cast(source, 1, target, 17, 4, &options), TC_OK);
  EXPECT_EQ(target[0], 0x30);
  EXPECT_EQ(target[1], 0x7F);
  EXPECT_EQ(target[2], 0xC0);
}

TEST(CApi, RunsPreparedCasts) {
  const float source[3] = {0.5f, 465.0f, -2.0f};
  uint8_t target[3];
  tc_prepared_cast prepared = TC_PREPARED_CAST_INIT;
  EXPECT_EQ(tc_run_prepared(&prepared, source, target, 3), TC_INVALID_ARGUMENT);
  EXPECT_STREQ(tc_last_error(),
               "tc_prepare_cast() did not fill this struct, or it has changed since; call "
               "tc_prepare_cast() and check its status");
  EXPECT_EQ(tc_run_prepared(nullptr, source, target, 3), TC_INVALID_ARGUMENT);
  EXPECT_EQ(tc_prepare_cast(1, 17, nullptr, nullptr), TC_INVALID_ARGUMENT);
  EXPECT_EQ(tc_prepare_cast(1, 99, nullptr, &prepared), TC_INVALID_ARGUMENT);
  ASSERT_EQ(tc_prepare_cast(1, 17, nullptr, &prepared), TC_OK);
  const tc_prepared_cast copy = prepared;
  ASSERT_EQ(tc_run_prepared(&copy, source, target, 3), TC_OK);
  EXPECT_EQ(target[1], 0x7E);
  EXPECT_EQ(tc_run_prepared(&copy, nullptr, target, 3), TC_INVALID_ARGUMENT);
  for (unsigned bit = 0; bit < 8 * 72; ++bit) {
    tc_prepared_cast changed = prepared;
    changed.opaque[bit / 64] ^= uint64_t{1} << bit % 64;
    EXPECT_EQ(tc_run_prepared(&changed, source, target, 3), TC_INVALID_ARGUMENT) << bit;
  }

  tc_cast_options options = TC_CAST_OPTIONS_INIT;
  options.out_of_range = TC_RANGE_ERROR;
  ASSERT_EQ(tc_prepare_cast(1, 17, &options, &prepared), TC_OK);
  EXPECT_EQ(tc_run_prepared(&prepared, source, target, 3), TC_OUT_OF_RANGE);
  EXPECT_EQ(tc_last_error_element(), 1);
}

TEST(CApi, StatusAndWordsOfEveryRefusal) {
  float source[2] = {1.0f, 300.0f};
  uint8_t target[8];
  tc_cast_options options;
  tc_cast_options_init(&options);
  EXPECT_EQ(tc_cast(source, 1, target, 99, 2, nullptr), TC_INVALID_ARGUMENT);
  EXPECT_STREQ(tc_last_error(), "dtype number 99 does not exist");
  EXPECT_EQ(tc_cast(source, 14, target, 1, 2, nullptr), TC_INVALID_ARGUMENT);
  EXPECT_EQ(tc_cast(source, 1, target, 1001, 2, nullptr), TC_UNSUPPORTED);
  EXPECT_EQ(tc_cast(source, 8, target, 1, 2, nullptr), TC_UNSUPPORTED);
  EXPECT_EQ(tc_cast(nullptr, 1, target, 2, 2, nullptr), TC_INVALID_ARGUMENT);
  EXPECT_EQ(tc_cast(source, 1, nullptr, 2, 2, nullptr), TC_INVALID_ARGUMENT);
  EXPECT_EQ(tc_cast(nullptr, 1, nullptr, 2, 0, nullptr), TC_OK);
  EXPECT_EQ(tc_cast(source, 1, target, 2, SIZE_MAX, nullptr), TC_INVALID_ARGUMENT);
  EXPECT_EQ(tc_cast(source, 10, source, 1, 2, nullptr), TC_INVALID_ARGUMENT);
  options.opset = 18;
  EXPECT_EQ(tc_cast(source, 1, target, 17, 2, &options), TC_UNSUPPORTED);
  EXPECT_NE(std::string(tc_last_error()).find("19"), std::string::npos) << tc_last_error();
  options.opset = 1000;
  EXPECT_EQ(tc_cast(source, 1, target, 2, 2, &options), TC_INVALID_ARGUMENT);
  tc_cast_options_init(&options);
  options.out_of_range = 3;
  EXPECT_EQ(tc_cast(source, 1, target, 2, 2, &options), TC_OUT_OF_RANGE);
  EXPECT_STREQ(tc_last_error(), "element 1: value 300 does not fit uint8 (from float32)");
  options.out_of_range = 4;
  EXPECT_EQ(tc_cast(source, 1, target, 2, 2, &options), TC_INVALID_ARGUMENT);
  tc_cast_options_init(&options);
  options.threads = -1;
  EXPECT_EQ(tc_cast(source, 1, target, 2, 2, &options), TC_INVALID_ARGUMENT);
  tc_cast_options_init(&options);
  options.struct_size = 8;
  EXPECT_EQ(tc_cast(source, 1, target, 2, 2, &options), TC_INVALID_ARGUMENT);
}

TEST(CApi, HintsNameWhatCHas) {
  float numbers[32] = {std::numeric_limits<float>::infinity()};
  const int64_t shape[2] = {1, 32};
  const tc_array weight{numbers, shape, 2, TC_FLOAT32};
  tc_quantized* quantized = nullptr;
  EXPECT_EQ(tc_quantize(&weight, "mxfp8", nullptr, &quantized), TC_OUT_OF_RANGE);
  EXPECT_STREQ(tc_last_error_hint(), "set `allows_nonfinite` to 1 to quantize it as the recipe's tool does");
  EXPECT_NE(std::string(tc_last_error()).find("`allows_nonfinite`"), std::string::npos);
  EXPECT_EQ(tc_cast(numbers, TC_FLOAT32, numbers, TC_STRING, 1, nullptr), TC_UNSUPPORTED);
  EXPECT_STREQ(tc_last_error_hint(), "use tc_cast_to_strings()");
  EXPECT_EQ(tc_cast(numbers, TC_STRING, numbers, TC_FLOAT32, 1, nullptr), TC_UNSUPPORTED);
  EXPECT_STREQ(tc_last_error_hint(), "use tc_cast_from_strings()");
}

TEST(CApi, PackedElementsHaveNoStrides) {
  const unsigned char codes[8] = {1, 2, 3, 4, 5, 6, 7, 0};
  float numbers[8] = {};
  unsigned char back[8] = {};
  const int64_t shape[1] = {8}, of_codes[1] = {1}, of_floats[1] = {4};
  EXPECT_EQ(tc_cast_strided(codes, TC_INT4, of_codes, numbers, TC_FLOAT32, of_floats, shape, 1, nullptr),
            TC_INVALID_ARGUMENT);
  EXPECT_STREQ(tc_last_error_hint(), "leave the strides out: packed elements are in C order");
  EXPECT_EQ(tc_cast_strided(numbers, TC_FLOAT32, of_floats, back, TC_INT4, of_codes, shape, 1, nullptr),
            TC_INVALID_ARGUMENT);
  ASSERT_EQ(tc_cast_strided(codes, TC_INT4, nullptr, numbers, TC_FLOAT32, of_floats, shape, 1, nullptr), TC_OK);
  EXPECT_EQ(numbers[2], 2.0f) << "the low bits of the second byte";
}

TEST(CApi, StringsThereAndBack) {
  const char text[] = "1.5abc-7";
  const int64_t good[] = {0, 3};
  double value = 0;
  ASSERT_EQ(tc_cast_from_strings(text, good, &value, 11, 1, nullptr), TC_OK);
  EXPECT_EQ(value, 1.5);
  const int64_t bad[] = {0, 3, 6, 8};
  int8_t target[3];
  EXPECT_EQ(tc_cast_from_strings(text, bad, target, 3, 3, nullptr), TC_PARSE);
  EXPECT_NE(std::string(tc_last_error()).find("element 1"), std::string::npos) << tc_last_error();
  const int64_t descending[] = {3, 0};
  EXPECT_EQ(tc_cast_from_strings(text, descending, &value, 11, 1, nullptr), TC_INVALID_ARGUMENT);
  EXPECT_EQ(tc_cast_from_strings(text, good, &value, 8, 1, nullptr), TC_UNSUPPORTED);
  EXPECT_EQ(tc_cast_from_strings(nullptr, nullptr, nullptr, 1, 0, nullptr), TC_OK);

  const float source[2] = {0.1f, -65504.0f};
  char* data = nullptr;
  int64_t* offsets = nullptr;
  ASSERT_EQ(tc_cast_to_strings(source, 1, 2, &data, &offsets, nullptr), TC_OK);
  EXPECT_EQ(std::string(data, static_cast<std::size_t>(offsets[2])), "0.1-65504.0");
  EXPECT_EQ(offsets[1], 3);
  tc_free(data);
  tc_free(offsets);
  ASSERT_EQ(tc_cast_to_strings(nullptr, 1, 0, &data, &offsets, nullptr), TC_OK);
  EXPECT_EQ(offsets[0], 0);
  tc_free(data);
  tc_free(offsets);
  tc_free(nullptr);
}

TEST(CApi, Promotes) {
  tc_dtype common = 0;
  EXPECT_EQ(tc_promote(10, 0, 1, 0, nullptr, &common), TC_OK);
  EXPECT_EQ(common, 1);
  EXPECT_EQ(tc_promote(10, 0, 7, 0, nullptr, &common), TC_UNSUPPORTED);
  EXPECT_STREQ(tc_last_error(),
               "float16 cannot hold int64 safely: needs at least 128 bits; pass promote_unsafe to allow it");
  tc_promote_options options{};
  options.struct_size = sizeof(options);
  options.promote_unsafe = options.pytorch_scalar_promotion = 1;
  options.u64_integer_promotion_target = 1;
  EXPECT_EQ(tc_promote(7, 1, 2, 0, &options, &common), TC_OK);
  EXPECT_EQ(common, 2);
  EXPECT_EQ(tc_promote(7, 1, 2, 0, &options, nullptr), TC_INVALID_ARGUMENT);
  options.rules = 1;  // numpy, whose ranks do not matter
  EXPECT_EQ(tc_promote(7, 1, 2, 0, &options, &common), TC_OK);
  EXPECT_EQ(common, 7);
  options.rules = 6;
  EXPECT_EQ(tc_promote(7, 1, 2, 0, &options, &common), TC_INVALID_ARGUMENT);
  options.rules = (std::int64_t{1} << 32) + 1;
  EXPECT_EQ(tc_promote(7, 1, 2, 0, &options, &common), TC_INVALID_ARGUMENT);
  EXPECT_STREQ(tc_last_error(), "there are no promotion rules 4294967297");
  options.rules = 0;
  options.u64_integer_promotion_target = 55;
  EXPECT_EQ(tc_promote(7, 1, 2, 0, &options, &common), TC_INVALID_ARGUMENT);
  EXPECT_STREQ(tc_last_error(), "dtype number 55 does not exist");
  options.u64_integer_promotion_target = 1;
  options.struct_size = 24;  // of a program older than the rules, which is not asked for them
  EXPECT_EQ(tc_promote(7, 1, 2, 0, &options, &common), TC_OK);
  EXPECT_EQ(common, 2);
  options.struct_size = 20;
  EXPECT_EQ(tc_promote(7, 1, 2, 0, &options, &common), TC_INVALID_ARGUMENT);
}

TEST(CApi, Names) {
  EXPECT_STREQ(tc_dtype_name(17), "float8_e4m3fn");
  EXPECT_STREQ(tc_dtype_name(14), "undefined");
  EXPECT_EQ(tc_dtype_parse("torch.bfloat16"), 16);
  EXPECT_EQ(tc_dtype_parse("nonsense"), 0);
  EXPECT_EQ(tc_dtype_parse(nullptr), 0);
  EXPECT_STREQ(tc_last_error(), "the spelling is null");
  EXPECT_EQ(tc_storage_bytes(22, 3), 2u);
  EXPECT_STREQ(tc_version(), "0.1.0");
}

TEST(CApi, ErrorsStayInTheirThread) {
  EXPECT_EQ(tc_cast(nullptr, 1, nullptr, 2, 1, nullptr), TC_INVALID_ARGUMENT);
  const std::string mine = tc_last_error();
  std::thread([] { EXPECT_STREQ(tc_last_error(), ""); }).join();
  EXPECT_EQ(mine, tc_last_error());
}

// count + 1 offsets would end beyond the last address.
TEST(CApi, CountsBeyondMemoryAreErrors) {
  const int64_t offsets[] = {0, 1};
  const char digit = '1';
  std::int32_t number = 0;
  for (const std::size_t count : {std::size_t{1} << 60, std::size_t{1} << 61, ~std::size_t{0}}) {
    EXPECT_EQ(tc_cast_from_strings(&digit, offsets, &number, 6, count, nullptr), TC_INVALID_ARGUMENT);
  }
}

TEST(CApi, Dequantize) {
  const std::vector<unsigned char> codes(2 * 64, 0x38);  // 1 in float8_e4m3fn
  const std::vector<float> scales = {2.0f, 3.0f};
  const int64_t shape[2] = {2, 64}, grid[2] = {2, 1};
  tc_block_tensor weight = {};
  weight.struct_size = sizeof(weight);
  weight.scheme = "fp8-channel";
  weight.shape = shape;
  weight.rank = 2;
  weight.codes = {codes.data(), shape, 2, TC_FLOAT8_E4M3FN};
  weight.scales = {scales.data(), grid, 2, TC_FLOAT32};
  std::vector<float> out(64);
  EXPECT_EQ(tc_dequantize(&weight, 1, 1, out.data(), TC_FLOAT32, nullptr), TC_OK);
  EXPECT_EQ(out, std::vector<float>(64, 3.0f));
  EXPECT_EQ(tc_dequantize(&weight, 2, 1, out.data(), TC_FLOAT32, nullptr), TC_INVALID_ARGUMENT);
  EXPECT_EQ(tc_dequantize(&weight, 0, 1, nullptr, TC_FLOAT32, nullptr), TC_INVALID_ARGUMENT);
  EXPECT_EQ(tc_dequantize(&weight, 0, -1, out.data(), TC_FLOAT32, nullptr), TC_INVALID_ARGUMENT);
  EXPECT_EQ(tc_dequantize(&weight, 0, 1, out.data(), 2, nullptr), TC_INVALID_ARGUMENT);
  EXPECT_EQ(tc_dequantize(nullptr, 0, 1, out.data(), TC_FLOAT32, nullptr), TC_INVALID_ARGUMENT);
  weight.block_columns = 32;  // 4 scales, of which there are 2
  EXPECT_EQ(tc_dequantize(&weight, 0, 1, out.data(), TC_FLOAT32, nullptr), TC_INVALID_ARGUMENT);
  EXPECT_NE(std::string(tc_last_error()).find("2 scales, where the blocks need 4"), std::string::npos);
  weight.block_rows = weight.block_columns = -1;  // one scale
  EXPECT_EQ(tc_dequantize(&weight, 0, 1, out.data(), TC_FLOAT32, nullptr), TC_INVALID_ARGUMENT);
  weight.scheme = "fp9";
  EXPECT_EQ(tc_dequantize(&weight, 0, 1, out.data(), TC_FLOAT32, nullptr), TC_INVALID_ARGUMENT);
  weight.struct_size = 8;
  EXPECT_EQ(tc_dequantize(&weight, 0, 1, out.data(), TC_FLOAT32, nullptr), TC_INVALID_ARGUMENT);
}

TEST(CApi, DequantizeTakesNumbersOfAnyType) {
  const unsigned char codes[8] = {0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22};  // 1 in float4_e2m1fn
  const unsigned char scale = 0x38;                                                 // 1 in float8_e4m3fn
  const std::uint16_t half = 0x3f00;                                                // 0.5 in bfloat16
  const int64_t shape[2] = {1, 16}, stored[2] = {1, 8};
  tc_block_tensor weight = {};
  weight.struct_size = sizeof(weight);
  weight.scheme = "nvfp4";
  weight.spelling = "modelopt";
  weight.shape = shape;
  weight.rank = 2;
  weight.codes = {codes, stored, 2, TC_UINT8};
  weight.scales = {&scale, nullptr, 0, TC_UINT8};
  weight.global_scale = {&half, nullptr, 0, TC_BFLOAT16};
  std::vector<float> out(16);
  ASSERT_EQ(tc_dequantize(&weight, 0, 1, out.data(), TC_FLOAT32, nullptr), TC_OK) << tc_last_error();
  EXPECT_EQ(out, std::vector<float>(16, 0.5f));
  const int64_t two[1] = {2};
  const std::uint16_t factors[2] = {half, half};
  weight.global_scale = {factors, two, 1, TC_BFLOAT16};
  EXPECT_EQ(tc_dequantize(&weight, 0, 1, out.data(), TC_FLOAT32, nullptr), TC_INVALID_ARGUMENT);

  const std::vector<std::uint16_t> table(16, half);
  const int64_t sixteen[1] = {16};
  weight.scheme = "nf4";
  weight.spelling = nullptr;
  weight.global_scale = {};
  const float absmax = 4.0f;
  weight.scales = {&absmax, nullptr, 0, TC_FLOAT32};
  weight.table = {table.data(), sixteen, 1, TC_BFLOAT16};
  ASSERT_EQ(tc_dequantize(&weight, 0, 1, out.data(), TC_FLOAT32, nullptr), TC_OK) << tc_last_error();
  EXPECT_EQ(out, std::vector<float>(16, 2.0f));
}

TEST(CApi, Quantize) {
  std::vector<float> numbers(2 * 32);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i) - 20.0f;
  const int64_t shape[2] = {2, 32};
  const tc_array weight{numbers.data(), shape, 2, TC_FLOAT32};
  tc_quantized* quantized = nullptr;
  ASSERT_EQ(tc_quantize(&weight, "mxfp8", nullptr, &quantized), TC_OK) << tc_last_error();
  tc_quantized_parts parts = {};
  parts.struct_size = sizeof(parts);
  ASSERT_EQ(tc_quantized_get(quantized, &parts), TC_OK);
  EXPECT_STREQ(parts.recipe, "rceil");
  EXPECT_EQ(parts.codes.dtype, TC_FLOAT8_E4M3FN);
  EXPECT_EQ(parts.scales.shape[0] * parts.scales.shape[1], 2);
  EXPECT_EQ(parts.has_global_scale, 0);
  EXPECT_EQ(parts.zero_points.data, nullptr);
  // 20 and 43 fit 448 at scales of 2^-4 and 2^-3.
  EXPECT_EQ(static_cast<const unsigned char*>(parts.scales.data)[0], 127 - 4);
  EXPECT_EQ(static_cast<const unsigned char*>(parts.scales.data)[1], 127 - 3);
  tc_block_tensor read = {};
  read.struct_size = sizeof(read);
  read.scheme = "mxfp8";
  read.shape = shape;
  read.rank = 2;
  read.codes = parts.codes;
  read.scales = parts.scales;
  std::vector<float> out(64);
  ASSERT_EQ(tc_dequantize(&read, 0, 2, out.data(), TC_FLOAT32, nullptr), TC_OK) << tc_last_error();
  EXPECT_EQ(out[0], -20.0f);
  EXPECT_EQ(out[63], 44.0f) << "43 is no float8";
  tc_quantized_free(quantized);
  tc_quantized_free(nullptr);

  tc_quantize_options options = {};
  options.struct_size = sizeof(options);
  options.to_gguf = 1;
  quantized = nullptr;
  ASSERT_EQ(tc_quantize(&weight, "Q8-0", &options, &quantized), TC_OK) << tc_last_error();
  ASSERT_EQ(tc_quantized_get(quantized, &parts), TC_OK);
  EXPECT_EQ(parts.scales.data, nullptr);
  EXPECT_EQ(parts.codes.shape[1], 34);
  tc_quantized_free(quantized);
  quantized = nullptr;
  options = {};
  options.struct_size = sizeof(options);
  options.group_size = 32;
  options.is_asymmetric = 2;  // any number but 0
  ASSERT_EQ(tc_quantize(&weight, "int4-group", &options, &quantized), TC_OK) << tc_last_error();
  ASSERT_EQ(tc_quantized_get(quantized, &parts), TC_OK);
  EXPECT_NE(parts.zero_points.data, nullptr);
  tc_quantized_free(quantized);
  quantized = nullptr;
  options = {};
  options.struct_size = sizeof(options);
  options.recipe = "floor";
  EXPECT_EQ(tc_quantize(&weight, "nvfp4", &options, &quantized), TC_INVALID_ARGUMENT);
  EXPECT_EQ(tc_quantize(&weight, "fp9", nullptr, &quantized), TC_INVALID_ARGUMENT);
  options.struct_size = 3;
  EXPECT_EQ(tc_quantize(&weight, "nvfp4", &options, &quantized), TC_INVALID_ARGUMENT);
  EXPECT_NE(std::string(tc_last_error()).find("set it to sizeof(tc_quantize_options)"), std::string::npos);
  EXPECT_EQ(std::string(tc_last_error()).find("_init"), std::string::npos) << "there is no such function";
  EXPECT_EQ(tc_quantize(nullptr, "nvfp4", nullptr, &quantized), TC_INVALID_ARGUMENT);
  EXPECT_EQ(tc_quantize(&weight, "nvfp4", nullptr, nullptr), TC_INVALID_ARGUMENT);
  numbers[40] = std::numeric_limits<float>::infinity();
  EXPECT_EQ(tc_quantize(&weight, "mxfp8", nullptr, &quantized), TC_OUT_OF_RANGE);
  EXPECT_EQ(tc_last_error_element(), 40);
  EXPECT_EQ(quantized, nullptr);
  options = {};
  options.struct_size = sizeof(options);
  options.allows_nonfinite = 2;  // any number but 0
  EXPECT_EQ(tc_quantize(&weight, "mxfp8", &options, &quantized), TC_OK) << tc_last_error();
  tc_quantized_free(quantized);
  parts.struct_size = 3;
  EXPECT_EQ(tc_quantized_get(nullptr, &parts), TC_INVALID_ARGUMENT);
}

// The bytes of a weight's scales, or of ggml's blocks.
std::string scales_of(const tc_array& weight, const char* scheme, const tc_quantize_options& options) {
  tc_quantized* quantized = nullptr;
  EXPECT_EQ(tc_quantize(&weight, scheme, &options, &quantized), TC_OK) << tc_last_error();
  tc_quantized_parts parts = {};
  parts.struct_size = sizeof(parts);
  if (quantized == nullptr || tc_quantized_get(quantized, &parts) != TC_OK) return {};
  const tc_array& array = parts.scales.data == nullptr ? parts.codes : parts.scales;
  const std::string bytes(static_cast<const char*>(array.data),
                          tc_storage_bytes(array.dtype, static_cast<size_t>(array.shape[0] * array.shape[1])));
  tc_quantized_free(quantized);
  return bytes;
}

TEST(CApi, QuantizeSearchesScales) {
  std::vector<float> numbers(256), importance(256, 1.0f);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i * 37 % 101) - 50.0f;
  numbers[3] = 90.0f;
  importance[3] = 1000.0f;
  const int64_t shape[2] = {1, 256};
  const tc_array weight{numbers.data(), shape, 2, TC_FLOAT32};
  tc_quantize_options plain = {};
  plain.struct_size = sizeof(plain);
  tc_quantize_options clipped = plain;
  clipped.clip = 1;
  tc_quantize_options weighed = clipped;
  weighed.importance = importance.data();
  weighed.importance_count = importance.size();
  const std::string without = scales_of(weight, "int4-group", plain), with = scales_of(weight, "int4-group", clipped);
  EXPECT_NE(with, without);
  EXPECT_EQ(scales_of(weight, "int4-group", weighed).substr(0, 4), without.substr(0, 4)) << "number 3 is not clipped";
  plain.to_gguf = 1;
  tc_quantize_options matrix = weighed;
  matrix.clip = 0;
  matrix.to_gguf = 1;
  EXPECT_NE(scales_of(weight, "q4_k", matrix), scales_of(weight, "q4_k", plain));

  // The struct of the first release, behind which other memory begins.
  clipped.struct_size = offsetof(tc_quantize_options, clip);
  EXPECT_EQ(scales_of(weight, "int4-group", clipped), without);
  tc_quantized* quantized = nullptr;
  --clipped.struct_size;
  EXPECT_EQ(tc_quantize(&weight, "int4-group", &clipped, &quantized), TC_INVALID_ARGUMENT);
  weighed.importance_count = 255;
  EXPECT_EQ(tc_quantize(&weight, "int4-group", &weighed, &quantized), TC_INVALID_ARGUMENT);
  EXPECT_STREQ(tc_last_error(), "importance of 255 numbers, where the weight has 256 columns");
  weighed.importance = nullptr;
  EXPECT_EQ(tc_quantize(&weight, "int4-group", &weighed, &quantized), TC_INVALID_ARGUMENT);
  weighed.importance_count = 0;
  weighed.clip = 2;
  EXPECT_EQ(tc_quantize(&weight, "int4-group", &weighed, &quantized), TC_INVALID_ARGUMENT);
  EXPECT_EQ(quantized, nullptr);
}

TEST(CApiTest, DescribesTheInterface) {
  char* json = nullptr;
  ASSERT_EQ(tc_describe(&json), TC_OK);
  const std::string text = json;
  tc_free(json);
  EXPECT_NE(
      text.find(
          "{\"name\":\"int64\",\"number\":7,\"onnx_number\":7,\"family\":\"integer\",\"bits\":64,\"since_opset\":1,"
          "\"lowest\":-9223372036854775808,\"largest\":9223372036854775807,"),
      std::string::npos);
  EXPECT_NE(text.find("{\"name\":\"scale\",\"offset\":" + std::to_string(offsetof(tc_cast_options, scale)) +
                      ",\"bytes\":8,\"kind\":\"number\",\"default\":1,"),
            std::string::npos);
  EXPECT_NE(text.find("{\"name\":\"rules\",\"offset\":" + std::to_string(offsetof(tc_promote_options, rules))),
            std::string::npos);
  EXPECT_NE(text.find("\"words\":[\"up\",\"down\",\"nearest\"]"), std::string::npos);
  EXPECT_EQ(tc_describe(nullptr), TC_INVALID_ARGUMENT);
}

TEST(CApiTest, ExplainsANumberAsTheCommandDoes) {
  char* json = nullptr;
  ASSERT_EQ(tc_explain(" 0.1", 0, TC_FLOAT8_E4M3FN, nullptr, &json), TC_OK);
  EXPECT_STREQ(json,
               "[{\"value\":\"0.1\",\"results\":[{\"dtype\":\"float8_e4m3fn\",\"code\":\"0x1D\",\"sign_bits\":\"0\","
               "\"exponent_bits\":\"0011\",\"mantissa_bits\":\"101\",\"exact_value\":\"0.1015625\","
               "\"shortest_value\":\"0.1015625\",\"exact_error\":\"0.0015625\",\"relative_error\":0.015625,"
               "\"events\":[\"rounded\"]}]}]");
  tc_free(json);
  ASSERT_EQ(tc_explain("0x7C00", TC_FLOAT16, 0, nullptr, &json), TC_OK);
  const std::string all = json;
  tc_free(json);
  EXPECT_NE(all.find("\"source\":{\"dtype\":\"float16\",\"code\":\"0x7C00\""), std::string::npos);
  EXPECT_NE(all.find("{\"dtype\":\"float6_e3m2fn\""), std::string::npos);
  json = nullptr;
  EXPECT_EQ(tc_explain("1\"", 0, 0, nullptr, &json), TC_PARSE);
  EXPECT_EQ(tc_explain("0x1FF", TC_UINT8, 0, nullptr, &json), TC_INVALID_ARGUMENT);
  EXPECT_EQ(tc_explain("1", 0, 99, nullptr, &json), TC_INVALID_ARGUMENT);
  EXPECT_EQ(tc_explain(nullptr, 0, 0, nullptr, &json), TC_INVALID_ARGUMENT);
  EXPECT_EQ(tc_explain("1", 0, 0, nullptr, nullptr), TC_INVALID_ARGUMENT);
  EXPECT_EQ(json, nullptr);
  tc_cast_options options;
  tc_cast_options_init(&options);
  options.out_of_range = TC_RANGE_ERROR;
  ASSERT_EQ(tc_explain("300", 0, TC_UINT8, &options, &json), TC_OK);
  EXPECT_NE(std::string(json).find("\"error\":\"value 300 does not fit uint8\""), std::string::npos);
  tc_free(json);
}

}  // namespace
