#include "checkpoint/local_folder.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <limits>
#include <system_error>

#include "checkpoint/file_name.hpp"
#include "checkpoint/remote_folder.hpp"
#include "io/input_file.hpp"
#include "io/output_file.hpp"
#include "io/path_name.hpp"
#include "io/system_error.hpp"
#include "tensorcast/whole_file.hpp"

namespace tensorcast::checkpoint {
namespace {

namespace fs = std::filesystem;

Error io_error(std::string_view doing, const std::string& path, const std::error_code& status) {
  return io::system_error(doing, path, status.value());
}

class LocalStoredFile final : public StoredFile {
 public:
  LocalStoredFile(io::InputFile file, std::string path) : file_(std::move(file)), path_(std::move(path)) {}

  Result<void> read(std::uint64_t offset, std::span<std::byte> out) const override {
    Result<void> got = file_.read(offset, out);
    if (!got) got.error().file = path_;
    return got;
  }
  std::uint64_t size() const noexcept override { return file_.size(); }
  std::string version() const override { return std::to_string(file_.modified_ns()); }
  unsigned mode() const noexcept override { return file_.mode(); }
  const std::string& path() const noexcept override { return path_; }

 private:
  io::InputFile file_;
  std::string path_;  // as the user knows it, with links
};

class LocalNewFile final : public NewFile {
 public:
  explicit LocalNewFile(io::OutputFile file) : file_(std::move(file)) {}

  void set_mode(unsigned mode) noexcept override {
    if (mode != 0) file_.set_mode(mode);
  }
  Result<void> append(std::span<const std::byte> bytes) override { return file_.append(bytes); }
  Result<std::unique_ptr<StoredFile>> read_back() override {
    if (Result<void> synced = file_.sync(); !synced) return std::move(synced).error();
    Result<io::InputFile> written = io::InputFile::open(file_.temporary_path());
    if (!written) return std::move(written).error();
    written->dont_need(0, written->size());
    return std::unique_ptr<StoredFile>(std::make_unique<LocalStoredFile>(std::move(written).value(), file_.path()));
  }
  Result<void> commit() override { return file_.commit(); }
  const std::string& path() const noexcept override { return file_.path(); }

