// Parses regular expressions of tensors' names, and rules such as '\.bias$=float32', from the command line or a file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "options.hpp"
#include "tensorcast/file.hpp"

namespace tcast {

// Parses 'REGEX=DTYPE', split at the last '='. Errors: invalid_argument.
[[nodiscard]] tensorcast::Result<tensorcast::ConvertRule> parse_rule(std::string_view text);

// Reads one rule per line; blank lines and lines that start with # are ignored. Errors: io, parse; both name the file.
[[nodiscard]] tensorcast::Result<std::vector<tensorcast::ConvertRule>> read_rules(const std::string& path);

// Returns the error of a regular expression, or "".
[[nodiscard]] std::string regex_complaint(const std::string& pattern);

// Adds a repeatable option that takes regular expressions of tensors' names.
CLI::Option* add_patterns(CLI::App& app, const std::string& name, std::vector<std::string>& target,
                          const std::string& help);

}  // namespace tcast
