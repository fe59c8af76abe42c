// SPDX-License-Identifier: Apache-2.0
// Matches a user's regular expression against names from a file.
#pragma once

#include <memory>
#include <string>

#include "tensorcast/error.hpp"

namespace re2 {
class RE2;
}

namespace tensorcast::file_conversion {

// RE2's syntax, without backreferences and lookaround. Matching takes time proportional to the name, and the depth of
// the stack depends on neither pattern nor name.
class NamePattern {
 public:
  // Errors: invalid_argument, with the fault of the pattern.
  [[nodiscard]] static Result<NamePattern> compile(const std::string& pattern);

  // Reports whether some part of `name` matches.
  [[nodiscard]] bool matches(const std::string& name) const;

 private:
  explicit NamePattern(std::shared_ptr<const re2::RE2> regex) : regex_(std::move(regex)) {}

  std::shared_ptr<const re2::RE2> regex_;
};

}  // namespace tensorcast::file_conversion
