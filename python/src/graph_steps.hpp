// Takes a graph apart into the calls that build it again, so that Python can pickle it.
#pragma once
// SPDX-License-Identifier: Apache-2.0
#include <nanobind/nanobind.h>

#include "tensorcast/graph.hpp"

namespace tensorcast::python {

// Returns (method, arguments) of the bound class Graph for each input, node and output, in order.
[[nodiscard]] nanobind::list steps_of(const Graph& graph);

}  // namespace tensorcast::python
