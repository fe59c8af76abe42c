// SPDX-License-Identifier: Apache-2.0
// The two parsers behind parse_tree().
#pragma once

#include <string_view>

#include "models/mdf/mdf_tree.hpp"

namespace tensorcast::models::mdf {

[[nodiscard]] Result<Tree> parse_json(std::string_view text, bool binary);
// Parses scalars by YAML 1.2. Errors for merge keys (<<), custom tags, several documents.
[[nodiscard]] Result<Tree> parse_yaml(std::string_view text);

}  // namespace tensorcast::models::mdf
