// SPDX-License-Identifier: Apache-2.0
// Checks and writes the file of --report, and that of --picture.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "tensorcast/error.hpp"
#include "tensorcast/whole_file.hpp"

namespace tcast {

// Checks before the work that the report can be written, and that it is none of `others`, the files and folders that
// the command reads and writes, nor in one of these folders. Errors: io, invalid_argument.
[[nodiscard]] tensorcast::Result<void> check_report_path(const std::string& path,
                                                         std::span<const tensorcast::PathUse> others, bool overwrite,
                                                         std::string_view noun = "report");

// Compares again with `others`, which exist now.
[[nodiscard]] tensorcast::Result<void> write_report(const std::string& path,
                                                    std::span<const tensorcast::PathUse> others,
                                                    const std::string& text, bool overwrite,
                                                    std::string_view noun = "report");

}  // namespace tcast
