#include "convert/name_pattern.hpp"

#include <fmt/format.h>

namespace tensorcast::convert {
namespace {

constexpr std::size_t max_pattern_bytes = 1000;
constexpr std::size_t max_name_bytes = 1000;

#ifdef __GLIBCXX__
// Otherwise libstdc++ backtracks: exponential time, and a stack frame per byte of the name.
constexpr auto bounded = std::regex_constants::__polynomial;
#else
constexpr auto bounded = std::regex_constants::ECMAScript;
#endif

}  // namespace

Result<NamePattern> NamePattern::compile(const std::string& pattern) {
  if (pattern.size() > max_pattern_bytes) {
    return Error{
        .code = ErrorCode::invalid_argument,
        .message = fmt::format("a pattern of {} bytes is too long; {} are allowed", pattern.size(), max_pattern_bytes)};
  }
  try {
    return NamePattern(std::regex(pattern, std::regex::ECMAScript | std::regex::nosubs | bounded));
  } catch (const std::regex_error& problem) {
    return Error{.code = ErrorCode::invalid_argument,
                 .message = fmt::format("\"{}\" is not a regular expression: {}", pattern, problem.what())};
  }
}

Result<bool> NamePattern::matches(const std::string& name) const {
  if (name.size() > max_name_bytes) {
    return Error{.code = ErrorCode::unsupported,
                 .message = fmt::format("a tensor's name of {} bytes is too long for patterns", name.size())};
  }
  try {
    return std::regex_search(name, regex_);
  } catch (const std::regex_error& problem) {
    return Error{.code = ErrorCode::unsupported,
                 .message = fmt::format("the pattern is too complex: {}", problem.what()),
                 .tensor = name};
  }
}

}  // namespace tensorcast::convert
