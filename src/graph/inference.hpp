// SPDX-License-Identifier: Apache-2.0
// Checks one node and infers the types of its outputs before a run.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dtype/error_places.hpp"
#include "graph/value_type.hpp"
#include "tensorcast/graph.hpp"

namespace tensorcast::graph {

[[nodiscard]] std::string_view operation_name(const Operation& operation);

// Returns `node "NAME" (OPERATION)`; a node without a name is identified by its index and first output.
[[nodiscard]] std::string node_label(const GraphNode& node, std::size_t index);

// Checks the number of inputs that the operation takes, and of outputs, except for If.
[[nodiscard]] Result<void> check_arity(const GraphNode& node);

// Returns what is known of the outputs of any operation but If, whose outputs depend on its branches.
// Errors: invalid_argument, unsupported: types, versions and attributes that the operation does not have.
[[nodiscard]] Result<std::vector<ValueType>> infer_outputs(const Operation& operation,
                                                           std::span<const ValueType> inputs);

// Checks a conversion of which one type may be unknown (undefined). Errors: as infer_outputs().
[[nodiscard]] Result<void> check_cast(const CastOptions& options, DType from, DType to);

// Checks the opset. Errors: unsupported: an opset without CastLike.
[[nodiscard]] Result<void> check_cast_like(const CastOptions& options);

}  // namespace tensorcast::graph
