// SPDX-License-Identifier: Apache-2.0
// Checks and writes the file of --picture: a model as DOT text, or as SVG by Graphviz's `dot`.
#pragma once

#include <CLI/CLI.hpp>
#include <span>
#include <string>

#include "tensorcast/error.hpp"
#include "tensorcast/whole_file.hpp"

namespace tcast {

// Adds --picture; only names that end in .dot, .gv or .svg are accepted.
CLI::Option* add_picture(CLI::App& command, std::string& path);

// Checks before the work that the picture of `model` can be written to `path`, and is none of `others`, which the
// command reads and writes. Errors: io, invalid_argument; unsupported: no program `dot`, a model that is too large.
[[nodiscard]] tensorcast::Result<void> check_picture(const std::string& path, const std::string& model,
                                                     std::span<const tensorcast::PathUse> others, bool overwrite);

// Draws `model`, and writes the picture. Errors: as above.
[[nodiscard]] tensorcast::Result<void> write_picture(const std::string& path, const std::string& model,
                                                     std::span<const tensorcast::PathUse> others, bool overwrite);

}  // namespace tcast
