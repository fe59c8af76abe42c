// SPDX-License-Identifier: Apache-2.0
// Folders of this machine: what folder.hpp chooses for paths that are no URLs.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "checkpoint/store/folder.hpp"
#include "io/input_file.hpp"

namespace tensorcast::checkpoint {

// Opens the file as open_source() does, for formats that read files of this machine only.
[[nodiscard]] Result<io::InputFile> open_local(const std::string& folder, const std::string& name);

namespace local {

[[nodiscard]] Result<std::unique_ptr<Folder>> open_folder(const std::string& path);
[[nodiscard]] Result<std::unique_ptr<Folder>> create_folder(const std::string& path);
[[nodiscard]] Result<StoredFile> open_source(const std::string& folder, const std::string& name);
[[nodiscard]] Result<std::string> real_path(const std::string& path);
[[nodiscard]] bool is_folder(const std::string& path) noexcept;
[[nodiscard]] std::optional<std::uint64_t> file_bytes(const std::string& path) noexcept;
[[nodiscard]] std::uint64_t free_bytes(const std::string& path) noexcept;
[[nodiscard]] Result<Listing> list_folder(const std::string& folder, FileGlobs* skip);  // local_listing.cpp
[[nodiscard]] Result<std::string> snapshot_of(const std::string& folder);

}  // namespace local
}  // namespace tensorcast::checkpoint
