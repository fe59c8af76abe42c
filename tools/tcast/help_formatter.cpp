#include "help_formatter.hpp"

#include <fmt/format.h>

namespace tcast {

HelpFormatter::HelpFormatter() {
  label("SUBCOMMAND", "COMMAND");
  label("Positionals", "Arguments");
  column_width(34);
}

std::string HelpFormatter::make_option_opts(const CLI::Option* option) const {
  if (option->get_positional() || option->get_option_text().empty()) return "";
  return " " + option->get_option_text();
}

std::string HelpFormatter::make_usage(const CLI::App* app, std::string name) const {
  std::string usage = Formatter::make_usage(app, std::move(name));
  usage.pop_back();  // the newline
  for (const CLI::Option* option : app->get_options()) {
    if (!option->get_required() || option->get_positional()) continue;
    const std::string short_name = option->get_snames().empty() ? "" : "-" + option->get_snames().front();
    usage += fmt::format(" {} {}", short_name.empty() ? option->get_name() : short_name, option->get_option_text());
  }
  return "\n" + usage + "\n";
}

std::string HelpFormatter::make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const {
  return CLI::detail::find_and_replace(Formatter::make_help(app, std::move(name), mode), "\n\n\n", "\n\n");
}

}  // namespace tcast
