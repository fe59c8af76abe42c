// SPDX-License-Identifier: Apache-2.0
// The recipe that wrote a weight is found, beside exactly those whose bytes are the same.
#include "tensorcast/detect_recipes.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "io/test_folder.hpp"
#include "tensorcast/block.hpp"
#include "tensorcast/file.hpp"
#include "tensorcast/spelling.hpp"
#include "tensorcast/tensor.hpp"
#include "tensorcast/tensor_file.hpp"

namespace tensorcast {
namespace {

constexpr std::int64_t rows = 130, columns = 256;

// Magnitudes as of weights: normal, rows of different sizes, a few outliers, zeros.
std::vector<float> weights(unsigned seed) {
  std::mt19937 random(seed);
  const auto uniform = [&] { return (static_cast<float>(random() >> 8) + 0.5f) / 16777216.0f; };
  std::vector<float> numbers(static_cast<std::size_t>(rows * columns));
  float row_size = 0.02f;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (i % columns == 0) row_size = 0.02f * std::exp2(2.0f * uniform() - 1.0f);
    const float normal = std::sqrt(-2.0f * std::log(uniform())) * std::cos(6.2831853f * uniform());
    numbers[i] = random() % 97 == 0 ? 0.0f : row_size * normal * (random() % 1000 == 0 ? 12.0f : 1.0f);
  }
  return numbers;
}

Tensor tensor_of(const std::vector<float>& numbers, DType dtype, const Shape& shape = {rows, columns}) {
  return cast(Tensor::own(numbers, shape).value(), dtype).value();
}

std::string compressed_tensors(const std::string& format, const std::string& weights) {
  return R"({"quantization_config": {"quant_method": "compressed-tensors", "quantization_status": "compressed",
    "format": ")" +
         format + R"(", "config_groups": {"g": {"targets": ["Linear"], "weights": {)" + weights + "}}}}}";
}

std::string config_of(std::string_view scheme, std::string_view spelling, bool symmetric) {
  if (spelling == "deepseek") {
    return R"({"quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}})";
  }
  if (spelling == "transformers-mxfp8") {
    return R"({"quantization_config": {"quant_method": "mxfp8", "weight_block_size": [1, 32]}})";
  }
  if (spelling == "modelopt") {
    return R"({"quantization_config": {"quant_method": "modelopt", "quant_algo": "NVFP4"}})";
  }
  const std::map<std::string_view, std::pair<std::string, std::string>> all = {
      {"fp8-tensor", {"float-quantized", R"("num_bits": 8, "type": "float", "strategy": "tensor")"}},
      {"fp8-channel", {"float-quantized", R"("num_bits": 8, "type": "float", "strategy": "channel")"}},
      {"mxfp6", {"mxfp6-pack-quantized", R"("num_bits": 6, "type": "float", "strategy": "group", "group_size": 32)"}},
      {"mxfp4", {"mxfp4-pack-quantized", R"("num_bits": 4, "type": "float", "strategy": "group", "group_size": 32)"}},
      {"nvfp4",
       {"nvfp4-pack-quantized", R"("num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16)"}},
      {"int8-channel", {"int-quantized", R"("num_bits": 8, "type": "int", "strategy": "channel")"}},
      {"int4-group", {"pack-quantized", R"("num_bits": 4, "type": "int", "strategy": "group", "group_size": 128)"}}};
  const auto& [format, text] = all.at(scheme);
  return compressed_tensors(format, text + R"(, "dynamic": false, "symmetric": )" + (symmetric ? "true" : "false"));
}

// A GGUF file of one tensor.
std::string gguf_file(std::uint32_t type, const std::vector<std::byte>& content) {
  std::string file = "GGUF";
  const auto put = [&](const auto& number) { file.append(reinterpret_cast<const char*>(&number), sizeof number); };
  put(std::uint32_t{3});
  put(std::uint64_t{1});
  put(std::uint64_t{0});
  const std::string name = "m.weight";
  put(std::uint64_t{name.size()});
  file += name;
  put(std::uint32_t{2});
  put(std::uint64_t{columns});
  put(std::uint64_t{rows});
  put(type);
  put(std::uint64_t{0});
  file.resize((file.size() + 31) / 32 * 32);
  file.append(reinterpret_cast<const char*>(content.data()), content.size());
  return file;
}

