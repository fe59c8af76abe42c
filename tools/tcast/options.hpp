// Command-line options that several commands share; what they take is checked while parsing, so that mistakes exit 2.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include "tensorcast/cast.hpp"
#include "tensorcast/file.hpp"

namespace tcast {

// An option that may be given again and again, each time with one value: never more, or it would take the arguments
// that follow it, and never a value in brackets apart, or it would break regular expressions.
CLI::Option* repeatable(CLI::Option* option);

// A type in any spelling.
CLI::Option* add_dtype(CLI::App& app, const std::string& names, tensorcast::DType& target, const std::string& help);
// Types, separated by commas or repeated; all of them for the word "all".
CLI::Option* add_dtypes(CLI::App& app, const std::string& names, std::vector<tensorcast::DType>& target,
                        const std::string& help);

// One of a few words; the first is the default. Underscores and dashes in words are the same.
template <class Value>
CLI::Option* add_choice(CLI::App& app, const std::string& option_name, Value& target,
                        std::initializer_list<std::pair<std::string, Value>> choices, const std::string& help) {
  const std::vector<std::pair<std::string, Value>> known = choices;
  std::vector<std::string> words;
  for (const auto& choice : known) words.push_back(choice.first);
  const auto find = [known](std::string word) -> const Value* {
    for (char& c : word) c = c == '-' ? '_' : c;
    for (const auto& choice : known) {
      if (choice.first == word) return &choice.second;
    }
    return nullptr;
  };
  // Text that parses but names nothing is reported by the check, which runs before the callback.
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

// Every conversion option of CastOptions, under the names that C++ and Python use too. Returns --out-of-range.
CLI::Option* add_cast_options(CLI::App& app, tensorcast::CastOptions& options,
                              const std::string& out_of_range_help =
                                  "values out of an integer type's range (default auto: wrap; saturate real numbers to "
                                  "int4, uint4 at opset 21 to 23)");

// How many threads, by default what `threads` says now; 0 is all cores.
void add_threads(CLI::App& app, int& threads);

// --raw, --shape and --from: what a raw or opaque input does not say about itself.
struct InputLayout {
  bool raw = false;
  tensorcast::SourceTypes from = {};
  std::optional<std::string> shape = {};

  // Nothing unless --raw was given. Throws CLI::ValidationError when it is incomplete.
  [[nodiscard]] std::optional<tensorcast::RawLayout> raw_layout() const;
};
void add_input_layout(CLI::App& app, InputLayout& layout);

// "npy, npz, ..."
[[nodiscard]] std::string format_names();

void add_json(CLI::App& app, bool& json);
void add_quiet(CLI::App& app, bool& quiet);

}  // namespace tcast
