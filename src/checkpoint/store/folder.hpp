// SPDX-License-Identifier: Apache-2.0
// A checkpoint's folder: here (local_folder.hpp), or behind a URL (remote_folder.hpp). Only folder.cpp asks which.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "checkpoint/store/file_glob.hpp"
#include "checkpoint/store/stored_file.hpp"
#include "io/folder.hpp"
#include "io/folder_lock.hpp"
#include "io/written_files.hpp"
#include "tensorcast/error.hpp"
#include "tensorcast/file.hpp"

namespace tensorcast::checkpoint {

// A folder inside another, held open and locked. It needs the other.
class LockedFolder {
 public:
  LockedFolder(const io::Folder& above, std::string name, io::Folder folder, io::FolderLock lock)
      : above_(&above), name_(std::move(name)), folder_(std::move(folder)), lock_(std::move(lock)) {}
  // Reports whether the name still stands for this folder. Errors: io.
  [[nodiscard]] Result<bool> is_still() const { return folder_.is_still(*above_, name_); }

 private:
  const io::Folder* above_;
  std::string name_;
  io::Folder folder_;
  io::FolderLock lock_;
};

// The folder that a checkpoint is written to: held open if it is here, so that no link inside it is followed. Names are
// relative to it, such as "unet/config.json". A folder below is named without "/" at its end.
class Folder {
 public:
  struct Entry {
    io::Found::Kind kind = io::Found::Kind::file;
    std::uint64_t bytes = 0;
    std::string version = {};  // as StoredFile::version()
  };

  // Opens a folder. create() makes it and those above; what it made goes with this if it is empty. Errors: io.
  [[nodiscard]] static Result<std::unique_ptr<Folder>> open(const std::string& path);
  [[nodiscard]] static Result<std::unique_ptr<Folder>> create(const std::string& path);
  virtual ~Folder() = default;

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] std::string path_of(const std::string& name) const { return path_ + "/" + name; }

  // Returns nullopt only if nothing has this name. Errors: io.
  [[nodiscard]] virtual Result<std::optional<Entry>> find(const std::string& name) const = 0;
  // The names directly in `folder` ("" or "unet/"), those of folders with "/" at their end; none if there is no such
  // folder. Errors: io.
  [[nodiscard]] virtual Result<std::vector<std::string>> names_in(const std::string& folder) const = 0;
  // All names below `folder` ("" or "unet"), at any depth, that are not folders. Errors: io.
  [[nodiscard]] virtual Result<std::vector<std::string>> names_below(const std::string& folder) const = 0;

  [[nodiscard]] virtual Result<StoredFile> open_file(const std::string& name) const = 0;
  // Creates a file that appears, or replaces one, on commit(). Its folder exists. Errors: io, also if the disk has no
  // `bytes` left.
  [[nodiscard]] virtual Result<std::unique_ptr<NewFile>> create_file(const std::string& name,
                                                                     std::uint64_t bytes) const = 0;
  [[nodiscard]] Result<std::string> read_text(const std::string& name, std::uint64_t max_bytes) const;
  [[nodiscard]] Result<void> write_text(const std::string& name, const std::string& text) const;
  [[nodiscard]] virtual Result<void> move(const std::string& from, const std::string& to) const = 0;
  // Removes a file; one that is not there is no error.
  [[nodiscard]] virtual Result<void> remove(const std::string& name) const = 0;

  // A store has no folders but those that files are in, so these do nothing there.
  [[nodiscard]] virtual Result<void> create_folder(const std::string& /*name*/) const { return {}; }
  [[nodiscard]] virtual Result<void> remove_empty_folder(const std::string& /*name*/) const { return {}; }
  [[nodiscard]] virtual Result<void> sync_folder(const std::string& /*name*/) const { return {}; }  // "" is this one
  // Removes the folders below `folder`, and itself, that have nothing in them. Errors: io.
  [[nodiscard]] virtual Result<void> remove_empty_folders(const std::string& /*folder*/) const { return {}; }
  // Gives a folder another name in one step. Returns false if folders cannot be moved: those of a store. Errors: io.
  [[nodiscard]] virtual Result<bool> move_folder(const std::string& /*from*/, const std::string& /*to*/) const {
    return false;
  }
  // Locks the folder `name` by its file `lock_name`. Returns nullopt in a store, which has no locks. Errors: io; `busy`
  // if another run has a lock that excludes this one, or removed the folder just before.
  [[nodiscard]] virtual Result<std::optional<LockedFolder>> lock(const std::string& /*name*/,
                                                                 const std::string& /*lock_name*/,
                                                                 io::LockKind /*kind*/, const Error& /*busy*/) const {
    return std::optional<LockedFolder>();
  }
  // Reports whether the folder has the file as it was written, as io::is_as_written().
  [[nodiscard]] Result<bool> is_as_written(const io::WrittenFile& file) const;

