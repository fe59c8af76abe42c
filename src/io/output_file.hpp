// SPDX-License-Identifier: Apache-2.0
// A file that is complete or absent: written beside its place, renamed over it on commit. A URL's file is written to a
// temporary file, and sent to its store on commit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "io/file_descriptor.hpp"
#include "tensorcast/error.hpp"
#include "tensorcast/remote_store.hpp"

namespace tensorcast::io {

class OutputFile {
 public:
  // Creates a temporary file in the folder of `path`: one without a name if the file system supports it (even SIGKILL
  // then leaves nothing), else a hidden one. A symbolic link is followed to the file that it names. The mode of an
  // existing file is kept. Errors: io; invalid_argument if `path` exists and `overwrite` is off, or is not a regular
  // file; unsupported: a URL without a store.
  [[nodiscard]] static Result<OutputFile> create(const std::string& path, bool overwrite);

  // Creates `name`, one part, in an open folder, and replaces what has the name on commit(), a link itself and not the
  // file that it names. `path` is for messages. Errors: io; invalid_argument, for a folder of this name.
  [[nodiscard]] static Result<OutputFile> create_in(FileDescriptor folder, const std::string& name,
                                                    const std::string& path);
  // Returns the errors of create() that show before a file is created.
  [[nodiscard]] static Result<void> check_place(const std::string& path, bool overwrite);
  // Takes `made`, a complete file elsewhere on the file system of `path`; commit() moves it there. Errors: as create().
  [[nodiscard]] static Result<OutputFile> adopt(const std::string& made, const std::string& path, bool overwrite);

  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&& other) noexcept;
  ~OutputFile();  // without commit(): removes the temporary, leaves the old file untouched

  // Sets the permissions, such as 0644; best effort, as some file systems have none.
  void set_mode(unsigned mode) noexcept;
  // Reports whether commit() replaces a file.
  [[nodiscard]] bool replaces() const noexcept { return replaces_; }

  [[nodiscard]] Result<void> append(std::span<const std::byte> bytes);
  // Overwrites appended bytes, for headers whose sizes are known only at the end.
  [[nodiscard]] Result<void> patch(std::uint64_t offset, std::span<const std::byte> bytes);
  // Reserves space so that a full disk is detected before the work; never fails if the system cannot tell.
  [[nodiscard]] Result<void> reserve(std::uint64_t bytes);
  // Gives the file another final name in its folder, one part, which commit() does not replace. `path` is for messages.
  void take_name(std::string name, std::string path);
  // Waits until all appended bytes are on the disk.
  [[nodiscard]] Result<void> sync();
  // Syncs, renames to the final name, syncs the folder. Errors: io; invalid_argument if another process created `path`
  // meanwhile and `overwrite` is off; the final name is then unchanged.
  [[nodiscard]] Result<void> commit();

  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }                 // final name
  [[nodiscard]] const std::string& temporary_path() const noexcept { return temporary_; }  // for reading back

 private:
  OutputFile() noexcept = default;
  struct Old;
  [[nodiscard]] static Result<OutputFile> locate(const std::string& path, bool overwrite, Old& old);
  [[nodiscard]] static Result<OutputFile> create_remote(const std::string& url, bool overwrite);
  [[nodiscard]] Result<void> check_remote_name() const;
  [[nodiscard]] Result<void> send();
  void take_owner(const Old& old) const noexcept;
  void discard() noexcept;
  [[nodiscard]] bool open_unnamed(unsigned mode);
  [[nodiscard]] Result<void> open_named(unsigned mode, const std::string& folder);
  [[nodiscard]] bool link_to(const std::string& name) const noexcept;
  [[nodiscard]] std::string link_hidden() const;  // returns the name; empty on failure
  [[nodiscard]] Result<void> publish();
  [[nodiscard]] Error already_exists() const;

  FileDescriptor folder_;  // folder of the file behind any symbolic link; survives a renamed folder
  FileDescriptor fd_;
  std::uint64_t size_ = 0;
  std::uint64_t reserved_ = 0;
  std::uint64_t flushing_ = 0;  // write-back has been started up to here
  std::string path_;
  std::string name_;         // in folder_
  std::string hidden_name_;  // in folder_, or an absolute path; empty if no file has that name
  std::string temporary_;
  std::shared_ptr<RemoteStore> store_;  // of a URL
  bool overwrite_ = false;
  bool replaces_ = false;
};

}  // namespace tensorcast::io
