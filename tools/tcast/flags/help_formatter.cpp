// SPDX-License-Identifier: Apache-2.0
#include "flags/help_formatter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <vector>

#include "dtype/text_parts.hpp"

namespace tcast {
namespace {

constexpr std::size_t label_columns = 30;

// Breaks text at spaces. The first line starts in column `first`, the others after `indent` spaces; a line that another
// one follows ends in `more`. A word that is too long has a line of its own.
std::string wrapped(std::string_view text, std::size_t first, std::size_t indent, std::string_view more = {}) {
  std::string result;
  std::size_t column = first;
  bool empty = true;  // no word in this line
  while (!text.empty()) {
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    // Words in single quotes, as patterns in examples, stay together.
    std::size_t end = 0;
    for (bool quoted = false; end < text.size() && (quoted || text[end] != ' '); ++end) {
      quoted = quoted != (!more.empty() && text[end] == '\'');
    }
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(word.size());
    if (word.empty()) break;
    const std::size_t needed = word.size() + (text.empty() ? 0 : more.size());
    if (!empty && column + 1 + needed > help_columns) {
      result += more;
      result += '\n' + std::string(indent, ' ');
      column = indent;
      empty = true;
    }
    if (!empty) {
      result += ' ';
      ++column;
    }
    result += word;
    column += word.size();
    empty = false;
  }
  return result;
}

// A label, and a description beside it, or below if the label is long.
std::string entry(const std::string& label, const std::string& description) {
  std::string text = "  " + label;
  if (description.empty()) return text + "\n";
  if (text.size() + 2 > label_columns) text += "\n" + std::string(label_columns, ' ');
  const std::size_t last_line = text.size() - (text.rfind('\n') == std::string::npos ? 0 : text.rfind('\n') + 1);
  text.append(label_columns - last_line, ' ');
  return text + wrapped(description, label_columns, label_columns) + "\n";
}

std::string wrapped_command(std::string_view line) {
  constexpr std::size_t indent = 2;
  constexpr std::size_t deeper = 6;
  line.remove_prefix(indent);
  if (indent + line.size() <= help_columns) return std::string(indent, ' ') + std::string(line) + "\n";
  const std::size_t gap = line.find("   ");
  const std::string_view command = line.substr(0, gap);
  std::string text = std::string(indent, ' ') + wrapped(command, indent, deeper, " \\") + "\n";
  if (gap != std::string_view::npos) {
    text += std::string(deeper, ' ') + wrapped(line.substr(gap), deeper, deeper) + "\n";
  }
  return text;
}

std::size_t indent_of(std::string_view line) { return std::min(line.find_first_not_of(' '), line.size()); }

class GroupedFormatter : public HelpFormatter {
 public:
  explicit GroupedFormatter(const std::vector<OptionGroup>& groups) : groups_(groups) {}
  [[nodiscard]] const std::vector<OptionGroup>& groups() const { return groups_; }

  // The groups in their own order, not that of the options.
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override {
    const std::string whole = HelpFormatter::make_help(app, std::move(name), mode);
    std::vector<std::string> parts;
    for (std::size_t begin = 0; begin < whole.size();) {
      const std::size_t end = std::min(whole.find("\n\n", begin), whole.size());
      parts.push_back(whole.substr(begin, end - begin));
      begin = end + 2;
    }
    const auto is_group = [](const std::string& part, const OptionGroup& group) {
      return part.starts_with(std::string(group.title) + ":\n");
    };
    std::vector<std::string> sorted;
    for (const OptionGroup& group : groups_) {
      std::copy_if(parts.begin(), parts.end(), std::back_inserter(sorted),
                   [&](const std::string& part) { return is_group(part, group); });
    }
    std::string text;
    auto next = sorted.begin();
    for (const std::string& part : parts) {
      const bool grouped =
          std::any_of(groups_.begin(), groups_.end(), [&](const OptionGroup& group) { return is_group(part, group); });
      text += (text.empty() ? "" : "\n\n") + (grouped ? *next++ : part);
    }
    return text;
  }