 private:
  io::OutputFile file_;
};

// Reports whether `path` is below `folder`; both are real paths.
bool is_below(const std::string& path, const std::string& folder) {
  return path.size() > folder.size() && path.starts_with(folder) && (folder == "/" || path[folder.size()] == '/');
}

// Returns the part of `path` that is below `folder`, which may be "/".
std::string below(const std::string& folder, const std::string& path) {
  return path.substr(folder.size() + (folder.ends_with('/') ? 0 : 1));
}

// Returns the folder of the blobs of a snapshot of Hugging Face's cache, "" for another folder.
std::string blobs_of_snapshot(const std::string& folder) {
  const fs::path snapshots = fs::path(folder).parent_path();
  return snapshots.filename() == "snapshots" ? (snapshots.parent_path() / "blobs").string() : std::string();
}

}  // namespace

Result<std::string> real_path(const std::string& path) {
  if (Result<void> checked = io::check_path(path); !checked) return std::move(checked).error();
  if (is_remote(path)) return path.substr(0, std::max(path.find("://") + 3, path.find_last_not_of('/') + 1));
  std::error_code status;
  const fs::path absolute = fs::absolute(path, status);
  const fs::path real = status ? fs::path() : fs::weakly_canonical(absolute, status);
  if (status) return io_error("open", path, status);
  std::string text = real.string();
  while (text.size() > 1 && text.ends_with('/')) text.pop_back();
  return text;
}

Result<io::InputFile> open_local(const std::string& folder, const std::string& name) {
  const std::string path = folder + "/" + name;
  if (Result<void> checked = check_file_name(name, folder); !checked) return std::move(checked).error();
  std::error_code status;
  const std::string root = fs::canonical(folder, status).string();
  if (status) return io_error("open", folder, status);
  const std::string real = fs::canonical(path, status).string();
  if (status) return io_error("open", path, status);
  const std::string blobs = blobs_of_snapshot(root);
  const std::string& base = is_below(real, root) || blobs.empty() ? root : blobs;
  if (!is_below(real, base)) {
    return Error{.code = ErrorCode::parse,
                 .message = "this is a symbolic link that leads out of the checkpoint's folder",
                 .hint = "replace it by the file, as `cp -L` does",
                 .file = path};
  }
  // Follows no links, so a link that is put there meanwhile is an error.
  Result<io::InputFile> file = io::InputFile::open_below(base, below(base, real));
  if (!file) file.error().file = path;
  return file;
}

Result<std::unique_ptr<StoredFile>> open_source(const std::string& folder, const std::string& name) {
  const std::string path = folder + "/" + name;
  if (is_remote(folder)) {
    if (Result<void> checked = check_file_name(name, folder); !checked) return std::move(checked).error();
    return open_remote(path);
  }
  Result<io::InputFile> file = open_local(folder, name);
  if (!file) return std::move(file).error();
  return std::unique_ptr<StoredFile>(std::make_unique<LocalStoredFile>(std::move(file).value(), path));
}

std::unique_ptr<StoredFile> local_stored_file(io::InputFile file, std::string path) {
  return std::make_unique<LocalStoredFile>(std::move(file), std::move(path));
}

std::unique_ptr<NewFile> local_new_file(io::OutputFile file) { return std::make_unique<LocalNewFile>(std::move(file)); }

Result<std::string> read_text(const StoredFile& source, std::uint64_t max_bytes) {
  if (source.size() > max_bytes) {
    return Error{.code = ErrorCode::unsupported,
                 .message = fmt::format("the file has {} bytes; {} are allowed", source.size(), max_bytes),
                 .file = source.path()};
  }
  std::string text(source.size(), '\0');
  if (Result<void> got = source.read(0, std::as_writable_bytes(std::span(text))); !got) return std::move(got).error();
  return text;
}

Error with_given_path(Error error, const std::string& given) {
  const Result<std::string> real = real_path(given);
  if (!real || !error.file.starts_with(*real)) return error;
  const std::string rest = error.file.substr(real->size());
  if (!rest.empty() && rest.front() != '/') return error;
  const bool slash = given.ends_with('/') && !rest.empty();
  error.file = given + (slash ? rest.substr(1) : rest);
  return error;
}

bool is_folder(const std::string& path) noexcept {
  if (is_remote(path)) return is_remote_folder(path);
  if (!io::check_path(path)) return false;
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

bool is_file(const std::string& path) noexcept {
  if (is_remote(path)) return remote_bytes(path) != std::numeric_limits<std::uint64_t>::max();
  if (!io::check_path(path)) return false;
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

std::uint64_t file_bytes(const std::string& path) noexcept {
  if (is_remote(path)) return remote_bytes(path);
  std::error_code status;
  const std::uint64_t bytes = fs::file_size(path, status);
  return status ? std::numeric_limits<std::uint64_t>::max() : bytes;
}

std::uint64_t free_bytes(const std::string& path) noexcept {
  if (is_remote(path)) return std::numeric_limits<std::uint64_t>::max();
  std::error_code ignored;
  fs::path folder = fs::absolute(path, ignored);
  while (folder.has_relative_path() && !fs::exists(folder, ignored)) folder = folder.parent_path();
  struct statvfs space {};
  if (::statvfs(folder.c_str(), &space) != 0 || space.f_blocks == 0) return std::numeric_limits<std::uint64_t>::max();
  std::uint64_t bytes = 0;
  const bool overflow = __builtin_mul_overflow(std::uint64_t{space.f_bavail}, std::uint64_t{space.f_frsize}, &bytes);
  return overflow ? std::numeric_limits<std::uint64_t>::max() : bytes;
}

}  // namespace tensorcast::checkpoint
