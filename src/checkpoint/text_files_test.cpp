// SPDX-License-Identifier: Apache-2.0
// Paths, kinds of tensors and hashes, which no file of this folder owns.
#include <gtest/gtest.h>

#include "checkpoint/run/finish.hpp"
#include "io/test_folder.hpp"
#include "tensorcast/checkpoint.hpp"
#include "tensorcast/file.hpp"
#include "tensorcast/whole_file.hpp"

namespace tensorcast::checkpoint {
namespace {

TEST(PathName, IsNotCutAtAZeroByte) {
  const io::TestFolder folder;
  const std::string kept = folder / "out";
  ASSERT_TRUE(write_whole_file(kept, "kept").ok());
  const std::string path = kept + std::string("\0more", 5);
  const auto expect_refused = [](const auto& result) {
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().message, "the path contains a zero byte");
  };
  expect_refused(read_whole_file(path, 100));
  expect_refused(write_whole_file(path, "other", {.overwrite = true}));
  expect_refused(convert_folder({path, kept, DType::float16}));
  expect_refused(convert_folder({".", path, DType::float16}));
  expect_refused(finish_checkpoint(path));
  EXPECT_EQ(io::file_contents(kept), "kept");
}

TEST(TensorKind, OfUsualNames) {
  const std::pair<const char*, TensorKind> rows[] = {
      {"model.embed_tokens.weight", TensorKind::embedding},
      {"transformer.wte.weight", TensorKind::embedding},
      {"shared.weight", TensorKind::embedding},
      {"bert.embeddings.LayerNorm.weight", TensorKind::norm},
      {"model.layers.0.self_attn.q_proj.weight", TensorKind::attention},
      {"model.layers.0.self_attn.q_norm.weight", TensorKind::norm},
      {"model.layers.0.mlp.experts.3.up_proj.weight", TensorKind::expert},
      {"model.layers.0.block_sparse_moe.gate.weight", TensorKind::router},
      {"model.layers.0.mlp.gate_proj.weight", TensorKind::feed_forward},
      {"encoder.block.0.layer.1.DenseReluDense.wi.weight", TensorKind::feed_forward},
      {"encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight", TensorKind::embedding},
      {"lm_head.weight", TensorKind::head},
      {"output.weight", TensorKind::head},
      {"bert.encoder.layer.0.output.dense.weight", TensorKind::feed_forward},
      {"model.layers.0.mlp.down_proj.weight_scale_inv", TensorKind::scale},
      {"down_blocks.0.resnets.0.conv1.weight", TensorKind::convolution},
      {"something", TensorKind::other},
      {"", TensorKind::other},
  };
  for (const auto& [tensor, kind] : rows) EXPECT_EQ(name(tensor_kind(tensor, 2)), name(kind)) << tensor;
  // Kernels, whatever their names; but experts in one tensor.
  for (const char* tensor : {"down_blocks.0.attn.to_q.weight", "mlp.fc1.weight", "a.weight", "experts.0.w1.weight"}) {
    EXPECT_EQ(tensor_kind(tensor, 4), TensorKind::convolution) << tensor;
    EXPECT_NE(tensor_kind(tensor, 2), TensorKind::convolution) << tensor;
    EXPECT_FALSE(is_quantized_matrix(tensor, 4)) << tensor;
  }
  EXPECT_EQ(tensor_kind("model.layers.0.mlp.experts.down_proj_blocks", 4), TensorKind::expert);
  EXPECT_EQ(tensor_kind("patch_embed.proj.weight", 4), TensorKind::embedding);
  EXPECT_EQ(tensor_kind(std::string(100000, 'x') + ".lm_head.weight", 2), TensorKind::head);
}

TEST(SumsLine, EscapesNamesAsSha256sumDoes) {
  EXPECT_EQ(sums_line("00", "a b"), "00  a b\n");
  EXPECT_EQ(sums_line("00", "a\\b\nc"), "\\00  a\\\\b\\nc\n");
}

}  // namespace
}  // namespace tensorcast::checkpoint
