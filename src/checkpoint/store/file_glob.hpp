// SPDX-License-Identifier: Apache-2.0
// Matches globs such as "*.bin" and "original/**" against the names of a checkpoint's files.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "convert/select/pattern_list.hpp"
#include "tensorcast/error.hpp"

namespace tensorcast::checkpoint {

class FileGlobs {
 public:
  // Errors: invalid_argument.
  [[nodiscard]] static Result<FileGlobs> compile(const std::vector<std::string>& globs);

  // Reports whether a glob matches the relative name, or that of a folder above.
  [[nodiscard]] bool match(const std::string& name) { return patterns_.matches(name); }

  // Errors: invalid_argument, for a glob that has matched nothing so far.
  [[nodiscard]] Result<void> check_all_matched() const;

 private:
  file_conversion::PatternList patterns_;
};

// The regular expression of a glob.
[[nodiscard]] std::string regex_of_glob(std::string_view glob);

}  // namespace tensorcast::checkpoint
