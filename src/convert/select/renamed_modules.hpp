// SPDX-License-Identifier: Apache-2.0
// What the names of modules in configurations become after `rename`.
#pragma once
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "quantized/layout/config_text.hpp"
#include "tensorcast/error.hpp"

namespace tensorcast::file_conversion {

// Entries that change, and those in their places.
using NewEntries = std::map<std::string, std::vector<std::string>>;

// Members of a description, or of the metadata of ComfyUI, that have a member for each module.
[[nodiscard]] bool has_modules_as_keys(std::string_view key) noexcept;

// Finds the entries of all descriptions that must change. An entry that names a module, or modules inside it, is
// renamed as they are. A pattern stays if it matches the same modules under their new names; else these stand in its
// place. Entries that name no module stay. `names`: of all tensors that are written, in the input and in the output.
// Errors: unsupported: several modules would have to stand in the place of a key, or one is torn apart.
[[nodiscard]] Result<NewEntries> new_entries(std::span<const quantized::ConfigText> texts,
                                             std::span<const std::pair<std::string, std::string>> names);

}  // namespace tensorcast::file_conversion
