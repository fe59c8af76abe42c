// A user's regular expression, matched against names that a file has chosen.
#pragma once

#include <memory>
#include <string>

#include "tensorcast/error.hpp"

namespace re2 {
class RE2;
}

namespace tensorcast::convert {

// RE2's syntax, which has no backreferences and no lookaround. Hence matching takes time in proportion to the name, and
// neither pattern nor name decides how deep the stack gets.
class NamePattern {
 public:
  // Errors: invalid_argument, with what is wrong in the pattern.
  [[nodiscard]] static Result<NamePattern> compile(const std::string& pattern);

  // Reports whether some part of `name` matches.
  [[nodiscard]] bool matches(const std::string& name) const;

 private:
  explicit NamePattern(std::shared_ptr<const re2::RE2> regex) : regex_(std::move(regex)) {}

  std::shared_ptr<const re2::RE2> regex_;
};

}  // namespace tensorcast::convert
