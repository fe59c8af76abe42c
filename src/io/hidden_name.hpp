// Names of half-written files, and getting rid of those whose writer died.
#pragma once

#include <string>

namespace tensorcast::io {

// `.NAME.tcast-PID-RANDOM.tmp`, never longer than a file name may be.
[[nodiscard]] std::string make_hidden_name(const std::string& name);

// Removes the hidden files of `name` in `folder` whose process is gone and whose lock is free. Never fails.
void remove_stale_hidden_files(int folder, const std::string& name);

}  // namespace tensorcast::io
