// SPDX-License-Identifier: Apache-2.0
// Nodes that a request names: by operator, name, pattern, domain, graph or tensor.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/onnx/ir/model_ir.hpp"

namespace tensorcast::models::onnx {

// Returns for each node, by its id, whether one of `entries` selects it; ConvertRequest::keep has their form. `option`
// is what messages call the list. Errors: invalid_argument: an entry that is malformed, or selects nothing.
[[nodiscard]] Result<std::vector<bool>> select_nodes(const Model& model, const std::vector<std::string>& entries,
                                                     std::string_view option);

// Checks what no model decides. Errors: invalid_argument: an entry that is malformed.
[[nodiscard]] Result<void> check_selectors(const std::vector<std::string>& entries);

}  // namespace tensorcast::models::onnx
