// Binds graphs of conversions, models and differentiable nodes: the base of tensorcast.graph, CastNode, CastLikeNode
// and load_model.
#pragma once
// SPDX-License-Identifier: Apache-2.0
#include "numpy_api.hpp"

#include <nanobind/nanobind.h>

namespace tensorcast::python {

// Adds the classes Tensor, Graph, Program, CastNode, CastLikeNode and the function load_model.
void bind_graph(nanobind::module_& module);

}  // namespace tensorcast::python
