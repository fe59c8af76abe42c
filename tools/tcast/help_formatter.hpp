// Formats --help.
#pragma once

#include <CLI/CLI.hpp>

namespace tcast {

class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter();

  // Shows the argument of an option, without CLI11's own marks.
  std::string make_option_opts(const CLI::Option* option) const override;
  // Adds required options to the usage line.
  std::string make_usage(const CLI::App* app, std::string name) const override;
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override;
};

}  // namespace tcast
