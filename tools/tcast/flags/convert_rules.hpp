// SPDX-License-Identifier: Apache-2.0
// Parses regular expressions of tensors' names, and rules such as '\.bias$=float32', from the command line or a file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "flags/options.hpp"
#include "tensorcast/file.hpp"

namespace tcast {

// Parses 'REGEX=DTYPE', split at the last '='. Errors: invalid_argument.
[[nodiscard]] tensorcast::Result<tensorcast::ConvertRule> parse_rule(std::string_view text);

// Adds the rules of a file to a request: YAML if its name ends in .yaml or .yml (rules_yaml.hpp), else one rule a line;
// blank lines and lines that start with # are ignored. Errors: io, parse; both name the file.
[[nodiscard]] tensorcast::Result<void> add_rules(const std::string& path, tensorcast::ConvertRequest& request);

// Returns the error of a regular expression, or "".
[[nodiscard]] std::string regex_complaint(const std::string& pattern);

// Adds a repeatable option that takes regular expressions of tensors' names.
CLI::Option* add_patterns(CLI::App& app, const std::string& name, std::vector<std::string>& target,
                          const std::string& help);

// Parses 'REGEX=NEW', split at the last '='. Errors: invalid_argument.
[[nodiscard]] tensorcast::Result<tensorcast::Rename> parse_rename(std::string_view text);

// Adds an option that names a type or a scheme.
CLI::Option* add_target(CLI::App& app, const std::string& name, tensorcast::TensorTargets& targets,
                        const std::string& help);

// Adds a repeatable option that takes REGEX=NEW.
CLI::Option* add_renames(CLI::App& app, const std::string& name, std::vector<tensorcast::Rename>& target,
                         const std::string& help);
// Adds an option that takes a size such as 5GB.
CLI::Option* add_size(CLI::App& app, const std::string& name, std::uint64_t& target, const std::string& help);

// Adds an option that takes a size such as 4.5bits.
CLI::Option* add_bits(CLI::App& app, const std::string& name, double& target, const std::string& help);

// Adds --only, --drop, --rename and --skip-files.
void add_output_filter(CLI::App& app, tensorcast::OutputFilter& filter);

}  // namespace tcast