 private:
  const std::vector<OptionGroup>& groups_;
};

// The first clause of a description, as far as it fits behind a label.
std::string first_clause(const std::string& description) {
  constexpr std::size_t longest = help_columns - label_columns;
  std::string text = description.substr(0, std::min(description.find_first_of(";\n"), description.find(" (")));
  if (text.size() <= longest) return text;
  text.resize(text.rfind(' ', longest - 4));
  return text.substr(0, text.find_last_not_of(" ,") + 1) + " ...";
}

}  // namespace

void group_options(CLI::App& command, const std::vector<OptionGroup>& groups) {
  command.formatter(std::make_shared<GroupedFormatter>(groups));
  for (const OptionGroup& group : groups) {
    for (const auto& names : {group.usual, group.others}) {
      for (const char* name : names) {
        if (CLI::Option* option = command.get_option_no_throw(name)) option->group(group.title);
      }
    }
  }
}

std::string short_help(const CLI::App& command, const std::string& name) {
  const auto* formatter = dynamic_cast<const GroupedFormatter*>(command.get_formatter().get());
  if (formatter == nullptr) return "";
  std::string text = formatter->make_description(&command) + formatter->make_usage(&command, name) + "\n";
  for (const OptionGroup& group : formatter->groups()) {
    text += fmt::format("{}:\n", group.title);
    for (const char* option_name : group.usual) {
      const CLI::Option* option = command.get_option_no_throw(option_name);
      if (option == nullptr) continue;
      const std::string label = option->get_name(false, true) + " " + option->get_option_text();
      text +=
          entry(label.size() + 4 > label_columns ? label.substr(0, label.find_first_of(",|", label.find(' '))) + "..."
                                                 : label,
                first_clause(option->get_description()));
    }
    std::string others = "also";
    for (const char* option_name : group.others) {
      if (command.get_option_no_throw(option_name) != nullptr) others += fmt::format(" {}", option_name);
    }
    text += "  " + wrapped(others, 2, 7) + "\n";
  }
  return text + fmt::format("\n{} --help explains all options, with examples.\n", name);
}

std::string wrapped_footer(std::string_view text) {
  constexpr std::size_t full_line = 100;  // of the source, whose lines have up to 120
  const std::vector<std::string_view> lines = tensorcast::split(text, '\n');
  std::string result;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::size_t indent = indent_of(lines[i]);
    if (indent == 2) {
      result += wrapped_command(lines[i]);
      continue;
    }
    std::string prose(lines[i].substr(indent));
    while (lines[i].size() > full_line && i + 1 < lines.size() && indent_of(lines[i + 1]) == indent) {
      ++i;
      prose += ' ';
      prose += lines[i].substr(indent);
    }
    result += std::string(indent, ' ') + wrapped(prose, indent, indent) + "\n";
  }
  return result;
}

HelpFormatter::HelpFormatter() {
  label("SUBCOMMAND", "COMMAND");
  label("Positionals", "Arguments");
  column_width(label_columns);
}

std::string HelpFormatter::make_option_opts(const CLI::Option* option) const {
  if (option->get_positional() || option->get_option_text().empty()) return "";
  return " " + option->get_option_text();
}

std::string HelpFormatter::make_option(const CLI::Option* option, bool is_positional) const {
  return entry(make_option_name(option, is_positional) + make_option_opts(option), make_option_desc(option));
}

std::string HelpFormatter::make_subcommand(const CLI::App* sub) const {
  return entry(sub->get_display_name(true), sub->get_description());
}

std::string HelpFormatter::make_description(const CLI::App* app) const {
  return wrapped(app->get_description(), 0, 0) + "\n";
}

std::string HelpFormatter::make_footer(const CLI::App* app) const {
  return app->get_footer().empty() ? "" : wrapped_footer(app->get_footer());
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
