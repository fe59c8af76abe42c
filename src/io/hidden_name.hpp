// Names of half-written files. Who writes one holds its lock, so that whatever is not locked was left by a dead writer.
#pragma once

#include <string>

namespace tensorcast::io {

// How many writers of one name can have hidden files at the same time.
inline constexpr int hidden_slots = 64;

// `.NAME.tcast-SLOT.tmp`, never longer than a file name may be. Names that begin alike may share slots.
[[nodiscard]] std::string hidden_name(const std::string& name, int slot);

// Locks the open file `fd` for its writer. Reports false when it was taken for abandoned before that, so that `hidden`
// no longer names it.
[[nodiscard]] bool lock_hidden_file(int folder, const std::string& hidden, int fd) noexcept;

// Removes `hidden` from `folder` if no writer holds it. Reports whether the name is free.
bool remove_abandoned_file(int folder, const std::string& hidden) noexcept;

}  // namespace tensorcast::io
