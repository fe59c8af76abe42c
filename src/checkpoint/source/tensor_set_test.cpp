// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/source/tensor_set.hpp"

#include <gtest/gtest.h>

#include "io/test_folder.hpp"

namespace tensorcast::checkpoint {
namespace {

TEST(OpenModel, ReadsWhatItsFilesSayAboutQuantization) {
  const io::TestFolder folder;
  io::put_file(folder / "config.json", R"({"quantization_config": {"quant_method": "fp8"}})");
  SourceCheckpoint source;
  source.folder = folder.path().string();
  source.others = {{.name = "config.json"}};
  source.accepted = {"a word"};
  source.shards.resize(1);
  source.shards[0].header.metadata = {{"_quantization_metadata", R"({"layers": {"a": {}}})"}};
  SourceModel model;
  const OpenedModel opened = open_model(source, model);
  EXPECT_EQ(opened.input.claim, "config.json names the quantization \"fp8\"");
  ASSERT_EQ(opened.input.configs.size(), 2u);
  EXPECT_EQ(opened.input.configs[0].name, "config.json");
  // That of another folder has nothing to do with it; the metadata of the model's files do.
  model.folder = "unet/";
  EXPECT_EQ(open_model(source, model).input.claim, "");
  model.shards = {0};
  EXPECT_EQ(open_model(source, model).input.claim, "the file's metadata says that the model is quantized");
  EXPECT_EQ(open_model(source, model).input.configs.size(), 2u);
}

}  // namespace
}  // namespace tensorcast::checkpoint
