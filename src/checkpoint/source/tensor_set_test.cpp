// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/source/tensor_set.hpp"

#include <gtest/gtest.h>

#include "io/test_folder.hpp"

namespace tensorcast::checkpoint {
namespace {

TEST(Claims, ReadTheConfigurationsOfAFolderOnce) {
  const io::TestFolder folder;
  io::put_file(folder / "config.json", R"({"quantization_config": {"quant_method": "fp8"}})");
  SourceCheckpoint source;
  source.folder = folder.path().string();
  source.others = {{.name = "config.json"}};
  source.shards.resize(1);
  source.shards[0].header.metadata = {{"_quantization_metadata", R"({"layers": {"a": {}}})"}};
  Claims claims(source);
  SourceModel model;
  const std::string said = claims.of(model);
  EXPECT_EQ(said, "config.json names the quantization \"fp8\"");
  io::put_file(folder / "config.json", "{}");
  EXPECT_EQ(claims.of(model), said);
  // That of another folder has nothing to do with it; the metadata of the model's files do.
  model.folder = "unet/";
  EXPECT_EQ(claims.of(model), "");
  model.shards = {0};
  EXPECT_NE(claims.of(model), "");
}

}  // namespace
}  // namespace tensorcast::checkpoint
