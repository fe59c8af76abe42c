// SPDX-License-Identifier: Apache-2.0
#include "flags/convert_rules.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>

#include <fmt/format.h>

#include "dtype/errors.hpp"
#include "dtype/text_parts.hpp"
#include "dtype/try.hpp"
#include "flags/request_flags.hpp"
#include "flags/rules_yaml.hpp"
#include "options/value_text.hpp"
#include "process/printable.hpp"
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
    return tensorcast::invalid(fmt::format("\"{}\" is not a rule", text),
                               "a rule is REGEX=DTYPE, for example '\\.bias$=float32'");
  }
  std::string pattern(text.substr(0, split));
  if (std::string complaint = regex_complaint(pattern); !complaint.empty())
    return tensorcast::invalid(std::move(complaint));
  tensorcast::ConvertTarget target = TRY(tensorcast::parse_target(text.substr(split + 1)));
  ConvertRule rule{.pattern = std::move(pattern), .to = target.to};
  rule.scheme = std::move(target.scheme);
  rule.recipe = std::move(target.recipe);
  return rule;
}

Result<void> add_rules(const std::string& path, tensorcast::ConvertRequest& request) {
  constexpr std::uint64_t max_rules_bytes = std::uint64_t{16} << 20;
  const std::string text = TRY(tensorcast::read_whole_file(path, max_rules_bytes));
  if (path.ends_with(".yaml") || path.ends_with(".yml")) return add_yaml_rules(text, path, request);
  int number = 0;
  for (const std::string_view line : tensorcast::split(text, '\n')) {
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
    return tensorcast::invalid(fmt::format("\"{}\" does not say what becomes what", text),
                               "write REGEX=NEW, for example '^module\\.='");
  }
  tensorcast::Rename rename{.pattern = std::string(text.substr(0, split)),
                            .replacement = std::string(text.substr(split + 1))};
  TRY(tensorcast::check_rename(rename));
  return rename;
}

CLI::Option* add_patterns(CLI::App& app, const std::string& name, std::vector<std::string>& target,
                          const std::string& help) {
  return repeatable(app.add_option(name, target, help)->option_text("REGEX"))->check(check(regex_complaint));
}

CLI::Option* add_renames(CLI::App& app, const std::string& name, std::vector<tensorcast::Rename>& target,
                         const std::string& help) {
  return add_read_all(app, name, target, help, [](const std::string& text, std::vector<tensorcast::Rename>& renames) {
    const Result<tensorcast::Rename> parsed = parse_rename(text);
    if (parsed) renames.push_back(*parsed);
    return complaint_of(parsed);
  });
}

CLI::Option* add_target(CLI::App& app, const std::string& name, tensorcast::TensorTargets& targets,
                        const std::string& help) {
  return add_read(app, name, targets, help, [](const std::string& text, tensorcast::TensorTargets& read) {
    const Result<tensorcast::ConvertTarget> target = tensorcast::parse_target(text);
    if (!target) return complaint_of(target);
    read.to = target->to;
    read.scheme = target->scheme;
    read.recipe = target->recipe;
    return std::string();
  });
}

CLI::Option* add_size(CLI::App& app, const std::string& name, std::uint64_t& target, const std::string& help) {
  return add_read(app, name, target, help, [](const std::string& text, std::uint64_t& bytes) {
    const std::optional<std::uint64_t> size = options::parse_size(text);
    bytes = size.value_or(bytes);
    const bool has_unit = !text.empty() && (text.back() < '0' || text.back() > '9') && text.back() != '.';
    if (size && !has_unit) return fmt::format("\"{0}\" has no unit: write {0}GB, {0}MB or {0}B", text);
    return size ? std::string() : fmt::format("\"{}\" is not a size such as 5GB or 800MB", text);
  });
}

CLI::Option* add_bits(CLI::App& app, const std::string& name, double& target, const std::string& help) {
  const auto read = [](const std::string& text, double& bits) {
    const std::optional<double> size = options::parse_bits(text);
    bits = size.value_or(bits);
    return size ? std::string() : fmt::format("\"{}\" is not a size such as 4.5bits", text);
  };
  return add_read(app, name, target, help, read)->option_text("BITS");
}

void add_output_filter(CLI::App& app, tensorcast::OutputFilter& filter) {
  options::for_each(options::request_options, [&](const auto& option) {
    if constexpr (options::is_filter<std::decay_t<decltype(option)>>) {
      add_request_option(app, option, filter.*option.member);
    }
  });
}

}  // namespace tcast
