// A folder as the place of a checkpoint: in the local file system, or behind a URL.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "checkpoint/stored_file.hpp"
#include "io/input_file.hpp"
#include "io/output_file.hpp"
#include "tensorcast/error.hpp"

namespace tensorcast::checkpoint {

// Opens `name` in `folder`. A symbolic link must lead to a file in the folder, or, in a snapshot of Hugging Face's
// cache (FOLDER/snapshots/REVISION), to one in FOLDER/blobs. Errors: io, parse (the name or a link leads elsewhere).
[[nodiscard]] Result<std::unique_ptr<StoredFile>> open_source(const std::string& folder, const std::string& name);

// The same, of a folder here.
[[nodiscard]] Result<io::InputFile> open_local(const std::string& folder, const std::string& name);

// Files of the local file system behind the interfaces; `path` is for messages.
[[nodiscard]] std::unique_ptr<StoredFile> local_stored_file(io::InputFile file, std::string path);
[[nodiscard]] std::unique_ptr<NewFile> local_new_file(io::OutputFile file);

// Reads a whole small file. Errors: io; unsupported when it is over `max_bytes`.
[[nodiscard]] Result<std::string> read_text(const StoredFile& source, std::uint64_t max_bytes);

struct ListedFile {
  std::string name;  // relative, such as "unet/config.json"
  std::uint64_t bytes = 0;
};
// Returns the path without symbolic links and "..". Parts at the end need not exist.
[[nodiscard]] Result<std::string> real_path(const std::string& path);
// Writes the path of an error as the caller gave it: below `given`, not below its real path.
[[nodiscard]] Error with_given_path(Error error, const std::string& given);
[[nodiscard]] bool is_folder(const std::string& path) noexcept;
[[nodiscard]] bool is_file(const std::string& path) noexcept;
[[nodiscard]] std::uint64_t file_bytes(const std::string& path) noexcept;  // UINT64_MAX if there is none
// The space that the file system of `path`, or of its nearest folder that exists, has left; UINT64_MAX if unknown.
[[nodiscard]] std::uint64_t free_bytes(const std::string& path) noexcept;

}  // namespace tensorcast::checkpoint
