// SPDX-License-Identifier: Apache-2.0
// Shared by tests that read testdata folders. A file that must fail is named for its error: CODE--what.extension.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tensorcast/error.hpp"

namespace tensorcast::io::testing {

// Returns the files of FOLDER/*/testdata/KIND for which `is_wanted` is true, in order. Folders belong to the file
// beside them.
inline std::vector<std::filesystem::path> testdata(
    const std::string& folder, const std::string& kind,
    const std::function<bool(const std::string& format, const std::filesystem::path& file)>& is_wanted) {
  namespace fs = std::filesystem;
  std::vector<fs::path> files;
  for (const auto& format : fs::directory_iterator(fs::path(TENSORCAST_SOURCE_DIR) / "src" / folder)) {
    if (!fs::is_directory(format.path() / "testdata" / kind)) continue;
    for (const auto& entry : fs::directory_iterator(format.path() / "testdata" / kind)) {
      if (entry.is_regular_file() && is_wanted(format.path().filename().string(), entry.path())) {
        files.push_back(entry.path());
      }
    }
  }
  std::ranges::sort(files);
  return files;
}

// Returns "onnx" for onnx/testdata/valid/name.onnx.
inline std::string format_of(const std::filesystem::path& file) {
  return file.parent_path().parent_path().parent_path().filename().string();
}

inline std::string test_name(const ::testing::TestParamInfo<std::filesystem::path>& info) {
  std::string name = format_of(info.param) + "_" + info.param.filename().string();
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

// Expects `error` to have the code that the file's name begins with, and a message.
inline void expect_error_of_name(const Error& error, const std::filesystem::path& file) {
  static const std::vector<std::pair<std::string, ErrorCode>> codes = {
      {"invalid_argument", ErrorCode::invalid_argument},
      {"unsupported", ErrorCode::unsupported},
      {"out_of_range", ErrorCode::out_of_range},
      {"parse", ErrorCode::parse},
      {"io", ErrorCode::io},
  };
  const std::string name = file.filename().string();
  const auto code =
      std::ranges::find(codes, name.substr(0, name.find("--")), [](const auto& row) { return row.first; });
  ASSERT_NE(code, codes.end()) << "the name does not begin with an error code";
  EXPECT_EQ(error.code, code->second) << error.describe();
  EXPECT_FALSE(error.message.empty());
  EXPECT_LT(error.describe().size(), 2000u) << "a message does not repeat a file";
}

}  // namespace tensorcast::io::testing
