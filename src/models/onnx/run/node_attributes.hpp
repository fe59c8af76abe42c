// SPDX-License-Identifier: Apache-2.0
// The attributes of a node, and how the supported operators read them.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "models/onnx/ir/model_ir.hpp"
#include "models/onnx/run/tensor_loader.hpp"
#include "tensorcast/cast_options.hpp"
#include "tensorcast/dtype.hpp"
#include "tensorcast/error.hpp"
#include "tensorcast/graph.hpp"

namespace tensorcast::models::onnx {

// Attributes by name, with references to a function's attributes resolved.
using Attributes = std::map<std::string, const Attribute*, std::less<>>;

// Returns the attributes of `node` inside a function that was called with `outer`; `outer` is null outside functions. A
// reference to an attribute that the call omits counts as absent. Errors: parse.
[[nodiscard]] Result<Attributes> resolve_attributes(const Node& node, const Attributes* outer);

// Returns the first opset in which the operator (one of those that are run) has the attribute; 0 if none.
[[nodiscard]] int attribute_since(std::string_view op_type, std::string_view attribute) noexcept;
// Checks attribute names. Errors: unsupported, naming the first attribute that the operator does not have in this
// opset.
[[nodiscard]] Result<void> check_attributes(std::string_view op_type, int opset, const Attributes& attributes);

// Reads `saturate` and `round_mode`. Errors: parse; unsupported.
[[nodiscard]] Result<CastOptions> cast_options(int opset, const Attributes& attributes);
// Reads `to`: a name before opset 6, then a number. Errors: parse; unsupported.
[[nodiscard]] Result<DType> cast_target(int opset, const Attributes& attributes);
// Returns the attribute, or `otherwise` if the node does not have it. Errors: parse.
[[nodiscard]] Result<std::int64_t> integer_attribute(std::string_view name, std::int64_t otherwise,
                                                     const Attributes& attributes);
// Reads an optional attribute that is a number of TensorProto.DataType; undefined if absent or 0. Errors: parse;
// unsupported.
[[nodiscard]] Result<DType> type_attribute(std::string_view name, const Attributes& attributes);
// Returns the value of a Constant. Errors: parse; unsupported; io.
[[nodiscard]] Result<Tensor> constant_value(const Attributes& attributes, TensorLoader& loader);
// Errors: parse.
[[nodiscard]] Result<const Graph*> branch(std::string_view name, const Attributes& attributes);

}  // namespace tensorcast::models::onnx
