// SPDX-License-Identifier: Apache-2.0
#include "quantized/layer/quantized_tensors.hpp"

#include <gtest/gtest.h>

#include <map>

#include "quantized/layout/quantization_claim.hpp"
#include "quantized/names/name_pattern.hpp"

namespace tensorcast::file_conversion {
namespace {

using formats::TensorInfo;

TensorInfo tensor(const std::string& name, DType dtype, std::vector<std::int64_t> shape = {4, 4}) {
  std::uint64_t count = 1;
  for (const std::int64_t size : shape) count *= static_cast<std::uint64_t>(size);
  return {.name = name, .dtype = dtype, .shape = std::move(shape), .count = count, .bytes = 0};
}

std::map<std::string, QuantizedRole> roles(const std::vector<TensorInfo>& tensors, const std::string& claim = "") {
  std::map<std::string, QuantizedRole> found;
  const std::vector<QuantizedPart> parts = find_quantized(tensors, claim);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].role != QuantizedRole::none) found[tensors[i].name] = parts[i].role;
  }
  return found;
}

constexpr auto codes = QuantizedRole::codes;
constexpr auto decoder = QuantizedRole::decoder;

TEST(QuantizedTensors, OfKnownQuantizers) {
  const DType fp8 = DType::float8_e4m3fn, f32 = DType::float32, f16 = DType::float16, u8 = DType::uint8;
  const std::vector<std::vector<TensorInfo>> spellings = {
      {tensor("a.b.weight", fp8), tensor("a.b.weight_scale_inv", f32)},
      {tensor("a.b.weight", fp8), tensor("a.b.scale", DType::float8_e8m0fnu)},
      {tensor("a.b.weight", u8), tensor("a.b.weight_scale", fp8), tensor("a.b.weight_scale_2", f32, {}),
       tensor("a.b.input_scale", f32, {})},
      {tensor("a.b.weight_packed", u8), tensor("a.b.weight_scale", fp8), tensor("a.b.weight_global_scale", f32),
       tensor("a.b.input_global_scale", f32)},
      {tensor("a.b.weight_packed", DType::int32), tensor("a.b.weight_scale", f16),
       tensor("a.b.weight_shape", DType::int64), tensor("a.b.weight_zero_point", DType::int32)},
      {tensor("a.b.weight", u8), tensor("a.b.weight.absmax", u8), tensor("a.b.weight.quant_map", f32),
       tensor("a.b.weight.nested_absmax", f32), tensor("a.b.weight.nested_quant_map", f32),
       tensor("a.b.weight.quant_state.bitsandbytes__nf4", u8)},
      {tensor("a.b.weight", DType::int8), tensor("a.b.SCB", f32), tensor("a.b.weight_format", u8)},
      {tensor("a.b.qweight", DType::int32), tensor("a.b.qzeros", DType::int32), tensor("a.b.scales", f16),
       tensor("a.b.g_idx", DType::int32)},
      {tensor("a.b.weight", DType::uint32), tensor("a.b.scales", f16), tensor("a.b.biases", f16)},
      {tensor("a.b_blocks", u8), tensor("a.b_scales", u8)},
      {tensor("a.b.blocks", u8), tensor("a.b.scales", u8)},
      {tensor("a.b.weight", fp8), tensor("a.b.scale_weight", f32), tensor("a.b.scale_input", f32),
       tensor("scaled_fp8", fp8)},
      {tensor("a.b.weight", fp8), tensor("a.b.weight_scale", f32), tensor("a.b.comfy_quant", u8)},
      {tensor("weight", fp8), tensor("scale", f32)},
      {tensor("a", fp8), tensor("a.descale", f32)},
      {tensor("a.attn.k_scale", f32, {1}), tensor("a.attn.v_scale", f32, {})},
  };
  for (const auto& tensors : spellings) {
    const std::vector<QuantizedPart> parts = find_quantized(tensors, "");
    const Result<NamePattern> pattern = NamePattern::compile(pattern_of_quantized(tensors, parts));
    ASSERT_TRUE(pattern.ok()) << pattern.error().describe();
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      EXPECT_NE(parts[i].role, QuantizedRole::none) << tensors[i].name;
      EXPECT_TRUE(pattern->matches(tensors[i].name)) << tensors[i].name;
    }
  }
}

