// SPDX-License-Identifier: Apache-2.0
// The layout of --help: at most 80 columns.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

namespace tcast {

inline constexpr std::size_t help_columns = 80;

class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter();

  std::string make_option_opts(const CLI::Option* option) const override;
  std::string make_usage(const CLI::App* app, std::string name) const override;
  std::string make_description(const CLI::App* app) const override;
  std::string make_footer(const CLI::App* app) const override;
  std::string make_subcommand(const CLI::App* sub) const override;
  std::string make_option(const CLI::Option* option, bool is_positional) const override;
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override;
};

// Options of one purpose: the usual ones, and the others.
struct OptionGroup {
  const char* title;
  std::vector<const char*> usual;
  std::vector<const char*> others;
};

// Lists the options of a command in groups; -h then shows short_help(). `groups` outlives the command; options that it
// lacks are left out.
void group_options(CLI::App& command, const std::vector<OptionGroup>& groups);

// Returns the usual options of each group on a line each, and the names of the others; "" if the command has no groups.
[[nodiscard]] std::string short_help(const CLI::App& command, const std::string& name);

// Fits text of longer lines into 80 columns. A line that is indented by two spaces is a command, and continues after a
// backslash; notes that follow it after three spaces get a line of their own. Other lines are prose: a line of over 100
// columns continues in the next one.
[[nodiscard]] std::string wrapped_footer(std::string_view text);

}  // namespace tcast