struct Written {
  std::vector<SpelledTensor> tensors;
  friend bool operator==(const Written& a, const Written& b) {
    return std::ranges::equal(a.tensors, b.tensors, [](const SpelledTensor& x, const SpelledTensor& y) {
      return x.suffix == y.suffix && x.dtype == y.dtype && x.bytes == y.bytes;
    });
  }
};

class DetectRecipesTest : public ::testing::Test {
 protected:
  static Written quantized(const Tensor& original, std::string_view scheme, const QuantizeOptions& options,
                           std::string_view spelling) {
    const Result<QuantizedTensor> made = quantize(original.view(), scheme, options);
    EXPECT_TRUE(made) << scheme << ": " << (made ? "" : made.error().describe());
    Result<std::vector<SpelledTensor>> spelled = spell(*made, spelling);
    EXPECT_TRUE(spelled) << scheme << ": " << (spelled ? "" : spelled.error().describe());
    return {spelled ? *std::move(spelled) : std::vector<SpelledTensor>()};
  }

  std::string put_original(const Tensor& original) {
    const std::vector<NamedTensor> tensors = {{"m.weight", original}};
    EXPECT_TRUE(write_tensors(folder_ / "original.safetensors", tensors, {.overwrite = true}));
    return folder_ / "original.safetensors";
  }

  std::string put(const Written& written, std::string_view scheme, std::string_view spelling, bool symmetric = true) {
    if (spelling == "gguf") {
      const std::map<std::string_view, std::uint32_t> types = {
          {"q4_0", 2},  {"q4_1", 3},  {"q5_0", 6},  {"q5_1", 7},  {"q8_0", 8},    {"q2_k", 10},
          {"q3_k", 11}, {"q4_k", 12}, {"q5_k", 13}, {"q6_k", 14}, {"iq4_nl", 20}, {"iq4_xs", 23}};
      io::put_file(folder_ / "made.gguf", gguf_file(types.at(scheme), written.tensors[0].bytes));
      return folder_ / "made.gguf";
    }
    std::vector<NamedTensor> tensors;
    for (const SpelledTensor& one : written.tensors) {
      tensors.push_back({"m." + one.suffix, Tensor::own(one.dtype, one.shape, one.bytes).value()});
    }
    EXPECT_TRUE(write_tensors(folder_ / "model.safetensors", tensors, {.overwrite = true}));
    io::put_file(folder_ / "config.json", config_of(scheme, spelling, symmetric));
    return folder_ / "model.safetensors";
  }

  static LayerRecipes found_in(const std::string& path, const std::string& original, int threads = 1,
                               const std::string& importance = {}) {
    Result<std::vector<LayerRecipes>> found = detect_recipes({.input = path,
                                                              .original = original,
                                                              .importance = importance,
                                                              .execution = {.threads = threads},
                                                              .on_progress = {}});
    EXPECT_TRUE(found) << (found ? "" : found.error().describe());
    if (!found || found->size() != 1) return {};
    return (*found)[0];
  }

  io::TestFolder folder_;
};

// Which spelling can have such codes; "": none.
std::string_view spelling_for(const QuantizeRecipe& recipe) {
  if (recipe.spelling == "comfyui") return "modelopt";  // the same codes, in rows
  return recipe.spelling == "ocp" || recipe.scheme == "mxfp6-e3m2" ? std::string_view() : recipe.spelling;
}

