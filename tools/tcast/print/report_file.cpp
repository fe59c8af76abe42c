// SPDX-License-Identifier: Apache-2.0
#include "print/report_file.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "dtype/try.hpp"

namespace tcast {
namespace {

namespace fs = std::filesystem;
using tensorcast::Error;
using tensorcast::ErrorCode;
using tensorcast::Result;

Result<void> check_apart(const std::string& path, std::span<const tensorcast::PathUse> others, std::string_view noun) {
  return tensorcast::check_apart({.path = path, .noun = std::string(noun)}, others);
}

}  // namespace

Result<void> check_report_path(const std::string& path, std::span<const tensorcast::PathUse> others, bool overwrite,
                               std::string_view noun) {
  TRY(check_apart(path, others, noun));
  const auto refuse = [&](ErrorCode code, std::string message, std::string hint = {}) {
    return Error{.code = code, .message = std::move(message), .hint = std::move(hint), .file = path};
  };
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  if (!fs::exists(status) && fs::is_symlink(fs::symlink_status(path, ignored))) {
    return refuse(ErrorCode::invalid_argument,
                  fmt::format("the {}'s name is a symbolic link that leads nowhere", noun));
  }
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    return refuse(ErrorCode::invalid_argument, fmt::format("the {}'s name is not that of a regular file", noun));
  }
  if (fs::exists(status) && !overwrite) {
    return refuse(ErrorCode::invalid_argument, fmt::format("the {} exists already", noun), "--force replaces it");
  }
  const fs::path folder = fs::path(path).parent_path();
  if (!folder.empty() && !fs::is_directory(folder, ignored)) {
    return refuse(ErrorCode::io, fmt::format("the folder of the {} does not exist", noun));
  }
  return {};
}

Result<void> write_report(const std::string& path, std::span<const tensorcast::PathUse> others, const std::string& text,
                          bool overwrite, std::string_view noun) {
  TRY(check_apart(path, others, noun));
  return tensorcast::write_whole_file(path, text, {.overwrite = overwrite});
}

}  // namespace tcast
