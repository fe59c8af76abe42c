// SPDX-License-Identifier: Apache-2.0
// What a run wrote into a folder, as text that stays there: only these files may a later run replace or remove.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "io/folder.hpp"
#include "io/input_file.hpp"
#include "tensorcast/error.hpp"

namespace tensorcast::io {

struct WrittenFile {
  std::string name;         // relative to the folder
  std::uint64_t bytes = 0;  //
  std::string version;      // the time in nanoseconds, or the entity tag of an object; "" if unknown
  std::string sha256;       // 64 hexadecimal digits
};

struct WrittenFiles {
  std::string identity;  // of the run
  std::vector<WrittenFile> files;
};

// A file as JSON, and back, which throws nlohmann::json::exception.
[[nodiscard]] nlohmann::ordered_json written_file_json(const WrittenFile& file);
[[nodiscard]] WrittenFile read_written_file(const nlohmann::ordered_json& json);

[[nodiscard]] std::string written_files_text(const WrittenFiles& written);
// Errors: parse; `path` is for messages.
[[nodiscard]] Result<WrittenFiles> parse_written_files(const std::string& text, const std::string& path);

// Reports whether `text` is the SHA-256 of something: 64 hexadecimal digits.
[[nodiscard]] bool is_sha256(const std::string& text) noexcept;
// Returns the SHA-256 of a whole file. Errors: io.
[[nodiscard]] Result<std::string> sha256_of_file(const InputFile& file);

// Reports whether `folder` still has the file as it was written: with another size it has not, with the same size and
// time it has, otherwise the file is read and its SHA-256 decides. A link is not the file. Errors: io.
[[nodiscard]] Result<bool> is_as_written(const Folder& folder, const WrittenFile& file);

}  // namespace tensorcast::io
