// How --help looks.
#pragma once

#include <CLI/CLI.hpp>

namespace tcast {

class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter();

  // Options show what they take, and nothing of CLI11's own marks.
  std::string make_option_opts(const CLI::Option* option) const override;
  // Options that are required belong to the usage line.
  std::string make_usage(const CLI::App* app, std::string name) const override;
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override;
};

}  // namespace tcast
