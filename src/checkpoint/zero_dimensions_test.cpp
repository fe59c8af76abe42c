// SPDX-License-Identifier: Apache-2.0
// Weights without elements, through every scheme: in memory, in files, in other spellings, decoded, and compared with
// recipes.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "io/test_folder.hpp"
#include "tensorcast/block.hpp"
#include "tensorcast/checkpoint.hpp"
#include "tensorcast/detect_recipes.hpp"
#include "tensorcast/file.hpp"
#include "tensorcast/quantized_file.hpp"
#include "tensorcast/spelling.hpp"
#include "tensorcast/tensor_file.hpp"

namespace tensorcast {
namespace {

const std::vector<Shape>& shapes() {
  static const std::vector<Shape> all = {{5, 0}, {0, 256}, {0, 0}, {2, 5, 0}, {2, 0, 256}, {0, 5, 256}};
  return all;
}

class ZeroDimensions : public ::testing::Test {
 protected:
  std::string put(const Shape& shape) {
    std::vector<NamedTensor> tensors = {{"a.up_proj.weight", Tensor::own(DType::bfloat16, shape, {}).value()}};
    EXPECT_TRUE(write_tensors(folder_ / "in.safetensors", tensors, {.overwrite = true}));
    return folder_ / "in.safetensors";
  }

  static ConvertRequest request_of(const std::string& input, const std::string& output, DType to = DType::undefined) {
    ConvertRequest request(input, output, to);
    request.overwrite = true;
    return request;
  }

  static ConvertRequest to_scheme(const std::string& input, const std::string& output, std::string_view scheme) {
    ConvertRequest request = request_of(input, output);
    ConvertRule rule;
    rule.pattern = ".";
    rule.scheme = scheme;
    request.rules = {rule};
    return request;
  }

  // Returns whether a conversion worked; if not, it says why.
  static bool done(const Result<ConvertOutcome>& outcome) {
    if (outcome) return true;
    EXPECT_NE(outcome.error().code, ErrorCode::internal) << outcome.error().describe();
    EXPECT_FALSE(outcome.error().message.empty());
    return false;
  }

  void check_file(const std::string& path, const Shape& shape) {
    Result<QuantizedFile> file = QuantizedFile::open(path);
    ASSERT_TRUE(file) << file.error().describe();
    for (std::size_t i = 0; i < file->layers().size(); ++i) {
      if (!file->layers()[i].problem.empty()) continue;
      EXPECT_TRUE(file->dequantize(i, DType::float32)) << path;
    }
    const std::string decoded = folder_ / "decoded.safetensors";
    if (!done(convert(request_of(path, decoded, DType::float32)))) return;
    const Result<TensorFile> written = TensorFile::open(decoded);
    ASSERT_TRUE(written);
    ASSERT_EQ(written->summary().tensors.size(), 1u);
    EXPECT_EQ(Shape(written->summary().tensors[0].shape), shape);
  }

  io::TestFolder folder_;
};

TEST_F(ZeroDimensions, QuantizeAndSpell) {
  for (const QuantizeRecipe& recipe : quantize_recipes()) {
    for (const Shape& shape : shapes()) {
      for (const bool symmetric : {true, false}) {
        const QuantizeOptions options{.recipe = recipe.recipe, .symmetric = symmetric};
        const Result<QuantizedTensor> made = quantize(TensorView{DType::bfloat16, shape, {}}, recipe.scheme, options);
        if (!made) continue;
        SCOPED_TRACE(std::string(recipe.scheme) + " " + std::string(recipe.recipe));
        const BlockTensor tensor = made->tensor();
        EXPECT_TRUE(dequantize(tensor, 0, MutableTensorView{DType::float32, shape, {}}));
        for (const char* spelling : {"deepseek", "transformers-mxfp8", "compressed-tensors", "modelopt", "gpt-oss",
                                     "comfyui", "quark", "gptq", "gptq-v2", "awq", "auto-round", "gguf"}) {
          const Result<std::vector<SpelledTensor>> spelled = spell(*made, spelling);
          if (spelled) continue;
          EXPECT_NE(spelled.error().code, ErrorCode::internal) << spelled.error().describe();
        }
      }
    }
  }
}

TEST_F(ZeroDimensions, ConvertDecodeRespellAndDetect) {
  int quantized = 0, respelled = 0;
  for (const QuantizeRecipe& recipe : quantize_recipes()) {
    if (recipe.recipe != find_quantize_recipe(recipe.scheme)->recipe) continue;  // one for each scheme
    for (const Shape& shape : shapes()) {
      SCOPED_TRACE(std::string(recipe.scheme));
      const std::string in = put(shape), out = folder_ / "out.safetensors", other = folder_ / "other.safetensors";
      if (!done(convert(to_scheme(in, out, recipe.scheme)))) continue;
      ++quantized;
      check_file(out, shape);
      EXPECT_TRUE(detect_recipes({.input = out, .original = in}));
      for (const char* spelling : {"deepseek", "compressed-tensors", "modelopt", "comfyui", "quark", "gptq", "awq"}) {
        ConvertRequest request = request_of(out, other);
        request.respell = spelling;
        if (!done(convert(request))) continue;
        ++respelled;
        check_file(other, shape);
      }
    }
  }
  EXPECT_GT(quantized, 20);
  EXPECT_GT(respelled, 10);
}

// More rows than the quantizer has at hand at a time.
TEST_F(ZeroDimensions, ManyRows) {
  const Shape shape{3'000'000, 0};
  const std::string out = folder_ / "out.safetensors";
  const Result<ConvertOutcome> outcome = convert(to_scheme(put(shape), out, "fp8-channel"));
  ASSERT_TRUE(outcome) << outcome.error().describe();
  Result<TensorFile> file = TensorFile::open(out);
  ASSERT_TRUE(file);
  bool found = false;
  for (std::size_t i = 0; i < file->summary().tensors.size(); ++i) {
    if (file->summary().tensors[i].name != "a.up_proj.weight_scale") continue;
    const Tensor scales = file->read(i).value();
    ASSERT_EQ(scales.shape(), (Shape{3'000'000, 1}));
    const std::vector<std::byte> bytes(scales.bytes().begin(), scales.bytes().end());
    const std::size_t item = storage_bytes(scales.dtype(), 1);
    for (std::size_t at = item; at < bytes.size(); ++at) ASSERT_EQ(bytes[at], bytes[at - item]);
    found = true;
  }
  EXPECT_TRUE(found);
}

}  // namespace
}  // namespace tensorcast
