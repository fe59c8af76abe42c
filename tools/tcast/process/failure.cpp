// SPDX-License-Identifier: Apache-2.0
#include "process/failure.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "command.hpp"
#include "options/cast_options.hpp"
#include "process/error_json.hpp"
#include "process/printable.hpp"
#include "process/terminal.hpp"

namespace tcast {
namespace {

bool json_errors = false;
int failed_status = exit_failed;
std::vector<CommandOptions> known_commands;
std::string running_command;

void print(std::string_view kind, std::string_view message, std::string_view hint, bool red = false) {
  const std::string shown = printable(message);
  std::string text = fmt::format("tcast: {}: {}\n", kind, red ? in_red(shown, stderr_has_color()) : shown);
  if (!hint.empty()) text += fmt::format("tcast: hint: {}\n", printable(hint));
  std::fputs(text.c_str(), stderr);
}

bool is_field(std::string_view word) {
  return !word.empty() &&
         std::all_of(word.begin(), word.end(), [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; });
}

// The option for a field of the library, and its value if there is but one.
std::string option_of(std::string_view field) {
  if (field == "overwrite") return "--force";
  if (field == "single_file") return "--output-layout single";
  std::string option = fmt::format("--{}", field);
  tensorcast::options::for_each(tensorcast::options::cast_options, [&](const auto& each) {
    if (field == each.name && *each.flag != '\0') option = fmt::format("--{}", each.flag);
  });
  std::replace(option.begin(), option.end(), '_', '-');
  return option;
}

bool has(const CommandOptions& command, std::string_view option) {
  return std::find(command.options.begin(), command.options.end(), option.substr(0, option.find(' '))) !=
         command.options.end();
}

// Returns what to write for a word in backquotes: an option, if a command has it.
std::string named(std::string_view word) {
  const std::string option = option_of(word);
  const CommandOptions* owner = nullptr;
  for (const CommandOptions& each : known_commands) {
    if (!has(each, option)) continue;
    if (each.command == running_command) return option;
    if (owner == nullptr) owner = &each;
  }
  return owner == nullptr ? fmt::format("`{}`", word) : fmt::format("{} of `tcast {}`", option, owner->command);
}

void print_json_error(Json error) {
  if (json_errors) tcast::print(json_text({{"error", std::move(error)}}));
}

std::string hint_of(const tensorcast::Error& error) {
  std::error_code ignored;
  const bool folder = !error.file.empty() && std::filesystem::is_directory(error.file, ignored);
  if (error.hint.empty() && folder && error.system_error == EISDIR) {
    return "`tcast convert`, `tcast inspect`, `tcast verify` and `tcast diff` read a checkpoint's folder; name one of "
           "its "
           "files here";
  }
  return error.hint;
}

}  // namespace

void know_options(std::vector<CommandOptions> commands, std::string running) {
  known_commands = std::move(commands);
  running_command = std::move(running);
}

std::string with_options(std::string_view text) {
  std::string result;
  while (true) {
    const std::size_t begin = text.find('`');
    const std::size_t end = begin == std::string_view::npos ? begin : text.find('`', begin + 1);
    if (end == std::string_view::npos) return result.append(text);
    const std::string_view word = text.substr(begin + 1, end - begin - 1);
    result.append(text.substr(0, begin));
    result.append(is_field(word) ? named(word) : std::string(text.substr(begin, end - begin + 1)));
    text.remove_prefix(end + 1);
  }
}

void print_errors_as_json() { json_errors = true; }

void set_failed_status(int status) { failed_status = status; }

Json error_json(const tensorcast::Error& error) {
  Json json = {{"code", name(error.code)}, {"message", with_options(error.message)}};
  json["hint"] = with_options(hint_of(error));
  if (!error.file.empty()) json["file"] = error.file;
  if (!error.tensor.empty()) json["tensor"] = error.tensor;
  if (error.element) json["element"] = *error.element;
  return json;
}

void report_error(const tensorcast::Error& error) {
  tensorcast::Error described = error;
  described.hint.clear();
  described.message = with_options(described.message);
  constexpr std::size_t longest_name = 200;
  described.tensor = abbreviated(printable(described.tensor), longest_name);
  print("error", described.describe(), with_options(hint_of(error)));
}

int fail(const tensorcast::Error& error) {
  report_error(error);
  print_json_error(error_json(error));
  return failed_status;
}

int fail(std::string_view message, std::string_view hint) {
  print("error", message, hint);
  print_json_error({{"code", "failed"}, {"message", message}, {"hint", hint}});
  return failed_status;
}

void warn(std::string_view message, std::string_view hint) { print("warning", message, with_options(hint)); }

void warn_of_loss(std::string_view message, std::string_view hint) {
  print("warning", message, with_options(hint), true);
}

int misuse(std::string_view message, std::string_view hint) {
  const std::string said = with_options(message);
  print("error", said, hint);
  print_json_error({{"code", "usage"}, {"message", said}, {"hint", hint}});
  return exit_usage;
}

int misuse(const tensorcast::Error& error) { return misuse(error.message, with_options(error.hint)); }

}  // namespace tcast
