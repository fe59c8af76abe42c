// SPDX-License-Identifier: Apache-2.0
// Adds the options of src/convert/convert_options.hpp as flags.
#pragma once

#include <string>
#include <type_traits>
#include <vector>

#include "convert/convert_options.hpp"
#include "flags/convert_rules.hpp"
#include "flags/option_flags.hpp"

namespace tcast {

template <class Option>
CLI::Option* add_request_option(CLI::App& app, const Option& option, typename Option::Type& target) {
  using Value = typename Option::Type;
  using tensorcast::options::ValueKind;
  const std::string name = option_name(*option.flag != '\0' ? option.flag : option.name);
  const std::string help = help_text(option);
  if constexpr (std::is_same_v<Value, std::vector<tensorcast::Rename>>) {
    return add_renames(app, name, target, help + "; repeatable")->option_text(value_name(option));
  } else if constexpr (std::is_same_v<Value, std::string>) {
    return app.add_option(name, target, help)->option_text(value_name(option));
  } else if constexpr (std::is_same_v<Value, std::vector<std::int64_t>>) {
    return repeatable(app.add_option(name, target, help))->delimiter(',')->option_text(value_name(option));
  } else if constexpr (std::is_same_v<Value, std::vector<std::string>>) {
    if (option.kind == ValueKind::pattern) return add_patterns(app, name, target, help + "; repeatable");
    if (option.kind == ValueKind::list) {
      return repeatable(app.add_option(name, target, help))->delimiter(',')->option_text(value_name(option));
    }
    return add_listed(app, option, target);
  } else if constexpr (std::is_same_v<Value, bool>) {
    if (option.words.size() == 0) return add_listed(app, option, target);
    return add_choice<bool>(app, name, target, {{option.words.word[0], false}, {option.words.word[1], true}}, help);
  } else if constexpr (std::is_same_v<Value, std::uint64_t>) {
    if (option.kind != ValueKind::size) return add_listed(app, option, target);
    return add_size(app, name, target, help)->option_text(value_name(option));
  } else if constexpr (std::is_same_v<Value, double>) {
    if (option.kind == ValueKind::bits) return add_bits(app, name, target, help);
    CLI::Option* number = app.add_option(name, target, help)->option_text(value_name(option));
    return number->check(CLI::Range(option.low, option.high));
  } else {
    return add_listed(app, option, target);
  }
}

}  // namespace tcast
