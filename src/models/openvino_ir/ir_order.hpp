// Which port feeds which, and an order in which every layer follows those that feed it.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "models/openvino_ir/ir_document.hpp"

namespace tensorcast::models::openvino_ir {

struct Wiring {
  std::map<std::int64_t, std::size_t> layers;  // index by id
  std::map<LayerPort, LayerPort> source;       // of every input port, the output port that feeds it
  std::vector<std::size_t> order;              // of all layers, as indices
};

// Errors: parse: ids or names that occur twice, edges from or to nothing, input ports without an edge or with two, a
// cycle.
[[nodiscard]] Result<Wiring> connect(const Document& document);

}  // namespace tensorcast::models::openvino_ir
