// SPDX-License-Identifier: Apache-2.0
// The element types of all values of a model, from the schemas of its operators; shapes are not needed.
#pragma once

#include <map>
#include <vector>

#include "models/onnx/ir/model_ir.hpp"

namespace tensorcast::models::onnx {

// Sets Value::type of all values whose type follows from the node or initializer that makes them; others keep the type
// that the model declares, or stay unknown. The types inside a function are those of its calls if all calls agree, and
// unknown otherwise.
void infer_types(Model& model);

// A node that calls a function, and the types that it gives: unknown for an omitted input, and left out at the end.
struct FunctionCall {
  Node* node = nullptr;
  std::vector<ValueType> signature;
  bool varies = false;  // the node is in a function that is itself called with several types
};

// As infer_types(), and returns the calls of each function, by its body, in the order in which they happen.
[[nodiscard]] std::map<const Graph*, std::vector<FunctionCall>> infer_calls(Model& model);

}  // namespace tensorcast::models::onnx
