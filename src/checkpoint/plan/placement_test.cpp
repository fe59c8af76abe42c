// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/plan/placement.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "checkpoint/checkpoint_testing.hpp"
#include "checkpoint/plan/work_folder.hpp"
#include "checkpoint/store/file_name.hpp"
#include "io/sha256.hpp"

namespace tensorcast::checkpoint {
namespace {

class PlacementTest : public testing::Test {
 protected:
  void put(const std::string& name, const std::string& text) const { io::put_file(files_.out() + "/" + name, text); }
  [[nodiscard]] std::string verdict() const {
    const auto old = check_old_files(plan_, *folder_);
    if (!old) return old.error().message;
    std::string names;
    for (const io::WrittenFile& file : *old) names += file.name + " ";
    return names;
  }

  TestCheckpoint files_;
  CheckpointPlan plan_ = make_checkpoint_plan(files_.request(DType::float16)).value();
  std::unique_ptr<Folder> folder_ = Folder::create(files_.out()).value();
};

TEST_F(PlacementTest, NamesWhatIsWritten) {
  const std::vector<std::string> names = output_names(plan_);
  for (const char* name : {"model-00001-of-00002.safetensors", "SHA256SUMS", "config.json", "sub/README.md",
                           "model.safetensors.index.json"}) {
    EXPECT_NE(std::ranges::find(names, name), names.end()) << name;
  }
  EXPECT_EQ(names.size(), 6u);
}

TEST_F(PlacementTest, LeavesOtherFilesAlone) {
  put("notes.txt", "mine");
  put("optimizer.bin", "mine");
  EXPECT_EQ(verdict(), "");
  put("config.json", "mine");
  EXPECT_EQ(verdict(), "\"config.json\" is in the way: tensorcast did not write it, or it was changed since");
}

TEST_F(PlacementTest, MixesNoWeights) {
  put("other.safetensors", "mine");
  EXPECT_NE(verdict().find("\"other.safetensors\" would be mixed with the output"), std::string::npos);
}

TEST_F(PlacementTest, AFileInThePlaceOfAFolderIsInTheWay) {
  put("sub", "mine");
  EXPECT_NE(verdict().find("\"sub\" is in the way"), std::string::npos);
}

TEST_F(PlacementTest, WhatAFormerRunWroteMayGo) {
  put("config.json", "ours");
  put("other.safetensors", "ours");
  io::WrittenFiles written{.identity = std::string(64, '0'), .files = {}};
  for (const char* name : {"config.json", "other.safetensors", "gone"}) {
    written.files.push_back({.name = name, .bytes = 4, .version = {}, .sha256 = io::sha256_of("ours")});
  }
  put(record_name, io::written_files_text(written));
  EXPECT_EQ(verdict(), "config.json other.safetensors ");
  put("other.safetensors", "mine");
  EXPECT_NE(verdict().find("would be mixed with the output"), std::string::npos);
}

}  // namespace
}  // namespace tensorcast::checkpoint
