// SPDX-License-Identifier: Apache-2.0
// Command-line options shared by several commands. Values are checked while parsing, so that mistakes exit 2.
#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include "dtype/lower_case.hpp"
#include "process/printable.hpp"
#include "tensorcast/cast_options.hpp"
#include "tensorcast/dtype.hpp"
#include "tensorcast/error.hpp"
#include "tensorcast/file.hpp"

namespace tcast {

// Makes an option repeatable with one value each: with more it would take the arguments that follow, and values in
// brackets would be split, which breaks regular expressions.
CLI::Option* repeatable(CLI::Option* option);

// "keep_rank" -> "--keep-rank", "f,--force" -> "-f,--force".
[[nodiscard]] std::string option_name(std::string name);

// A check of a word: `complaint` returns what is wrong with it, or "".
[[nodiscard]] CLI::Validator check(std::function<std::string(const std::string&)> complaint);

// A transform that makes a word the one of a list that it is: `-` and `_` are the same, and so are capitals. So readers
// of the word need not know other ways to write it. For CLI::Option::transform().
template <class Words>
[[nodiscard]] CLI::Validator one_of(const Words& words) {
  const std::vector<std::string> known(words.begin(), words.end());
  const auto take = [known](std::string& word) {
    const auto found =
        std::ranges::find_if(known, [&](const std::string& each) { return tensorcast::is_same_name(each, word); });
    if (found == known.end()) return fmt::format("\"{}\" is not one of {}", printable(word), fmt::join(known, ", "));
    word = *found;
    return std::string();
  };
  return CLI::Validator(take, "");
}

// What is wrong with a value that was read; "" if nothing is.
template <class Value>
[[nodiscard]] std::string complaint_of(const tensorcast::Result<Value>& read) {
  return read ? std::string() : read.error().describe();
}

// Adds an option whose word `read(word, target)` reads; it returns a complaint, or "".
template <class Value, class Read>
CLI::Option* add_read(CLI::App& app, const std::string& names, Value& target, const std::string& help, Read read) {
  const auto take = [&target, read](const std::string& word) { read(word, target); };
  return app.add_option_function<std::string>(names, take, help)->check(check([read](const std::string& word) {
    Value ignored{};
    return read(word, ignored);
  }));
}

// The same of an option with several words, which may be repeated. They take the place of what the target has.
template <class Value, class Read>
CLI::Option* add_read_all(CLI::App& app, const std::string& names, Value& target, const std::string& help, Read read) {
  const auto take = [&target, read](const std::vector<std::string>& words) {
    target = Value{};
    for (const std::string& word : words) read(word, target);
  };
  const auto complaint = [read](const std::string& word) {
    Value ignored{};
    return read(word, ignored);
  };
  return repeatable(app.add_option_function<std::vector<std::string>>(names, take, help))->check(check(complaint));
}

CLI::Option* add_count(CLI::App& app, const std::string& name, std::uint64_t& target, const std::string& help);
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
                        std::vector<std::pair<std::string, Value>> known, const std::string& help,
                        std::vector<std::pair<std::string, Value>> synonyms = {}) {
  std::vector<std::string> words;
  for (const auto& choice : known) words.push_back(choice.first);
  const auto read = [known, words, synonyms](const std::string& given, Value& value) {
    const auto synonym =
        std::find_if(synonyms.begin(), synonyms.end(), [&](const auto& s) { return s.first == given; });
    if (synonym != synonyms.end()) {
      value = synonym->second;
      return std::string();
    }
    std::string word = given;
    std::replace(word.begin(), word.end(), '-', '_');
    const auto choice = std::find(words.begin(), words.end(), word);
    if (choice == words.end()) return fmt::format("\"{}\" is not one of {}", given, fmt::join(words, ", "));
    value = known[static_cast<std::size_t>(choice - words.begin())].second;
    return std::string();
  };
  return add_read(app, option_name, target, help, read)->option_text(fmt::format("{}", fmt::join(words, "|")));
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
