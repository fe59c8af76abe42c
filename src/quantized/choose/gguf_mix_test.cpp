// SPDX-License-Identifier: Apache-2.0
// What llama_tensor_get_type() of llama.cpp chose for the same names and shapes.
#include "quantized/choose/gguf_mix.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

namespace tensorcast::quantized {
namespace {

constexpr std::int64_t mix_columns = 512;

std::vector<formats::TensorInfo> mix_tensors(int layers, bool has_output) {
  std::vector<formats::TensorInfo> tensors;
  const auto add = [&](std::string name, std::vector<std::int64_t> shape) {
    tensors.push_back({.name = std::move(name), .shape = std::move(shape)});
  };
  add("token_embd.weight", {1000, mix_columns});
  add("output_norm.weight", {mix_columns});
  if (has_output) add("output.weight", {1000, mix_columns});
  for (int i = layers; i-- > 0;) {
    const auto of_layer = [&](std::string_view name) { return fmt::format("blk.{}.{}.weight", i, name); };
    for (const char* name : {"attn_q", "attn_k", "attn_v", "attn_output", "ffn_up", "ffn_gate"}) {
      add(of_layer(name), {64, mix_columns});
    }
    add(of_layer("ffn_down"), {mix_columns, 288});
    add(of_layer("attn_norm"), {mix_columns});
    add(of_layer("ffn_gate_inp"), {8, mix_columns});
  }
  return tensors;
}

std::map<std::string, std::string_view> mix_types_of(std::string_view mix, const MixModel& model,
                                                     const std::vector<formats::TensorInfo>& tensors,
                                                     bool has_importance = false) {
  const std::vector<std::string_view> types = types_in_mix(*find_mix(mix).value(), model, tensors, has_importance);
  std::map<std::string, std::string_view> made;
  for (std::size_t i = 0; i < tensors.size(); ++i) made[tensors[i].name] = types[i];
  return made;
}

const MixModel mix_llama{.architecture = "llama", .layers = 16, .heads = 32, .key_value_heads = 8};

TEST(GgufMix, ChoosesAsLlamaQuantizeDoes) {
  const auto types = mix_types_of("Q4-K-M", mix_llama, mix_tensors(16, true));
  EXPECT_EQ(types.at("token_embd.weight"), "q4_k");
  EXPECT_EQ(types.at("output.weight"), "q6_k");
  EXPECT_EQ(types.at("output_norm.weight"), "");
  EXPECT_EQ(types.at("blk.3.ffn_gate_inp.weight"), "");
  EXPECT_EQ(types.at("blk.3.attn_q.weight"), "q4_k");
  std::string more;
  for (int i = 0; i < 16; ++i) {
    const std::string_view values = types.at(fmt::format("blk.{}.attn_v.weight", i));
    more += values == "q6_k" ? '6' : values == "q4_k" ? '4' : '?';
    // 288 columns are no whole blocks of 256.
    const std::string_view down = types.at(fmt::format("blk.{}.ffn_down.weight", i));
    EXPECT_EQ(down, values == "q6_k" ? "q8_0" : "q5_0") << i;
  }
  EXPECT_EQ(more, "6644644644644666");
}

TEST(GgufMix, EmbeddingsThatAreTheOutputHaveItsType) {
  EXPECT_EQ(mix_types_of("q3_k_l", mix_llama, mix_tensors(2, false)).at("token_embd.weight"), "q6_k");
  EXPECT_EQ(mix_types_of("q8_0", mix_llama, mix_tensors(2, false)).at("token_embd.weight"), "q8_0");
  MixModel falcon = mix_llama;
  falcon.architecture = "falcon";
  EXPECT_EQ(mix_types_of("q3_k_l", falcon, mix_tensors(2, false)).at("token_embd.weight"), "q8_0");
}

TEST(GgufMix, TheModelDecides) {
  const auto tensors = mix_tensors(16, true);
  const auto values_of = [&](std::string_view mix, const MixModel& model, int layer) {
    return mix_types_of(mix, model, tensors).at(fmt::format("blk.{}.attn_v.weight", layer));
  };
  EXPECT_EQ(values_of("q2_k", mix_llama, 5), "q4_k");
  MixModel alone = mix_llama;
  alone.key_value_heads = 32;
  EXPECT_EQ(values_of("q2_k", alone, 5), "q3_k");
  EXPECT_EQ(values_of("q3_k", alone, 1), "q5_k");  // q3_k_m
  EXPECT_EQ(values_of("q3_k", alone, 2), "q4_k");
  MixModel large = mix_llama;
  large.layers = 80;
  EXPECT_EQ(values_of("q4_k_s", large, 9), "q5_k");
  MixModel eight = mix_llama;
  eight.experts = 8;
  EXPECT_EQ(values_of("q5_k_m", eight, 9), "q8_0");
  EXPECT_EQ(mix_types_of("q4_k_s", eight, tensors).at("blk.7.attn_output.weight"), "q5_k");
  // The first eighth has more bits, unless importance says where they are of use.
  EXPECT_EQ(mix_types_of("iq4_xs", mix_llama, tensors).at("blk.1.ffn_down.weight"), "q5_1");
  EXPECT_EQ(mix_types_of("iq4_xs", mix_llama, tensors, true).at("blk.1.ffn_down.weight"), "iq4_nl");
}

TEST(GgufMix, ColumnsThatNoBlockFits) {
  std::vector<formats::TensorInfo> tensors = {{.name = "blk.0.ffn_up.weight", .shape = {4, 100}},
                                              {.name = "blk.0.one.weight", .shape = {1, 256}},
                                              {.name = "blk.0.ffn_up.bias", .shape = {4, 256}}};
  const auto types = mix_types_of("q4_k_m", mix_llama, tensors);
  EXPECT_EQ(types.at("blk.0.ffn_up.weight"), "float16");
  EXPECT_EQ(types.at("blk.0.one.weight"), "");
  EXPECT_EQ(types.at("blk.0.ffn_up.bias"), "");
}

TEST(GgufMix, ReadsWhatTheMetadataSay) {
  const Result<MixModel> model = mix_model_of({{"general.architecture", "gemma3"},
                                               {"gemma3.block_count", "26"},
                                               {"gemma3.attention.head_count", "[8,4]"},
                                               {"gemma3.attention.head_count_kv", "2"}});
  ASSERT_TRUE(model);
  EXPECT_EQ(model->layers, 26);
  EXPECT_EQ(model->heads, 8);
  EXPECT_EQ(model->key_value_heads, 2);
  EXPECT_EQ(model->experts, 0);
  EXPECT_FALSE(mix_model_of({{"general.architecture", "gemma3"}}));
  EXPECT_FALSE(mix_model_of({{"general.architecture", "glm5-next"}, {"glm5-next.block_count", "2"}}));
  const auto unknown = find_mix("q4_k_x");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().message, "there is no mixture \"q4_k_x\"");
}

}  // namespace
}  // namespace tensorcast::quantized
