// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/store/local_folder.hpp"

#include <sys/stat.h>
#include <sys/statvfs.h>

#include <cerrno>
#include <filesystem>
#include <limits>
#include <system_error>

#include "checkpoint/store/file_name.hpp"
#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"
#include "dtype/try.hpp"
#include "io/output_file.hpp"
#include "io/parent_folders.hpp"
#include "io/path_name.hpp"
#include "io/system_error.hpp"

namespace tensorcast::checkpoint {
namespace {

namespace fs = std::filesystem;

StoredFile stored(io::InputFile file, std::string path) {
  std::string version = std::to_string(file.modified_ns());
  return {std::move(file), std::move(path), std::move(version)};
}

class LocalNewFile final : public NewFile {
 public:
  explicit LocalNewFile(io::OutputFile file) : file_(std::move(file)) {}

  void set_mode(unsigned mode) noexcept override {
    if (mode != 0) file_.set_mode(mode);
  }
  Result<void> append(std::span<const std::byte> bytes) override { return file_.append(bytes); }
  Result<StoredFile> read_back() override {
    TRY(file_.sync());
    io::InputFile written = TRY(io::InputFile::open(file_.temporary_path()));
    written.dont_need(0, written.size());
    return stored(std::move(written), file_.path());
  }
  Result<void> commit() override { return file_.commit(); }
  const std::string& path() const noexcept override { return file_.path(); }

 private:
  io::OutputFile file_;
};

// Adds the names below a folder, at any depth; links are names, and not followed.
Result<void> add_below(const io::Folder& folder, const std::string& prefix, std::vector<std::string>& names) {
  const auto entries = TRY(folder.list());
  for (const auto& [name, found] : entries) {
    if (found.kind != io::Found::Kind::folder) {
      names.push_back(prefix + name);
      continue;
    }
    const Result<io::Folder> inner = folder.open_below(name);
    if (!inner && inner.error().system_error == ENOENT) continue;  // another run removes it
    if (!inner) return inner.error();
    TRY(add_below(*inner, prefix + name + "/", names));
  }
  return {};
}

Result<void> remove_empty_below(const io::Folder& folder) {
  const auto entries = TRY(folder.list());
  for (const auto& [name, found] : entries) {
    if (found.kind != io::Found::Kind::folder) continue;
    const Result<io::Folder> inner = folder.open_below(name);
    if (!inner && inner.error().system_error == ENOENT) continue;
    if (!inner) return inner.error();
    TRY(remove_empty_below(*inner));
    TRY(folder.remove_empty(name));
  }
  return {};
}

class LocalFolder final : public Folder {
 public:
  // `made`: folders that go again if they are empty at the end, as after an error in the weights.
  explicit LocalFolder(io::Folder folder, io::ParentFolders made = {})
      : Folder(folder.path()), made_(std::move(made)), folder_(std::move(folder)) {}

  Result<std::optional<Entry>> find(const std::string& name) const override {
    const std::optional<io::Found> found = TRY(folder_.find(name));
    if (!found.has_value()) return std::optional<Entry>();
    return std::optional(
        Entry{.kind = found->kind, .bytes = found->bytes, .version = std::to_string(found->modified_ns)});
  }

  Result<std::vector<std::string>> names_in(const std::string& folder) const override {
    std::optional<io::Folder> inner;
    TRY(open_below(folder, inner));
    std::vector<std::string> names;
    if (!inner && !folder.empty()) return names;
    const auto entries = TRY((inner ? *inner : folder_).list());
    for (const auto& [name, found] : entries) {
      names.push_back(folder + name + (found.kind == io::Found::Kind::folder ? "/" : ""));
    }
    return names;
  }

  Result<std::vector<std::string>> names_below(const std::string& folder) const override {
    std::optional<io::Folder> inner;
    TRY(open_below(folder, inner));
    std::vector<std::string> names;
    if (!inner && !folder.empty()) return names;
    TRY(inner ? add_below(*inner, folder + "/", names) : add_below(folder_, "", names));
    return names;
  }

  Result<StoredFile> open_file(const std::string& name) const override {
    return stored(TRY(folder_.open_file(name)), path_of(name));
  }

  Result<std::unique_ptr<NewFile>> create_file(const std::string& name, std::uint64_t bytes) const override {
    io::OutputFile file = TRY(folder_.create_file(name));
    TRY(file.reserve(bytes));
    return std::unique_ptr<NewFile>(std::make_unique<LocalNewFile>(std::move(file)));
  }

  Result<void> move(const std::string& from, const std::string& to) const override {
    return folder_.move(from, folder_, to);
  }
  Result<void> remove(const std::string& name) const override { return folder_.remove_file(name); }

  Result<void> create_folder(const std::string& name) const override {
    if (name.empty()) return {};
    TRY(folder_.create_below(name));
    return {};
  }
  Result<void> remove_empty_folder(const std::string& name) const override { return folder_.remove_empty(name); }

  Result<void> sync_folder(const std::string& name) const override {
    if (name.empty()) return folder_.sync();
    const Result<io::Folder> folder = folder_.open_below(name);
    return folder ? folder->sync() : folder.error();
  }

  Result<void> remove_empty_folders(const std::string& folder) const override {
    std::optional<io::Folder> inner;
    if (Result<void> opened = open_below(folder, inner); !opened || !inner) return opened;
    TRY(remove_empty_below(*inner));
    return folder_.remove_empty(folder);
  }

  Result<bool> move_folder(const std::string& from, const std::string& to) const override {
    TRY(move(from, to));
    return true;
  }

