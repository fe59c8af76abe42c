// The attributes of a node, and how the operators that are run read them.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "models/onnx/model_tree.hpp"
#include "models/onnx/tensor_loader.hpp"
#include "tensorcast/cast.hpp"
#include "tensorcast/graph.hpp"

namespace tensorcast::models::onnx {

// By name; those of functions with their references resolved.
using Attributes = std::map<std::string, const AttributeTree*, std::less<>>;

// Those of `node` inside a function that was called with `outer`; null outside of functions. A reference to an
// attribute that the call left out is as if it were not there. Errors: parse.
[[nodiscard]] Result<Attributes> resolve_attributes(const NodeTree& node, const Attributes* outer);

// Cast, CastLike, Constant, Identity and If have the attribute from this opset on; 0: never.
[[nodiscard]] int attribute_since(std::string_view op_type, std::string_view attribute) noexcept;
// Errors: unsupported, naming the first attribute that the operator does not have in this opset.
[[nodiscard]] Result<void> check_attributes(std::string_view op_type, int opset, const Attributes& attributes);

// `saturate` and `round_mode`. Errors: parse; unsupported.
[[nodiscard]] Result<CastOptions> cast_options(int opset, const Attributes& attributes);
// `to`: a name before opset 6, then a number. Errors: parse; unsupported.
[[nodiscard]] Result<DType> cast_target(int opset, const Attributes& attributes);
// The one value of a Constant. Errors: parse; unsupported; io.
[[nodiscard]] Result<Tensor> constant_value(const Attributes& attributes, TensorLoader& loader);
// Errors: parse.
[[nodiscard]] Result<const GraphTree*> branch(std::string_view name, const Attributes& attributes);

}  // namespace tensorcast::models::onnx
