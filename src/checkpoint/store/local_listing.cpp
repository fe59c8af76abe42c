// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/store/local_folder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>

#include "checkpoint/store/file_name.hpp"
#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"
#include "dtype/try.hpp"
#include "io/system_error.hpp"
#include "tensorcast/whole_file.hpp"

namespace tensorcast::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t most_files = 1000000;
constexpr int deepest = 16;

Error io_error(std::string_view doing, const std::string& path, const std::error_code& status) {
  return io::system_error(doing, path, status.value());
}

// Best effort: the number is only told.
std::uint64_t bytes_below(const fs::path& folder) {
  std::uint64_t bytes = 0;
  std::size_t files = 0;
  std::error_code status;
  auto entry = fs::recursive_directory_iterator(folder, fs::directory_options::skip_permission_denied, status);
  for (; !status && entry != fs::recursive_directory_iterator() && files < most_files; entry.increment(status)) {
    std::error_code ignored;
    if (entry->is_symlink(ignored) || !entry->is_regular_file(ignored)) continue;
    const std::uint64_t size = entry->file_size(ignored);
    if (!ignored) bytes += size;
    ++files;
  }
  return bytes;
}

class LocalListing {
 public:
  LocalListing(const std::string& folder, FileGlobs* skip) : folder_(folder), skip_(skip) {}

  Result<Listing> run() {
    std::error_code status;
    auto entry = fs::recursive_directory_iterator(folder_, status);
    for (; !status && entry != fs::recursive_directory_iterator(); entry.increment(status)) {
      bool enter = true;
      TRY(add(*entry, entry.depth(), enter));
      if (!enter) entry.disable_recursion_pending();
    }
    if (status) return io_error("list", folder_, status);
    std::ranges::sort(listing_.files, {}, &ListedFile::name);
    std::ranges::sort(listing_.left_out, {}, &LeftOut::name);
    // An empty folder is one that nothing else is in.
    std::set<std::string> full;
    const auto add_parents = [&](std::string_view name) {
      for (std::string above = folder_of(name); !above.empty(); above = folder_of(above.substr(0, above.size() - 1))) {
        if (!full.insert(above).second) break;
      }
    };
    for (const ListedFile& file : listing_.files) add_parents(file.name);
    for (const LeftOut& left : listing_.left_out) {
      add_parents(left.name.ends_with('/') ? left.name.substr(0, left.name.size() - 1) : left.name);
    }
    for (const std::string& folder : folders_) add_parents(folder);
    for (const std::string& folder : folders_) {
      if (!full.contains(folder + "/")) listing_.empty_folders.push_back(folder);
    }
    std::ranges::sort(listing_.empty_folders);
    return std::move(listing_);
  }

 private:
  Result<void> add(const fs::directory_entry& entry, int depth, bool& enter) {
    std::error_code status;
    const std::string path = entry.path().string();
    const std::string file_name = entry.path().filename().string();
    const std::string name = path.substr(folder_.size() + (folder_.ends_with('/') ? 0 : 1));
    const bool link = entry.is_symlink(status);
    const bool hidden = file_name.starts_with('.');
    const bool folder = !link && entry.is_directory(status);
    if (skip_ != nullptr && skip_->match(name)) {
      enter = false;
      std::error_code ignored;
      const std::uint64_t bytes = folder ? bytes_below(entry.path()) : link ? 0 : entry.file_size(ignored);
      listing_.left_out.push_back({.name = name + (folder ? "/" : ""), .bytes = ignored ? 0 : bytes});
      return {};
    }
    if (folder) return add_folder(entry, name, depth, enter);
    if (is_hidden_output(file_name)) return {};
    if (link && fs::is_directory(entry.path(), status)) {
      if (hidden) return {};
      return in_file(path, parse_error("this is a symbolic link to a folder, which is not followed",
                                       "replace it by the folder, as `cp -rL` does"));
    }
    return add_file(entry, name);
  }

