#include "report_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "tensorcast/whole_file.hpp"

namespace tcast {
namespace {

namespace fs = std::filesystem;
using tensorcast::Error;
using tensorcast::ErrorCode;
using tensorcast::Result;

// Reports whether both names mean one file, which need not exist yet.
bool same_place(const std::string& a, const std::string& b) {
  std::error_code ignored;
  if (fs::equivalent(a, b, ignored)) return true;
  if (fs::exists(a, ignored) || fs::exists(b, ignored)) return false;
  const fs::path folder_a = fs::absolute(a, ignored).parent_path();
  const fs::path folder_b = fs::absolute(b, ignored).parent_path();
  return fs::path(a).filename() == fs::path(b).filename() && fs::equivalent(folder_a, folder_b, ignored);
}

Result<void> check_apart(const std::string& path, std::span<const std::string> others, std::string_view noun) {
  if (std::none_of(others.begin(), others.end(), [&](const std::string& other) { return same_place(path, other); })) {
    return {};
  }
  return Error{.code = ErrorCode::invalid_argument,
               .message = fmt::format("the {} would overwrite a file of this conversion", noun),
               .file = path};
}

}  // namespace

Result<void> check_report_path(const std::string& path, std::span<const std::string> others, bool overwrite,
                               std::string_view noun) {
  if (auto apart = check_apart(path, others, noun); !apart) return apart;
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

Result<void> write_report(const std::string& path, std::span<const std::string> others, const std::string& text,
                          bool overwrite, std::string_view noun) {
  if (auto apart = check_apart(path, others, noun); !apart) return apart;
  return tensorcast::write_whole_file(path, text, {.overwrite = overwrite});
}

}  // namespace tcast
