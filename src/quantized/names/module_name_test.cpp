// SPDX-License-Identifier: Apache-2.0
#include "quantized/names/module_name.hpp"

#include <gtest/gtest.h>

#include "quantized/names/tensor_kind.hpp"

namespace tensorcast::quantized {
namespace {

TEST(ModuleName, ModulesThatLoadersJoinHaveOneName) {
  constexpr std::string_view alone[] = {"o_proj", "down_proj", "w2", "in_proj", "gate_up_proj", "qkv_proj"};
  for (const std::string_view word : alone) EXPECT_EQ(joined_module("a." + std::string(word) + ".weight"), "") << word;
  const std::string joined = joined_module("l.0.attn.q_proj.weight");
  EXPECT_EQ(joined, "l.0.attn.q_proj");
  for (const std::string_view word : {"k_proj", "v_proj", "g_proj", "index_k_proj"}) {
    EXPECT_EQ(joined_module("l.0.attn." + std::string(word) + ".weight"), joined) << word;
    EXPECT_NE(joined_module("l.1.attn." + std::string(word) + ".weight"), joined) << word;
  }
  EXPECT_EQ(joined_module("m.in_proj_z.weight"), joined_module("m.in_proj_qkv.weight"));
  EXPECT_NE(joined_module("m.in_proj_z.weight"), joined_module("m.in_proj_b.weight"));
  EXPECT_EQ(joined_module("m.wkv.weight"), joined_module("m.wq_a.weight"));
  EXPECT_EQ(joined_module("q_proj.weight"), "");  // of the root: nothing says that others are beside it
}

TEST(ModuleName, Experts) {
  EXPECT_EQ(experts_module("model.layers.0.mlp.experts.3.up_proj.weight"), "model.layers.0.mlp.experts");
  EXPECT_EQ(experts_module("experts.down_proj"), "experts");
  EXPECT_EQ(experts_module("a.shared_experts.up_proj.weight"), "");
  EXPECT_EQ(experts_module("a.shared_experts.b.experts.0.w1"), "a.shared_experts.b.experts");
  EXPECT_EQ(experts_module("a.experts"), "");
  EXPECT_EQ(one_scheme_module("a.experts.0.w1.weight"), one_scheme_module("a.experts.1.w2.weight"));
}

TEST(ModuleName, TablesAndNormsAreNoLinearLayers) {
  using file_conversion::is_table_or_norm;
  for (const std::string_view module :
       {"model.embed_tokens", "wte", "a.q_norm", "a.norm2", "a.LayerNorm", "a.layer_norm_1"})
    EXPECT_TRUE(is_table_or_norm(module)) << module;
  for (const std::string_view module : {"a.embed_vision.embedding_projection", "a.patch_embedding", "a.norm1.linear",
                                        "a.embed_tokens_extend.0", "normal"})
    EXPECT_FALSE(is_table_or_norm(module)) << module;
}

}  // namespace
}  // namespace tensorcast::quantized
