// SPDX-License-Identifier: Apache-2.0
// Makes file names from the names of a model's tensors, which may be any text.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace tcast {

// Returns one file name for each name, in order, all different even if case is ignored: letters, digits and `._-` are
// kept, everything else becomes `_`, and no name leaves its folder, is hidden, or is too long.
[[nodiscard]] std::vector<std::string> output_file_names(std::span<const std::string> names,
                                                         const std::string& extension);

}  // namespace tcast
