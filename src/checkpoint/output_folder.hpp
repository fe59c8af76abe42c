// The folder that a checkpoint is written to: here, held open, so that no link inside it is followed; or behind a URL.
// Names are relative to it, such as "unet/config.json".
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/stored_file.hpp"
#include "io/folder.hpp"
#include "io/written_files.hpp"
#include "tensorcast/error.hpp"

namespace tensorcast::checkpoint {

class OutputFolder {
 public:
  struct Entry {
    io::Found::Kind kind = io::Found::Kind::file;
    std::uint64_t bytes = 0;
    std::string version = {};  // as StoredFile::version()
  };

  // Opens a folder. create() makes it and those above. Errors: io.
  [[nodiscard]] static Result<OutputFolder> open(const std::string& path);
  [[nodiscard]] static Result<OutputFolder> create(const std::string& path);

  [[nodiscard]] bool is_remote() const noexcept { return !local_.has_value(); }
  [[nodiscard]] const io::Folder& local() const noexcept { return *local_; }  // unless is_remote()
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] std::string path_of(const std::string& name) const { return path_ + "/" + name; }

  // Returns nullopt only if nothing has this name. Errors: io.
  [[nodiscard]] Result<std::optional<Entry>> find(const std::string& name) const;
  // The names directly in `folder` ("" or "unet/") that are not folders; none if there is no such folder. Errors: io.
  [[nodiscard]] Result<std::vector<std::string>> names_in(const std::string& folder) const;
  // All names below `folder`, at any depth, that are not folders. Errors: io.
  [[nodiscard]] Result<std::vector<std::string>> names_below(const std::string& folder) const;

  [[nodiscard]] Result<std::unique_ptr<StoredFile>> open_file(const std::string& name) const;
  // Creates a file that appears, or replaces one, on commit(). Its folder exists. Errors: io, also if the disk has no
  // `bytes` left.
  [[nodiscard]] Result<std::unique_ptr<NewFile>> create_file(const std::string& name, std::uint64_t bytes) const;
  [[nodiscard]] Result<std::string> read_text(const std::string& name, std::uint64_t max_bytes) const;
  [[nodiscard]] Result<void> write_text(const std::string& name, const std::string& text) const;
  [[nodiscard]] Result<void> move(const std::string& from, const std::string& to) const;
  [[nodiscard]] Result<void> remove(const std::string& name) const;

  // Folders exist by their files in a store, so that these do nothing there. A folder is named without "/" at its end.
  [[nodiscard]] Result<void> create_folder(const std::string& name) const;
  [[nodiscard]] Result<void> remove_empty_folder(const std::string& name) const;
  [[nodiscard]] Result<void> sync_folder(const std::string& name) const;  // "" is this one
  // Removes the folders below `folder`, and itself, that have nothing in them. Errors: io.
  [[nodiscard]] Result<void> remove_empty_folders(const std::string& folder) const;

  // Reports whether the folder has the file as it was written, as io::is_as_written().
  [[nodiscard]] Result<bool> is_as_written(const io::WrittenFile& file) const;

 private:
  std::optional<io::Folder> local_;
  std::string path_;
};

// Returns the SHA-256 of a whole file. Errors: io.
[[nodiscard]] Result<std::string> sha256_of_file(const StoredFile& source);

}  // namespace tensorcast::checkpoint