TEST(QuantizedTensors, CodesBesideEveryNameOfAScale) {
  for (const char* scale : {"scale_inv", "weight_scale_2", "weight_amax", "descale", "scaling_factor", "scales",
                            "weight.scale", "weight_descale", "weight.scaling_factor", "weight_quantizer._amax"}) {
    const std::string name = std::string("a.b.") + scale;
    const auto found = roles({tensor("a.b.weight", DType::float8_e5m2), tensor(name, DType::float32, {1}),
                              tensor("a.b.bias", DType::float32), tensor("a.norm.weight", DType::float32)});
    EXPECT_EQ(found, (std::map<std::string, QuantizedRole>{{"a.b.weight", codes}, {name, decoder}}));
  }
}

// Names of ordinary models are no evidence.
TEST(QuantizedTensors, NotInOrdinaryModels) {
  const DType bf16 = DType::bfloat16, f32 = DType::float32;
  EXPECT_TRUE(
      roles({tensor("logit_scale", f32, {}), tensor("visual.logit_scale", f32, {}),
             tensor("layers.0.layer_scale", bf16), tensor("layers.0.scale", bf16), tensor("layers.0.norm.scale", bf16),
             tensor("layers.0.norm.weight", bf16), tensor("layers.0.attn.scale", bf16),
             tensor("layers.0.attn.weight", bf16), tensor("layers.0.attn.relative_position_index", DType::int64),
             tensor("layers.0.weight_scale", bf16), tensor("layers.0.weight", bf16), tensor("layers.0.zero", bf16),
             tensor("codebook", bf16), tensor("attn.k_scale", f32, {8}),
             tensor("bn.num_batches_tracked", DType::int64, {}), tensor("bn.weight", f32),
             tensor("mask", DType::boolean), tensor("mask_scale", f32)})
          .empty());
  EXPECT_TRUE(
      roles({tensor("a.weight", DType::float8_e4m3fn), tensor("a.bias", bf16), tensor("b.scale", bf16)}).empty())
      << "float8 without scales is a type as any other";
}

TEST(QuantizedTensors, AClaimTakesUnknownSpellingsToo) {
  const std::vector<TensorInfo> tensors = {
      tensor("a.codes", DType::int8),
      tensor("a.strange", DType::float16),
      tensor("a.bias", DType::float16),
      tensor("b.weight", DType::bfloat16),
      tensor("b.weight_scale", DType::bfloat16),
      tensor("norm.weight", DType::bfloat16),
      tensor("logit_scale", DType::float32, {}),
  };
  EXPECT_EQ(roles(tensors), (std::map<std::string, QuantizedRole>{}));
  EXPECT_EQ(roles(tensors, "config.json"),
            (std::map<std::string, QuantizedRole>{
                {"a.codes", codes}, {"a.strange", decoder}, {"b.weight", codes}, {"b.weight_scale", decoder}}));
}

TEST(QuantizationClaim, OfConfigurations) {
  const auto says = [](const char* text) { return claim_of_text("config.json", text); };
  EXPECT_EQ(says(R"({"quantization_config": {"quant_method": "fp8"}})"), "config.json names the quantization \"fp8\"");
  EXPECT_NE(says(R"({"text_config": {"quantization_config": {"bits": 4}}})"), "");
  EXPECT_NE(says(R"({"quantization": {"group_size": 64, "bits": 4}})"), "");
  EXPECT_EQ(says(R"({"quantization_config": {}})"), "");
  EXPECT_EQ(says(R"({"quantization_config": null})"), "");
  EXPECT_EQ(says(R"({"quantization_config": {"torch_dtype": "float32"}})"), "");
  EXPECT_EQ(says(R"({"hidden_act": "quant_method", "bits": 4})"), "");
  EXPECT_EQ(says("{"), "");
  EXPECT_EQ(says("[1]"), "");
  EXPECT_EQ(says((std::string(100000, '[') + std::string(100000, ']')).c_str()), "");
  EXPECT_NE(claim_of_text("hf_quant_config.json", R"({"quantization": {"quant_algo": "NVFP4"}})"), "");
  EXPECT_EQ(claim_of_text("hf_quant_config.json", R"({"quantization": {"quant_algo": null}})"), "");
  EXPECT_NE(claim_of_text("quantize_config.json", R"({"bits": 4, "group_size": 128})"), "");
  EXPECT_NE(claim_of_metadata({{"format", "pt"}, {"_quantization_metadata", R"({"layers": {"a": {}}})"}}), "");
  EXPECT_EQ(claim_of_metadata({{"format", "pt"}, {"quantization_config", "{}"}}), "");
}

}  // namespace
}  // namespace tensorcast::file_conversion
