// SPDX-License-Identifier: Apache-2.0
// Many patterns of a description, which a name is matched against in one pass.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tensorcast::quantized {

// Returns the regular expression of a glob that matches whole names, as Python's fnmatch.
[[nodiscard]] std::string pattern_of_glob(std::string_view glob);

class PatternSet {
 public:
  // Regular expressions in RE2's syntax that match the beginning of a name, as Python's re.match; each may have 1000
  // bytes. Memory: in proportion to their bytes, and at most 64 MiB for matching.
  explicit PatternSet(std::vector<std::string> patterns = {});

  // Returns the patterns that match, in their order. Time: in proportion to the name.
  [[nodiscard]] std::vector<std::size_t> find_all(const std::string& name) const;
  // The first pattern that RE2 does not have, such as one with lookahead, and which therefore matches nothing.
  [[nodiscard]] std::optional<std::size_t> first_unknown() const noexcept { return first_unknown_; }
  [[nodiscard]] const std::string& operator[](std::size_t index) const noexcept { return patterns_[index]; }

 private:
  struct Part;  // some of the patterns

  std::vector<std::string> patterns_;
  std::vector<std::shared_ptr<const Part>> parts_;
  std::optional<std::size_t> first_unknown_;
};

}  // namespace tensorcast::quantized
