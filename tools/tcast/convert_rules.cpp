#include "convert_rules.hpp"
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <system_error>

#include <fmt/format.h>

#include "printable.hpp"
#include "request_flags.hpp"
#include "rules_yaml.hpp"
#include "tensorcast/whole_file.hpp"

namespace tcast {

using tensorcast::ConvertRule;
using tensorcast::Error;
using tensorcast::ErrorCode;
using tensorcast::Result;
namespace options = tensorcast::options;

std::string regex_complaint(const std::string& pattern) {
  const Result<void> checked = tensorcast::check_pattern(pattern);
  if (checked) return {};
  const Error& error = checked.error();
  return error.hint.empty() ? error.message : fmt::format("{} ({})", error.message, error.hint);
}

Result<ConvertRule> parse_rule(std::string_view text) {
  const auto split = text.rfind('=');
  if (split == std::string_view::npos || split == 0) {
    return Error{.code = ErrorCode::invalid_argument,
                 .message = fmt::format("\"{}\" is not a rule", text),
                 .hint = "a rule is REGEX=DTYPE, for example '\\.bias$=float32'"};
  }
  std::string pattern(text.substr(0, split));
  if (std::string complaint = regex_complaint(pattern); !complaint.empty()) {
    return Error{.code = ErrorCode::invalid_argument, .message = std::move(complaint)};
  }
  Result<tensorcast::ConvertTarget> target = tensorcast::parse_target(text.substr(split + 1));
  if (!target) return std::move(target).error();
  ConvertRule rule{.pattern = std::move(pattern), .to = target->to};
  rule.scheme = std::move(target->scheme);
  rule.recipe = std::move(target->recipe);
  return rule;
}

Result<void> add_rules(const std::string& path, tensorcast::ConvertRequest& request) {
  constexpr std::uint64_t max_rules_bytes = std::uint64_t{16} << 20;
  const Result<std::string> text = tensorcast::read_whole_file(path, max_rules_bytes);
  if (!text) return text.error();
  if (path.ends_with(".yaml") || path.ends_with(".yml")) return add_yaml_rules(*text, path, request);
  int number = 0;
  for (std::size_t begin = 0; begin < text->size();) {
    const std::size_t end = std::min(text->find('\n', begin), text->size());
    const std::string_view line = std::string_view(*text).substr(begin, end - begin);
    begin = end + 1;
    ++number;
    const auto first = line.find_first_not_of(" \t\r");
    if (first == std::string::npos || line[first] == '#') continue;
    const auto last = line.find_last_not_of(" \t\r");
    Result<ConvertRule> rule = parse_rule(line.substr(first, last - first + 1));
    if (!rule) {
      Error error = rule.error();
      error.code = ErrorCode::parse;
      error.message = fmt::format("line {}: {}", number, error.message);
      error.file = path;
      return error;
    }
    request.rules.push_back(*std::move(rule));
  }
  return {};
}

Result<tensorcast::Rename> parse_rename(std::string_view text) {
  const auto split = text.rfind('=');
  if (split == std::string_view::npos || split == 0) {
    return Error{.code = ErrorCode::invalid_argument,
                 .message = fmt::format("\"{}\" does not say what becomes what", text),
                 .hint = "write REGEX=NEW, for example '^module\\.='"};
  }
  tensorcast::Rename rename{.pattern = std::string(text.substr(0, split)),
                            .replacement = std::string(text.substr(split + 1))};
  const Result<void> checked = tensorcast::check_rename(rename);
  if (!checked) return checked.error();
  return rename;
}

CLI::Option* add_patterns(CLI::App& app, const std::string& name, std::vector<std::string>& target,
                          const std::string& help) {
  CLI::Option* option = repeatable(app.add_option(name, target, help)->option_text("REGEX"));
  option->check(CLI::Validator([](std::string& pattern) { return regex_complaint(pattern); }, ""));
  return option;
}

CLI::Option* add_renames(CLI::App& app, const std::string& name, std::vector<tensorcast::Rename>& target,
                         const std::string& help) {
  CLI::Option* option = app.add_option_function<std::vector<std::string>>(
      name,
      [&target](const std::vector<std::string>& texts) {
        for (const std::string& text : texts) target.push_back(*parse_rename(text));
      },
      help);
  repeatable(option);
  return option->check(CLI::Validator(
      [](std::string& text) {
        const Result<tensorcast::Rename> parsed = parse_rename(text);
        if (parsed) return std::string();
        const Error& error = parsed.error();
        return error.hint.empty() ? error.message : fmt::format("{}; {}", error.message, error.hint);
      },
      ""));
}

CLI::Option* add_target(CLI::App& app, const std::string& name, tensorcast::TensorTargets& targets,
                        const std::string& help) {
  CLI::Option* option = app.add_option_function<std::string>(
      name,
      [&targets](const std::string& text) {
        tensorcast::ConvertTarget target = *tensorcast::parse_target(text);
        targets.to = target.to;
        targets.scheme = std::move(target.scheme);
        targets.recipe = std::move(target.recipe);
      },
      help);
  return option->check(CLI::Validator(
      [](std::string& text) {
        const Result<tensorcast::ConvertTarget> target = tensorcast::parse_target(text);
        if (target) return std::string();
        const Error& error = target.error();
        return error.hint.empty() ? error.message : fmt::format("{}; {}", error.message, error.hint);
      },
      ""));
}

CLI::Option* add_size(CLI::App& app, const std::string& name, std::uint64_t& target, const std::string& help) {
  CLI::Option* option = app.add_option_function<std::string>(
      name, [&target](const std::string& text) { target = *parse_size(text); }, help);
  return option->check(CLI::Validator(
      [](std::string& text) {
        return parse_size(text) ? std::string() : fmt::format("\"{}\" is not a size such as 5GB or 800MB", text);
      },
      ""));
}

double parse_bits(std::string_view text) {
  if (text.ends_with("bits")) text.remove_suffix(4);
  double bits = 0.0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), bits);
  const bool fits = status == std::errc{} && end == text.data() + text.size() && bits >= 1.0 && bits <= 32.0;
  return fits ? bits : 0.0;
}

CLI::Option* add_bits(CLI::App& app, const std::string& name, double& target, const std::string& help) {
  CLI::Option* option = app.add_option_function<std::string>(
      name, [&target](const std::string& text) { target = parse_bits(text); }, help);
  option->check(CLI::Validator(
      [](std::string& text) {
        return parse_bits(text) != 0.0 ? std::string() : fmt::format("\"{}\" is not a size such as 4.5bits", text);
      },
      ""));
  return option->option_text("BITS");
}

void add_output_filter(CLI::App& app, tensorcast::OutputFilter& filter) {
  options::for_each(options::request_options, [&](const auto& option) {
    if constexpr (options::is_filter<std::decay_t<decltype(option)>>) {
      add_request_option(app, option, filter.*option.member);
    }
  });
}

}  // namespace tcast
