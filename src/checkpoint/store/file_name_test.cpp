// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/store/file_name.hpp"

#include <gtest/gtest.h>

#include <string>

namespace tensorcast::checkpoint {
namespace {

TEST(FileName, StaysInTheFolder) {
  for (const char* good : {"a", "a.safetensors", "unet/a.b", "..a", "a..", ".hidden", "a b/c"}) {
    EXPECT_TRUE(check_file_name(good, "")) << good;
  }
  for (const std::string& bad :
       {std::string(), std::string("/a"), std::string(".."), std::string("a/../b"), std::string("a//b"),
        std::string("a/"), std::string("./a"), std::string("a\0b", 3), std::string(256, 'a'), std::string(5000, 'a')}) {
    const Result<void> checked = check_file_name(bad, "index");
    ASSERT_FALSE(checked) << bad;
    EXPECT_EQ(checked.error().code, ErrorCode::parse);
    EXPECT_EQ(checked.error().file, "index");
  }
}

TEST(FileName, OfShardsAndIndexes) {
  ShardName shard;
  ASSERT_TRUE(parse_shard_name("model.fp16-00002-of-00010.safetensors", shard));
  EXPECT_EQ(shard.stem, "model.fp16");
  EXPECT_EQ(shard.number, 2u);
  EXPECT_EQ(shard.count, 10u);
  for (const char* other : {"model.safetensors", "model-1-of-2.safetensors", "00001-of-00002.safetensors",
                            "model-00001-of-99999999999.safetensors"}) {
    EXPECT_FALSE(parse_shard_name(other, shard)) << other;
  }
  EXPECT_EQ(shard_name("model", 3, 12), "model-00003-of-00012.safetensors");
  EXPECT_EQ(shard_name("model", 1, 1), "model.safetensors");
  for (const char* stem : {"model", "model.fp16", "diffusion_pytorch_model"}) {
    EXPECT_EQ(stem_of_index(index_name(stem)), stem);
  }
  EXPECT_EQ(index_name("model.fp16"), "model.safetensors.index.fp16.json");
  EXPECT_EQ(stem_of_index("model.safetensors"), "");
  EXPECT_EQ(stem_of_index("config.json"), "");
}

TEST(FileName, OfPyTorch) {
  for (const char* weights : {"pytorch_model.bin", "a/pytorch_model-00001-of-00002.bin", "pytorch_model.fp16.bin",
                              "diffusion_pytorch_model.bin", "adapter_model.bin", "pytorch_model_1.bin",
                              "pytorch_model.fp16-00001-of-00002.bin"}) {
    EXPECT_TRUE(is_torch_weights_name(weights)) << weights;
  }
  for (const char* other : {"training_args.bin", "optimizer.bin", "pytorch_model.pt", "model.safetensors", "bin"}) {
    EXPECT_FALSE(is_torch_weights_name(other)) << other;
  }
  EXPECT_EQ(safetensors_name("unet/pytorch_model-00001-of-00002.bin"), "unet/model-00001-of-00002.safetensors");
  EXPECT_EQ(safetensors_name("pytorch_model.fp16.bin"), "model.fp16.safetensors");
  EXPECT_EQ(safetensors_name("diffusion_pytorch_model.bin"), "diffusion_pytorch_model.safetensors");
  EXPECT_EQ(safetensors_name("pytorch_model_1.bin"), "pytorch_model_1.safetensors");
  EXPECT_EQ(safetensors_name("consolidated.00.pth"), "consolidated.00.safetensors");
  EXPECT_EQ(safetensors_name("step-1/.metadata"), "step-1/model.safetensors");
  EXPECT_EQ(safetensors_name("pytorch_model.safetensors"), "pytorch_model.safetensors");
  EXPECT_EQ(stem_of_torch_index("pytorch_model.bin.index.fp16.json"), "pytorch_model.fp16");
  EXPECT_EQ(stem_of_torch_index("model.safetensors.index.json"), "");
}

}  // namespace
}  // namespace tensorcast::checkpoint
