// Graphs of conversions, the models that hold them, and nodes that run backward: what tensorcast.graph, CastNode,
// CastLikeNode and load_model stand on.
#pragma once

#include "numpy_api.hpp"

#include <nanobind/nanobind.h>

namespace tensorcast::python {

// Adds the classes Tensor, Graph, Program, CastNode, CastLikeNode and the function load_model.
void bind_graph(nanobind::module_& module);

}  // namespace tensorcast::python