TEST_F(DetectRecipesTest, SlowFindsEveryRecipeAndAllThatMakeTheSameBytes) {
  std::set<std::string> seen;
  for (const DType dtype : {DType::bfloat16, DType::float32}) {
    const Tensor original = tensor_of(weights(dtype == DType::float32 ? 1 : 2), dtype);
    const std::string original_path = put_original(original);
    for (const QuantizeRecipe& recipe : quantize_recipes()) {
      const std::string_view spelling = spelling_for(recipe);
      if (spelling.empty()) continue;
      const QuantizeOptions options{.recipe = recipe.recipe};
      const Written made = quantized(original, recipe.scheme, options, spelling);
      const LayerRecipes found = found_in(put(made, recipe.scheme, spelling), original_path);
      SCOPED_TRACE(std::string(recipe.scheme) + " " + std::string(recipe.recipe) + " " + std::string(name(dtype)));
      EXPECT_EQ(found.problem, "");
      EXPECT_EQ(found.scheme, recipe.scheme);
      const std::vector<std::string_view> recipes = found.recipes();
      EXPECT_EQ(std::ranges::count(recipes, recipe.recipe), 1);
      EXPECT_GT(found.blocks, 0u);
      std::set<std::string_view> same;
      for (const QuantizeRecipe& other : quantize_recipes()) {
        if (other.scheme != recipe.scheme) continue;
        for (const DType type : {DType::float32, DType::bfloat16, DType::float16}) {
          const QuantizeOptions tried{.recipe = other.recipe, .compute_dtype = type};
          if (quantized(original, other.scheme, tried, spelling) == made) same.insert(other.recipe);
        }
      }
      EXPECT_EQ(std::set<std::string_view>(recipes.begin(), recipes.end()), same);
      for (const RecipeTrial& trial : found.trials) {
        EXPECT_LE(trial.differing_blocks, found.deciding_blocks);
        if (trial.recipe == recipe.recipe && trial.compute_dtype == dtype && !trial.power_of_two_scales) {
          EXPECT_TRUE(trial.fits());
        }
      }
      seen.insert(std::string(recipe.scheme) + " " + std::string(recipe.recipe));
    }
  }
  EXPECT_EQ(seen.size(), 67u);  // all but those of E5M2 and E3M2, which no spelling here has
}

// The sentences of inspect() about recipes: that of the scheme, between its words; "" if there is none.
std::string excluded_of(const std::string& path) {
  const Result<FileSummary> summary = inspect({.input = path});
  EXPECT_TRUE(summary) << (summary ? "" : summary.error().describe());
  for (const std::string& note : summary ? summary->notes : std::vector<std::string>()) {
    const std::size_t begin = note.find("exclude ");
    if (begin != std::string::npos) return note.substr(begin);
  }
  return {};
}

TEST_F(DetectRecipesTest, CodesAloneNeverExcludeTheRecipeThatWroteThem) {
  for (const DType dtype : {DType::bfloat16, DType::float32, DType::float16}) {
    const Tensor original = tensor_of(weights(7), dtype);
    for (const QuantizeRecipe& recipe : quantize_recipes()) {
      const std::string_view spelling = spelling_for(recipe);
      if (spelling.empty() || (!recipe.scheme.starts_with("mx") && recipe.scheme != "nvfp4")) continue;
      const Written made = quantized(original, recipe.scheme, {.recipe = recipe.recipe}, spelling);
      const std::string excluded = excluded_of(put(made, recipe.scheme, spelling)) + ",";
      SCOPED_TRACE(std::string(recipe.scheme) + " " + std::string(recipe.recipe) + " " + excluded);
      EXPECT_EQ(excluded.find("exclude every recipe"), std::string::npos);
      const std::string list = " " + excluded.substr(0, excluded.find(';')) + ",";
      EXPECT_EQ(list.find(" " + std::string(recipe.recipe) + ","), std::string::npos);
    }
  }
  const Tensor original = tensor_of(weights(8), DType::bfloat16);
  const auto of = [&](std::string_view recipe) {
    return excluded_of(
        put(quantized(original, "mxfp4", {.recipe = recipe}, "compressed-tensors"), "mxfp4", "compressed-tensors"));
  };
  EXPECT_TRUE(of("ceil").ends_with("; left: ceil")) << of("ceil");
  EXPECT_NE(of("rceil").find(" floor,"), std::string::npos) << of("rceil");     // a largest number 3
  EXPECT_NE(of("rceil").find(" deepgemm,"), std::string::npos) << of("rceil");  // the code of -0
  EXPECT_NE(of("deepgemm").find("; left: "), std::string::npos) << of("deepgemm");
}

TEST_F(DetectRecipesTest, OddScalesAreSaid) {
  const Tensor original = tensor_of(weights(9), DType::bfloat16);
  Written made = quantized(original, "mxfp4", {}, "compressed-tensors");
  made.tensors[1].bytes[5] = std::byte{250};
  const Result<FileSummary> summary = inspect({.input = put(made, "mxfp4", "compressed-tensors")});
  ASSERT_TRUE(summary);
  EXPECT_TRUE(std::ranges::any_of(summary->warnings, [](const std::string& warning) {
    return warning == "\"m.weight\" has scales of 2^113 and more (1 in all layers), as bytes that wrapped";
  }));
}

