// A user's regular expression, matched against names that a hostile file may have chosen.
#pragma once

#include <regex>
#include <string>

#include "tensorcast/error.hpp"

namespace tensorcast::convert {

// ECMAScript without back-references: matching takes polynomial time and a stack that the name cannot grow.
class NamePattern {
 public:
  // Errors: invalid_argument, with what is wrong in the pattern.
  [[nodiscard]] static Result<NamePattern> compile(const std::string& pattern);

  // Whether some part of `name` matches. Errors: unsupported for names too long to be matched.
  [[nodiscard]] Result<bool> matches(const std::string& name) const;

 private:
  explicit NamePattern(std::regex regex) : regex_(std::move(regex)) {}

  std::regex regex_;
};

}  // namespace tensorcast::convert
