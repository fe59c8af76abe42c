// SPDX-License-Identifier: Apache-2.0
#include "quantized/layout/model_architecture.hpp"

#include <gtest/gtest.h>

namespace tensorcast::quantized {
namespace {

using Names = std::vector<std::string>;

ModelArchitecture model_of(const std::string& text) {
  const ConfigText texts[] = {{.name = "hf_quant_config.json", .text = R"({"model_type": "t5"})"},
                              {.name = "config.json", .text = text}};
  return ModelArchitecture::of(texts);
}

TEST(ModelArchitecture, KeepsFloat32AsItsLoaderDoes) {
  const ModelArchitecture deepseek = model_of(R"({"model_type": "deepseek_v3", "limit": Infinity})");
  EXPECT_EQ(deepseek.model_type(), "deepseek_v3");
  const std::string bias = "model.layers.3.mlp.gate.e_score_correction_bias";
  for (const DType to : {DType::bfloat16, DType::float16, DType::float8_e4m3fn}) {
    EXPECT_EQ(deepseek.keeps_float32(bias, to), "deepseek_v3") << name(to);
    EXPECT_EQ(deepseek.keeps_float32("model.layers.3.mlp.gate.weight", to), "deepseek_v3");
    EXPECT_EQ(deepseek.keeps_float32("model.layers.3.mlp.gate_proj.weight", to), "");
  }
  for (const DType to : {DType::float32, DType::float64, DType::int8, DType::undefined}) {
    EXPECT_EQ(deepseek.keeps_float32(bias, to), "");
  }
  // What is not strict is for float16, whose range is smaller.
  const ModelArchitecture t5 = model_of(R"({"model_type": "t5"})");
  const std::string wo = "encoder.block.0.layer.1.DenseReluDense.wo.weight";
  EXPECT_EQ(t5.keeps_float32(wo, DType::float16), "t5");
  EXPECT_EQ(t5.keeps_float32(wo, DType::bfloat16), "");
}

TEST(ModelArchitecture, FindsThePartsOfAModel) {
  const ModelArchitecture model = model_of(
      R"({"text_config": {"model_type": "deepseek_v3", "layers": [{"model_type": "gpt2"}]}, "model_type": "llava"})");
  EXPECT_EQ(model.model_type(), "llava");
  EXPECT_EQ(model.keeps_float32("e_score_correction_bias", DType::bfloat16), "deepseek_v3");
  EXPECT_TRUE(model.is_conv1d("transformer.h.0.attn.c_attn"));
  EXPECT_FALSE(model.is_conv1d("transformer.h.0.attn"));
  EXPECT_EQ(model_of(R"({"model_type": ["gpt2"]})").model_type(), "");
  EXPECT_EQ(model_of("no JSON").model_type(), "");
  EXPECT_EQ(model_of(std::string(100000, '[')).model_type(), "");
}

TEST(ModelArchitecture, NamesTiedHeads) {
  EXPECT_EQ(model_of(R"({"model_type": "whisper"})").tied_heads(), (Names{"lm_head", "proj_out"}));
  EXPECT_EQ(model_of(R"({"model_type": "bert"})").tied_heads(), (Names{"lm_head", "cls.predictions.decoder"}));
  EXPECT_EQ(model_of("{}").tied_heads(), Names{"lm_head"});
}

}  // namespace
}  // namespace tensorcast::quantized
