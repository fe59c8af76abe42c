// SPDX-License-Identifier: Apache-2.0
// A folder that is held open. Names are relative to it, such as "unet/config.json", and no symbolic link below it is
// followed, so that nothing outside of it can be read, written or removed, whatever happens to paths meanwhile.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/file_descriptor.hpp"
#include "io/input_file.hpp"
#include "io/output_file.hpp"
#include "tensorcast/error.hpp"

namespace tensorcast::io {

// What a name stands for, without following it if it is a link.
struct Found {
  enum class Kind { file, folder, link, other };
  Kind kind = Kind::other;
  std::uint64_t bytes = 0;
  std::int64_t modified_ns = 0;
  InputFile::Identity identity;
};

class Folder {
 public:
  // Opens a folder by a path, whose links are followed. Errors: io, unless it is a folder.
  [[nodiscard]] static Result<Folder> open(const std::string& path);
  // Opens, or creates, a folder below this one. Errors: io, also for links and files of this name.
  [[nodiscard]] Result<Folder> open_below(const std::string& name) const;
  [[nodiscard]] Result<Folder> create_below(const std::string& name) const;

  // Returns nullopt only if nothing has this name. Errors: io.
  [[nodiscard]] Result<std::optional<Found>> find(const std::string& name) const;
  // All names in this folder and what they stand for, not those in its folders, in order. Errors: io.
  [[nodiscard]] Result<std::vector<std::pair<std::string, Found>>> list() const;
  // Reports whether the folder above still has this folder under `name`. Errors: io.
  [[nodiscard]] Result<bool> is_still(const Folder& above, const std::string& name) const;

  // Errors: io, also for links.
  [[nodiscard]] Result<InputFile> open_file(const std::string& name) const;
  // Creates a file that appears, or replaces a file or link of its name, on commit(). Its folder exists. Errors: io.
  [[nodiscard]] Result<OutputFile> create_file(const std::string& name) const;
  // Gives a file another name, in this folder or `to`, replacing a file or link there. Errors: io.
  [[nodiscard]] Result<void> move(const std::string& name, const Folder& to, const std::string& new_name) const;
  // Removes a file or a link, or an empty folder; one that is not there is no error, nor is a folder with something in
  // it. Errors: io.
  [[nodiscard]] Result<void> remove_file(const std::string& name) const;
  [[nodiscard]] Result<void> remove_empty(const std::string& name) const;
  // Waits until the names in the folder are on the disk. Errors: io.
  [[nodiscard]] Result<void> sync() const;

  [[nodiscard]] const std::string& path() const noexcept { return path_; }  // as given; for messages
  [[nodiscard]] int descriptor() const noexcept { return fd_.get(); }

 private:
  Folder() noexcept = default;
  [[nodiscard]] std::string path_of(std::string_view name) const { return path_ + "/" + std::string(name); }
  [[nodiscard]] Result<Folder> below(const std::string& name, bool create) const;
  // Opens the folder that has `name`, and sets its last part.
  [[nodiscard]] Result<FileDescriptor> above(const std::string& name, std::string& last) const;

  FileDescriptor fd_;
  std::string path_;
};

}  // namespace tensorcast::io
