// SPDX-License-Identifier: Apache-2.0
// Plans of folders whose config.json names an architecture: what stays, and what their loaders take.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/checkpoint_testing.hpp"
#include "checkpoint/plan/checkpoint_plan.hpp"
#include "tensorcast/checkpoint.hpp"
#include "tensorcast/tensor_file.hpp"

namespace tensorcast::checkpoint {
namespace {

// The folder "in", of a model with float32 tensors of these names and shapes.
class ArchitectureFolder {
 public:
  using Shapes = std::vector<std::pair<std::string, std::vector<std::int64_t>>>;
  ArchitectureFolder(const std::string& model_type, const Shapes& shapes) {
    put("", R"({"model_type": ")" + model_type + "\"}", shapes);
  }

  // Adds a file of `part`, which is "" or ends in /, and config.json beside it, unless `config` is empty.
  void put(const std::string& part, const std::string& config, const Shapes& shapes,
           const std::string& file = "model.safetensors") const {
    std::filesystem::create_directories(in() + "/" + part);
    std::vector<NamedTensor> tensors;
    for (const auto& [name, shape] : shapes) {
      std::size_t count = 1;
      for (const std::int64_t size : shape) count *= static_cast<std::size_t>(size);
      std::vector<float> numbers(count);
      for (std::size_t i = 0; i < count; ++i) numbers[i] = static_cast<float>(i * 37 % 101) - 50.3F;
      const auto bytes = std::as_bytes(std::span(numbers));
      tensors.push_back({name, Tensor::own(DType::float32, shape, {bytes.begin(), bytes.end()}).value()});
    }
    EXPECT_TRUE(write_tensors(in() + "/" + part + file, tensors));
    if (!config.empty()) io::put_file(in() + "/" + part + "config.json", config);
  }

  [[nodiscard]] std::string in() const { return folder_ / "in"; }
  [[nodiscard]] ConvertRequest request(DType to = DType::undefined, const std::string& scheme = {},
                                       const std::string& spelling = {}) const {
    ConvertRequest request{in(), folder_ / "out", to};
    request.scheme = scheme;
    request.spelling = spelling;
    return request;
  }

