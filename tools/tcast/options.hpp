// Command-line options shared by several commands. Values are checked while parsing, so that mistakes exit 2.
#pragma once
// SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include "tensorcast/cast.hpp"
#include "tensorcast/file.hpp"

namespace tcast {

// Makes an option repeatable with one value each: with more it would take the arguments that follow, and values in
// brackets would be split, which breaks regular expressions.
CLI::Option* repeatable(CLI::Option* option);

// "keep_rank" -> "--keep-rank", "f,--force" -> "-f,--force".
[[nodiscard]] std::string option_name(std::string name);

CLI::Option* add_checked_int(CLI::App& app, const std::string& name, int& target, int low, int high,
                             const std::string& help);
// Adds --NAME true|false and --no-NAME.
CLI::Option* add_truth(CLI::App& app, const std::string& name, bool& target, const std::string& help);
CLI::Option* add_finite(CLI::App& app, const std::string& name, double& target, const std::string& help);

// Adds an option that takes a type in any spelling.
CLI::Option* add_dtype(CLI::App& app, const std::string& names, tensorcast::DType& target, const std::string& help);
// Adds an option that takes types, separated by commas or repeated; the word "all" means all types.
CLI::Option* add_dtypes(CLI::App& app, const std::string& names, std::vector<tensorcast::DType>& target,
                        const std::string& help);

// Warns, once, if one of the targets is float8_e4m3: PyTorch, safetensors and most papers mean float8_e4m3fn by E4M3.
void warn_of_namesake(std::span<const tensorcast::DType> targets);

// Adds an option that takes one of a few words; the first is the default. Underscores equal dashes in words.
template <class Value>
CLI::Option* add_choice(CLI::App& app, const std::string& option_name, Value& target,
                        std::vector<std::pair<std::string, Value>> known, const std::string& help) {
  std::vector<std::string> words;
  for (const auto& choice : known) words.push_back(choice.first);
  const auto find = [known](std::string word) -> const Value* {
    for (char& c : word) c = c == '-' ? '_' : c;
    for (const auto& choice : known) {
      if (choice.first == word) return &choice.second;
    }
    return nullptr;
  };
  // The check, which runs before the callback, reports words that are not in the list.
  CLI::Option* option = app.add_option_function<std::string>(
      option_name, [find, &target](const std::string& word) { target = *find(word); }, help);
  option->check(CLI::Validator(
      [find, words](std::string& word) {
        return find(word) != nullptr ? std::string()
                                     : fmt::format("\"{}\" is not one of {}", word, fmt::join(words, ", "));
      },
      ""));
  option->option_text(fmt::format("{}", fmt::join(words, "|")));
  return option;
}

// Adds every conversion option of CastOptions, under the names of C++ and Python.
void add_cast_options(CLI::App& app, tensorcast::CastOptions& options, bool converts_files = false);

// Adds the number of threads; the default is the value of `threads`, and 0 is all cores.
void add_threads(CLI::App& app, int& threads);

// --raw, --shape and --from: the type and shape that a raw or opaque input lacks.
struct InputLayout {
  bool raw = false;
  tensorcast::SourceTypes from = {};
  std::optional<std::string> shape = {};

  // Returns nullopt unless --raw was given. Throws CLI::ValidationError if it is incomplete.
  [[nodiscard]] std::optional<tensorcast::RawLayout> raw_layout() const;
};
void add_input_layout(CLI::App& app, InputLayout& layout);

// Returns "npy, npz, ...".
[[nodiscard]] std::string format_names();

// A check of an option that takes a number of 0 or more.
[[nodiscard]] CLI::Validator not_negative();

void add_json(CLI::App& app, bool& json);
void add_quiet(CLI::App& app, bool& quiet);

}  // namespace tcast