 protected:
  explicit Folder(std::string path) : path_(std::move(path)) {}

 private:
  std::string path_;
};

struct ListedFile {
  std::string name;  // relative, such as "unet/config.json"
  std::uint64_t bytes = 0;
};
struct Listing {
  std::vector<ListedFile> files;           // by name
  std::vector<std::string> empty_folders;  // relative names
  std::vector<LeftOut> left_out;           // .git, .cache and .tcast, with their bytes
};

// What paths and URLs stand for. A URL without a store stands for nothing, and reading it is an error (unsupported).

// Reports whether a path is of this machine: formats, and conversions of single files, open no others.
[[nodiscard]] bool is_local(const std::string& path) noexcept;
// Returns the path without symbolic links and "..". Parts at the end need not exist.
[[nodiscard]] Result<std::string> real_path(const std::string& path);
[[nodiscard]] bool is_folder(const std::string& path) noexcept;
[[nodiscard]] bool is_file(const std::string& path) noexcept;
// Reports whether a folder can be made without those above: they exist, or need not.
[[nodiscard]] bool has_folder_above(const std::string& path) noexcept;
[[nodiscard]] std::optional<std::uint64_t> file_bytes(const std::string& path) noexcept;  // nullopt: it is no file
// The space that the file system of `path`, or of its nearest folder that exists, has left; UINT64_MAX if unknown.
[[nodiscard]] std::uint64_t free_bytes(const std::string& path) noexcept;
// Opens `name` in `folder`. A symbolic link must lead to a file in the folder, or, in a snapshot of Hugging Face's
// cache (FOLDER/snapshots/REVISION), to one in FOLDER/blobs. Errors: io, parse (the name or a link leads elsewhere).
[[nodiscard]] Result<StoredFile> open_source(const std::string& folder, const std::string& name);
// Checks that open_source() will open a file that is listed. Does nothing where there are no links. Errors: as there.
[[nodiscard]] Result<void> check_source(const std::string& folder, const std::string& name);
// Lists what is below `folder`. Hidden files of this program are left out without a word. Errors: io; parse, for links
// to folders; unsupported, for devices and pipes. What `skip` matches is not looked at, and is in `left_out`.
[[nodiscard]] Result<Listing> list_folder(const std::string& folder, FileGlobs* skip = nullptr);
// Returns the snapshot in the root of a model of Hugging Face's cache (models--ORG--NAME): that of refs/main, or else
// the only one. Returns other folders as they are. Errors: unsupported, naming the snapshots to choose from.
[[nodiscard]] Result<std::string> snapshot_of(const std::string& folder);

// Writes the path of an error as the caller gave it: below `given`, not below its real path.
[[nodiscard]] Error with_given_path(Error error, const std::string& given);
// Reports whether a folder of this name has the state of git, of downloads or of this program.
[[nodiscard]] bool is_state_folder(std::string_view name) noexcept;
// Reports whether this program makes hidden files of this name while it writes.
[[nodiscard]] bool is_hidden_output(std::string_view name) noexcept;

// Reads a whole small file. Errors: io; unsupported when it is over `max_bytes`.
[[nodiscard]] Result<std::string> read_text(const StoredFile& file, std::uint64_t max_bytes);
// Reads a whole file in blocks. Errors: io, and those of `use`, at which it stops.
[[nodiscard]] Result<void> read_blocks(const StoredFile& file,
                                       const std::function<Result<void>(std::span<const std::byte>)>& use);
// Returns the SHA-256 of a whole file. `advance`, if there is one, is told of its bytes, and returns false to cancel.
// Errors: io; cancelled.
[[nodiscard]] Result<std::string> sha256_of_file(const StoredFile& file,
                                                 const std::function<bool(std::uint64_t bytes)>& advance = {});

}  // namespace tensorcast::checkpoint
