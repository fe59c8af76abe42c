// SPDX-License-Identifier: Apache-2.0
// The folder of a model, from which its external data is found.
#pragma once

#include <filesystem>
#include <string>
#include <system_error>

namespace tensorcast::models::onnx {

[[nodiscard]] inline std::filesystem::path folder_of(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  return folder.empty() ? std::filesystem::path(".") : folder;
}

// False if a folder does not exist.
[[nodiscard]] inline bool in_same_folder(const std::string& a, const std::string& b) {
  std::error_code problem;
  return std::filesystem::equivalent(folder_of(a), folder_of(b), problem);
}

}  // namespace tensorcast::models::onnx