  Result<void> add_folder(const fs::directory_entry& entry, const std::string& name, int depth, bool& enter) {
    const std::string last = last_component(name);
    if (is_state_folder(last)) {
      enter = false;
      const std::uint64_t bytes = bytes_below(entry.path());
      if (!last.starts_with(".tcast-")) listing_.left_out.push_back({.name = name + "/", .bytes = bytes});
      return {};
    }
    if (depth == deepest) {
      return in_file(entry.path().string(), unsupported("folders are nested too deep", "`skip_files` leaves them out"));
    }
    TRY(check_file_name(name, folder_));
    if (folders_.size() == most_files) return too_many();
    folders_.push_back(name);
    return {};
  }

  Result<void> add_file(const fs::directory_entry& entry, const std::string& name) {
    std::error_code missing;
    const std::string path = entry.path().string();
    if (fs::is_other(entry.path(), missing)) {
      return in_file(path, unsupported("pipes, sockets and devices are not copied", "`skip_files` leaves it out"));
    }
    const std::uint64_t bytes = fs::file_size(entry.path(), missing);
    if (missing) return io_error("open", path, missing);
    if (!fs::is_regular_file(entry.path(), missing)) return in_file(path, unsupported("this is not a regular file"));
    if (listing_.files.size() == most_files) return too_many();
    TRY(check_file_name(name, folder_));
    listing_.files.push_back({.name = name, .bytes = bytes});
    return {};
  }

  [[nodiscard]] Error too_many() const { return in_file(folder_, unsupported("the folder has too many files")); }

  const std::string& folder_;
  FileGlobs* skip_;
  Listing listing_;
  std::vector<std::string> folders_;
};

}  // namespace

namespace local {

Result<Listing> list_folder(const std::string& folder, FileGlobs* skip) { return LocalListing(folder, skip).run(); }

// Checks that `folder` is not the cache itself, whose blobs are not files of one model.
Result<void> check_not_hub_cache(const std::string& folder) {
  std::error_code status;
  for (const auto& entry : fs::directory_iterator(folder, status)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("models--") || !is_folder(entry.path().string() + "/snapshots")) continue;
    return in_file(folder, unsupported(fmt::format("this is Hugging Face's cache, which has the model \"{}\"", name),
                                       "name one of its models: FOLDER/models--ORG--NAME"));
  }
  return {};
}

Result<std::string> snapshot_of(const std::string& folder) {
  TRY(check_not_hub_cache(folder));
  if (!is_folder(folder + "/snapshots")) return folder;
  if (!last_component(folder).starts_with("models--") && !is_folder(folder + "/blobs")) return folder;
  const Result<std::string> main = read_whole_file(folder + "/refs/main", 1000);
  if (main) {
    const std::string revision = main->substr(0, main->find_first_of(" \r\n"));
    const bool plain = !revision.empty() && revision.find('/') == std::string::npos && revision.front() != '.';
    if (plain && is_folder(folder + "/snapshots/" + revision)) return folder + "/snapshots/" + revision;
  }
  std::vector<std::string> snapshots;
  std::error_code status;
  for (const auto& entry : fs::directory_iterator(folder + "/snapshots", status)) {
    std::error_code ignored;
    if (entry.is_directory(ignored)) snapshots.push_back(entry.path().filename().string());
  }
  if (status) return io_error("list", folder + "/snapshots", status);
  if (snapshots.size() == 1) return folder + "/snapshots/" + snapshots.front();
  std::ranges::sort(snapshots);
  return in_file(
      folder,
      unsupported(snapshots.empty() ? std::string("this is a model of Hugging Face's cache without a snapshot")
                                    : fmt::format("this is a model of Hugging Face's cache, which has {} snapshots: {}",
                                                  snapshots.size(), first_names(snapshots)),
                  snapshots.empty() ? "fetch the model again" : "name one of them: FOLDER/snapshots/REVISION"));
}

}  // namespace local
}  // namespace tensorcast::checkpoint
