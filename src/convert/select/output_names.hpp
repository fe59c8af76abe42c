// SPDX-License-Identifier: Apache-2.0
// Decides which tensors are written, and under which names.
#pragma once

#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "convert/select/pattern_list.hpp"
#include "formats/format.hpp"
#include "tensorcast/file.hpp"

namespace re2 {
class RE2;
}

namespace tensorcast::file_conversion {

// An OutputFilter, compiled.
class OutputNames {
 public:
  // Errors: invalid_argument, with the fault of a pattern or of a new name.
  [[nodiscard]] static Result<OutputNames> compile(const OutputFilter& filter);

  // Reports whether the output has the tensor.
  [[nodiscard]] bool writes(const std::string& name);
  // Returns the name in the output. Errors: invalid_argument if it is empty or too long.
  [[nodiscard]] Result<std::string> new_name(const std::string& name);

  // Returns the metadata of the output. Entries that name another tensor, as those of tied tensors do, follow its name,
  // or leave with it. `tensors` has the names of all tensors of the input. Errors: as new_name().
  [[nodiscard]] Result<formats::Metadata> metadata_of(const formats::Metadata& metadata,
                                                      const std::unordered_set<std::string>& tensors);

  // Errors: invalid_argument, if a pattern has matched no name so far.
  [[nodiscard]] Result<void> check_all_matched() const;

  // Reports whether every tensor is written under its own name.
  [[nodiscard]] bool keeps_all() const noexcept { return drop_.size() == 0 && only_.size() == 0 && renames_.empty(); }

 private:
  struct Renaming {
    std::string text;
    std::shared_ptr<const re2::RE2> regex;
    std::string replacement;
    bool matched = false;
  };
  [[nodiscard]] static Result<Renaming> compile_renaming(const Rename& rename);

  PatternList drop_;
  PatternList only_;
  std::vector<Renaming> renames_;
};

// Checks that no two of the new names are equal. Errors: invalid_argument, naming both tensors.
[[nodiscard]] Result<void> check_names_differ(const std::vector<std::string>& old_names,
                                              const std::vector<std::string>& new_names);

}  // namespace tensorcast::file_conversion
