// Where --report writes.
#pragma once

#include <span>
#include <string>

#include "tensorcast/error.hpp"

namespace tcast {

// What must hold before hours of work start: the report can be written, and under no name of `others`, the files that
// the command reads and writes, whether they exist or not. Errors: io, invalid_argument.
[[nodiscard]] tensorcast::Result<void> check_report_path(const std::string& path, std::span<const std::string> others,
                                                         bool overwrite);

// Compares once more with `others`, which exist by now: two spellings can name one file only then.
[[nodiscard]] tensorcast::Result<void> write_report(const std::string& path, std::span<const std::string> others,
                                                    const std::string& text, bool overwrite);

}  // namespace tcast
