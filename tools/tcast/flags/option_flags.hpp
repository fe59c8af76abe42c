// SPDX-License-Identifier: Apache-2.0
// Adds the options of a list of src/options as flags.
#pragma once

#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "flags/options.hpp"
#include "options/option_text.hpp"

namespace tcast {

// The words of an option, and their other spellings, as add_choice() takes them.
template <class Value>
using Choices = std::vector<std::pair<std::string, Value>>;
template <class Value, class Enum>
std::pair<Choices<Value>, Choices<Value>> choices_of(const tensorcast::options::Words& words) {
  Choices<Value> choices, synonyms;
  for (const char* word : words) choices.emplace_back(word, static_cast<Enum>(choices.size()));
  for (const tensorcast::options::Synonym& synonym : words.synonyms) {
    if (synonym.word != nullptr) synonyms.emplace_back(synonym.word, static_cast<Enum>(synonym.number));
  }
  return {std::move(choices), std::move(synonyms)};
}

template <class Option>
CLI::Option* add_listed(CLI::App& app, const Option& option, typename Option::Type& target, const std::string& help) {
  using Value = typename Option::Type;
  const std::string name = option_name(*option.flag != '\0' ? option.flag : option.name);
  if constexpr (std::is_same_v<Value, tensorcast::DType>) {
    return add_dtype(app, name, target, help);
  } else if constexpr (Option::is_choice) {
    auto [choices, synonyms] = choices_of<Value, Value>(option.words);
    CLI::Option* const made = add_choice(app, name, target, std::move(choices), help, std::move(synonyms));
    return *option.metavar == '\0' ? made
                                   : made->option_text(option.metavar);  // where the words need lines of their own
  } else if constexpr (std::is_same_v<Value, bool>) {
    return option.usual() ? add_truth(app, name, target, help) : app.add_flag(name, target, help);
  } else if constexpr (std::is_same_v<Value, int>) {
    return add_checked_int(app, name, target, option.zero_means != 0 ? 1 : static_cast<int>(option.low), option.last(),
                           help);
  } else if constexpr (std::is_same_v<Value, double>) {
    if (option.low != 0) return add_finite(app, name, target, help);
    return app.add_option(name, target, help)->check(not_negative())->option_text(value_name(option));
  } else if constexpr (std::is_same_v<Value, std::vector<tensorcast::DType>>) {
    return add_dtypes(app, name, target, help);
  } else if constexpr (std::is_same_v<Value, std::vector<std::string>>) {
    return repeatable(app.add_option(name, target, help + "; repeatable"))->option_text(value_name(option));
  } else {
    static_assert(std::is_same_v<Value, std::uint64_t>);
    return add_count(app, name, target, help)->option_text(value_name(option));
  }
}

template <class Option>
CLI::Option* add_listed(CLI::App& app, const Option& option, typename Option::Type& target) {
  return add_listed(app, option, target, help_text(option));
}

}  // namespace tcast
