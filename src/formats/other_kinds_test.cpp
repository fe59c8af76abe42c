#include "formats/other_kinds.hpp"

#include <gtest/gtest.h>

#include <string>

#include "formats/format.hpp"
#include "formats/format_testing.hpp"
#include "io/input_file.hpp"

namespace tensorcast::formats {
namespace {

TEST(OtherKinds, AreNamedWithWhatToDo) {
  struct Case {
    const char* name;
    std::string content;
    const char* message;
    const char* hint;
  };
  const std::string zip("PK\x03\x04" + std::string(26, '\0'));
  const Case cases[] = {
      {"model.pt", zip + "model/data.pkl", "PyTorch", "safetensors"},
      {"archive.npz", zip + "archive/data.pkl", "PyTorch", "safetensors"},
      {"pytorch_model.bin", zip + "archive/.format_version", "PyTorch", "safetensors"},
      {"model.ckpt", "\x80\x02}q", "PyTorch", "safetensors"},
      {"model.safetensors", "version https://git-lfs.github.com/spec/v1\noid sha256:0", "Git LFS", "git lfs pull"},
      {"model.safetensors", "\n<!DOCTYPE html><html>", "HTML", "download"},
      {"model.npy", "<HTML>", "HTML", "download"},
      {"model.onnx", "\x08\x0a", "ONNX model", "tcast run"},
      {"model.safetensors.index.json", "{\"weight_map\"", "index", ".safetensors"},
  };
  const testing::TempFolder folder;
  for (const Case& test : cases) {
    const Result<io::InputFile> file = io::InputFile::open(folder.put(test.name, test.content));
    ASSERT_TRUE(file.ok());
    const Result<const Format*> format = detect_format(*file);
    ASSERT_FALSE(format.ok()) << test.name;
    EXPECT_EQ(format.error().code, ErrorCode::unsupported);
    EXPECT_EQ(format.error().file, file->path());
    EXPECT_NE(format.error().message.find(test.message), std::string::npos) << format.error().message;
    EXPECT_NE(format.error().hint.find(test.hint), std::string::npos) << format.error().hint;
  }
}

TEST(OtherKinds, LeaveArchivesOfArraysAlone) {
  const testing::TempFolder folder;
  const std::string content = std::string("PK\x03\x04") + std::string(26, '\0') + "weights.npy";
  const Result<io::InputFile> file = io::InputFile::open(folder.put("weights.npz", content));
  ASSERT_TRUE(file.ok());
  EXPECT_TRUE(detect_format(*file).ok());
}

}  // namespace
}  // namespace tensorcast::formats