TEST_F(DetectRecipesTest, OptionsAreFoundToo) {
  const Tensor original = tensor_of(weights(3), DType::bfloat16);
  const std::string path = put_original(original);
  const Written power =
      quantized(original, "fp8-block", {.recipe = "deepgemm", .power_of_two_scales = true}, "deepseek");
  const LayerRecipes block = found_in(put(power, "fp8-block", "deepseek"), path);
  EXPECT_TRUE(std::ranges::any_of(block.trials, [](const RecipeTrial& trial) {
    return trial.fits() && trial.recipe == "deepgemm" && trial.power_of_two_scales;
  }));
  EXPECT_FALSE(std::ranges::any_of(
      block.trials, [](const RecipeTrial& trial) { return trial.fits() && !trial.power_of_two_scales; }));
  const Written zeros = quantized(original, "int4-group", {.symmetric = false}, "compressed-tensors");
  EXPECT_EQ(found_in(put(zeros, "int4-group", "compressed-tensors", false), path).recipes(),
            (std::vector<std::string_view>{"compressed-tensors"}));
  // One byte more, and it was no recipe.
  Written changed = zeros;
  changed.tensors[0].bytes[100] ^= std::byte{1};
  const LayerRecipes none = found_in(put(changed, "int4-group", "compressed-tensors", false), path);
  EXPECT_TRUE(none.recipes().empty());
  EXPECT_EQ(std::ranges::min(none.trials, {}, &RecipeTrial::differing_blocks).differing_blocks, 1u);
}

TEST_F(DetectRecipesTest, SearchedScalesAreFound) {
  struct Case {
    std::string_view scheme, recipe, spelling;
  };
  const Tensor original = tensor_of(weights(11), DType::bfloat16);
  const std::string path = put_original(original);
  for (const Case& each : {Case{"mxfp4", "even", "compressed-tensors"}, Case{"nvfp4", "modelopt", "modelopt"},
                           Case{"int4-group", "compressed-tensors", "compressed-tensors"},
                           Case{"fp8-channel", "torchao", "compressed-tensors"}}) {
    SCOPED_TRACE(each.scheme);
    const QuantizeOptions options{.recipe = each.recipe, .clip = Clip::mse};
    const LayerRecipes found =
        found_in(put(quantized(original, each.scheme, options, each.spelling), each.scheme, each.spelling), path);
    const std::vector<std::string> ways = found.ways();
    EXPECT_EQ(std::ranges::count(ways, std::string(each.recipe) + " with clip mse"), 1);
    EXPECT_TRUE(std::ranges::all_of(ways, [](const std::string& way) { return way.ends_with(" with clip mse"); }));
    EXPECT_EQ(std::ranges::count(found.recipes(), each.recipe), 1);
    EXPECT_GT(found.deciding_blocks, 0u);
    EXPECT_LE(found.deciding_blocks, found.blocks);
  }
  // One byte more, and no search makes it.
  Written changed = quantized(original, "mxfp4", {.recipe = "even", .clip = Clip::mse}, "compressed-tensors");
  changed.tensors[0].bytes.back() ^= std::byte{1};
  const LayerRecipes none = found_in(put(changed, "mxfp4", "compressed-tensors"), path);
  EXPECT_TRUE(none.ways().empty());
  EXPECT_FALSE(std::ranges::any_of(none.trials, [](const RecipeTrial& trial) { return !trial.search().empty(); }));
}

