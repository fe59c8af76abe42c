// SPDX-License-Identifier: Apache-2.0
#include "quantized/names/name_pattern.hpp"

#include <fmt/format.h>
#include <re2/re2.h>

#include "dtype/errors.hpp"
#include "dtype/guarded.hpp"
#include "tensorcast/file.hpp"

namespace tensorcast::file_conversion {
namespace {

constexpr std::size_t max_pattern_bytes = 1000;
constexpr std::size_t max_shown_bytes = 60;

}  // namespace

Result<NamePattern> NamePattern::compile(const std::string& pattern) {
  // Checked first, as compiling takes time proportional to the pattern.
  if (pattern.size() > max_pattern_bytes) {
    return invalid(fmt::format("a pattern of {} bytes is too long; {} are allowed", pattern.size(), max_pattern_bytes));
  }
  re2::RE2::Options options(re2::RE2::Quiet);
  options.set_never_capture(true);
  auto regex = std::make_shared<const re2::RE2>(pattern, options);
  if (regex->ok()) return NamePattern(std::move(regex));
  std::string shown = pattern.substr(0, max_shown_bytes);
  if (shown.size() < pattern.size()) shown += "...";
  const bool is_unsupported =
      regex->error_code() == re2::RE2::ErrorBadPerlOp || regex->error_code() == re2::RE2::ErrorBadEscape;
  return invalid(fmt::format("\"{}\" is not a regular expression: {}", shown, regex->error()),
                 is_unsupported ? "RE2's syntax: no backreferences, no lookaround" : "");
}

bool NamePattern::matches(const std::string& name) const { return re2::RE2::PartialMatch(name, *regex_); }

}  // namespace tensorcast::file_conversion

namespace tensorcast {
inline namespace TENSORCAST_ABI {

Result<void> check_pattern(const std::string& pattern) {
  return guarded([&]() -> Result<void> {
    const Result<file_conversion::NamePattern> compiled = file_conversion::NamePattern::compile(pattern);
    return compiled ? Result<void>() : compiled.error();
  });
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
