#include "checkpoint/tensor_set.hpp"

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
  const std::string said = claims.of({.stem = "a"});
  EXPECT_EQ(said, "config.json names the quantization \"fp8\"");
  io::put_file(folder / "config.json", "{}");
  EXPECT_EQ(claims.of({.stem = "b"}), said);
  // That of another folder has nothing to do with it; the metadata of the model's files do.
  EXPECT_EQ(claims.of({.folder = "unet/", .stem = "a"}), "");
  EXPECT_NE(claims.of({.folder = "unet/", .stem = "b", .shards = {0}}), "");
  EXPECT_EQ(claims.of({.folder = "unet/", .stem = "c"}), "");
}

}  // namespace
}  // namespace tensorcast::checkpoint
