#include "convert_rules.hpp"

#include <cerrno>
#include <fstream>
#include <regex>
#include <system_error>

#include <fmt/format.h>

namespace tcast {

using tensorcast::ConvertRule;
using tensorcast::Error;
using tensorcast::ErrorCode;
using tensorcast::Result;

std::string regex_complaint(const std::string& pattern) {
  try {
    const std::regex checked(pattern);
  } catch (const std::regex_error&) {
    return fmt::format("\"{}\" is not a regular expression (ECMAScript)", pattern);
  }
  return {};
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
  const auto dtype = tensorcast::parse_dtype(text.substr(split + 1));
  if (!dtype) return dtype.error();
  return ConvertRule{.pattern = std::move(pattern), .to = *dtype};
}

Result<std::vector<ConvertRule>> read_rules(const std::string& path) {
  std::ifstream file(path);
  if (!file) {
    return Error{.code = ErrorCode::io,
                 .message = fmt::format("cannot open: {}", std::generic_category().message(errno)),
                 .file = path};
  }
  std::vector<ConvertRule> rules;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    const auto first = line.find_first_not_of(" \t\r");
    if (first == std::string::npos || line[first] == '#') continue;
    const auto last = line.find_last_not_of(" \t\r");
    Result<ConvertRule> rule = parse_rule(std::string_view(line).substr(first, last - first + 1));
    if (!rule) {
      Error error = rule.error();
      error.code = ErrorCode::parse;
      error.message = fmt::format("line {}: {}", number, error.message);
      error.file = path;
      return error;
    }
    rules.push_back(*std::move(rule));
  }
  if (file.bad()) return Error{.code = ErrorCode::io, .message = "cannot read", .file = path};
  return rules;
}

CLI::Option* add_patterns(CLI::App& app, const std::string& name, std::vector<std::string>& target,
                          const std::string& help) {
  CLI::Option* option = repeatable(app.add_option(name, target, help)->option_text("REGEX"));
  option->check(CLI::Validator([](std::string& pattern) { return regex_complaint(pattern); }, ""));
  return option;
}

}  // namespace tcast
