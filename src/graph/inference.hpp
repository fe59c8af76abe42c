// Checks one node and says what comes out of it, before any run.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/value_type.hpp"
#include "tensorcast/graph.hpp"

namespace tensorcast::graph {

[[nodiscard]] std::string_view operation_name(const Operation& operation);

// node "NAME" (OPERATION); nodes without a name are told by their place and their first output.
[[nodiscard]] std::string node_label(const GraphNode& node, std::size_t index);

// The same error, which says now where it happened.
[[nodiscard]] Error at(const std::string& label, Error error);

// Number of inputs that the operation takes; outputs too, except for If.
[[nodiscard]] Result<void> check_arity(const GraphNode& node);

// What is known of the outputs of any operation but If, whose branches decide.
// Errors: invalid_argument, unsupported: types, versions and attributes that the operation does not have.
[[nodiscard]] Result<std::vector<ValueType>> infer_outputs(const Operation& operation,
                                                           std::span<const ValueType> inputs);

// Errors as above, for a conversion of which one end may be unknown (undefined).
[[nodiscard]] Result<void> check_cast(const CastOptions& options, DType from, DType to);

// Errors: unsupported: an opset that has no CastLike yet.
[[nodiscard]] Result<void> check_cast_like(const CastOptions& options);

}  // namespace tensorcast::graph
