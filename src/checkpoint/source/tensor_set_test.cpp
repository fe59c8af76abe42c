// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/source/tensor_set.hpp"

#include <gtest/gtest.h>

#include <filesystem>

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

TEST(OpenModel, TellsWhichConfigurationIsNotRead) {
  const io::TestFolder folder, other;
  io::put_file(other / "config.json", R"({"quantization_config": {"quant_method": "fp8"}})");
  std::filesystem::create_symlink(other / "config.json", folder / "config.json");
  SourceCheckpoint source;
  source.folder = folder.path().string();
  source.others = {{.name = "config.json"}};
  const OpenedModel opened = open_model(source, {});
  EXPECT_EQ(opened.unread,
            "config.json is not read: this is a symbolic link that leads out of the checkpoint's folder");
  EXPECT_TRUE(opened.input.configs.empty());
  std::filesystem::remove(folder / "config.json");
  std::filesystem::create_symlink(folder / "not-there.json", folder / "config.json");
  EXPECT_TRUE(open_model(source, {}).unread.starts_with("config.json is not read: "));
}

}  // namespace
}  // namespace tensorcast::checkpoint