  Result<std::optional<LockedFolder>> lock(const std::string& name, const std::string& lock_name, io::LockKind kind,
                                           const Error& busy) const override {
    io::Folder folder = TRY(folder_.open_below(name));
    io::FolderLock lock = TRY(io::FolderLock::take(folder, lock_name, kind, busy));
    LockedFolder locked(folder_, name, std::move(folder), std::move(lock));
    // Whoever had the lock before may have removed the folder.
    if (!TRY(locked.is_still())) return busy;
    return std::optional(std::move(locked));
  }

 private:
  // Opens a folder, named with or without "/", if there is something of this name. Errors: io, also if it is no folder.
  Result<void> open_below(const std::string& name, std::optional<io::Folder>& opened) const {
    const std::string plain = name.ends_with('/') ? name.substr(0, name.size() - 1) : name;
    if (plain.empty()) return {};
    const std::optional<io::Found> found = TRY(folder_.find(plain));
    if (!found.has_value()) return {};
    opened = TRY(folder_.open_below(plain));
    return {};
  }

  io::ParentFolders made_;
  io::Folder folder_;
};

// Reports whether `path` is below `folder`; both are real paths.
bool is_below(const std::string& path, const std::string& folder) {
  return path.size() > folder.size() && path.starts_with(folder) && (folder == "/" || path[folder.size()] == '/');
}

// Returns the part of `path` that is below `folder`, which may be "/".
std::string below(const std::string& folder, const std::string& path) {
  return path.substr(folder.size() + (folder.ends_with('/') ? 0 : 1));
}

// Returns the folder of the blobs of a snapshot of Hugging Face's cache, or of a folder in one, such as a model's of
// diffusers; "" for another folder.
std::string blobs_of_snapshot(const std::string& folder) {
  for (fs::path at = folder; at.has_relative_path(); at = at.parent_path()) {
    const fs::path snapshots = at.parent_path(), model = snapshots.parent_path();
    if (snapshots.filename() != "snapshots") continue;
    std::error_code status;
    if (fs::is_directory(model / "blobs", status)) return (model / "blobs").string();
  }
  return {};
}

}  // namespace

Result<io::InputFile> open_local(const std::string& folder, const std::string& name) {
  const std::string path = folder + "/" + name;
  TRY(check_file_name(name, folder));
  if (!is_local(folder)) {
    return in_file(path,
                   unsupported("files of PyTorch are read from local folders only", "fetch the checkpoint first"));
  }
  std::error_code status;
  const std::string root = fs::canonical(folder, status).string();
  if (status) return io::system_error("open", folder, status.value());
  const std::string real = fs::canonical(path, status).string();
  if (status) return io::system_error("open", path, status.value());
  const std::string blobs = blobs_of_snapshot(root);
  const std::string& base = is_below(real, root) || blobs.empty() ? root : blobs;
  if (!is_below(real, base)) {
    return in_file(path, parse_error("this is a symbolic link that leads out of the checkpoint's folder",
                                     "replace it by the file, as `cp -L` does"));
  }
  // Follows no links, so a link that is put there meanwhile is an error.
  Result<io::InputFile> file = io::InputFile::open_below(base, below(base, real));
  if (!file) file.error().file = path;
  return file;
}

namespace local {

Result<std::unique_ptr<Folder>> open_folder(const std::string& path) {
  return std::unique_ptr<Folder>(std::make_unique<LocalFolder>(TRY(io::Folder::open(path))));
}

Result<std::unique_ptr<Folder>> create_folder(const std::string& path) {
  io::ParentFolders made = TRY(io::ParentFolders::create(path + "/"));
  return std::unique_ptr<Folder>(std::make_unique<LocalFolder>(TRY(io::Folder::open(path)), std::move(made)));
}

Result<StoredFile> open_source(const std::string& folder, const std::string& name) {
  return stored(TRY(open_local(folder, name)), folder + "/" + name);
}

Result<std::string> real_path(const std::string& path) {
  std::error_code status;
  const fs::path absolute = fs::absolute(path, status);
  const fs::path real = status ? fs::path() : fs::weakly_canonical(absolute, status);
  if (status) return io::system_error("open", path, status.value());
  std::string text = real.string();
  while (text.size() > 1 && text.ends_with('/')) text.pop_back();
  return text;
}

bool is_folder(const std::string& path) noexcept {
  std::error_code ignored;
  return io::check_path(path) && fs::is_directory(path, ignored);
}

std::optional<std::uint64_t> file_bytes(const std::string& path) noexcept {
  if (!io::check_path(path)) return std::nullopt;
  std::error_code status;
  const std::uint64_t bytes = fs::file_size(path, status);
  return status ? std::nullopt : std::optional(bytes);
}

std::uint64_t free_bytes(const std::string& path) noexcept {
  std::error_code ignored;
  fs::path folder = fs::absolute(path, ignored);
  while (folder.has_relative_path() && !fs::exists(folder, ignored)) folder = folder.parent_path();
  struct statvfs space {};
  if (::statvfs(folder.c_str(), &space) != 0 || space.f_blocks == 0) return std::numeric_limits<std::uint64_t>::max();
  std::uint64_t bytes = 0;
  const bool overflow = __builtin_mul_overflow(std::uint64_t{space.f_bavail}, std::uint64_t{space.f_frsize}, &bytes);
  return overflow ? std::numeric_limits<std::uint64_t>::max() : bytes;
}

}  // namespace local
}  // namespace tensorcast::checkpoint
