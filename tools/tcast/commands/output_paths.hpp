// SPDX-License-Identifier: Apache-2.0
// Makes file names from the names of a model's tensors, which may be any text.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tensorcast/error.hpp"

namespace tcast {

// Returns one file name for each name, in order, all different even if case is ignored: letters, digits and `._-` are
// kept, everything else becomes `_`, and no name leaves its folder, is hidden, or is too long.
[[nodiscard]] std::vector<std::string> output_file_names(std::span<const std::string> names,
                                                         const std::string& extension);

// Returns the path of each input's output in `folder`: the input's name, with `extension` in place of its own unless
// that is empty. Errors: invalid_argument: two inputs would have the same output.
[[nodiscard]] tensorcast::Result<std::vector<std::string>> outputs_in(const std::string& folder,
                                                                      std::span<const std::string> inputs,
                                                                      const std::string& extension);

}  // namespace tcast
