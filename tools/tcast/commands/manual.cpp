// SPDX-License-Identifier: Apache-2.0
// tcast __man FOLDER: writes the manual pages, which the build installs.
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "command.hpp"
#include "dtype/text_parts.hpp"
#include "process/failure.hpp"
#include "tensorcast/version.hpp"

namespace tcast {
namespace {

// Text as roff shows it: backslashes, dashes, and dots or quotes that begin a line are commands.
std::string roff(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool begins = i == 0 || text[i - 1] == '\n';
    if (begins && (text[i] == '.' || text[i] == '\'')) result += "\\&";
    if (text[i] == '\\') {
      result += "\\e";
    } else if (text[i] == '-') {
      result += "\\-";
    } else {
      result += text[i];
    }
  }
  return result;
}

std::string option_entry(const CLI::Option& option) {
  const std::string& value = option.get_option_text();
  return fmt::format(".TP\n\\fB{}\\fR{}\n{}\n", roff(option.get_name(option.get_positional(), true)),
                     value.empty() || option.get_positional() ? "" : fmt::format(" \\fI{}\\fR", roff(value)),
                     roff(option.get_description()));
}

// Examples keep their lines; other text is filled.
std::string footer_text(const std::string& footer) {
  std::string text;
  for (const std::string_view line : tensorcast::split(footer, '\n')) {
    if (line.starts_with("Example")) {
      text += ".SH EXAMPLES\n";
    } else if (line.starts_with("  ")) {
      text += ".nf\n" + roff(line) + "\n.fi\n";
    } else {
      text += ".br\n" + roff(line) + "\n";
    }
  }
  return text;
}

std::string manual_page(const CLI::App& app, const std::string& words) {
  std::string name = words;
  std::replace(name.begin(), name.end(), ' ', '-');
  std::string text = fmt::format(".TH {} 1 \"\" \"tcast {}\" \"User Commands\"\n", roff(name), tensorcast::version());
  text +=
      fmt::format(".SH NAME\n{} \\- {}\n.SH SYNOPSIS\n.B {}\n", roff(name), roff(app.get_description()), roff(words));
  const bool has_commands = !app.get_subcommands({}).empty();
  text += has_commands ? "COMMAND\n" : "[OPTIONS]\n";
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_required()) continue;
    text += option->get_positional() ? fmt::format("\\fI{}\\fR\n", roff(option->get_name(true)))
                                     : fmt::format("\\fB{}\\fR \\fI{}\\fR\n", roff(option->get_name(false)),
                                                   roff(option->get_option_text()));
  }
  if (has_commands) text += ".SH COMMANDS\n";
  for (const CLI::App* command : app.get_subcommands({})) {
    text += fmt::format(".TP\n\\fB{}\\fR\n{}; see {}\\-{}(1)\n", roff(command->get_name()),
                        roff(command->get_description()), roff(name), roff(command->get_name()));
  }
  const auto arguments = app.get_options([](const CLI::Option* option) { return option->get_positional(); });
  if (!arguments.empty()) text += ".SH ARGUMENTS\n";
  for (const CLI::Option* argument : arguments) text += option_entry(*argument);
  for (const std::string& group : app.get_groups()) {
    const auto options = app.get_options(
        [&](const CLI::Option* option) { return option->get_group() == group && option->nonpositional(); });
    if (options.empty() || group.empty()) continue;
    std::string title = group;
    std::transform(title.begin(), title.end(), title.begin(), [](unsigned char c) { return std::toupper(c); });
    text += fmt::format(".SH {}\n", roff(title));
    for (const CLI::Option* option : options) text += option_entry(*option);
  }
  return text + footer_text(app.get_footer());
}

struct ManualPage {
  std::string name;
  std::string text;
};

void add_pages(const CLI::App& app, const std::string& words, std::vector<ManualPage>& pages) {
  std::string name = words;
  std::replace(name.begin(), name.end(), ' ', '-');
  pages.push_back({name + ".1", manual_page(app, words)});
  for (const CLI::App* command : app.get_subcommands({})) add_pages(*command, words + " " + command->get_name(), pages);
}

int write_pages(const std::vector<ManualPage>& pages, const std::filesystem::path& folder) {
  std::error_code ignored;  // then no page can be written
  std::filesystem::create_directories(folder, ignored);
  for (const ManualPage& page : pages) {
    std::ofstream file(folder / page.name, std::ios::binary);
    file << page.text;
    if (!file.flush()) return fail((folder / page.name).string() + " cannot be written");
  }
  return exit_done;
}

}  // namespace

std::optional<int> add_manual(const CLI::App& app, const std::vector<std::string>& words, Work& work) {
  if (words.size() != 1) return misuse("a folder for the manual pages is required");
  std::vector<ManualPage> pages;
  add_pages(app, "tcast", pages);
  work = [pages, folder = words[0]] { return write_pages(pages, folder); };
  return std::nullopt;
}

}  // namespace tcast
