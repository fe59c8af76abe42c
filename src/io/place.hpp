// SPDX-License-Identifier: Apache-2.0
// Where paths lead: files and folders are compared by device and inode, through links, whether they exist yet or not.
#pragma once

#include <string>
#include <vector>

#include "io/input_file.hpp"
#include "tensorcast/error.hpp"

namespace tensorcast::io {

class Place {
 public:
  // Follows symbolic links. Names at the end that do not exist yet are names below the nearest folder that does. A URL
  // is its text. Errors: io, if a folder on the way cannot be looked up.
  [[nodiscard]] static Result<Place> of(const std::string& path);

  [[nodiscard]] bool is(const Place& other) const noexcept;
  // Reports whether this is below `folder`, at any depth. A folder is not below itself.
  [[nodiscard]] bool is_below(const Place& folder) const noexcept;

 private:
  std::vector<InputFile::Identity> chain_;  // from the root to the last part that exists; empty: a URL
  std::vector<std::string> missing_;        // parts that do not exist; of a URL all
};

}  // namespace tensorcast::io