 private:
  io::TestFolder folder_;
};

TensorOutcome outcome_of_tensor(const ConvertRequest& request, const std::string& name) {
  const CheckpointPlan plan = make_checkpoint_plan(request).value();
  const ConvertOutcome outcome = outcome_of(plan, all_shards(plan));
  const auto found = std::ranges::find(outcome.tensors, name, &TensorOutcome::name);
  return found == outcome.tensors.end() ? TensorOutcome{} : *found;
}

std::string section_of(const ConvertRequest& request) {
  return make_checkpoint_plan(request).value().configs.at(0).section;
}

TEST(LoaderPlan, LeavesFloat32WhereTheModelKeepsIt) {
  const std::string bias = "model.layers.3.mlp.gate.e_score_correction_bias";
  const ArchitectureFolder folder("deepseek_v3", {{bias, {8}}, {"model.layers.3.mlp.up_proj.weight", {8, 8}}});
  ConvertRequest request = folder.request(DType::bfloat16);
  const TensorOutcome kept = outcome_of_tensor(request, bias);
  EXPECT_EQ(kept.to, DType::float32);
  EXPECT_EQ(kept.why, TypeReason::kept_float32);
  EXPECT_EQ(kept.reason, "float32 in deepseek_v3");
  EXPECT_EQ(outcome_of_tensor(request, "model.layers.3.mlp.up_proj.weight").to, DType::bfloat16);
  request.rules = {{.pattern = "e_score", .to = DType::bfloat16}};
  EXPECT_EQ(outcome_of_tensor(request, bias).to, DType::bfloat16) << "a rule wins";
  // Another architecture says nothing of it.
  const ArchitectureFolder other("llama", {{bias, {8}}});
  EXPECT_EQ(outcome_of_tensor(other.request(DType::bfloat16), bias).to, DType::bfloat16);
}

TEST(LoaderPlan, LeavesFloat32OnDecodingToo) {
  const std::string wo = "encoder.block.0.layer.1.DenseReluDense.wo.weight";
  const ArchitectureFolder folder("t5", {{wo, {128, 128}}, {"encoder.block.0.layer.0.SelfAttention.q.weight", {8, 8}}});
  ConvertRequest request = folder.request(DType::undefined, "fp8-channel", "compressed-tensors");
  ASSERT_TRUE(convert_folder(request));
  for (const auto& [to, kept] : {std::pair(DType::float16, DType::float32), {DType::bfloat16, DType::bfloat16}}) {
    ConvertRequest decode{request.output, request.output + "-decoded", to};
    EXPECT_EQ(outcome_of_tensor(decode, wo).to, kept) << name(to);
  }
}

TEST(LoaderPlan, LeavesPartsWithoutWeightsToQuantize) {
  const ArchitectureFolder folder("bert", {{"encoder.layer.0.output.dense.weight", {64, 64}}});
  folder.put("2_Dense/", R"({"in_features": 64, "out_features": 32, "activation_function": "torch.nn.Tanh"})",
             {{"linear.weight", {32, 64}}});
  folder.put("vae/", "{}", {{"conv.weight", {4, 4, 3, 3}}});
  ConvertRequest request = folder.request(DType::undefined, "int8-channel");
  const CheckpointPlan plan = make_checkpoint_plan(request).value();
  EXPECT_EQ(plan.warnings,
            (std::vector<std::string>{"2_Dense/: nothing is quantized: loaders of compressed-tensors do not take it: "
                                      "sentence-transformers: the weight of a Dense module is read as numbers",
                                      "vae/: nothing is quantized: no tensor is a weight that can be quantized"}));
  ASSERT_EQ(plan.configs.size(), 1U);
  EXPECT_EQ(plan.configs[0].name, "config.json");
  EXPECT_EQ(outcome_of_tensor(request, "linear.weight").to, DType::float32);

  request.filter.drop = {"^encoder"};
  EXPECT_EQ(make_checkpoint_plan(request).error().tensor, "linear.weight") << "nothing at all is quantized";
  // The configuration of a folder is that of all of its models.
  request.filter.drop = {};
  folder.put("", "", {{"conv.weight", {4, 4, 3, 3}}}, "vae.safetensors");
  EXPECT_EQ(make_checkpoint_plan(request).error().message, "no tensor is a weight that can be quantized");
}

TEST(LoaderPlan, NamesTiedHeadsAsNotQuantized) {
  const std::string weight = "model.decoder.layers.0.fc1.weight";
  for (const auto& [type, head] :
       {std::pair("whisper", "\"proj_out\""), {"bert", "\"cls.predictions.decoder\""}, {"llama", "\"lm_head\""}}) {
    const ArchitectureFolder folder(type, {{weight, {128, 128}}});
    for (const auto& [scheme, spelling] : {std::pair("fp8-channel", "compressed-tensors"), {"fp8-block", "deepseek"}}) {
      const std::string section = section_of(folder.request(DType::undefined, scheme, spelling));
      EXPECT_NE(section.find(head), std::string::npos) << section;
      EXPECT_NE(section.find("\"lm_head\""), std::string::npos) << section;
    }
  }
  const std::string head = "proj_out.weight";
  const ArchitectureFolder own("whisper", {{weight, {128, 128}}, {head, {128, 128}}});
  ConvertRequest request = own.request(DType::undefined, "fp8-channel", "compressed-tensors");
  request.rules = {{.pattern = "proj_out", .to = DType::undefined, .scheme = "fp8-channel"}};
  EXPECT_EQ(section_of(request).find("proj_out"), std::string::npos) << "it has codes of its own";
}

TEST(LoaderPlan, LeavesWhatLoadersDoNotTakeAndSaysSo) {
  const std::string whole = "model.layers.0.mlp.up_proj.weight", ragged = "model.layers.0.mlp.down_proj.weight";
  const ArchitectureFolder folder("llama", {{whole, {64, 64}}, {ragged, {64, 48}}, {"embed.weight", {64, 64}}});
  ConvertRequest request = folder.request(DType::undefined, "mxfp8", "compressed-tensors");
  const TensorOutcome left = outcome_of_tensor(request, ragged);
  EXPECT_EQ(left.why, TypeReason::not_loaded);
  EXPECT_TRUE(left.left);
  EXPECT_EQ(left.reason, "inputs are not whole groups of 32");
  EXPECT_EQ(outcome_of_tensor(request, whole).why, TypeReason::quantized);
  EXPECT_NE(section_of(request).find("down_proj"), std::string::npos) << "the configuration lists it";
  request.force_layout = true;
  EXPECT_EQ(outcome_of_tensor(request, ragged).why, TypeReason::quantized);
  request.force_layout = false;
  request.rules = {{.pattern = "embed", .to = DType::undefined, .scheme = "mxfp8"}};
  const auto refused = make_checkpoint_plan(request);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().tensor, "embed.weight");
  EXPECT_NE(refused.error().message.find("only linear layers"), std::string::npos) << refused.error().message;
}

