// SPDX-License-Identifier: Apache-2.0
#include "quantized/layout/loaders.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "quantized/layout/spelling.hpp"
#include "quantized/layout/written_layer.hpp"
#include "tensorcast/block.hpp"

namespace tensorcast::quantized {
namespace {

ModelArchitecture model(const std::string& type) {
  const ConfigText texts[] = {{.name = "config.json", .text = R"({"model_type": ")" + type + "\"}"}};
  return ModelArchitecture::of(texts);
}

// The traits that a weight is left or warned of for, in the order of the table.
std::vector<WeightTrait> traits_of(std::string_view layout, std::string_view scheme, std::string_view name,
                                   std::vector<std::int64_t> shape, const ModelArchitecture& architecture = {}) {
  std::vector<WeightTrait> traits;
  const LoadedWeight weight{.name = name, .scheme = scheme, .shape = shape};
  for (const LoaderLimit* limit : limits_of(layout, weight, architecture)) traits.push_back(limit->trait);
  return traits;
}

using Traits = std::vector<WeightTrait>;
constexpr std::string_view up = "model.layers.0.mlp.up_proj.weight";
constexpr std::string_view expert = "model.layers.0.mlp.experts.3.up_proj.weight";

TEST(Loaders, WantWholeGroupsWhereTheySayMxfp8AndBlocksOfModelOpt) {
  EXPECT_EQ(traits_of("compressed-tensors", "mxfp8", up, {256, 496}), Traits{WeightTrait::ragged_inputs});
  EXPECT_EQ(traits_of("compressed-tensors", "mxfp8", up, {496, 256}), Traits());
  EXPECT_EQ(traits_of("comfyui", "mxfp8", up, {256, 496}), Traits());
  EXPECT_EQ(traits_of("modelopt", "fp8-block", up, {192, 256}), Traits{WeightTrait::ragged_outputs});
  EXPECT_EQ(traits_of("modelopt", "fp8-block", up, {256, 192}), Traits{WeightTrait::ragged_inputs});
  EXPECT_EQ(traits_of("deepseek", "fp8-block", up, {192, 256}), Traits{WeightTrait::short_last_block});
  EXPECT_EQ(traits_of("deepseek", "fp8-block", up, {256, 192}), Traits{WeightTrait::short_last_block});
  EXPECT_EQ(traits_of("deepseek", "fp8-block", up, {64, 96}), Traits()) << "one block";
}

TEST(Loaders, TakeLinearLayersAlone) {
  const std::string_view table = "model.embed_tokens.weight", conv1d = "transformer.h.0.attn.c_attn.weight";
  for (const std::string_view layout : {"compressed-tensors", "modelopt", "deepseek", "quark"}) {
    EXPECT_EQ(traits_of(layout, "mxfp4", table, {1024, 256}), Traits{WeightTrait::embedding}) << layout;
    EXPECT_EQ(traits_of(layout, "mxfp4", conv1d, {256, 768}, model("gpt2")), Traits{WeightTrait::conv1d}) << layout;
    EXPECT_EQ(traits_of(layout, "mxfp4", conv1d, {256, 768}, model("llama")), Traits()) << layout;
  }
  EXPECT_EQ(traits_of("gguf", "q4_k", table, {1024, 256}), Traits());
  const std::string_view lora = "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight";
  EXPECT_EQ(traits_of("compressed-tensors", "fp8-channel", lora, {16, 256}), Traits{WeightTrait::adapter});
  EXPECT_EQ(traits_of("deepseek", "fp8-block", "a.lora_gate.weight", {16, 16}), Traits());
  const ConfigText dense[] = {
      {.name = "config.json", .text = R"({"in_features": 64, "out_features": 32, "activation_function": "Tanh"})"}};
  EXPECT_EQ(traits_of("bitsandbytes", "nf4", "linear.weight", {32, 64}, ModelArchitecture::of(dense)),
            Traits{WeightTrait::dense_module});
}

TEST(Loaders, LeaveWhatTheModelKeepsInFloat32) {
  const std::string_view wo = "encoder.block.0.layer.1.DenseReluDense.wo.weight";
  EXPECT_EQ(traits_of("deepseek", "fp8-block", wo, {256, 256}, model("t5")), Traits{WeightTrait::kept_float32});
  EXPECT_EQ(traits_of("compressed-tensors", "fp8-block", wo, {256, 256}, model("t5")), Traits());
}

TEST(Loaders, HaveFaultsWithWeightsThatTheModelReads) {
  const std::string_view wo = "encoder.block.0.layer.1.DenseReluDense.wo.weight", wi = "a.wi.weight";
  for (const std::string_view scheme : {"mxfp4", "mxfp6", "nvfp4", "int4-group"}) {
    EXPECT_EQ(traits_of("compressed-tensors", scheme, wo, {256, 256}, model("t5")), Traits{WeightTrait::read_by_model});
    EXPECT_EQ(traits_of("compressed-tensors", scheme, wi, {256, 256}, model("t5")), Traits());
    EXPECT_EQ(traits_of("compressed-tensors", scheme, wi, {256, 256}, model("siglip")),
              Traits{WeightTrait::read_by_model});
  }
  EXPECT_EQ(traits_of("compressed-tensors", "fp8-channel", wo, {256, 256}, model("t5")), Traits()) << "it has a weight";
}

TEST(Loaders, HaveFaultsWithExperts) {
  for (const std::string_view scheme : {"nvfp4", "mxfp8", "int8-channel", "fp8-block"}) {
    EXPECT_EQ(traits_of("compressed-tensors", scheme, expert, {256, 256}), Traits{WeightTrait::expert}) << scheme;
    EXPECT_EQ(traits_of("compressed-tensors", scheme, up, {256, 256}), Traits()) << scheme;
  }
  EXPECT_EQ(traits_of("compressed-tensors", "mxfp4", expert, {256, 256}), Traits());
  EXPECT_EQ(traits_of("compressed-tensors", "nvfp4", "model.layers.0.mlp.shared_experts.up_proj.weight", {256, 256}),
            Traits());
}

TEST(Loaders, OfGptOssReadFusedExperts) {
  EXPECT_EQ(traits_of("gpt-oss", "mxfp4", up, {256, 256}, model("llama")), Traits{WeightTrait::no_fused_expert});
  EXPECT_EQ(traits_of("gpt-oss", "mxfp4", up, {256, 256}), Traits()) << "an original file has no model_type";
}

TEST(Loaders, AreOfLayoutsAndSchemesThatExist) {
  for (const Loader& loader : all_loaders()) {
    EXPECT_TRUE(find_writer(loader.layout) != nullptr ||
                std::ranges::any_of(all_spellings(), [&](const auto& each) { return each->name == loader.layout; }))
        << loader.layout;
    for (const std::string_view scheme : list_words(loader.schemes)) {
      EXPECT_NE(find_quantize_recipe(scheme), nullptr) << scheme;
    }
  }
  for (const LoaderLimit& limit : all_limits()) {
    EXPECT_NE(text_of(limit), "");
    for (const std::string_view scheme : list_words(limit.schemes)) {
      EXPECT_NE(find_quantize_recipe(scheme), nullptr) << scheme;
    }
  }
}

}  // namespace
}  // namespace tensorcast::quantized
