// Checks and writes the file of --report, and that of --picture.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "tensorcast/error.hpp"

namespace tcast {

// Checks before the work that the report can be written, and that its path is none of `others`, the files that the
// command reads and writes, whether they exist or not. Errors: io, invalid_argument.
[[nodiscard]] tensorcast::Result<void> check_report_path(const std::string& path, std::span<const std::string> others,
                                                         bool overwrite, std::string_view noun = "report");

// Compares again with `others`, which exist now: only then can two spellings of one file be detected.
[[nodiscard]] tensorcast::Result<void> write_report(const std::string& path, std::span<const std::string> others,
                                                    const std::string& text, bool overwrite,
                                                    std::string_view noun = "report");

}  // namespace tcast
