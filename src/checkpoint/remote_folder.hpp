// The store behind URLs as the place of a checkpoint: what local_folder.hpp does for paths.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/stored_file.hpp"
#include "tensorcast/remote_store.hpp"

namespace tensorcast::checkpoint {

// Reports whether a path is a URL, which the store has.
[[nodiscard]] bool is_remote(const std::string& path) noexcept;

// Errors: unsupported if no store is set.
[[nodiscard]] Result<std::shared_ptr<RemoteStore>> remote_store(const std::string& url);

[[nodiscard]] Result<std::unique_ptr<StoredFile>> open_remote(const std::string& url);
[[nodiscard]] Result<std::unique_ptr<NewFile>> create_remote(const std::string& url);
[[nodiscard]] std::uint64_t remote_bytes(const std::string& url) noexcept;  // UINT64_MAX if there is none
[[nodiscard]] bool is_remote_folder(const std::string& url) noexcept;
// The URLs below a folder, without the folder, by name.
[[nodiscard]] Result<std::vector<RemoteFile>> list_remote(const std::string& folder);
[[nodiscard]] Result<void> move_remote(const std::string& from, const std::string& to);
// Returns nullopt only if there is no such file. Errors: io.
[[nodiscard]] Result<std::optional<RemoteFile>> find_remote(const std::string& url);
[[nodiscard]] Result<void> remove_remote(const std::string& url);  // a file; one that is not there is no error

}  // namespace tensorcast::checkpoint