TEST_F(DetectRecipesTest, ImportanceIsFoundWithItsFile) {
  const Tensor original = tensor_of(weights(12), DType::float32);
  const std::string path = put_original(original);
  std::vector<float> importance(static_cast<std::size_t>(columns));
  for (std::size_t i = 0; i < importance.size(); ++i) importance[i] = std::exp2(static_cast<float>(i * 7 % 13));
  const std::string file = folder_ / "importance.safetensors";
  const std::vector<NamedTensor> entries = {{"m.weight", tensor_of(importance, DType::float32, {columns})}};
  ASSERT_TRUE(write_tensors(file, entries, {.overwrite = true}));
  const Written made =
      quantized(original, "int4-group", {.clip = Clip::mse, .importance = importance}, "compressed-tensors");
  const std::string folder = put(made, "int4-group", "compressed-tensors");
  EXPECT_TRUE(found_in(folder, path).ways().empty());
  EXPECT_EQ(found_in(folder, path, 1, file).ways(),
            (std::vector<std::string>{"compressed-tensors with clip mse, importance"}));
  // ggml's own search, without clipping.
  for (const std::string_view scheme : {"q2_k", "q3_k", "q4_k", "q5_k", "q6_k", "iq4_nl", "iq4_xs"}) {
    const Result<QuantizedTensor> blocks =
        quantize(original.view(), *find_block_format(scheme, "gguf"), {.importance = importance});
    ASSERT_TRUE(blocks);
    std::vector<std::byte> bytes(blocks->codes.begin(), blocks->codes.end());
    const std::string gguf = put({{{.suffix = "", .bytes = std::move(bytes)}}}, scheme, "gguf");
    EXPECT_TRUE(found_in(gguf, path).ways().empty()) << scheme;
    EXPECT_EQ(found_in(gguf, path, 1, file).ways(), (std::vector<std::string>{"ggml with importance"})) << scheme;
  }
  const std::vector<NamedTensor> others = {{"n.weight", tensor_of(importance, DType::float32, {columns})}};
  ASSERT_TRUE(write_tensors(file, others, {.overwrite = true}));
  const Result<std::vector<LayerRecipes>> wrong =
      detect_recipes({.input = folder, .original = path, .importance = file, .execution = {}, .on_progress = {}});
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().message, "the file has the importance of none of the weights");
}

TEST_F(DetectRecipesTest, ZerosAreFoundWithAndWithoutTheScaleOfTheDefault) {
  std::vector<float> numbers = weights(4);
  std::fill_n(numbers.begin(), columns * 3, 0.0f);
  for (const bool all : {false, true}) {
    if (all) std::ranges::fill(numbers, 0.0f);
    const Tensor original = tensor_of(numbers, DType::float32);
    const std::string path = put_original(original);
    for (const QuantizeOptions& options : {QuantizeOptions{}, QuantizeOptions{.recipe = "torchao"}}) {
      const Written made = quantized(original, "fp8-channel", options, "compressed-tensors");
      const std::vector<std::string_view> recipes =
          found_in(put(made, "fp8-channel", "compressed-tensors"), path).recipes();
      EXPECT_EQ(std::ranges::count(recipes, "torchao"), 1) << all << options.recipe;
    }
  }
}

TEST_F(DetectRecipesTest, ThreadsChangeNothing) {
  const Tensor original = tensor_of(weights(5), DType::bfloat16);
  const std::string path = put_original(original);
  const std::string made =
      put(quantized(original, "mxfp4", {.recipe = "even"}, "compressed-tensors"), "mxfp4", "compressed-tensors");
  const LayerRecipes one = found_in(made, path), four = found_in(made, path, 4);
  ASSERT_EQ(one.trials.size(), four.trials.size());
  for (std::size_t i = 0; i < one.trials.size(); ++i) {
    EXPECT_EQ(one.trials[i].differing_blocks, four.trials[i].differing_blocks);
  }
  EXPECT_EQ(one.deciding_blocks, four.deciding_blocks);
}

TEST_F(DetectRecipesTest, WhatCannotBeComparedIsSaid) {
  const Tensor original = tensor_of(weights(6), DType::bfloat16);
  const std::string made = put(quantized(original, "mxfp4", {}, "compressed-tensors"), "mxfp4", "compressed-tensors");
  const std::vector<NamedTensor> others = {{"n.weight", original}};
  ASSERT_TRUE(write_tensors(folder_ / "original.safetensors", others, {.overwrite = true}));
  EXPECT_EQ(found_in(made, folder_ / "original.safetensors").problem, "the original has no tensor of this name");
  const std::vector<NamedTensor> shape = {{"m.weight", tensor_of({1.0f, 2.0f}, DType::float32, {2})}};
  ASSERT_TRUE(write_tensors(folder_ / "original.safetensors", shape, {.overwrite = true}));
  EXPECT_EQ(found_in(made, folder_ / "original.safetensors").problem, "the original has another shape");
  const Result<std::vector<LayerRecipes>> plain = detect_recipes({.input = folder_ / "original.safetensors",
                                                                  .original = folder_ / "original.safetensors",
                                                                  .importance = {},
                                                                  .execution = {},
                                                                  .on_progress = {}});
  ASSERT_FALSE(plain);
  EXPECT_EQ(plain.error().code, ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace tensorcast
