// SPDX-License-Identifier: Apache-2.0
// tcast completion: prints the script that completes command lines in a shell, and the words that it offers.
#include <algorithm>
#include <memory>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "command.hpp"
#include "commands/completion_scripts.hpp"
#include "dtype/text_parts.hpp"
#include "flags/options.hpp"
#include "process/terminal.hpp"
#include "tensorcast/dtype.hpp"
#include "tensorcast/file.hpp"
#include "tensorcast/spelling.hpp"

namespace tcast {
namespace {

constexpr const char* completion_examples = R"(Examples:
  source <(tcast completion bash)              in ~/.bashrc
  source <(tcast completion zsh)               in ~/.zshrc, after compinit
  tcast completion fish > ~/.config/fish/completions/tcast.fish)";

struct Script {
  const char* shell;
  const char* text;
};
constexpr Script scripts[] = {{"bash", bash_completion}, {"zsh", zsh_completion}, {"fish", fish_completion}};

struct Candidate {
  std::string word;
  std::string meaning;
};

// The first part of a description, which fits beside the word.
std::string shortened(const std::string& description) {
  constexpr std::size_t longest = 75;
  std::string text = description.substr(0, description.find_first_of(";\n"));
  if (text.size() <= longest) return text;
  return text.substr(0, text.rfind(' ', longest)) + " ...";
}

const CLI::App* command_named(const CLI::App& app, const std::string& name) {
  for (const CLI::App* command : app.get_subcommands({})) {
    if (command->get_name() == name) return command;
  }
  return nullptr;
}

// The values that an option's text lists, such as "default|error"; none if it is a word for them, such as FILE.
std::vector<Candidate> values_of(const CLI::Option& option) {
  const std::string& text = option.get_option_text();
  std::vector<Candidate> values;
  const auto add = [&](const auto& words) {
    for (const auto& word : words) values.push_back({std::string(word), {}});
  };
  if (text.find("DTYPE") != std::string::npos && text.find("REGEX") == std::string::npos) {
    for (const tensorcast::DType dtype : tensorcast::all_dtypes()) values.push_back({std::string(name(dtype)), {}});
    if (option.check_lname("to")) add(scheme_words());
    return values;
  }
  if (option.check_lname("recipe")) add(recipe_words());
  if (option.check_lname("spelling") || option.check_lname("respell")) add(tensorcast::written_spellings());
  if (option.check_lname("mix")) add(tensorcast::mix_names());
  if (!values.empty()) return values;
  if (text.find('|') == std::string::npos) return {};
  for (const std::string_view word : tensorcast::split(text, '|')) {
    const bool plain = !word.empty() && word.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_-") == word.npos;
    if (plain) values.push_back({std::string(word), {}});
  }
  return values;
}

// Returns null if `word` is not an option of the command that takes a value.
const CLI::Option* option_with_value(const CLI::App& command, const std::string& word) {
  if (!word.starts_with('-')) return nullptr;
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_items_expected_max() > 0 && !option->get_positional() && option->check_name(word)) return option;
  }
  return nullptr;
}

std::vector<Candidate> candidates_for(const CLI::App& app, std::vector<std::string> words) {
  if (!words.empty() && words.front() == "help") words.erase(words.begin());
  if (words.empty()) words.emplace_back();
  const CLI::App* command = &app;
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    const CLI::App* next = command_named(*command, words[i]);
    if (next == nullptr) break;
    command = next;
  }
  const std::string& word = words.back();
  std::vector<Candidate> candidates;
  // bash makes three words of --to=DTYPE, other shells one.
  std::size_t before = words.size() - 1;
  if (before > 1 && words[before - 1] == "=") --before;
  const CLI::Option* option = before == 0 ? nullptr : option_with_value(*command, words[before - 1]);
  if (option != nullptr) return values_of(*option);
  const std::size_t equals = word.find('=');
  if (word.starts_with("--") && equals != std::string::npos) {
    option = option_with_value(*command, word.substr(0, equals));
    if (option == nullptr) return {};
    candidates = values_of(*option);
    for (Candidate& candidate : candidates) candidate.word.insert(0, word.substr(0, equals + 1));
    return candidates;
  }
  if (word.starts_with('-')) {
    for (const CLI::Option* known : command->get_options()) {
      for (const std::string& long_name : known->get_lnames()) {
        candidates.push_back({"--" + long_name, shortened(known->get_description())});
      }
    }
  } else if (!command->get_subcommands({}).empty()) {
    for (const CLI::App* inner : command->get_subcommands({})) {
      candidates.push_back({inner->get_name(), shortened(inner->get_description())});
    }
  } else if (command->get_name() == "recipes") {
    for (const std::string& scheme : scheme_words()) candidates.push_back({scheme, {}});
  } else if (command->get_name() == "completion") {
    for (const Script& script : scripts) candidates.push_back({script.shell, {}});
  }
  return candidates;
}

}  // namespace

int print_candidates(const CLI::App& app, const std::vector<std::string>& words) {
  std::string text;
  for (const Candidate& candidate : candidates_for(app, words)) {
    text += candidate.meaning.empty() ? candidate.word : candidate.word + "\t" + candidate.meaning;
    text += '\n';
  }
  print(text);
  return exit_done;
}

void add_completion(CLI::App& app, Work& work) {
  CLI::App& command = *app.add_subcommand("completion", "Print the script that completes commands in a shell");
  command.footer(completion_examples);
  const auto shell = std::make_shared<std::string>();
  command.add_option("SHELL", *shell, "bash, zsh or fish")->required()->check(check([](const std::string& word) {
    const bool known = std::ranges::any_of(scripts, [&](const Script& script) { return word == script.shell; });
    return known ? std::string() : fmt::format("\"{}\" is not one of bash, zsh, fish", word);
  }));
  command.callback([shell, &work] {
    work = [shell] {
      print(std::ranges::find_if(scripts, [&](const Script& script) { return *shell == script.shell; })->text);
      return exit_done;
    };
  });
}

}  // namespace tcast
