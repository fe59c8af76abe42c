// SPDX-License-Identifier: Apache-2.0
// tcast: the command line of tensorcast.
#include <algorithm>
#include <array>
#include <exception>
#include <filesystem>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "command.hpp"
#include "flags/arguments.hpp"
#include "flags/help_formatter.hpp"
#include "flags/suggestion.hpp"
#include "process/failure.hpp"
#include "process/interrupt.hpp"
#include "process/standard_streams.hpp"
#include "process/terminal.hpp"
#include "tensorcast/version.hpp"

namespace tcast {
namespace {

constexpr const char* main_examples = R"(Examples:
  tcast convert model.safetensors -o small.safetensors --to bfloat16 --report loss.json
  tcast inspect model.safetensors --stats
  tcast explain 0.1
`tcast COMMAND --help` shows the options, `tcast convert -h` the usual ones.
Exit status: 0 done, 1 refused or failed, 2 wrong usage, 128 + the number of
the signal that ended it (130: Ctrl-C).)";

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& long_name : option->get_lnames()) names.push_back("--" + long_name);
  }
  return names;
}

// Returns the command of this name, or null.
const CLI::App* command_of(const CLI::App& app, const std::string& name) {
  const auto commands = app.get_subcommands([&](const CLI::App* command) { return command->get_name() == name; });
  return commands.empty() ? nullptr : commands.front();
}

// Checks the words before the first option: CLI11 would look for commands behind words that are none.
std::optional<std::string> wrong_command(const CLI::App& app, const std::vector<std::string>& arguments) {
  const CLI::App* command = &app;
  std::string words = app.get_name();
  for (const std::string& word : arguments) {
    if (command->get_subcommands({}).empty() || word.starts_with('-')) return std::nullopt;
    const CLI::App* next = command_of(*command, word);
    if (next == nullptr) {
      const std::string better = nearest(word, command_names(*command));
      misuse(
          fmt::format("\"{}\" is not a command", word),
          fmt::format("{}{} --help shows how", better.empty() ? "" : fmt::format("did you mean {}? ", better), words));
      return word;
    }
    command = next;
    words += " " + word;
  }
  return std::nullopt;
}

// Adds the commands of `app` that have options, each with the words before it.
void add_commands(const CLI::App& app, const std::string& words, std::vector<CommandOptions>& commands) {
  for (const CLI::App* command : app.get_subcommands({})) {
    const std::string name = words.empty() ? command->get_name() : words + " " + command->get_name();
    commands.push_back({name, command_names(*command)});
    add_commands(*command, name, commands);
  }
}

// Lets errors name the options that the command has.
void know_options(const CLI::App& app, const std::vector<std::string>& arguments) {
  std::vector<CommandOptions> commands;
  add_commands(app, "", commands);
  std::string running;
  const CLI::App* command = &app;
  for (const std::string& word : arguments) {
    command = command_of(*command, word);
    if (command == nullptr) break;
    running += (running.empty() ? "" : " ") + word;
  }
  know_options(std::move(commands), std::move(running));
}

// Returns the short help that -h asks for; "" if another option is meant, or --help.
std::string asked_short_help(const CLI::App& app, const std::vector<std::string>& arguments) {
  if (arguments.empty()) return "";
  const auto end = std::find(arguments.begin(), arguments.end(), "--");
  if (std::find(arguments.begin(), end, "-h") == end) return "";
  const CLI::App* command = command_of(app, arguments.front());
  return command == nullptr ? "" : short_help(*command, "tcast " + arguments.front());
}

// Reports whether the values of an option are names of files or folders.
bool names_files(const CLI::Option& option) {
  constexpr std::array<std::string_view, 6> words = {"IN", "OUT", "FILE", "MODEL", "DIR", "ORIGINAL"};
  const std::string text = option.get_positional() ? option.get_name() : option.get_option_text();
  return std::ranges::find(words, text) != words.end() || text.starts_with("FILE.") || text == "A" || text == "B";
}

// Reports whether the option takes `-` for a standard stream, which its help then says.
bool takes_standard_stream(const CLI::Option& option) {
  return option.get_description().find("- for ") != std::string::npos;
}

struct WrongName {
  std::string complaint = {};  // empty: there is none
  std::string hint = {};
};

// Finds a name of a file that cannot be meant: an empty one, as a variable of a shell makes it that is not set, and `-`
// where no standard stream is read or written, which would be a file named so.
WrongName wrong_name(const CLI::App& app) {
  for (const CLI::App* command : app.get_subcommands()) {
    for (const CLI::Option* option : command->get_options()) {
      if (!names_files(*option)) continue;
      for (const std::string& given : option->results()) {
        const bool is_stream = given == standard_stream && !takes_standard_stream(*option);
        if (!given.empty() && !is_stream) continue;
        return {.complaint = fmt::format("{}: \"{}\" is not the name of a file", option->get_name(), given),
                .hint = is_stream ? "./- is the file of that name" : ""};
      }
    }
    if (WrongName found = wrong_name(*command); !found.complaint.empty()) return found;
  }
  return {};
}

