// SPDX-License-Identifier: Apache-2.0
#include "tensorcast/quantized_file.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "convert/plan/tensor_seed.hpp"
#include "io/test_folder.hpp"
#include "tensorcast/tensor.hpp"

namespace tensorcast {
namespace {

// The bytes of a file with one tensor.
std::string one_tensor(const std::string& tensor, const std::string& dtype, const std::string& shape,
                       const std::string& content) {
  std::string header = R"({")" + tensor + R"(":{"dtype":")" + dtype + R"(","shape":)" + shape +
                       R"(,"data_offsets":[0,)" + std::to_string(content.size()) + "]}}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  const std::uint64_t length = header.size();
  std::string file(sizeof length, '\0');
  std::memcpy(file.data(), &length, sizeof length);
  return file + header + content;
}

// Float8 in blocks of 2 x 2, with codes and scales in different shards.
class QuantizedFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    put("a.safetensors", one_tensor("m.weight", "F8_E4M3", "[2,4]", "\x38\x38\x40\x40\x38\x38\x40\xB8"));
    const float scales[] = {2.0f, 3.0f};
    put("b.safetensors", one_tensor("m.weight_scale_inv", "F32", "[1,2]",
                                    std::string(reinterpret_cast<const char*>(scales), sizeof scales)));
    put("model.safetensors.index.json",
        R"({"weight_map": {"m.weight": "a.safetensors", "m.weight_scale_inv": "b.safetensors"}})");
    put("config.json", R"({"quantization_config": {"quant_method": "fp8", "weight_block_size": [2, 2]}})");
  }
  void put(const std::string& name, const std::string& text) const { io::put_file(folder_ / name, text); }
  [[nodiscard]] std::string path() const { return folder_ / ""; }

  io::TestFolder folder_;
};

TEST_F(QuantizedFileTest, DecodesAWeightAndReadsItsParts) {
  Result<QuantizedFile> file = QuantizedFile::open(path());
  ASSERT_TRUE(file) << file.error().describe();
  ASSERT_EQ(file->layers().size(), 1u);
  EXPECT_EQ(file->layers()[0].name, "m.weight");
  EXPECT_EQ(file->layers()[0].scheme, "fp8-block");
  EXPECT_EQ(file->refusal(), "");
  const Result<Tensor> weight = file->dequantize(0, DType::float32);
  ASSERT_TRUE(weight) << weight.error().describe();
  EXPECT_EQ(weight->shape(), (Shape{2, 4}));
  const std::span<const float> numbers = weight->as<float>().value();
  EXPECT_EQ(std::vector<float>(numbers.begin(), numbers.end()), (std::vector<float>{2, 2, 6, 6, 2, 2, 6, -3}));
  std::vector<float> some(3);
  const std::int64_t shape[] = {3};
  ASSERT_TRUE(file->dequantize(0, 5, {DType::float32, shape, std::as_writable_bytes(std::span(some))}));
  EXPECT_EQ(some, (std::vector<float>{2, 6, -3}));
  const std::vector<QuantizedPart>& parts = file->parts(0);
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[1].role, "scales");
  EXPECT_EQ(parts[1].name, "m.weight_scale_inv");
  const Result<Tensor> scales = file->read_part(0, 1);
  ASSERT_TRUE(scales) << scales.error().describe();
  EXPECT_EQ(scales->as<float>().value()[1], 3.0f);
}

TEST_F(QuantizedFileTest, RandomWordsAreThoseOfTheTensorsNameAndPlaces) {
  std::string codes(512 * 512, '\0');  // more than are decoded at once
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<char>(0x20 + i % 0x40);
  put("a.safetensors", one_tensor("m.weight", "F8_E4M3", "[512,512]", codes));
  const float scale = 1.1f;
  put("b.safetensors", one_tensor("m.weight_scale_inv", "F32", "[1,1]",
                                  std::string(reinterpret_cast<const char*>(&scale), sizeof scale)));
  put("config.json", R"({"quantization_config": {"quant_method": "fp8", "weight_block_size": [512, 512]}})");
  const CastOptions options{.rounding = Rounding::stochastic, .seed = 7};
  QuantizedFile file = QuantizedFile::open(path()).value();
  const Tensor numbers = file.dequantize(0, DType::float32).value();
  const Tensor rounded = file.dequantize(0, DType::bfloat16, options).value();
  const Tensor expected = cast(numbers, DType::bfloat16, file_conversion::with_seed_of(options, "m.weight")).value();
  EXPECT_TRUE(std::ranges::equal(rounded.bytes(), expected.bytes()));
}

TEST_F(QuantizedFileTest, MistakesAreErrors) {
  Result<QuantizedFile> file = QuantizedFile::open(path());
  ASSERT_TRUE(file) << file.error().describe();
  EXPECT_EQ(file->dequantize(1, DType::float32).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(file->dequantize(0, DType::int8).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(file->dequantize(0, DType::float4_e2m1fn).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(file->read_part(0, 2).error().code, ErrorCode::invalid_argument);
  std::vector<float> some(4);
  const std::int64_t shape[] = {4};
  const auto out = std::as_writable_bytes(std::span(some));
  EXPECT_EQ(file->dequantize(0, 5, {DType::float32, shape, out}).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(file->dequantize(0, UINT64_MAX, {DType::float32, shape, out}).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(file->dequantize(0, 0, {DType::float32, shape, out.first(8)}).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(QuantizedFile::open(folder_ / "none.safetensors").error().code, ErrorCode::io);
}

TEST_F(QuantizedFileTest, AFileThatWasMovedFromIsEmpty) {
  QuantizedFile file = QuantizedFile::open(path()).value();
  const QuantizedFile taken = std::move(file);
  EXPECT_EQ(taken.layers().size(), 1u);
  EXPECT_TRUE(file.layers().empty());  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(file.refusal(), "");
  EXPECT_EQ(file.read_part(0, 0).error().message, "this QuantizedFile was moved from");
  EXPECT_EQ(file.dequantize(0, DType::float32).error().message, "this QuantizedFile was moved from");
}

TEST_F(QuantizedFileTest, ALayerWithAProblemIsNotDecoded) {
  put("config.json", R"({"quantization_config": {"quant_method": "fp8", "weight_block_size": [1, 2]}})");
  Result<QuantizedFile> file = QuantizedFile::open(path());
  ASSERT_TRUE(file) << file.error().describe();
  const Result<Tensor> weight = file->dequantize(0, DType::float32);
  ASSERT_FALSE(weight);
  EXPECT_EQ(weight.error().code, ErrorCode::unsupported);
  EXPECT_EQ(weight.error().tensor, "m.weight_scale_inv");
  EXPECT_EQ((*file->read_part(0, 0)).count(), 8u);
}

TEST_F(QuantizedFileTest, AMethodThatIsNotDecodedIsSaid) {
  put("config.json", R"({"quantization_config": {"quant_method": "aqlm"}})");
  Result<QuantizedFile> file = QuantizedFile::open(path());
  ASSERT_TRUE(file) << file.error().describe();
  EXPECT_TRUE(file->layers().empty());
  EXPECT_NE(file->refusal().find("\"aqlm\", which is not decoded"), std::string::npos);
}

}  // namespace
}  // namespace tensorcast
