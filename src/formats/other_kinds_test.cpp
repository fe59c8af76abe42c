// SPDX-License-Identifier: Apache-2.0
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
  const Case cases[] = {
      {"weights.pkl", "\x80\x02}q", "Python pickle", "safetensors"},
      {"pytorch_model.bin", "\x80\x04\x95", "Python pickle", "torch.save"},
      {"model.safetensors", "version https://git-lfs.github.com/spec/v1\noid sha256:0", "Git LFS", "git lfs pull"},
      {"model.safetensors", "\n<!DOCTYPE html><html>", "HTML", "download"},
      {"model.npy", "<HTML>", "HTML", "download"},
      {"model.npy.gz", "\x1f\x8b\x08 ", "gzip has compressed", "gunzip"},
      {"model.pt", "\x1f\x8b\x08 ", "gzip has compressed", "gunzip"},
      {"model.safetensors.zst", "\x28\xb5\x2f\xfd ", "zstd has compressed", "unzstd"},
      {"model.gguf.xz", std::string("\xfd\x37zXZ\0 ", 7), "xz has compressed", "unxz"},
      {"model.bz2", "BZh91AY&SY", "bzip2 has compressed", "bunzip2"},
      {"model.h5", "\x89HDF\r\n\x1a\n", "HDF5", "numpy.savez"},
      {"model.onnx", "\x08\x0a", "ONNX model", "tcast onnx convert"},
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

TEST(OtherKinds, LeaveHeadersThatBeginLikeGzip) {
  const testing::TempFolder folder;
  const std::string begin("\x1f\x8b\x08\0\0\0\0\0{", 9);
  const Result<io::InputFile> file = io::InputFile::open(folder.put("a.safetensors", begin));
  const Result<const Format*> format = detect_format(*file);
  ASSERT_TRUE(format.ok()) << format.error().describe();
  EXPECT_EQ((*format)->name, "safetensors");
}

TEST(OtherKinds, AnEmptyFileIsCalledEmpty) {
  const testing::TempFolder folder;
  const Result<io::InputFile> file = io::InputFile::open(folder.put("weights", ""));
  const Result<const Format*> format = detect_format(*file);
  ASSERT_FALSE(format.ok());
  EXPECT_EQ(format.error().message, "the file is empty");
}

TEST(OtherKinds, LeaveCheckpointsOfPytorchToTheirReader) {
  const auto zip = [](std::string entry) {
    std::string header = std::string("PK\x03\x04") + std::string(26, '\0');
    header[26] = static_cast<char>(entry.size());
    return header + entry;
  };
  const std::pair<const char*, std::string> cases[] = {
      {"model.pt", zip("model/data.pkl")},
      {"archive.npz", zip("archive/data.pkl")},
      {"pytorch_model.bin", zip("archive/.format_version")},
      {"long.bin", zip(std::string(100, 'n') + "/data.pkl")},
      {"unknown.pth", zip("readme.txt")},
      {"model.ckpt", "\x80\x02}q"},
      {"pytorch_model.bin", std::string("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.")},
  };
  const testing::TempFolder folder;
  for (const auto& [name, content] : cases) {
    const Result<io::InputFile> file = io::InputFile::open(folder.put(name, content));
    ASSERT_TRUE(file.ok());
    const Result<const Format*> format = detect_format(*file);
    ASSERT_TRUE(format.ok()) << name;
    EXPECT_EQ((*format)->name, "pytorch") << name;
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