TEST(LoaderPlan, OffersABudgetWhatLoadersTake) {
  const std::string whole = "model.layers.0.mlp.up_proj.weight", ragged = "model.layers.0.mlp.down_proj.weight";
  const ArchitectureFolder folder("llama", {{whole, {128, 128}}, {ragged, {128, 48}}});
  ConvertRequest request = folder.request({}, {}, "compressed-tensors");
  request.budget = 8.5;
  request.candidates = {"mxfp8", "nvfp4"};
  EXPECT_EQ(outcome_of_tensor(request, ragged).scheme, "nvfp4") << "mxfp8 has whole groups of 32 alone";
  EXPECT_EQ(outcome_of_tensor(request, whole).scheme, "mxfp8");
  request.candidates = {"mxfp8"};
  EXPECT_EQ(outcome_of_tensor(request, ragged).reason, "cannot be mxfp8: inputs are not whole groups of 32");
  request.force_layout = true;
  EXPECT_EQ(outcome_of_tensor(request, ragged).scheme, "mxfp8");
}

TEST(LoaderPlan, WarnsOfFaultsThatABudgetChose) {
  const ArchitectureFolder folder("mixtral", {{"model.layers.0.mlp.experts.0.w1.weight", {128, 128}},
                                              {"model.layers.0.self_attn.q_proj.weight", {128, 128}}});
  ConvertRequest request = folder.request({}, {}, "compressed-tensors");
  request.budget = 5;
  request.candidates = {"nvfp4"};
  const std::vector<std::string> warnings = make_checkpoint_plan(request).value().warnings;
  EXPECT_TRUE(std::ranges::any_of(warnings, [](const std::string& warning) {
    return warning.find("experts of nvfp4 are loaded with wrong numbers") != std::string::npos;
  }));
}

TEST(LoaderPlan, RefusesToRespellWhatLoadersDoNotTake) {
  const std::string ragged = "model.layers.0.mlp.down_proj.weight";
  const ArchitectureFolder folder("llama", {{"model.layers.0.mlp.up_proj.weight", {128, 128}}, {ragged, {192, 128}}});
  ConvertRequest request = folder.request({}, "fp8-block", "compressed-tensors");
  ASSERT_TRUE(convert_folder(request));
  ConvertRequest respell{request.output, request.output + "-respelled", {}};
  respell.respell = "modelopt";
  const auto refused = make_checkpoint_plan(respell);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().tensor, ragged);
  EXPECT_EQ(refused.error().message, "loaders of modelopt do not take it: vLLM: outputs are not whole blocks of 128");
  respell.force_layout = true;
  EXPECT_TRUE(make_checkpoint_plan(respell));
}

TEST(LoaderPlan, RefusesALayoutWithoutAPlace) {
  const ArchitectureFolder llama("llama", {{"model.layers.0.mlp.up_proj.weight", {64, 64}}});
  const auto refused = make_checkpoint_plan(llama.request(DType::undefined, "mxfp4", "gpt-oss"));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("only experts in one tensor"), std::string::npos) << refused.error().message;
  const ArchitectureFolder gpt2("gpt2", {{"transformer.h.0.attn.c_attn.weight", {64, 192}}});
  ConvertRequest request = gpt2.request(DType::undefined, "fp8-channel", "compressed-tensors");
  EXPECT_FALSE(make_checkpoint_plan(request));
  request.force_layout = true;
  EXPECT_TRUE(make_checkpoint_plan(request));
}

TEST(LoaderPlan, WarnsOfFaultsOfLoaders) {
  const ArchitectureFolder folder("mixtral", {{"model.layers.0.mlp.experts.0.w1.weight", {64, 64}},
                                              {"model.layers.0.mlp.experts.1.w1.weight", {64, 64}}});
  const auto warnings = [&](const std::string& scheme) {
    return make_checkpoint_plan(folder.request(DType::undefined, scheme, "compressed-tensors")).value().warnings;
  };
  ASSERT_EQ(warnings("nvfp4").size(), 1U);
  EXPECT_NE(warnings("nvfp4")[0].find("experts.0.w1.weight\" and 1 more"), std::string::npos) << warnings("nvfp4")[0];
  EXPECT_NE(warnings("nvfp4")[0].find("transformers 5.24 with compressed-tensors 0.20.1"), std::string::npos);
  EXPECT_TRUE(warnings("mxfp4").empty());
}

TEST(LoaderPlan, RefusesPlainFloat8BesideCodes) {
  const ArchitectureFolder folder("llama",
                                  {{"model.layers.0.mlp.up_proj.weight", {64, 64}}, {"lm_head.weight", {8, 64}}});
  ConvertRequest request = folder.request(DType::undefined, "nvfp4", "compressed-tensors");
  request.rules = {{.pattern = "lm_head", .to = DType::float8_e4m3fn}};
  const auto refused = make_checkpoint_plan(request);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("scales are missing"), std::string::npos) << refused.error().message;
}

}  // namespace
}  // namespace tensorcast::checkpoint