// Returns what CLI11 says of an option that is given too often, in words that name the option and not its library.
std::string plain_words(std::string message) {
  constexpr std::string_view too_often = "At Most 1 required but received ";
  const std::size_t begin = message.find(too_often);
  if (begin == std::string::npos) return message;
  return fmt::format("{}it is given {} times", message.substr(0, begin), message.substr(begin + too_often.size()));
}

// Explains the error of a command line that CLI11 rejected.
int report_usage(const CLI::App& app, const CLI::ParseError& error) {
  const auto parsed = app.get_subcommands();
  const CLI::App* innermost = &app;
  std::string words = app.get_name();
  for (auto next = parsed; !next.empty(); next = innermost->get_subcommands()) {
    innermost = next.front();
    words += " " + innermost->get_name();
  }
  const CLI::App& command = *innermost;
  const std::string hint = fmt::format("{} --help shows how", words);
  const std::vector<std::string> extra = app.remaining(true);
  const bool takes_command = !command.get_subcommands({}).empty();
  for (const std::string& word : extra) {  // as a shell's * gives names
    std::error_code ignored;
    if (!word.starts_with('-') || !std::filesystem::exists(word, ignored)) continue;
    return misuse(fmt::format("\"{}\" was not expected", word), fmt::format("./{} is the file of that name", word));
  }
  if (!extra.empty() && (takes_command || dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr)) {
    const std::string& word = extra.front();
    const std::string better = nearest(word, command_names(command));
    const char* complaint = takes_command && !word.starts_with('-') ? "is not a command" : "was not expected";
    return misuse(fmt::format("\"{}\" {}", word, complaint),
                  better.empty() ? hint : fmt::format("did you mean {}? {}", better, hint));
  }
  if (takes_command && dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) {
    return misuse("a command is missing", hint);
  }
  return misuse(plain_words(error.what()), hint);
}

}  // namespace

std::optional<int> parse_command_line(std::vector<std::string> arguments, Work& work) {
  CLI::App app("Converts tensors and checkpoints between every number format of machine learning, bit-exactly.",
               "tcast");
  app.set_version_flag("-V,--version", fmt::format("tcast {}", tensorcast::version()), "print the version and exit");
  app.set_help_flag("-h,--help", "print this help and exit");
  app.footer(main_examples);
  app.require_subcommand(1);
  app.formatter(std::make_shared<HelpFormatter>());

  for (const auto add :
       {add_convert, add_onnx, add_inspect, add_plan, add_run_shard, add_finish, add_verify, add_diff, add_explain,
        add_promote, add_run, add_bench, add_types, add_schemes, add_recipes, add_info, add_completion})
    add(app, work);
  for (CLI::App* command : app.get_subcommands({})) {
    command->group("Commands");
    for (CLI::App* inner : command->get_subcommands({})) inner->group("Commands");
  }

  if (!arguments.empty() && arguments.front() == "__complete") {
    return print_candidates(app, {arguments.begin() + 1, arguments.end()});
  }
  if (!arguments.empty() && arguments.front() == "help") {
    arguments.erase(arguments.begin());
    arguments.emplace_back("--help");
  }
  if (!arguments.empty() && arguments.front() == "__man") {
    return add_manual(app, {arguments.begin() + 1, arguments.end()}, work);
  }
  const auto end_of_options = std::find(arguments.begin(), arguments.end(), "--");
  if (std::find(arguments.begin(), end_of_options, "--json") != end_of_options) print_errors_as_json();
  if (wrong_command(app, arguments)) return exit_usage;
  know_options(app, arguments);
  if (const std::string text = asked_short_help(app, arguments); !text.empty()) {
    print(text);
    return exit_done;
  }
  try {
    std::reverse(arguments.begin(), arguments.end());  // CLI11 takes them from the end
    app.parse(std::move(arguments));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != static_cast<int>(CLI::ExitCodes::Success)) return report_usage(app, error);
    app.exit(error);  // prints the help or the version
    return exit_done;
  }
  if (const WrongName name = wrong_name(app); !name.complaint.empty()) return misuse(name.complaint, name.hint);
  return std::nullopt;
}

}  // namespace tcast

int main(int argc, char** argv) {
  tcast::install_interrupt_handlers();
  try {
    tcast::Work work;
    const std::optional<int> ended = tcast::parse_command_line(tcast::prepared_arguments(argc, argv), work);
    const int status = ended ? *ended : work();
    if (!tcast::flush_stdout()) return tcast::fail("the output could not be written completely");
    return status;
  } catch (const std::bad_alloc&) {
    return tcast::fail("out of memory");
  } catch (const std::exception& error) {
    return tcast::fail(error.what());
  }
}
