// SPDX-License-Identifier: Apache-2.0
// Names of half-written files, and of folders of them. A writer holds the lock of its file, so a file without a lock
// was left by a dead writer.
#pragma once

#include <string>

#include "io/file_descriptor.hpp"

namespace tensorcast::io {

// The number of writers of one name that can have hidden files at the same time.
inline constexpr int hidden_slots = 64;

// Returns `.NAME.tcast-SLOT.tmp`, shortened to the longest file name allowed. Names that begin alike may share slots.
[[nodiscard]] std::string hidden_name(const std::string& name, int slot);

// Locks the open file `fd` for its writer. Returns false if another writer took it for abandoned first, so that
// `hidden` no longer names it, or if the system cannot tell; `fd` is closed then, and the file removed if it is there.
[[nodiscard]] bool lock_hidden_file(int folder, const std::string& hidden, FileDescriptor& fd) noexcept;

// Removes `hidden` from `folder` if no writer holds it, and the files in it if it is a folder. Reports whether the name
// is free.
bool remove_abandoned_file(int folder, const std::string& hidden) noexcept;

// Removes the folder `hidden`, open as `fd`, and the files in it. Reports whether it is gone.
bool remove_hidden_folder(int folder, const std::string& hidden, int fd) noexcept;

}  // namespace tensorcast::io
