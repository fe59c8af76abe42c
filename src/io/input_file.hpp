// SPDX-License-Identifier: Apache-2.0
// One file opened for bounded positional reads, or the bytes of a ByteSource. Thread-safe.
#pragma once

#include <atomic>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/file_descriptor.hpp"
#include "tensorcast/byte_source.hpp"
#include "tensorcast/error.hpp"

namespace tensorcast::io {

class InputFile {
 public:
  // Opens a regular file, never blocking on a pipe, or a URL's file in the store of remote_file.hpp. Errors: io, with
  // the path and the system's reason; unsupported: a URL without a store.
  [[nodiscard]] static Result<InputFile> open(const std::string& path);
  // Opens a file that another file names, relative to `folder` and below it: no absolute path, no ".." that leads out,
  // no symbolic links. Errors: parse if `relative` leads elsewhere; io.
  [[nodiscard]] static Result<InputFile> open_below(const std::string& folder, std::string_view relative);

  // Opens `name`, one part, in an open folder; no link is followed. `path` is for messages. Errors: io.
  [[nodiscard]] static Result<InputFile> open_in(int folder, const std::string& name, const std::string& path);
  // Reads from a source. `name` is the path, for messages. Its reads are one after another, and their errors name the
  // file; exceptions become errors. Errors: invalid_argument: null.
  [[nodiscard]] static Result<InputFile> of(std::shared_ptr<ByteSource> source, std::string name);
  // Reads from memory, which outlives the result. The path is empty.
  [[nodiscard]] static InputFile in_memory(std::span<const std::byte> bytes);

  // Reads bytes of a file, and text between them, as one file with the path of `source`, which outlives the result.
  struct Part {
    std::uint64_t bytes = 0;
    std::uint64_t offset = 0;  // in `source`
    std::string text = {};     // unless empty, stands here instead
  };
  [[nodiscard]] static InputFile spliced(const InputFile& source, std::vector<Part> parts);

  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&& other) noexcept;

  // Reads exactly out.size() bytes from `offset`. Large reads prefetch the bytes that follow. Errors: io; parse if the
  // file ends too early.
  [[nodiscard]] Result<void> read(std::uint64_t offset, std::span<std::byte> out) const;
  // Asks the system to read ahead; never fails.
  void will_need(std::uint64_t offset, std::uint64_t bytes) const noexcept;
  // Tells the system that this range will not be read again; never fails.
  void dont_need(std::uint64_t offset, std::uint64_t bytes) const noexcept;

  // Tells other runs that the file must stay as long as it is open here. Returns false if one is about to remove it.
  [[nodiscard]] bool keep() const noexcept;
  // Reports whether it may be removed: nobody else has called keep(), and nobody can as long as it is open here.
  [[nodiscard]] bool may_go() const noexcept;

  // Equal for two paths of one file, and different for any other open file.
  struct Identity {
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
    auto operator<=>(const Identity&) const = default;
  };
  [[nodiscard]] Identity identity() const noexcept { return identity_; }
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  // The time of the last change when the file was opened, in nanoseconds since 1970.
  [[nodiscard]] std::int64_t modified_ns() const noexcept { return modified_ns_; }
  // The permissions, such as 0644; 0 if there is no file.
  [[nodiscard]] unsigned mode() const noexcept { return mode_; }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  // Reports whether the path is that of a file of this machine, so that others can be found beside it.
  [[nodiscard]] bool has_folder() const noexcept { return spliced_ != nullptr ? spliced_->has_folder() : bool{fd_}; }

 private:
  InputFile(FileDescriptor fd, Identity identity, std::uint64_t size, std::string path) noexcept;
  [[nodiscard]] static Result<InputFile> from_descriptor(FileDescriptor fd, const std::string& path);

  void read_ahead(std::uint64_t end) const noexcept;
  [[nodiscard]] bool lock(int operation) const noexcept;
  [[nodiscard]] Result<void> read_source(std::uint64_t offset, std::span<std::byte> out) const;
  [[nodiscard]] Result<void> read_parts(std::uint64_t offset, std::span<std::byte> out) const;

  FileDescriptor fd_;
  mutable std::atomic<std::uint64_t> ahead_{0};  // everything before this offset has been prefetched
  Identity identity_;
  std::uint64_t size_ = 0;
  std::int64_t modified_ns_ = 0;
  unsigned mode_ = 0;
  std::string path_;
  struct Source;
  std::shared_ptr<Source> source_;      // without a descriptor
  const InputFile* spliced_ = nullptr;  // of parts
  std::vector<Part> parts_;
  std::vector<std::uint64_t> part_ends_;
};

}  // namespace tensorcast::io
