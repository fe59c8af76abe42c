// File names for tensors of a model, whose names may be anything.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace tcast {

// One for each name, in order, all different even where case does not count: letters, digits and `._-` are kept,
// everything else becomes `_`, and no name leads out of its folder, is hidden, or is too long.
[[nodiscard]] std::vector<std::string> output_file_names(std::span<const std::string> names,
                                                         const std::string& extension);

}  // namespace tcast
