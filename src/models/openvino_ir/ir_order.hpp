// SPDX-License-Identifier: Apache-2.0
// Connects ports, and orders layers so that each comes after those that feed it.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "models/openvino_ir/ir_document.hpp"

namespace tensorcast::models::openvino_ir {

struct Wiring {
  std::map<std::int64_t, std::size_t> layers;  // index by id
  std::map<LayerPort, LayerPort> source;       // for every input port, the output port that feeds it
  std::vector<std::size_t> order;              // indices of all layers
};

// Errors: parse: ids or names that occur twice, edges from or to a missing port, input ports without an edge or with
// two, a cycle.
[[nodiscard]] Result<Wiring> connect(const Document& document);

}  // namespace tensorcast::models::openvino_ir
