// SPDX-License-Identifier: Apache-2.0
// Folders of the store behind URLs: what folder.hpp chooses for them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "checkpoint/store/folder.hpp"

namespace tensorcast::checkpoint::remote {

[[nodiscard]] Result<std::unique_ptr<Folder>> open_folder(const std::string& url);
[[nodiscard]] Result<StoredFile> open_file(const std::string& url);
[[nodiscard]] bool is_folder(const std::string& url) noexcept;
[[nodiscard]] std::optional<std::uint64_t> file_bytes(const std::string& url) noexcept;
[[nodiscard]] Result<Listing> list_folder(const std::string& folder, FileGlobs* skip);

}  // namespace tensorcast::checkpoint::remote
