// SPDX-License-Identifier: Apache-2.0
// The layout of --help: at most 80 columns.
#pragma once

#include <string>
#include <string_view>

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

// Fits text of longer lines into 80 columns. A line that is indented by two spaces is a command, and continues after a
// backslash; notes that follow it after three spaces get a line of their own. Other lines are prose: a line of over 100
// columns continues in the next one.
[[nodiscard]] std::string wrapped_footer(std::string_view text);

}  // namespace tcast
